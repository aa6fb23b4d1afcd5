"""One block's candidates in their final order (``retrieval.md`` 7), copies collapsed."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from uuid import UUID

import numpy as np
from django.conf import settings
from numpy.typing import NDArray

from apps.retrieval.fusion import Standing, factor_of
from apps.retrieval.reranking import reranked
from apps.retrieval.rows import Rows, tie_break
from apps.retrieval.shelf_reading import Wanted, candidates_of, shelves_of
from apps.retrieval.standings import Places, Standings, Ties, backing_of
from apps.retrieval.values import StreamName
from apps.symbols.names import joined

if TYPE_CHECKING:
    from apps.indexing.lexical import LexicalResult
    from apps.indexing.questions import Question as Terms
    from apps.retrieval.shelf_values import Candidate
    from apps.retrieval.shelf_values import Found as Winner
    from apps.retrieval.streams import Streams

WHOLE_SYMBOL_WEIGHT = 4.0
"""Of a symbol that the query, as a whole, names."""
SPELLED_OUT_WEIGHT = 4.0
"""Of a row that holds the one token that the query is."""
COMPLETE_WEIGHT = 2.0
"""Of a row that holds all words of a query of few."""
FEW_WORDS = 2
ROUNDING = 1e-6
LOOKED_AHEAD = 25


@dataclass(slots=True)
class Fused:
    """The ordered list before anything is cut or shown. Rows are known by the ref of their candidate."""

    order: Rows
    standings: Standings
    places: Places
    copies: Mapping[int, list[Candidate]]
    classes: Mapping[int, str]
    """How the query names the row's document, section or symbol, by ref."""
    evidence: Mapping[int, float] = field(default_factory=dict)
    """How surely it does."""
    held: Callable[[Sequence[int]], Mapping[int, Mapping[int, str]]] = lambda refs: {}
    """The units of the question that rows hold, and where; ``fields_of`` asks it once for the rows that are shown."""
    dropped: Mapping[int, Candidate] = field(default_factory=dict)
    """Side documents that left the answer because it names another document."""
    texts: Mapping[int, Winner] = field(default_factory=dict)
    """Rows whose text was read already, by ref."""
    _fields: dict[int, Mapping[int, str]] = field(default_factory=dict)

    def fields_of(self, rows: Sequence[Candidate]) -> Mapping[int, Mapping[int, str]]:
        """The units of the question that rows hold, and where, by ref. To look through the postings costs the same for
        one row as for a page of them, so the first ones are looked up with the first that is asked for."""
        missing = [row.ref for row in rows if row.ref not in self._fields]
        if missing:
            ahead = [] if self._fields else [row.ref for row in self.order[:LOOKED_AHEAD]]
            wanted = list(dict.fromkeys([*missing, *ahead]))
            found = self.held(wanted)
            self._fields.update((ref, found.get(ref, {})) for ref in wanted)
        return self._fields


@dataclass(slots=True)
class _Pool:
    """What the streams found, as columns beside ``candidates``; a score is NaN where a stream has none."""

    candidates: Rows
    scores: dict[StreamName, NDArray[np.float64]]
    rarity: NDArray[np.float64]
    """How much of what is rare in the question a row holds."""
    named: list[tuple[int, float, float]]
    """(ref, weight, evidence) of the name or symbol stream, best first."""
    classes: dict[int, str]
    fields_of: Callable[[Sequence[int]], Mapping[int, Mapping[int, str]]]

    def without(self, refs: Collection[int]) -> _Pool:
        kept = [at for at, ref in enumerate(self.candidates.column("ref")) if ref not in refs]
        return replace(
            self,
            candidates=self.candidates.at(kept),
            scores={name: column[kept] for name, column in self.scores.items()},
            rarity=self.rarity[kept],
        )


def fuse_streams(streams: Streams) -> Fused:
    """Candidates of all streams in their final order, copies collapsed."""
    return fuse_blocks([streams])[0]


def fuse_blocks(asked: Sequence[Streams]) -> list[Fused]:
    """The same for several blocks, whose candidates are read by one statement."""
    found, df = candidates_of([_wanted(streams) for streams in asked])
    for streams, counts in zip(asked, df, strict=True):
        if streams.open_names is not None:
            streams.name(counts)
    fused = [
        _fused(streams, _code(streams, rows) if streams.block == "code" else _docs(streams, rows))
        for streams, rows in zip(asked, found, strict=True)
    ]
    return reranked(asked, fused)


def _wanted(streams: Streams) -> Wanted:
    refs: dict[int, None] = {}
    if streams.lexical is not None:
        refs |= dict.fromkeys(streams.lexical.refs.tolist())
    refs |= dict.fromkeys(streams.dense.refs.tolist())
    names = streams.open_names
    named = names.refs if names is not None else (row.ref for row in streams.names.rows if row.ref is not None)
    refs |= dict.fromkeys(named)
    nodes = [found.node_id for found in streams.symbols]
    return Wanted(streams.scope, list(refs), nodes, names.statement if names is not None else None)


def _fused(streams: Streams, pool: _Pool) -> Fused:
    classes = pool.classes
    dropped: dict[int, Candidate] = {}
    if streams.names.drops_side:
        # Who names a document so clearly does not mean a fixture of the same name, unless its folder is spelled too.
        spelled = {"spelled", "same_name"}
        rows = zip(pool.candidates.column("ref"), pool.candidates.column("side"), strict=True)
        aside = [at for at, (ref, side) in enumerate(rows) if side and classes.get(ref) not in spelled]
        dropped = {one.ref: one for one in pool.candidates.at(aside)}
        if dropped:
            pool = pool.without(dropped)
    candidates = pool.candidates
    index = _index(candidates)
    ties = Ties(candidates)
    places = _places(streams, pool, index, ties)
    documents = candidates.column("document")
    numbers = {document: number for number, document in enumerate(dict.fromkeys(documents))}
    owners = np.fromiter(map(numbers.__getitem__, documents), np.int64, len(documents))
    helps = places.votes, places.first_in_both(), places.agreed
    standings = Standings.of(index, places.sums, owners, _factors(candidates, classes), *helps)
    _in_order_of_names(standings, places, classes, documents)
    order, copies = _without_copies(candidates, standings.order(ties, candidates.column("canonical"), places.held))
    evidence = {ref: value for ref, _, value in reversed(pool.named)}
    return Fused(order, standings, places, copies, classes, evidence, pool.fields_of, dropped)


def _index(rows: Rows) -> dict[int, int]:
    return dict(zip(rows.column("ref"), range(len(rows)), strict=True))


def _factors(rows: Rows, classes: Mapping[int, str]) -> NDArray[np.float64]:
    """Of most rows 1: those of canonical pages and side documents alone may have another."""
    factors = np.ones(len(rows))
    unlike = zip(rows.column("canonical"), rows.column("side"), strict=True)
    for at in [at for at, (canonical, side) in enumerate(unlike) if canonical or side]:
        one = rows[at]
        named = classes.get(one.ref) in {"spelled", "exact_name"}
        factors[at] = factor_of(status=one.status, priority=one.priority, side=one.side, named=named)
    return factors


def _docs(streams: Streams, candidates: Rows) -> _Pool:
    """A chunk may have gone between the two statements: it takes part in nothing."""
    named: list[tuple[int, float, float]] = []
    classes: dict[int, str] = {}
    bare: dict[UUID, int] = {}
    for row in streams.names.rows:
        ref = row.ref
        if ref is None:
            ref = bare[row.document_id] = -1 - len(bare)
        named.append((ref, row.weight, row.evidence))
        classes[ref] = row.name_class
    if bare:
        for shelf in shelves_of(streams.scope):
            candidates = candidates.and_(shelf.without_text(streams.scope, bare))
    index = _index(candidates)
    scores: dict[StreamName, NDArray[np.float64]] = {}
    rarity = np.zeros(len(index))
    lexical = streams.lexical
    if lexical is not None:
        worded = lexical.refs.tolist()
        scores["lexical"] = _column(index, worded, lexical.scores.tolist())
        rarity = np.nan_to_num(_column(index, worded, lexical.rarity(worded).tolist()))
    scores["dense"] = _column(index, streams.dense.refs.tolist(), streams.dense.cosines.tolist())
    return _Pool(candidates, scores, rarity, named, classes, lexical.fields if lexical is not None else _no_fields)


def _no_fields(refs: Sequence[int]) -> Mapping[int, Mapping[int, str]]:
    return {}


def _column(index: Mapping[int, int], refs: Sequence[int], scores: Sequence[float]) -> NDArray[np.float64]:
    """Scores beside the candidates; where a candidate has several, the best."""
    column = np.full(len(index), np.nan)
    places = np.fromiter(map(index.get, refs, itertools.repeat(-1)), np.int64, len(refs))
    known = places >= 0
    np.fmax.at(column, places[known], np.array(scores, np.float64)[known])
    return column


def _code(streams: Streams, rows: Rows) -> _Pool:
    """A symbol makes one row, however many of its chunks were found: the best of them speaks for it."""
    lexical = streams.lexical
    worded = lexical.refs.tolist() if lexical is not None else []
    near = streams.dense.refs.tolist()
    refs: dict[int, float] = {}
    for place, ref in enumerate(worded):
        refs.setdefault(ref, place)
    for place, ref in enumerate(near):
        refs[ref] = min(refs.get(ref, place + 0.5), place + 0.5)
    known, symbols = rows.column("ref"), rows.column("symbol")
    last = len(refs) + 1.0
    keys = [(refs.get(ref, last), index, ref < 0) for ref, index in zip(known, rows.column("chunk_index"), strict=True)]
    best: dict[str, int] = {}
    for at in sorted(range(len(rows)), key=keys.__getitem__):
        best.setdefault(symbols[at], at)
    row_of = {ref: known[best[symbol]] for ref, symbol in zip(known, symbols, strict=True)}
    candidates = rows.at(best.values())
    index = _index(candidates)
    scores: dict[StreamName, NDArray[np.float64]] = {}
    rarity = np.zeros(len(index))
    if lexical is not None:
        owners = [row_of.get(ref, ref) for ref in worded]
        scores["lexical"] = _column(index, owners, lexical.scores.tolist())
        rarity = np.nan_to_num(_column(index, owners, lexical.rarity(worded).tolist()))
    scores["dense"] = _column(index, [row_of.get(ref, ref) for ref in near], streams.dense.cosines.tolist())
    whole = joined(streams.terms.text.strip("`() \t")).casefold()
    named: list[tuple[int, float, float]] = []
    classes: dict[int, str] = {}
    for found in streams.symbols:
        if (own := best.get(str(found.node_id))) is not None:
            is_meant = whole in {found.name.casefold(), joined(found.qualified_name).casefold()}
            ref = known[own]
            named.append((ref, WHOLE_SYMBOL_WEIGHT if is_meant else 1.0, found.evidence))
            classes[ref] = found.matched

    def fields_of(asked: Sequence[int]) -> Mapping[int, Mapping[int, str]]:
        wanted = set(asked)
        parts = [ref for ref in worded if row_of.get(ref) in wanted]
        held: dict[int, dict[int, str]] = {}
        for ref, units in (lexical.fields(parts) if lexical is not None else {}).items():
            mine = held.setdefault(row_of[ref], {})
            for unit, where in units.items():
                mine[unit] = "".join(sorted({*mine.get(unit, ""), *where}))
        return held

    return _Pool(candidates, scores, rarity, named, classes, fields_of)


def _places(streams: Streams, pool: _Pool, index: Mapping[int, int], ties: Ties) -> Places:
    """Ranks in each stream: equal scores by source, path and place."""
    limit = settings.COGRAPH.retrieval.candidates
    weights: dict[StreamName, float] = {"lexical": 1.0, "dense": streams.profile.weight if streams.profile else 1.0}
    places = Places(index)
    for name, column in pool.scores.items():
        ranked = ties.sorted(np.flatnonzero(~np.isnan(column)), column)[:limit]
        backing: NDArray[np.float64] | float = 1.0
        worth = np.full(len(ranked), weights[name])
        if name == "lexical":
            backing = backing_of(pool.rarity[ranked])
            worth[_complete(streams, pool, ranked)] = COMPLETE_WEIGHT
            worth[_spelled_out(streams, pool, ranked)] = SPELLED_OUT_WEIGHT
        places.add(name, ranked, np.arange(1, len(ranked) + 1), worth, column[ranked], backing, weights[name])
    last: StreamName = "symbol" if streams.block == "code" else "name"
    rows: dict[int, tuple[int, float, float]] = {}
    rank = 0
    for ref, weight, evidence in pool.named:
        if ref in index:
            rank += 1
            rows.setdefault(index[ref], (rank, weight, evidence))
    if rows:
        ranks, shares, evidences = zip(*rows.values(), strict=True)
        places.add(last, np.array(list(rows)), np.array(ranks), np.array(shares), np.array(evidences))
    return places


def _complete(streams: Streams, pool: _Pool, ranked: NDArray[np.int64]) -> list[int]:
    """Places in ``ranked`` of the rows that hold every word of a short question. Where its words name a document, the
    name decides."""
    if streams.lexical is None or streams.block != "docs" or streams.names.drops_side:
        return []
    every = rarity_of_all(streams.terms, streams.lexical)
    found: list[int] = np.flatnonzero(pool.rarity[ranked] >= every).tolist()
    return found


def rarity_of_all(terms: Terms, lexical: LexicalResult) -> float:
    """The rarity of a row that holds every word of a question of one or two: vectors always find something near so
    short a text, while who types it means the words. Out of reach for longer ones, and where a word occurs nowhere."""
    words = [unit for unit in terms.asked if not terms.units[unit].whole]
    if not 0 < len(words) <= FEW_WORDS or not all(map(lexical.df.get, words)):
        return float("inf")
    return sum(lexical.idf[unit] for unit in words) - ROUNDING


def _spelled_out(streams: Streams, pool: _Pool, ranked: NDArray[np.int64]) -> list[int]:
    """Places in ``ranked`` of the rows that hold the query as it is written, when it is one token of several parts: a
    version, an option, a dotted name. Who writes one means that one, and vectors know nothing of it. A section that is
    named by all of it holds it too: its page is of the class, its heading the method. Where it names a document, the
    name decides."""
    terms, asked = streams.terms, streams.terms.text.strip()
    begin = terms.text.find(asked)
    wholes = {
        unit
        for unit in terms.asked
        if terms.units[unit].whole and (terms.units[unit].start, terms.units[unit].end) == (begin, begin + len(asked))
    }
    if not wholes or streams.block != "docs" or streams.names.drops_side:
        return []
    refs = list(map(pool.candidates.column("ref").__getitem__, ranked.tolist()))
    held = pool.fields_of(refs)
    named = {ref for ref, _, evidence in pool.named if evidence >= 1.0}
    return [place for place, ref in enumerate(refs) if ref in named or not wholes.isdisjoint(held.get(ref, {}))]


def _in_order_of_names(
    standings: Standings, places: Places, classes: Mapping[int, str], documents: Sequence[str]
) -> None:
    """Who spells a file gets its sections in the order of the name stream: the file's own name, which stands in the
    text of some sections and not of others, says nothing about them. The places are the same, the sections change.
    """
    spelled: dict[str, list[int]] = {}
    for ref, name_class in classes.items():
        at = places.index.get(ref)
        if at is not None and name_class in {"spelled", "exact_name"} and places.rank_of("name", at):
            spelled.setdefault(documents[at], []).append(at)
    for found in spelled.values():
        best_first = sorted(found, key=lambda at: (-standings.final[at], -standings.fused[at]))
        by_name = sorted(found, key=lambda at: places.rank_of("name", at))
        standings.exchange(by_name, best_first)


def sort_key(candidate: Candidate, standing: Standing) -> tuple[object, ...]:
    """Final, fused, canonical pages before plain ones, then what never depends on the ids of rows."""
    return (-standing.final, -standing.fused, not candidate.canonical, *tie_break(candidate))


def _without_copies(rows: Rows, ordered: Sequence[int]) -> tuple[Rows, dict[int, list[Candidate]]]:
    hashes = list(map(rows.column("copy_hash").__getitem__, ordered))
    told = [hash for hash in hashes if hash is not None]
    if len(set(told)) == len(told):
        return rows.at(ordered), {}
    first: dict[str, int] = {}
    kept: list[int] = []
    copies: dict[int, list[Candidate]] = {}
    for at, hash in zip(ordered, hashes, strict=True):
        known = at if hash is None else first.setdefault(hash, at)
        if known == at:
            kept.append(at)
        else:
            copies.setdefault(rows[known].ref, []).append(rows[at])
    return rows.at(kept), copies
