"""BM25F over arrays of postings (``retrieval.md`` 3.1 to 3.4). No database."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from django.conf import settings
from numpy.typing import NDArray

from apps.indexing.fields import ENTRY
from apps.indexing.models import BLOCK_BITS, SLOT_BITS

if TYPE_CHECKING:
    from apps.indexing.stores import Block

DECIMALS = 6


class Formula(NamedTuple):
    """The constants of BM25F: saturation, and weight and length normalisation of the fields; the path has no length."""

    k1: float
    body_b: float
    heading_weight: float
    heading_b: float
    path_weight: float
    body_norm_most: float
    """Length normalisation of the longest bodies."""


def formula(block: Block = "docs") -> Formula:
    """That of the settings. The body of a document counts as at most ``body_length_most`` reference lengths: a source
    of short pages would otherwise hide what its one long page says, whatever rare words it holds. Bodies of code are
    held back without a bound, as long functions say little of each of their words (cosqa .4030; with the bound .4008).
    """
    chosen = settings.COGRAPH.retrieval
    longest = 1 - chosen.body_b + chosen.body_b * chosen.body_length_most if block == "docs" else math.inf
    return Formula(chosen.bm25_k1, chosen.body_b, chosen.heading_weight, chosen.heading_b, chosen.path_weight, longest)


def idf(chunks: int, df: int) -> float:
    return math.log(1 + (chunks - df + 0.5) / (df + 0.5))


_POWERS = np.array([2.0 ** (half / 2) for half in range(128)])


def reference_lengths(totals: NDArray[np.int64], chunks: NDArray[np.int64]) -> NDArray[np.float64]:
    """Average lengths of a field, rounded to the nearest power of the square root of 2; at least 1."""
    averages = np.maximum(totals, 1) / np.maximum(chunks, 1)
    halves = np.rint(2 * np.log2(np.maximum(averages, 1.0))).astype(np.int64)
    lengths: NDArray[np.float64] = np.where(chunks > 0, _POWERS[halves], 1.0)
    return lengths


SOURCE = np.dtype(
    [("number", ">i4"), ("chunks", ">i4"), ("heading", ">i8"), ("body", ">i8"), ("slots", ">i8"), ("dead", ">i4")]
)
"""A source as ``lexical.statistics`` packs it; ``dead`` is the length of its dead slots in bytes."""
ROW = np.dtype([("number", ">i4"), ("block", ">i4"), ("chunks", ">i4"), ("bytes", ">i4")])
"""A row of postings as ``lexical.postings`` packs it, without its entries."""


@dataclass(frozen=True, slots=True)
class Space:
    """The slots of all sources in scope in one row of keys, each source from its base on."""

    formula: Formula
    size: int
    chunks: int
    documents: NDArray[np.int64]
    """Chunks of each source; in the index of names, its documents."""
    dead: NDArray[np.int64]
    heading_step: NDArray[np.float64]
    body_step: NDArray[np.float64]
    numbers: NDArray[np.int64]
    bases: NDArray[np.int64]

    @classmethod
    def of(cls, packed: tuple[bytes | None, bytes | None], block: Block = "docs") -> Space:
        """From the row of ``lexical.statistics``: sources in the order of their numbers, and their dead slots."""
        rows = np.frombuffer(packed[0] or b"", SOURCE)
        counts = rows["chunks"].astype(np.int64)
        ends = np.cumsum(rows["slots"], dtype=np.int64)
        bases = ends - rows["slots"]
        dead = np.frombuffer(packed[1] or b"", "<u4").astype(np.int64)
        if len(dead):
            dead += np.repeat(bases, rows["dead"] >> 2)
        constants = formula(block)
        return cls(
            constants,
            int(ends[-1]) if len(ends) else 0,
            int(counts.sum()),
            counts,
            dead,
            constants.heading_b / reference_lengths(rows["heading"].astype(np.int64), counts),
            constants.body_b / reference_lengths(rows["body"].astype(np.int64), counts),
            rows["number"].astype(np.int64),
            bases,
        )

    def places_of(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Places of sources by their numbers, and which of them are in scope."""
        if not len(self.numbers):
            return np.zeros(len(numbers), np.int64), np.zeros(len(numbers), bool)
        place = np.minimum(np.searchsorted(self.numbers, numbers), len(self.numbers) - 1)
        return place, self.numbers[place] == numbers

    def refs(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        place = np.searchsorted(self.bases, keys, side="right") - 1
        refs: NDArray[np.int64] = (self.numbers[place] << SLOT_BITS) | (keys - self.bases[place])
        return refs

    def keys_of(self, packed: Sequence[bytes]) -> NDArray[np.int64]:
        """Keys of chunk refs, as PostgreSQL packs them (big endian)."""
        return self.keys_of_refs(np.frombuffer(b"".join(packed), ">i8").astype(np.int64))[0]

    def keys_of_refs(self, refs: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Keys of the refs that are in scope, and which of them are."""
        place, known = self.places_of(refs >> SLOT_BITS)
        keys: NDArray[np.int64] = self.bases[place[known]] + (refs[known] & ((1 << SLOT_BITS) - 1))
        return keys, known


@dataclass(frozen=True, slots=True)
class Postings:
    """Rows of postings as columns, without their entries. ``places`` are those of their sources in the space."""

    units: NDArray[np.int64]
    places: NDArray[np.int64]
    known: NDArray[np.bool_]
    blocks: NDArray[np.int64]
    changes: NDArray[np.int64]
    sizes: NDArray[np.int64]

    @classmethod
    def of(cls, space: Space, units: Sequence[int], heads: Sequence[bytes]) -> Postings:
        """``heads`` are the packed rows of each of ``units``. Rows of sources out of scope count for nothing."""
        rows = np.frombuffer(b"".join(heads), ROW)
        places, known = space.places_of(rows["number"].astype(np.int64))
        return cls(
            np.repeat(np.array(units, np.int64), [len(head) // ROW.itemsize for head in heads]),
            places,
            known,
            rows["block"].astype(np.int64),
            np.where(known, rows["chunks"], 0).astype(np.int64),
            rows["bytes"].astype(np.int64) >> 3,
        )


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
    def of(cls, space: Space, rows: Postings, data: Sequence[bytes], weight: Mapping[int, float]) -> Entries:
        entries = np.frombuffer(b"".join(data) if len(data) != 1 else data[0], ENTRY)
        factors = np.array([weight.get(unit, 0.0) * (space.formula.k1 + 1) for unit in rows.units.tolist()])
        places, sizes, units, blocks = rows.places, rows.sizes, rows.units, rows.blocks
        kept = rows.known & (factors > 0) & (sizes > 0)
        if not kept.all():
            entries = entries[np.repeat(kept, sizes)]
            places, sizes, units, blocks, factors = (of[kept] for of in (places, sizes, units, blocks, factors))
        starts = space.bases[places] + (blocks << BLOCK_BITS)
        body, heading = space.body_step[places], space.heading_step[places]
        keys = np.empty(len(entries), np.int64)
        adds = np.empty(len(entries), np.float64)
        packed = entries.view("<i8")
        for first, last, begin, end in _runs(sizes):
            part = slice(begin, end)
            which: Any = first if last == first + 1 else np.repeat(np.arange(first, last), sizes[first:last])
            np.bitwise_and(packed[part], 0xFFFF, out=keys[part])
            keys[part] += starts[which]
            _grade(space.formula, packed[part], body[which], heading[which], factors[which], adds[part])
        return cls(entries, keys, adds, units, sizes)

    def best(
        self, space: Space, allowed: NDArray[np.int64] | None, limit: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Keys and scores of the ``limit`` best chunks and of those that equal the last of them."""
        if space.size > _SPARSE * len(self.keys):
            # Few entries in a large index: sorting them is cheaper than a sum for every chunk.
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
        most = int(max(self.keys.max(initial=0), sorted_keys.max(initial=0))) + 1
        if most > _SPARSE * len(self.keys):
            near = np.minimum(np.searchsorted(sorted_keys, self.keys), len(sorted_keys) - 1)
            hits = np.flatnonzero(sorted_keys[near] == self.keys)
        else:
            # A row of flags is four times faster to ask than a search in the sorted keys.
            wanted = np.zeros(most, bool)
            wanted[sorted_keys] = True
            hits = np.flatnonzero(wanted[self.keys])
        units = self.units[np.searchsorted(np.cumsum(self.sizes), hits, side="right")]
        return np.searchsorted(sorted_keys, self.keys[hits]), hits, units


_OWN_RUN = 4096
"""Entries from which a posting row is worked on alone, with plain numbers in place of columns of them."""
_MOST = 1 << 15
"""Entries of small rows that are worked on together: what stays in the processor's cache."""
_SPARSE = 16
"""Chunks for each entry from which on entries are sorted, in place of a row of sums for all chunks."""


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


def _grade(
    formula: Formula,
    packed: NDArray[np.int64],
    body: Any,
    heading: Any,
    factor: Any,
    out: NDArray[np.float64],
) -> None:
    """Writes what each entry adds. Steps and factors are numbers, or arrays of one for each entry; either way each
    entry goes through the same operations, so that it adds the same whatever row it stands in.
    """
    norm = ((packed >> 16) & 0xFFFF).astype(np.float64)
    norm *= body
    norm += 1 - formula.body_b
    np.minimum(norm, formula.body_norm_most, out=norm)
    tf = ((packed >> 32) & 0xFF).astype(np.float64)
    # Of the body alone, w / (w + k1) with w = tf / norm.
    np.divide(tf, tf + formula.k1 * norm, out=out)
    rich = np.flatnonzero(packed >> 40)
    if len(rich):
        some = packed[rich]
        step = heading[rich] if isinstance(heading, np.ndarray) else heading
        w = tf[rich] / norm[rich]
        w += formula.path_weight * ((some >> 56) & 0xFF)
        w += formula.heading_weight * ((some >> 40) & 0xFF) / (1 - formula.heading_b + ((some >> 48) & 0xFF) * step)
        out[rich] = w / (w + formula.k1)
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

    def fields(self, refs: Sequence[int]) -> dict[int, dict[int, str]]:
        """The units that each of the chunks ``refs`` holds, and where; those of scope that hold none are left out."""
        found: dict[int, dict[int, str]] = {}
        asked = np.array(refs, np.int64)
        places, hits, units = self._at(asked)
        some = self.entries.data[hits]
        code = (some["body"] > 0) * 1 + (some["heading"] > 0) * 2 + (some["path"] > 0) * 4
        for ref, unit, where in zip(asked[places].tolist(), units.tolist(), code.tolist(), strict=True):
            found.setdefault(ref, {})[unit] = _WHERE[where]
        return found

    def in_headings(self, refs: Sequence[int]) -> list[int]:
        """Places among ``refs``, in order, of the chunks that hold a unit in their heading field."""
        places, hits, _ = self._at(np.array(refs, np.int64))
        found: list[int] = np.unique(places[self.entries.data["heading"][hits] > 0]).tolist()
        return found

    def rarity(self, refs: Sequence[int], idf: Mapping[int, float]) -> NDArray[np.float64]:
        """The sum of idf of the units that each of the chunks ``refs`` holds."""
        places, _, units = self._at(np.array(refs, np.int64))
        worth = np.zeros(max(idf, default=0) + 1)
        worth[list(idf)] = list(idf.values())
        return np.asarray(np.bincount(places, weights=worth[units], minlength=len(refs)), np.float64)

    def weights(self, refs: Sequence[int], idf: Mapping[int, float]) -> dict[int, dict[int, float]]:
        found: dict[int, dict[int, float]] = {}
        asked = np.array(refs, np.int64)
        places, hits, units = self._at(asked)
        k1 = self.space.formula.k1
        share = self.entries.adds[hits] / ((k1 + 1) * np.array([idf[unit] for unit in units.tolist()]))
        for ref, unit, part in zip(asked[places].tolist(), units.tolist(), share.tolist(), strict=True):
            found.setdefault(ref, {})[unit] = k1 * part / (1 - part)
        return found

    def _at(self, refs: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Of the entries of the chunks ``refs``: the place of the ref, the place among all entries, the unit."""
        keys, kept = self.space.keys_of_refs(refs)
        if not len(keys):
            return refs[:0], refs[:0], refs[:0]
        order = np.argsort(keys)
        place, hits, units = self.entries.at(keys[order])
        return np.flatnonzero(kept)[order][place], hits, units


_WHERE = tuple(("b" if code & 1 else "") + ("h" if code & 2 else "") + ("p" if code & 4 else "") for code in range(8))
