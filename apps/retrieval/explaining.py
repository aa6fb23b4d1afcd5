"""Why a document stands where it does, or why it took no part (``retrieval.md`` 14.1)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from apps.access.errors import NotFound
from apps.indexing import dense
from apps.indexing.scope import visible
from apps.indexing.stores import ChunkStore, all_stores
from apps.retrieval.beside import Beside
from apps.retrieval.blocks import Block, blocks_of
from apps.retrieval.filters import narrow, of_documents
from apps.retrieval.hits import stream_places
from apps.retrieval.ordering import Fused
from apps.retrieval.search import checked, scopes_of
from apps.retrieval.streams import Streams, absent_words, all_absent, asked_words, run_blocks
from apps.retrieval.values import Filters, Found, Question, StreamName

if TYPE_CHECKING:
    from apps.access.viewers import Viewer
    from apps.retrieval.shelf_values import Candidate

ABOVE = 3

Reason = Literal[
    "removed",
    "filter",
    "kind",
    "mode",
    "source",
    "no_text",
    "only_common_words",
    "words_absent",
    "no_vector",
    "under_min_cosine",
    "beyond_candidates",
    "collapsed",
    "side_document",
    "already_rejected",
]


@dataclass(frozen=True, slots=True)
class ExplainedRow:
    """A row of the list with all that its place is made of."""

    rank: int
    title: str
    path: str
    source: str
    heading_path: tuple[str, ...]
    start_line: int
    chunk_id: int
    streams: Mapping[StreamName, Found]
    name_class: str
    evidence: float
    fused: float
    page: float
    factor: float
    final: float


@dataclass(frozen=True, slots=True)
class RowAbove:
    """A row that stands above, and by how much each stream adds more to it: differences of weight / (60 + rank)."""

    row: ExplainedRow
    differences: Mapping[StreamName, float]


@dataclass(frozen=True, slots=True)
class WhyNot:
    """The first reason why a document took no part."""

    reason: Reason
    message: str
    words: tuple[str, ...] = ()
    filter: str = ""
    place: str = ""
    """Where the text that stands for it is, when it was collapsed into another."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Either ``row`` with those above it, or ``why_not``."""

    query: str
    document_id: UUID
    title: str
    path: str
    source: str
    url: str
    total: int
    row: ExplainedRow | None = None
    above: tuple[RowAbove, ...] = ()
    why_not: WhyNot | None = None
    degraded: tuple[str, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class _Asked:
    store: ChunkStore
    document: Any
    source: Any
    path: str

    @property
    def named(self) -> tuple[str, UUID]:
        return self.store.source_kind, self.source.pk

    @property
    def chunks(self) -> Any:
        return self.store.model._default_manager.filter(**{self.store.document_field: self.document.pk})


def explain(*, viewer: Viewer, question: Question, document: UUID) -> Explanation:
    """The document's best row in the answer to ``question``, or the first reason why it has none.

    Raises NotFound alike for a hidden document and for one that does not exist, Invalid as a search does.
    """
    question = checked(question)
    asked = _asked(viewer, document)
    made = Explanation(
        query=question.query,
        document_id=document,
        title=asked.document.title,
        path=asked.path,
        source=asked.source.label,
        url=asked.document.get_absolute_url(),
        total=0,
    )
    early = _left_out(viewer, question, asked)
    if early is not None:
        return dataclasses.replace(made, why_not=early)
    scopes = [scope for scope in scopes_of(viewer, question) if sum(source.chunks for source in scope.sources)]
    blocks = run_blocks(scopes, question.query)
    heard = [one for one in blocks if not all_absent(one) or one.symbols or one.names.rows]
    for one in heard:
        if all_absent(one):
            one.dense = dense.NO_HITS
    beside = Beside(viewer, question.filters)
    ordered = blocks_of(heard, beside.set_aside)
    block = next((block for block in ordered if block.name == "docs"), None)
    streams = block.streams if block else next((streams for streams in blocks if streams.block == "docs"), None)
    degraded = tuple(f"{part.stream}: {part.reason}" for other in blocks for part in other.degraded)
    made = dataclasses.replace(made, total=len(block.fused.order) if block else 0, degraded=degraded)
    if document in beside.moved:
        message = "It is a rejected approach, so it stands in the block of these beside the hits."
        return dataclasses.replace(made, why_not=WhyNot("already_rejected", message))
    if block is not None and streams is not None:
        place = next((at for at, row in enumerate(block.fused.order) if row.document == str(document)), None)
        if place is not None:
            vectors = _with_vectors(streams, block.fused.order[max(0, place - ABOVE) : place + 1])
            row = _row(block, place, vectors)
            above = tuple(
                RowAbove(_row(block, at, vectors), _differences(block.fused, block.fused.order[at], place))
                for at in range(max(0, place - ABOVE), place)
            )
            return dataclasses.replace(made, row=row, above=above)
        gone = _collapsed(block.fused, document)
        if gone is not None:
            return dataclasses.replace(made, why_not=gone)
    if streams is None or not asked.chunks.exists():
        message = "It has no text of its own: only its title and its metadata can be found."
        return dataclasses.replace(made, why_not=WhyNot("no_text", message))
    return dataclasses.replace(made, why_not=_unmatched(viewer, asked, streams))


def _asked(viewer: Viewer, document: UUID) -> _Asked:
    """The document of either room. SECURITY: a hidden one is looked for and not found just as one that never was."""
    found: _Asked | None = None
    for store in all_stores():
        if store.block != "docs":
            continue
        model: Any = store.model._meta.get_field(store.document_field).related_model
        rows = model.objects.visible_to(viewer)
        if hasattr(rows, "in_trash_of"):
            rows = rows | model.objects.in_trash_of(viewer)
        row = rows.filter(pk=document).select_related(store.source_field).first()
        if row is not None:
            path = getattr(row, store.path_field.rpartition("__")[2])
            found = _Asked(store, row, getattr(row, store.source_field), path)
    if found is None:
        raise NotFound
    return found


def _left_out(viewer: Viewer, question: Question, asked: _Asked) -> WhyNot | None:
    """Reasons before any stream is asked."""
    if getattr(asked.document, "trashed_at", None) is not None:
        return WhyNot("removed", f"It is in the trash since {asked.document.trashed_at:%Y-%m-%d %H:%M}.")
    if question.mode == "code":
        return WhyNot("mode", "Only code was asked for, and this is a document.")
    if question.sources and asked.named not in question.sources:
        return WhyNot("source", f"The search was limited to other sources than {asked.source.label}.", filter="source")
    for name, value in question.filters.active.items():
        alone = dataclasses.replace(Filters(), **{name: getattr(question.filters, name)})
        narrowing = narrow(alone, (asked.store,))
        kinds = narrowing.source_kinds
        condition = narrowing.conditions.get(asked.store.name)
        within = kinds is None or asked.store.source_kind in kinds
        if within and condition is not None:
            one = type(asked.document)._default_manager.filter(pk=asked.document.pk)
            within = one.filter(of_documents(condition, asked.store)).exists()
        if not within:
            reason: Reason = "kind" if name == "kinds" else "filter"
            return WhyNot(reason, f"The filter “{name}: {value}” leaves it out.", filter=name)
    return None


def _collapsed(fused: Fused, document: UUID) -> WhyNot | None:
    """Copies that stand for it, or a named document that it had to give way to."""
    for row in fused.order:
        if any(copy.document == str(document) for copy in fused.copies.get(row.ref, ())):
            place = f"{row.source_label} {row.path}"
            return WhyNot("collapsed", f"Its text is the same as that of {place}, which stands for both.", place=place)
    if any(row.document == str(document) for row in fused.dropped.values()):
        return WhyNot("side_document", "It is a fixture or vendored text, and the query names another document.")
    return None


def _unmatched(viewer: Viewer, asked: _Asked, streams: Streams) -> WhyNot:
    """Why neither words nor meaning found it."""
    scope = visible(viewer, block="docs", sources=[asked.named])
    refs = list(
        scope.chunks_of(asked.store)
        .filter(**{asked.store.document_field: asked.document.pk})
        .values_list("ref", flat=True)
    )
    words = asked_words(streams.terms)
    if streams.terms.only_common_words:
        return WhyNot("only_common_words", "Only common words were asked, and none of its names is made of just these.")
    held = {unit for found in (streams.lexical.weights(refs) if streams.lexical else {}).values() for unit in found}
    if any(unit in held for units in words.values() for unit in units):
        limit = f"{len(streams.lexical.refs) if streams.lexical else 0}"
        return WhyNot("beyond_candidates", f"It holds words of the query, but {limit} other passages match better.")
    missing = tuple(absent_words(streams)) if all_absent(streams) else tuple(words)
    if streams.profile is None or streams.vector is None:
        return WhyNot("words_absent", "None of the words stands in it, and meaning was not compared.", missing)
    best = dense.best_cosine(scope, asked.store, streams.profile, streams.vector, refs)
    if best is None:
        return WhyNot("no_vector", "None of the words stands in it, and it has no vector yet.", missing)
    if best < streams.profile.min_cosine:
        return WhyNot(
            "under_min_cosine",
            f"None of the words stands in it, and its meaning is too far away: {best:.3f} of at least "
            f"{streams.profile.min_cosine:.2f}.",
            missing,
        )
    if all_absent(streams):
        return WhyNot(
            "words_absent", "None of the words occurs anywhere, so nearness in meaning is no answer.", missing
        )
    return WhyNot("beyond_candidates", "None of the words stands in it, and other passages are nearer.", missing)


def _with_vectors(streams: Streams, rows: Sequence[Candidate]) -> set[int]:
    """Refs of ``rows`` whose text has a vector."""
    if streams.profile is None or streams.vector is None:
        return set()
    return dense.with_vectors(streams.scope, streams.profile, [row.ref for row in rows if row.ref >= 0])


def _row(block: Block, place: int, vectors: set[int]) -> ExplainedRow:
    fused = block.fused
    row = fused.order[place]
    standing = fused.standings[row.ref]
    return ExplainedRow(
        rank=place + 1,
        title=row.title,
        path=row.path,
        source=row.source_label,
        heading_path=row.heading_path,
        start_line=row.start_line,
        chunk_id=row.chunk_id,
        streams=stream_places(block.streams, fused.places.get(row.ref, {}), has_vector=row.ref in vectors),
        name_class=fused.classes.get(row.ref, ""),
        evidence=fused.evidence.get(row.ref, 0.0),
        fused=standing.fused,
        page=standing.page,
        factor=standing.factor,
        final=standing.final,
    )


def _differences(fused: Fused, above: Candidate, place: int) -> dict[StreamName, float]:
    mine, theirs = fused.places[fused.order[place].ref], fused.places[above.ref]
    names: tuple[StreamName, ...] = ("lexical", "dense", "name")
    return {
        name: round(_share(theirs, name) - _share(mine, name), 9) for name in names if name in mine or name in theirs
    }


def _share(held: Mapping[StreamName, Any], name: StreamName) -> float:
    return float(held[name][0].share) if name in held else 0.0
