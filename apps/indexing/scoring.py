"""BM25F over arrays of postings (``retrieval.md`` 3.1 to 3.4). No database."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.indexing.fields import ENTRY
from apps.indexing.models import BLOCK_BITS, SLOT_BITS

K1 = 1.2
HEADING_WEIGHT, HEADING_B = 2.0, 0.3
PATH_WEIGHT = 0.5
BODY_B = 0.75
DECIMALS = 6


def idf(chunks: int, df: int) -> float:
    return math.log(1 + (chunks - df + 0.5) / (df + 0.5))


@functools.lru_cache(maxsize=10_000)
def reference_length(total: int, chunks: int) -> float:
    """The average length of a field, rounded to the nearest power of the square root of 2; at least 1."""
    if chunks <= 0 or total <= chunks:
        return 1.0
    return float(2.0 ** (round(2 * math.log2(total / chunks)) / 2))


@dataclass(frozen=True, slots=True)
class Space:
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
    def of(cls, rows: Sequence[tuple[Any, ...]]) -> Space:
        rows = sorted(rows, key=itemgetter(1))
        _, numbers, _, counts, headings, bodies, slots, gone = zip(*rows, strict=True) if rows else ((),) * 8
        ends = list(itertools.accumulate(map(int, slots)))
        bases = [0, *ends[:-1]]
        dead = [np.frombuffer(g, "<u4").astype(np.int64) + base for g, base in zip(gone, bases, strict=False) if g]
        return cls(
            dict(zip(numbers, bases, strict=False)),
            ends[-1] if ends else 0,
            sum(counts),
            np.concatenate(dead) if dead else np.zeros(0, np.int64),
            {n: HEADING_B / reference_length(*of) for n, *of in zip(numbers, headings, counts, strict=True)},
            {n: BODY_B / reference_length(*of) for n, *of in zip(numbers, bodies, counts, strict=True)},
            np.array(numbers, np.int64),
            np.array(bases[: len(numbers)], np.int64),
        )

    def refs(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        place = np.searchsorted(self.bases, keys, side="right") - 1
        refs: NDArray[np.int64] = (self.numbers[place] << SLOT_BITS) | (keys - self.bases[place])
        return refs

    def keys_of(self, packed: Sequence[bytes]) -> NDArray[np.int64]:
        """Keys of chunk refs, as PostgreSQL packs them (big endian)."""
        return self.keys_of_refs(np.frombuffer(b"".join(packed), ">i8").astype(np.int64))[0]

    def keys_of_refs(self, refs: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Keys of the refs that are in scope, and which of them are."""
        number = refs >> SLOT_BITS
        place = np.searchsorted(self.numbers, number)
        known = (place < len(self.numbers)) & (self.numbers[np.minimum(place, len(self.numbers) - 1)] == number)
        keys: NDArray[np.int64] = self.bases[place[known]] + (refs[known] & ((1 << SLOT_BITS) - 1))
        return keys, known


@dataclass(frozen=True, slots=True)
class Entries:
    """All entries of all terms, with the key of their chunk and what they add to its score."""

    data: NDArray[np.void]
    keys: NDArray[np.int64]
    adds: NDArray[np.float64]
    units: NDArray[np.int64]
    """Unit of each posting row; ``sizes`` entries each."""
    sizes: NDArray[np.int64]

    @classmethod
    def of(
        cls, space: Space, rows: Sequence[tuple[Any, ...]], units: Sequence[int], weight: Mapping[int, float]
    ) -> Entries:
        data = np.frombuffer(b"".join([row[7] for row in rows]), ENTRY)
        sizes = np.array([len(row[7]) for row in rows], np.int64) >> 3
        starts = np.array([space.base[row[1]] + (row[2] << BLOCK_BITS) for row in rows], np.int64)
        body = np.array([space.body_step[row[1]] for row in rows])
        heading = np.array([space.heading_step[row[1]] for row in rows])
        factors = np.array([weight[unit] * (K1 + 1) for unit in units])
        keys = np.empty(len(data), np.int64)
        adds = np.empty(len(data), np.float64)
        packed = data.view("<i8")
        for first, last, begin, end in _runs(sizes):
            part = slice(begin, end)
            which: Any = first if last == first + 1 else np.repeat(np.arange(first, last), sizes[first:last])
            np.bitwise_and(packed[part], 0xFFFF, out=keys[part])
            keys[part] += starts[which]
            _grade(packed[part], body[which], heading[which], factors[which], adds[part])
        return cls(data, keys, adds, np.array(units, np.int64), sizes)

    def best(
        self, space: Space, allowed: NDArray[np.int64] | None, limit: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Keys and scores of the ``limit`` best chunks and of those that equal the last of them."""
        if space.size > _LARGE + 32 * len(self.keys):
            # Few entries in a very large index: sorting them is cheaper than a sum for every chunk.
            keys, inverse = np.unique(self.keys, return_inverse=True)
            sums = np.asarray(np.bincount(inverse, weights=self.adds, minlength=len(keys)), np.float64)
            if len(space.dead):
                sums[np.isin(keys, space.dead)] = 0
            if allowed is not None:
                sums[~np.isin(keys, allowed)] = 0
            places, scores = _top(sums, np.flatnonzero(sums > 0), limit)
            return keys[places], scores
        sums = np.asarray(np.bincount(self.keys, weights=self.adds, minlength=space.size), np.float64)
        sums[space.dead] = 0
        if allowed is not None:
            kept = np.zeros(len(sums), bool)
            kept[allowed] = True
            sums[~kept] = 0
        return _top(sums, _promising(sums, self.keys, limit, len(set(self.units.tolist()))), limit)

    def at(self, sorted_keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Entries whose key is among ``sorted_keys``: their places in it, their own places, their units."""
        # A row of flags is four times faster to ask than a search in the sorted keys.
        wanted = np.zeros(int(max(self.keys.max(initial=0), sorted_keys.max(initial=0))) + 1, bool)
        wanted[sorted_keys] = True
        hits = np.flatnonzero(wanted[self.keys])
        units = self.units[np.searchsorted(np.cumsum(self.sizes), hits, side="right")]
        return np.searchsorted(sorted_keys, self.keys[hits]), hits, units

    def fields(self, best: NDArray[np.int64]) -> list[dict[int, str]]:
        """For each of the sorted keys ``best``, the units that it holds and where."""
        found: list[dict[int, str]] = [{} for _ in best]
        if not found:
            return found
        place, hits, units = self.at(best)
        some = self.data[hits]
        code = (some["body"] > 0) * 1 + (some["heading"] > 0) * 2 + (some["path"] > 0) * 4
        for at, unit, where in zip(place.tolist(), units.tolist(), code.tolist(), strict=True):
            found[at][unit] = _WHERE[where]
        return found


_OWN_RUN = 4096
"""Entries from which a posting row is worked on alone, with plain numbers in place of columns of them."""
_MOST = 1 << 15
"""Entries of small rows that are worked on together: what stays in the processor's cache."""
_LARGE = 4_000_000


def _runs(sizes: NDArray[np.int64]) -> Iterator[tuple[int, int, int, int]]:
    """Stretches of rows to work on at once: first row, row after the last, first entry, entry after the last."""
    first = begin = at = 0
    for row, size in enumerate(sizes.tolist()):
        if size >= _OWN_RUN or at - begin >= _MOST:
            if row > first:
                yield first, row, begin, at
            first, begin = row, at
        at += size
        if size >= _OWN_RUN:
            yield row, row + 1, begin, at
            first, begin = row + 1, at
    if first < len(sizes):
        yield first, len(sizes), begin, at


def _grade(packed: NDArray[np.int64], body: Any, heading: Any, factor: Any, out: NDArray[np.float64]) -> None:
    """Writes what each entry adds. Steps and factors are numbers, or arrays of one for each entry; either way each
    entry goes through the same operations, so that it adds the same whatever row it stands in.
    """
    norm = ((packed >> 16) & 0xFFFF).astype(np.float64)
    norm *= body
    norm += 1 - BODY_B
    tf = ((packed >> 32) & 0xFF).astype(np.float64)
    # Of the body alone, w / (w + k1) with w = tf / norm.
    np.divide(tf, tf + K1 * norm, out=out)
    rich = np.flatnonzero(packed >> 40)
    if len(rich):
        some = packed[rich]
        step = heading[rich] if isinstance(heading, np.ndarray) else heading
        w = tf[rich] / norm[rich]
        w += PATH_WEIGHT * ((some >> 56) & 0xFF)
        w += HEADING_WEIGHT * ((some >> 40) & 0xFF) / (1 - HEADING_B + ((some >> 48) & 0xFF) * step)
        out[rich] = w / (w + K1)
    out *= factor


def _promising(sums: NDArray[np.float64], keys: NDArray[np.int64], limit: int, units: int) -> NDArray[np.int64]:
    """Keys among which the ``limit`` best certainly are, ties and neighbours by rounding included."""
    if len(keys) * 4 > len(sums) > 64 * limit:
        # Many chunks match: the best of each of many stretches give a bound for the best of all.
        width = len(sums) // (16 * limit)
        peaks = sums[: width * (len(sums) // width)].reshape(-1, width).max(axis=1)
        bound = np.partition(peaks, len(peaks) - limit)[len(peaks) - limit]
        return np.flatnonzero(sums >= max(bound - 10.0**-DECIMALS, np.finfo(float).tiny))
    touched = sums[keys]  # each chunk once for every unit it holds
    most = limit * units
    bound = np.partition(touched, len(touched) - most)[len(touched) - most] if len(touched) > most else 0.0
    return np.unique(keys[(touched >= bound - 10.0**-DECIMALS) & (touched > 0)])


def _top(
    sums: NDArray[np.float64], places: NDArray[np.int64], limit: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The best of ``places`` with their rounded scores, all that equal the last one included."""
    scores: NDArray[np.float64] = np.round(sums[places], DECIMALS)
    if len(places) > limit:
        last = np.partition(scores, len(scores) - limit)[len(scores) - limit]
        places, scores = places[scores >= last], scores[scores >= last]
    return places, scores


@dataclass(frozen=True, slots=True)
class Detail:
    """What a result was summed from, for streams that look into single documents."""

    space: Space
    entries: Entries

    def in_bodies(self, unit: int) -> int:
        mine = np.repeat(self.entries.units == unit, self.entries.sizes) & (self.entries.data["body"] > 0)
        if len(self.space.dead):
            mine &= ~np.isin(self.entries.keys, self.space.dead)
        return int(mine.sum())

    def weights(self, refs: Sequence[int], idf: Mapping[int, float]) -> dict[int, dict[int, float]]:
        keys, kept = self.space.keys_of_refs(np.array(refs, np.int64))
        known = np.array(refs, np.int64)[kept]
        order = np.argsort(keys)
        found: dict[int, dict[int, float]] = {}
        if not len(keys):
            return found
        place, hits, units = self.entries.at(keys[order])
        share = self.entries.adds[hits] / ((K1 + 1) * np.array([idf[unit] for unit in units.tolist()]))
        refs_found = known[order][place]
        for ref, unit, part in zip(refs_found.tolist(), units.tolist(), share.tolist(), strict=True):
            found.setdefault(ref, {})[unit] = K1 * part / (1 - part)
        return found


_WHERE = tuple(("b" if code & 1 else "") + ("h" if code & 2 else "") + ("p" if code & 4 else "") for code in range(8))
