"""Context packs: the sections that a task needs, under a hard budget, as one Markdown text (``retrieval.md`` 12).

The text is the same bytes for page, API and agents: no relative times, no scores. Tokens are bytes / 3, rounded up, and
everything in the text counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from apps.access.errors import Invalid
from apps.indexing.scope import Scope, visible
from apps.retrieval import emptiness
from apps.retrieval.hits import hydrate
from apps.retrieval.marking import matches_in
from apps.retrieval.ordering import Fused, fuse_streams
from apps.retrieval.packing import Pack, Part, Pointer, compose
from apps.retrieval.sections import SectionUnit, text_of, unit_at
from apps.retrieval.shelf_values import Candidate
from apps.retrieval.shelf_values import Found as Winner
from apps.retrieval.snippets import snip
from apps.retrieval.streams import Streams, absent_words, all_absent, run_streams
from apps.retrieval.surroundings import Document, documents_of, linked_from, side_by_side
from apps.retrieval.values import Question

if TYPE_CHECKING:
    from apps.access.viewers import Viewer

DEFAULT_TOKENS = 8000
MIN_TOKENS, MAX_TOKENS = 500, 24_000
MAX_TASK_CHARS = 4000
QUERY_CHARS = 2000
SEED_CUT = 0.7
SECTIONS_A_DOCUMENT = 3
CHARS_A_DOCUMENT = 8000
POINTED_ROWS = 10
BEST_AROUND = 5
WINDOW_CHARS = 240

Tier = Literal["seed", "graph", "link", "code reference", "co-located"]


@dataclass(slots=True)
class _Chosen:
    """What of one document goes in: units in score order, with the reason of each."""

    document: Document
    units: list[tuple[SectionUnit, str, str]] = field(default_factory=list)
    used: int = 0
    """Characters."""


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
    scope = visible(viewer, block="docs", sources=named or None)
    question = Question(task[:QUERY_CHARS], sources=tuple(named))
    if not sum(source.chunks for source in scope.sources):
        return _nothing(task, max_tokens, emptiness.without_text(viewer, question))
    streams = run_streams(scope, question.query)
    if streams.terms.only_common_words and not streams.names.rows:
        return _nothing(task, max_tokens, emptiness.only_common_words(question))
    if all_absent(streams) and not streams.names.rows:
        return _nothing(task, max_tokens, emptiness.words_absent(question, streams, absent_words(streams)))
    fused = fuse_streams(streams)
    if not fused.order:
        return _nothing(task, max_tokens, emptiness.words_absent(question, streams, absent_words(streams)))
    return _packed(task, max_tokens, scope, streams, fused)


def _packed(task: str, max_tokens: int, scope: Scope, streams: Streams, fused: Fused) -> Pack:
    best = fused.standings[fused.order[0].ref].final
    seeds = [row for row in fused.order if fused.standings[row.ref].final >= SEED_CUT * best]
    beside = fused.order[len(seeds) :][:POINTED_ROWS]
    documents = documents_of(scope, [*seeds, *beside])
    winners = hydrate(streams, seeds, fused)
    chosen, left = _choose(seeds, documents, streams, fused, winners)
    parts, stale = _parts(chosen)
    pointers = [*left, *_sub_sections(chosen)]
    pointers += _around(scope, fused, [one.document for one in chosen])
    pointers += [
        _pointer("seed", documents[row.document_id], _unit(row, documents[row.document_id]), "matches less well")
        for row in beside
        if row.document_id in documents
    ]
    return compose(
        task=task,
        max_tokens=max_tokens,
        parts=parts,
        pointers=_distinct(pointers, parts),
        stale=stale,
        degraded=tuple(f"{one.stream}: {one.reason}" for one in streams.degraded),
        absent=tuple(absent_words(streams)),
    )


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
        line = _best_line(row, winner, streams) if winner else row.start_line
        unit = unit_at(document.structure, document.lines, line)
        if any(known.start <= unit.start and unit.end <= known.end for known, _, _ in held.units):
            continue
        # A section that holds one already chosen takes its place.
        inside = [entry for entry in held.units if unit.start <= entry[0].start and entry[0].end <= unit.end]
        freed = sum(len(text_of(document.lines, entry[0])) for entry in inside)
        size = len(text_of(document.lines, unit))
        first = not held.units
        fits = held.used - freed + size <= CHARS_A_DOCUMENT and len(held.units) - len(inside) < SECTIONS_A_DOCUMENT
        if not fits and not first:
            left.append(_pointer("seed", document, unit, "its document has its share already"))
            continue
        held.units = [entry for entry in held.units if entry not in inside]
        why = "named by the task" if fused.classes.get(row.ref) else "matches the task"
        held.units.append((unit, why, winner.text if winner else ""))
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
        for unit, why, quoted in sorted(one.units, key=lambda entry: entry[0].start):
            if quoted and quoted not in document.text:
                stale.append(document.path)
                continue
            parts.append(
                Part(
                    tier="seed",
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
                )
            )
    return parts, stale


def _sub_sections(chosen: Sequence[_Chosen]) -> list[Pointer]:
    return [
        _pointer("seed", one.document, below, f"below “{unit.heading_path[-1]}”" if unit.heading_path else "below")
        for one in chosen
        for unit, _, _ in one.units
        for below in unit.below
    ]


def _around(scope: Scope, fused: Fused, seeds: Sequence[Document]) -> list[Pointer]:
    """Targets of the seeds' links, then their folders: the best five of each seed by own match, the rest counted."""
    worth: dict[UUID, float] = {}
    for row in fused.order:
        worth.setdefault(row.document_id, fused.standings[row.ref].final)
    known = {document.id for document in seeds}
    pointers: list[Pointer] = []
    tiers: tuple[tuple[Tier, Any, str], ...] = (
        ("link", linked_from(scope, seeds), "linked from"),
        ("co-located", side_by_side(scope, seeds), "in the folder of"),
    )
    for tier, found, words in tiers:
        for seed in seeds:
            around = [document for document in found.get(seed.id, ()) if document.id not in known]
            around.sort(key=lambda document: (-worth.get(document.id, 0.0), document.path))
            pointers += [
                _pointer(tier, document, document.whole(), f"{words} {seed.path}") for document in around[:BEST_AROUND]
            ]
            known |= {document.id for document in around[:BEST_AROUND]}
            more = len(around) - BEST_AROUND
            if more > 0:
                pointers.append(Pointer(tier, f"{more} more {words} {seed.path}", "", "", 0, ""))
    return pointers


def _pointer(tier: Tier, document: Document, unit: SectionUnit, why: str) -> Pointer:
    heading = " › ".join(unit.heading_path) or document.title
    location = f"{document.path}{'#' + unit.anchor if unit.anchor else ''}:{unit.start}-{unit.end}"
    tokens = math.ceil(document.size(unit) / 3)
    return Pointer(tier, heading, location, document.address(unit.anchor), tokens, why, document.id)


def _distinct(pointers: Sequence[Pointer], parts: Sequence[Part]) -> list[Pointer]:
    shown = {part.location for part in parts}
    found: dict[str, Pointer] = {}
    for pointer in pointers:
        if pointer.location not in shown:
            found.setdefault(pointer.location or pointer.title, pointer)
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
