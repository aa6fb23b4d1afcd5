"""One block's candidates in their final order (``retrieval.md`` 7), copies collapsed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import UUID

from django.conf import settings

from apps.retrieval.fusion import Place, Standing, boost, factor_of, fuse_places
from apps.retrieval.shelves import SHELVES
from apps.retrieval.values import StreamName
from apps.symbols.names import joined

if TYPE_CHECKING:
    from apps.indexing.naming import NameRow
    from apps.retrieval.shelf_values import Candidate, Shelf
    from apps.retrieval.streams import Streams

WHOLE_SYMBOL_WEIGHT = 4.0
"""Of a symbol that the query, as a whole, names."""


@dataclass(slots=True)
class Fused:
    """The ordered list before anything is cut or shown. Rows are known by the ref of their candidate."""

    order: list[Candidate]
    standings: Mapping[int, Standing]
    places: Mapping[int, dict[StreamName, tuple[Place, float]]]
    copies: Mapping[int, list[Candidate]]
    classes: Mapping[int, str]
    """How the query names the row's document, section or symbol, by ref."""
    evidence: Mapping[int, float] = field(default_factory=dict)
    """How surely it does."""
    fields: Mapping[int, Mapping[int, str]] = field(default_factory=dict)
    """The units of the question that a row holds, and where."""
    dropped: Mapping[int, Candidate] = field(default_factory=dict)
    """Side documents that left the answer because it names another document."""


@dataclass(slots=True)
class _Pool:
    """What the streams found, by ref: of each stream the score."""

    scores: dict[int, dict[StreamName, float]] = field(default_factory=dict)
    fields: dict[int, dict[int, str]] = field(default_factory=dict)
    named: list[tuple[int, float, float]] = field(default_factory=list)
    """(ref, weight, evidence) of the name or symbol stream, best first."""
    classes: dict[int, str] = field(default_factory=dict)
    candidates: dict[int, Candidate] = field(default_factory=dict)

    def hold(self, ref: int, stream: StreamName, score: float) -> None:
        held = self.scores.setdefault(ref, {})
        held[stream] = max(score, held.get(stream, score))

    def name(self, ref: int, weight: float, evidence: float, name_class: str) -> None:
        self.scores.setdefault(ref, {})
        self.named.append((ref, weight, evidence))
        self.classes[ref] = name_class


def fuse_streams(streams: Streams) -> Fused:
    """Candidates of all streams in their final order, copies collapsed."""
    pool = _code(streams) if streams.block == "code" else _docs(streams)
    candidates, classes = pool.candidates, pool.classes
    # A chunk may have gone between the two statements: it takes part in nothing.
    found = {ref: scores for ref, scores in pool.scores.items() if ref in candidates}
    dropped: dict[int, Candidate] = {}
    if streams.names.drops_side:
        # Who names a document so clearly does not mean a fixture of the same name, unless its folder is spelled too.
        dropped = {
            ref: candidates[ref]
            for ref in found
            if candidates[ref].side and classes.get(ref) not in {"spelled", "same_name"}
        }
        found = {ref: scores for ref, scores in found.items() if ref not in dropped}
    places = _places(streams, found, pool)
    fused = fuse_places((ref, place) for ref, held in places.items() for place, _ in held.values())
    factors = {
        ref: factor_of(
            status=candidates[ref].status,
            priority=candidates[ref].priority,
            side=candidates[ref].side,
            named=classes.get(ref) in {"spelled", "exact_name"},
        )
        for ref in fused
    }
    standings = boost(fused, {ref: candidates[ref].document_id for ref in fused}, factors)
    _in_order_of_names(standings, places, classes, candidates)
    ordered = sorted((candidates[ref] for ref in standings), key=lambda one: sort_key(one, standings[one.ref]))
    order, copies = _without_copies(ordered)
    evidence = {ref: value for ref, _, value in reversed(pool.named)}
    return Fused(order, standings, places, copies, classes, evidence, pool.fields, dropped)


def _docs(streams: Streams) -> _Pool:
    pool = _Pool()
    for lexical_hit in streams.lexical.hits if streams.lexical else ():
        pool.hold(lexical_hit.ref, "lexical", lexical_hit.score)
        pool.fields[lexical_hit.ref] = dict(lexical_hit.fields)
    for dense_hit in streams.dense:
        pool.hold(dense_hit.ref, "dense", dense_hit.cosine)
    bare: dict[UUID, tuple[int, NameRow]] = {}
    for row in streams.names.rows:
        ref = row.ref
        if ref is None:
            ref = -1 - len(bare)
            bare[row.document_id] = (ref, row)
        pool.name(ref, row.weight, row.evidence, row.name_class)
    for shelf in _shelves(streams):
        refs = [ref for ref in pool.scores if ref >= 0]
        pool.candidates.update({one.ref: one for one in shelf.candidates(streams.scope, refs)})
        # Filters ask for chunks, so with one a document without any is left out.
        if bare and shelf.store not in streams.scope.conditions:
            wanted = {document: ref for document, (ref, _) in bare.items()}
            pool.candidates.update({one.ref: one for one in shelf.without_text(streams.scope, wanted)})
    return pool


def _code(streams: Streams) -> _Pool:
    """A symbol makes one row, however many of its chunks were found: the best of them speaks for it."""
    pool = _Pool()
    refs: dict[int, float] = {}
    for place, hit in enumerate(streams.lexical.hits if streams.lexical else ()):
        refs.setdefault(hit.ref, place)
    for place, near in enumerate(streams.dense):
        refs[near.ref] = min(refs.get(near.ref, place + 0.5), place + 0.5)
    nodes = [found.node_id for found in streams.symbols]
    rows = [one for shelf in _shelves(streams) for one in shelf.symbols(streams.scope, list(refs), nodes)]
    best: dict[UUID, Candidate] = {}
    for one in sorted(rows, key=lambda one: (refs.get(one.ref, len(refs) + 1.0), one.chunk_index, one.ref < 0)):
        if one.node is not None:
            best.setdefault(one.node, one)
    row_of = {one.ref: best[one.node].ref for one in rows if one.node is not None}
    pool.candidates = {one.ref: one for one in best.values()}
    for hit in streams.lexical.hits if streams.lexical else ():
        if hit.ref in row_of:
            pool.hold(row_of[hit.ref], "lexical", hit.score)
            held = pool.fields.setdefault(row_of[hit.ref], {})
            for unit, where in hit.fields.items():
                held[unit] = "".join(sorted({*held.get(unit, ""), *where}))
    for near in streams.dense:
        if near.ref in row_of:
            pool.hold(row_of[near.ref], "dense", near.cosine)
    whole = joined(streams.terms.text.strip("`() \t")).casefold()
    for found in streams.symbols:
        if found.node_id in best:
            is_meant = whole in {found.name.casefold(), joined(found.qualified_name).casefold()}
            weight = WHOLE_SYMBOL_WEIGHT if is_meant else 1.0
            pool.name(best[found.node_id].ref, weight, found.evidence, found.matched)
    return pool


def _shelves(streams: Streams) -> list[Shelf]:
    stores = {source.store for source in streams.scope.sources}
    return [shelf for name, shelf in SHELVES.items() if name in stores]


def _places(
    streams: Streams, found: Mapping[int, Mapping[StreamName, float]], pool: _Pool
) -> dict[int, dict[StreamName, tuple[Place, float]]]:
    """Ranks in each stream: equal scores by source, path and place."""
    limit = settings.COGRAPH.retrieval.candidates
    weights: dict[StreamName, float] = {"lexical": 1.0, "dense": streams.profile.weight if streams.profile else 1.0}
    places: dict[int, dict[StreamName, tuple[Place, float]]] = {ref: {} for ref in found}
    for name, weight in weights.items():
        in_stream = [ref for ref in found if name in found[ref]]
        in_stream.sort(key=lambda ref: (-found[ref][name], tie_break(pool.candidates[ref])))
        for rank, ref in enumerate(in_stream[:limit], start=1):
            places[ref][name] = (Place(rank, weight), found[ref][name])
    last: StreamName = "symbol" if streams.block == "code" else "name"
    named = [row for row in pool.named if row[0] in found]
    for rank, (ref, weight, evidence) in enumerate(named, start=1):
        places[ref].setdefault(last, (Place(rank, weight), evidence))
    return {ref: held for ref, held in places.items() if held}


def _in_order_of_names(
    standings: dict[int, Standing],
    places: Mapping[int, Mapping[StreamName, tuple[Place, float]]],
    classes: Mapping[int, str],
    candidates: Mapping[int, Candidate],
) -> None:
    """Who spells a file gets its sections in the order of the name stream: the file's own name, which stands in the
    text of some sections and not of others, says nothing about them. The places are the same, the sections change.
    """
    spelled: dict[object, list[int]] = {}
    for ref in standings:
        if classes.get(ref) in {"spelled", "exact_name"} and "name" in places[ref]:
            spelled.setdefault(candidates[ref].document_id, []).append(ref)
    for refs in spelled.values():
        best_first = sorted((standings[ref] for ref in refs), key=lambda one: (-one.final, -one.fused))
        by_name = sorted(refs, key=lambda ref: places[ref]["name"][0].rank)
        standings.update(zip(by_name, best_first, strict=True))


def sort_key(candidate: Candidate, standing: Standing) -> tuple[object, ...]:
    """Final, fused, canonical pages before plain ones, then what never depends on the ids of rows."""
    return (-standing.final, -standing.fused, not candidate.canonical, *tie_break(candidate))


def tie_break(candidate: Candidate) -> tuple[str, str, str, int, str]:
    """Source, path, place: no part of an order depends on the ids of rows."""
    return (candidate.source_label, candidate.store, candidate.path, candidate.chunk_index, candidate.title)


def _without_copies(ordered: Sequence[Candidate]) -> tuple[list[Candidate], dict[int, list[Candidate]]]:
    first: dict[bytes, Candidate] = {}
    kept: list[Candidate] = []
    copies: dict[int, list[Candidate]] = {}
    for candidate in ordered:
        if candidate.copy_hash is not None:
            known = first.setdefault(candidate.copy_hash, candidate)
            if known is not candidate:
                copies.setdefault(known.ref, []).append(candidate)
                continue
        kept.append(candidate)
    return kept, copies
