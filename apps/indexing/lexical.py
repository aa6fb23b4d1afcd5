"""The lexical stream: BM25F over the postings of a scope (``retrieval.md`` 3).

PostgreSQL finds and hands over the entries of the asked terms, in one statement with the statistics they need, so both
are of one snapshot; the sum over terms is numpy over whole arrays. Every entry of every asked term is looked at: the
answer is exact, there is no prefix whose cut would have to be mended.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from django.conf import settings
from django.utils.module_loading import import_string
from numpy.typing import NDArray

from apps.indexing.analyzer import MAX_QUERY_TERMS
from apps.indexing.fields import ENTRY
from apps.indexing.models import BLOCK_BITS, SLOT_BITS
from apps.indexing.statements import Fragment, fetch, fragment_of, union

if TYPE_CHECKING:
    from apps.indexing.questions import Question
    from apps.indexing.scope import Scope

K1 = 1.2
HEADING_WEIGHT, HEADING_B = 2.0, 0.3
PATH_WEIGHT = 0.5
BODY_B = 0.75
DECIMALS = 6


@dataclass(frozen=True, slots=True)
class LexicalHit:
    """``fields`` tells for each matched unit of the question where it stands: ``b``ody, ``h``eading, ``p``ath."""

    ref: int
    score: float
    fields: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class LexicalResult:
    """Hits best first, equal scores in no promised order: whoever knows paths breaks ties. All hits that share the
    last score are given, so there may be more than were asked for.
    """

    hits: tuple[LexicalHit, ...]
    chunks: int
    """N: chunks in scope."""
    df: Mapping[int, int]
    """Chunks in scope that hold each unit."""
    idf: Mapping[int, float]


class LexicalBackend(Protocol):
    def limit(self, scope: Scope, question: Question) -> Question: ...

    def statement(self, scope: Scope, question: Question) -> Fragment: ...

    def rank(self, scope: Scope, question: Question, rows: Sequence[tuple[Any, ...]], limit: int) -> LexicalResult: ...


def backend() -> LexicalBackend:
    """The backend that ``COGRAPH_RETRIEVAL__LEXICAL`` names."""
    made: LexicalBackend = import_string(settings.COGRAPH.retrieval.lexical)()
    return made


def search(scope: Scope, question: Question, limit: int | None = None) -> LexicalResult:
    """The stream alone, by one statement."""
    used = backend()
    limit = limit or settings.COGRAPH.retrieval.candidates
    question = used.limit(scope, question)
    return used.rank(scope, question, fetch(used.statement(scope, question)), limit)


def idf(chunks: int, df: int) -> float:
    return math.log(1 + (chunks - df + 0.5) / (df + 0.5))


def reference_length(total: int, chunks: int) -> float:
    """The average length of a field, rounded to the nearest power of the square root of 2; at least 1."""
    if chunks <= 0 or total <= chunks:
        return 1.0
    return float(2.0 ** (round(2 * math.log2(total / chunks)) / 2))


class PostgresLexical:
    """Postings in PostgreSQL tables of our own."""

    def limit(self, scope: Scope, question: Question) -> Question:
        """``question`` with at most 64 terms, the rarest in scope. Costs a statement only for longer ones."""
        if len(question.asked) <= MAX_QUERY_TERMS:
            return question
        parts = [
            Fragment(
                "SELECT term, sum(chunks)::bigint, %s::text FROM indexing_posting "
                "WHERE term = ANY(%s::text[]) AND number = ANY(%s::int[]) GROUP BY term",
                (language, list(terms), numbers),
            )
            for language, terms, numbers in _by_language(scope, question)
        ]
        df = dict.fromkeys(question.asked, 0)
        for term, chunks, language in fetch(union(parts)) if parts else ():
            df[question.terms[language][term]] += chunks
        # A word that is nowhere says nothing, so it does not take a place from one that is somewhere.
        rarest = sorted(question.asked, key=lambda unit: (df[unit] == 0, df[unit], unit))
        return question.without(set(rarest[MAX_QUERY_TERMS:]))

    def statement(self, scope: Scope, question: Question) -> Fragment:
        """One SELECT of statistics (``s``), postings (``p``) and, with conditions, allowed chunks (``f``)."""
        parts = [
            Fragment(
                "SELECT 's' AS kind, number, 0 AS block, chunks::bigint, heading_length, body_length, "
                "next_slot::text AS term, dead AS data "
                "FROM indexing_indexedsource WHERE number = ANY(%s::int[])",
                (scope.numbers,),
            )
        ]
        for language, terms, numbers in _by_language(scope, question):
            parts.append(
                Fragment(
                    "SELECT 'p', number, block::int, chunks::bigint, 0::bigint, 0::bigint, term, entries "
                    "FROM indexing_posting WHERE term = ANY(%s::text[]) AND number = ANY(%s::int[])",
                    (terms, numbers),
                )
            )
            del language
        if scope.conditions:
            for store in scope.stores:
                inner = fragment_of(scope.chunks_of(store).values("ref"))
                packed = "COALESCE(string_agg(int8send(ref), ''::bytea), ''::bytea)"
                columns = f"'f', 0, 0, 0::bigint, 0::bigint, 0::bigint, '', {packed}"
                parts.append(Fragment(f"SELECT {columns} FROM ({inner.sql}) allowed", inner.params))  # noqa: S608
        return union(parts)

    def rank(self, scope: Scope, question: Question, rows: Sequence[tuple[Any, ...]], limit: int) -> LexicalResult:
        """Scores every chunk of scope that holds a term; see the module for the formula."""
        space = _Space.of([row for row in rows if row[0] == "s"])
        postings = [row for row in rows if row[0] == "p" and row[1] in space.base]
        languages = {source.number: source.language for source in scope.sources}
        units = [question.terms[languages[row[1]]][row[6]] for row in postings]
        df = dict.fromkeys(question.asked, 0)
        for unit, row in zip(units, postings, strict=True):
            df[unit] += row[3]
        weight = {unit: idf(space.chunks, count) for unit, count in df.items() if count > 0}
        # One order of summing, whatever the order in which rows come: equal scores to the last bit.
        order = sorted(
            (place for place, row in enumerate(postings) if row[7] and units[place] in weight), key=lambda p: units[p]
        )
        if not order or limit <= 0:
            return LexicalResult((), space.chunks, df, weight)
        found = _Entries.of(space, [postings[place] for place in order], [units[place] for place in order], weight)
        allowed = space.keys_of([row[7] for row in rows if row[0] == "f"]) if scope.conditions else None
        best, scores = found.best(space, allowed, limit)
        fields = found.fields(best)
        refs = space.refs(best)
        ranked = np.lexsort((best, -scores))
        hits = tuple(LexicalHit(int(refs[p]), float(scores[p]), fields[p]) for p in ranked.tolist())
        return LexicalResult(hits, space.chunks, df, weight)


def _by_language(scope: Scope, question: Question) -> list[tuple[str, list[str], list[int]]]:
    found = []
    for language in scope.languages:
        terms = sorted(question.terms.get(language, ()))
        numbers = [source.number for source in scope.sources if source.language == language]
        if terms and numbers:
            found.append((language, terms, numbers))
    return found


@dataclass(frozen=True, slots=True)
class _Space:
    """The slots of all sources in scope in one row of keys, each source from its base on."""

    base: Mapping[int, int]
    size: int
    chunks: int
    dead: NDArray[np.int64]
    heading_step: Mapping[int, float]
    body_step: Mapping[int, float]
    numbers: NDArray[np.int64]
    bases: NDArray[np.int64]

    @classmethod
    def of(cls, rows: Sequence[tuple[Any, ...]]) -> _Space:
        base: dict[int, int] = {}
        heading: dict[int, float] = {}
        body: dict[int, float] = {}
        dead: list[NDArray[np.int64]] = []
        size = chunks = 0
        for _, number, _, count, heading_length, body_length, slots, gone in sorted(rows, key=lambda row: row[1]):
            base[number] = size
            heading[number] = HEADING_B / reference_length(heading_length, count)
            body[number] = BODY_B / reference_length(body_length, count)
            if gone:
                dead.append(np.frombuffer(gone, "<u4").astype(np.int64) + size)
            size += int(slots)
            chunks += count
        return cls(
            base,
            size,
            chunks,
            np.concatenate(dead) if dead else np.zeros(0, np.int64),
            heading,
            body,
            np.array(list(base), np.int64),
            np.array(list(base.values()), np.int64),
        )

    def refs(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        place = np.searchsorted(self.bases, keys, side="right") - 1
        refs: NDArray[np.int64] = (self.numbers[place] << SLOT_BITS) | (keys - self.bases[place])
        return refs

    def keys_of(self, packed: Sequence[bytes]) -> NDArray[np.int64]:
        """Keys of chunk refs, as PostgreSQL packs them (big endian)."""
        refs = np.frombuffer(b"".join(packed), ">i8").astype(np.int64)
        number = refs >> SLOT_BITS
        place = np.searchsorted(self.numbers, number)
        known = (place < len(self.numbers)) & (self.numbers[np.minimum(place, len(self.numbers) - 1)] == number)
        keys: NDArray[np.int64] = self.bases[place[known]] + (refs[known] & ((1 << SLOT_BITS) - 1))
        return keys


@dataclass(frozen=True, slots=True)
class _Entries:
    """All entries of all terms, with the key of their chunk and what they add to its score."""

    data: NDArray[np.void]
    keys: NDArray[np.int64]
    adds: NDArray[np.float64]
    units: NDArray[np.int64]
    """Unit of each posting row; ``sizes`` entries each."""
    sizes: NDArray[np.int64]

    @classmethod
    def of(
        cls, space: _Space, rows: Sequence[tuple[Any, ...]], units: Sequence[int], weight: Mapping[int, float]
    ) -> _Entries:
        data = np.frombuffer(b"".join([row[7] for row in rows]), ENTRY)
        sizes = np.array([len(row[7]) for row in rows], np.int64) >> 3
        starts = np.array([space.base[row[1]] + (row[2] << BLOCK_BITS) for row in rows], np.int64)
        keys = np.repeat(starts, sizes)
        keys += data["slot"]
        body_step = np.repeat(np.array([space.body_step[row[1]] for row in rows]), sizes)
        norm = data["body_length"] * body_step
        norm += 1 - BODY_B
        w = data["body"] / norm
        rich = np.flatnonzero((data["heading"] | data["path"]) != 0)
        if len(rich):
            step = np.repeat(np.array([space.heading_step[row[1]] for row in rows]), sizes)[rich]
            some = data[rich]
            w[rich] += PATH_WEIGHT * some["path"] + HEADING_WEIGHT * some["heading"] / (
                1 - HEADING_B + some["heading_length"] * step
            )
        adds = w / (w + K1)
        adds *= np.repeat(np.array([weight[unit] * (K1 + 1) for unit in units]), sizes)
        return cls(data, keys, adds, np.array(units, np.int64), sizes)

    def best(
        self, space: _Space, allowed: NDArray[np.int64] | None, limit: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Keys and scores of the ``limit`` best chunks and of those that equal the last of them."""
        if len(self.keys) * 8 < space.size:
            # Few entries in a large index: sorting them is cheaper than a row of sums for every chunk.
            keys, inverse = np.unique(self.keys, return_inverse=True)
            sums = np.bincount(inverse, weights=self.adds, minlength=len(keys))
            if len(space.dead):
                sums[np.isin(keys, space.dead)] = 0
            if allowed is not None:
                sums[~np.isin(keys, allowed)] = 0
        else:
            sums = np.bincount(self.keys, weights=self.adds, minlength=space.size)
            sums[space.dead] = 0
            if allowed is not None:
                mask = np.zeros(len(sums), bool)
                mask[allowed] = True
                sums[~mask] = 0
            keys = None
        places = np.flatnonzero(sums > 0)
        if len(places) > limit:
            raw = sums[places]
            last = np.partition(raw, len(raw) - limit)[len(raw) - limit]
            # Rounding may make a lower sum equal to the last one.
            places = places[raw >= last - 10.0**-DECIMALS]
        scores: NDArray[np.float64] = np.round(sums[places], DECIMALS)
        if len(places) > limit:
            last = np.partition(scores, len(scores) - limit)[len(scores) - limit]
            places, scores = places[scores >= last], scores[scores >= last]
        return (places if keys is None else keys[places]), scores

    def fields(self, best: NDArray[np.int64]) -> list[dict[int, str]]:
        """For each of the sorted keys ``best``, the units that it holds and where."""
        found: list[dict[int, str]] = [{} for _ in best]
        if not found:
            return found
        place = np.searchsorted(best, self.keys)
        place[place == len(best)] = 0
        hits = np.flatnonzero(best[place] == self.keys)
        units = self.units[np.searchsorted(np.cumsum(self.sizes), hits, side="right")]
        some = self.data[hits]
        code = (some["body"] > 0) * 1 + (some["heading"] > 0) * 2 + (some["path"] > 0) * 4
        for at, unit, where in zip(place[hits].tolist(), units.tolist(), code.tolist(), strict=True):
            found[at][unit] = _WHERE[where]
        return found


_WHERE = tuple(("b" if code & 1 else "") + ("h" if code & 2 else "") + ("p" if code & 4 else "") for code in range(8))
