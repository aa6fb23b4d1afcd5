"""Context packs: the sections that a task needs, under a hard budget, as one Markdown text (``retrieval.md`` 12).

The text is the same bytes for page, API and agents: no relative times, no scores. Tokens are bytes / 3, rounded up, and
everything in the text counts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import UUID

from apps.access.errors import Invalid
from apps.indexing.scope import visible_blocks
from apps.indexing.stores import Block as BlockName
from apps.retrieval import emptiness
from apps.retrieval.beside import Beside
from apps.retrieval.marking import matches_in
from apps.retrieval.ordering import Fused, fuse_blocks
from apps.retrieval.pack_around import of_code, pointer, pointers_around, with_code
from apps.retrieval.packing import Pack, Part, Pointer, compose
from apps.retrieval.sections import SectionUnit, text_of, unit_at
from apps.retrieval.shelf_values import Candidate
from apps.retrieval.shelf_values import Found as Winner
from apps.retrieval.snippets import snip
from apps.retrieval.streams import Streams, absent_words, all_absent, riders_of, run_blocks
from apps.retrieval.surroundings import Document, documents_of, links_from
from apps.retrieval.values import Question

if TYPE_CHECKING:
    from apps.access.viewers import Viewer
    from apps.retrieval.beside_values import GraphBlocks

DEFAULT_TOKENS = 8000
MIN_TOKENS, MAX_TOKENS = 500, 24_000
MAX_TASK_CHARS = 4000
QUERY_CHARS = 2000
SEED_CUT = 0.7
SECTIONS_A_DOCUMENT = 3
CHARS_A_DOCUMENT = 8000
POINTED_ROWS = 10
BESIDE_CUT = 0.5
"""Of the best score: a neighbour by graph or link that reaches it may enter whole."""
WINDOW_CHARS = 240


@dataclass(slots=True)
class _Chosen:
    """What of one document goes in: units in score order, with the reason of each."""

    document: Document
    units: list[tuple[SectionUnit, str]] = field(default_factory=list)
    used: int = 0
    """Characters."""
    winner: Winner | None = None
    """Of its first row: how fresh the document is."""


def context(
    *,
    viewer: Viewer,
    task: str,
    max_tokens: int = DEFAULT_TOKENS,
    repository: UUID | None = None,
    collection: UUID | None = None,
) -> Pack:
    """The pack for ``task`` inside what ``viewer`` may read; a named source was looked up by the caller.

    Raises Invalid for an empty or over-long task and a budget out of bounds.
    """
    task = task.replace("\0", " ").strip()
    if not task:
        raise Invalid("Say what you are about to do: the task is empty.", code="required", field="task")
    if len(task) > MAX_TASK_CHARS:
        raise Invalid(f"A task has at most {MAX_TASK_CHARS} characters.", code="out_of_range", field="task")
    if not MIN_TOKENS <= max_tokens <= MAX_TOKENS:
        raise Invalid(f"max_tokens is {MIN_TOKENS} to {MAX_TOKENS}.", code="out_of_range", field="max_tokens")
    sources = [("repository", repository)] if repository else []
    sources += [("collection", collection)] if collection else []
    named = [(kind, id) for kind, id in sources if id is not None]
    question = Question(task[:QUERY_CHARS], sources=tuple(named))
    blocks: dict[BlockName, None] = {"docs": None, "code": None}
    scopes = visible_blocks(
        viewer, blocks=blocks, sources=named or None, riders=riders_of(question.query, blocks, conditions={})
    )
    if not any(source.chunks for scope in scopes for source in scope.sources):
        return _nothing(task, max_tokens, emptiness.without_text(viewer, question))
    asked = [scope for scope in scopes if scope.block == "docs" or any(source.chunks for source in scope.sources)]
    asked_streams = run_blocks(asked, question.query)
    streams = asked_streams[0]
    if streams.terms.only_common_words and not streams.names.rows:
        return _nothing(task, max_tokens, emptiness.only_common_words(question))
    beside = Beside(viewer, question.filters)
    # A block that holds no word of the task, and nothing that it names, takes no part.
    heard = [one for one in asked_streams if not all_absent(one) or one.symbols or one.names.rows]
    found = {one.block: (one, fused) for one, fused in zip(heard, fuse_blocks(heard), strict=True)}
    code = found["code"] if "code" in found and found["code"][1].order else None
    fused = beside.set_aside(*found["docs"]) if "docs" in found else None
    if fused is not None and (fused.order or beside.moved):
        return _packed(task, max_tokens, streams, fused, beside.blocks(), code)
    if code is None:
        return _nothing(task, max_tokens, emptiness.words_absent(question, asked_streams, absent_words(streams)))
    _, found_code = with_code([], [], code)
    return compose(task=task, max_tokens=max_tokens, parts=[], pointers=of_code((), (), {}, found_code))


def _packed(
    task: str,
    max_tokens: int,
    streams: Streams,
    fused: Fused,
    graph: GraphBlocks,
    code: tuple[Streams, Fused] | None,
) -> Pack:
    finals = fused.standings.finals(fused.order.column("ref")) if fused.order else [0.0]
    best = finals[0]
    seeds = fused.order[: sum(final >= SEED_CUT * best for final in finals)]
    lower = fused.order[len(seeds) :]
    # Which of the close rows stand beside the seeds is known before any text is: so all texts come at once.
    links = links_from(dict.fromkeys(row.document_id for row in seeds))
    near = {target for _, target in links.pairs} | {one.place.document_id for one in graph.neighbours}
    close = _first_of_each(lower[: sum(final >= BESIDE_CUT * best for final in finals[len(seeds) :])], near)
    documents = documents_of(streams.scope, [*seeds, *lower[:POINTED_ROWS], *close])
    (winners,), in_code = with_code([(streams, [*seeds, *close], fused)], seeds, code)
    chosen, left = _choose(seeds, documents, streams, fused, winners)
    parts, stale = _parts(chosen)
    around = pointers_around(
        streams.scope, [one.document for one in chosen], seeds, fused, graph.neighbours, links, in_code
    )
    pointers = [*left, *_sub_sections(chosen), *around]
    pointers += [
        pointer("seed", documents[row.document_id], _unit(row, documents[row.document_id]), "matches less well")
        for row in lower[:POINTED_ROWS]
        if row.document_id in documents
    ]
    return compose(
        task=task,
        max_tokens=max_tokens,
        parts=parts,
        beside=_beside(around, close, streams, documents, winners),
        pointers=_distinct(pointers, parts),
        stale=stale,
        degraded=tuple(f"{one.stream}: {one.reason}" for one in streams.degraded),
        absent=tuple(absent_words(streams)),
        rejected=graph.already_rejected,
    )


def _first_of_each(rows: Sequence[Candidate], documents: Collection[UUID | None]) -> list[Candidate]:
    """The best row of each of ``documents`` that has one."""
    best: dict[UUID, Candidate] = {}
    for row in rows:
        if row.document_id in documents:
            best.setdefault(row.document_id, row)
    return list(best.values())


def _beside(
    around: Sequence[Pointer],
    close: Sequence[Candidate],
    streams: Streams,
    documents: Mapping[UUID, Document],
    winners: Mapping[int, Winner],
) -> list[Part]:
    """The best sections of neighbours by graph or link; ``close`` are the rows that match the task well enough, one a
    document."""
    reasons = {one.document_id: one for one in reversed(around) if one.tier in ("graph", "link") and one.document_id}
    parts: list[Part] = []
    for row in close:
        winner, document, reason = winners.get(row.ref), documents.get(row.document_id), reasons.get(row.document_id)
        if winner is None or document is None or reason is None:
            continue
        unit = unit_at(document.structure, document.lines, _best_line(row, winner, streams))
        if document.is_as_indexed(unit):
            parts.append(_part(reason.tier, document, unit, reason.why, winner))
    return parts


def _choose(
    seeds: Sequence[Candidate],
    documents: Mapping[UUID, Document],
    streams: Streams,
    fused: Fused,
    winners: Mapping[int, Winner],
) -> tuple[list[_Chosen], list[Pointer]]:
    """Units of the seeds in score order, within what one document may bring; the rest as pointers."""
    chosen: dict[UUID, _Chosen] = {}
    left: list[Pointer] = []
    for row in seeds:
        document = documents.get(row.document_id)
        if document is None:
            continue
        held = chosen.setdefault(row.document_id, _Chosen(document))
        winner = winners.get(row.ref)
        held.winner = held.winner or winner
        line = _best_line(row, winner, streams) if winner else row.start_line
        unit = unit_at(document.structure, document.lines, line)
        if any(known.start <= unit.start and unit.end <= known.end for known, _ in held.units):
            continue
        # A section that holds one already chosen takes its place.
        inside = [entry for entry in held.units if unit.start <= entry[0].start and entry[0].end <= unit.end]
        freed = sum(len(text_of(document.lines, entry[0])) for entry in inside)
        size = len(text_of(document.lines, unit))
        first = not held.units
        fits = held.used - freed + size <= CHARS_A_DOCUMENT and len(held.units) - len(inside) < SECTIONS_A_DOCUMENT
        if not fits and not first:
            left.append(pointer("seed", document, unit, "its document has its share already"))
            continue
        held.units = [entry for entry in held.units if entry not in inside]
        why = "named by the task" if fused.classes.get(row.ref) else "matches the task"
        held.units.append((unit, why))
        held.used += size - freed
    return [one for one in chosen.values() if one.units], left


def _best_line(row: Candidate, winner: Winner, streams: Streams) -> int:
    """The line where the task is met best: a chunk may hold several short sections."""
    matches = matches_in(streams.terms, winner.text, winner.language)
    if not matches or streams.lexical is None:
        return row.start_line
    weights = {str(unit): value for unit, value in streams.lexical.idf.items()}
    window = snip(winner.text, matches, weights, chars=WINDOW_CHARS, first_line=winner.start_line)
    first = window.start + (window.marks[0][0] if window.marks else 0)
    return winner.start_line + winner.text.count("\n", 0, first)


def _unit(row: Candidate, document: Document) -> SectionUnit:
    return unit_at(document.structure, document.lines, row.start_line)


def _parts(chosen: Sequence[_Chosen]) -> tuple[list[Part], list[str]]:
    """Bodies, each document's in file order; what no longer agrees with the index is named stale."""
    parts: list[Part] = []
    stale: list[str] = []
    for one in chosen:
        document = one.document
        for unit, why in sorted(one.units, key=lambda entry: entry[0].start):
            if not document.is_as_indexed(unit):
                stale.append(document.path)
                continue
            parts.append(_part("seed", document, unit, why, one.winner))
    return parts, list(dict.fromkeys(stale))


def _part(tier: str, document: Document, unit: SectionUnit, why: str, winner: Winner | None) -> Part:
    return Part(
        tier=tier,
        document_id=document.id,
        title=document.title,
        path=document.path,
        anchor=unit.anchor,
        heading_path=unit.heading_path,
        start_line=unit.start,
        end_line=unit.end,
        version=document.version,
        source=document.source,
        url=document.address(unit.anchor),
        why=why,
        body=text_of(document.lines, unit),
        checked_time=winner.checked_time if winner else None,
        stale_since=winner.stale_since if winner else None,
    )


def _sub_sections(chosen: Sequence[_Chosen]) -> list[Pointer]:
    return [
        pointer("seed", one.document, below, f"below “{unit.heading_path[-1]}”" if unit.heading_path else "below")
        for one in chosen
        for unit, _ in one.units
        for below in unit.below
    ]


def _distinct(pointers: Sequence[Pointer], parts: Sequence[Part]) -> list[Pointer]:
    shown = {part.location for part in parts}
    found: dict[str, Pointer] = {}
    for one in pointers:
        if one.location not in shown:
            found.setdefault(one.location or one.title, one)
    return list(found.values())


def _nothing(task: str, max_tokens: int, answer: Any) -> Pack:
    """A pack without parts says why, and what headings are near."""
    near = [
        Pointer("seed", " › ".join(one.heading_path) or one.title, "", one.url, 0, "near in meaning")
        for one in answer.nearest
    ]
    reason = answer.empty.message if answer.empty else "Nothing was found."
    return compose(
        task=task,
        max_tokens=max_tokens,
        parts=[],
        pointers=near,
        empty=reason,
        reason=answer.empty.reason if answer.empty else "",
    )
