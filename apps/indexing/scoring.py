"""BM25F over arrays of postings (``retrieval.md`` 3.1 to 3.4). No database."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
        self, space: Space, allowed: NDArray[np.int64] | None, limit: int
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

    def at(self, sorted_keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Entries whose key is among ``sorted_keys``: their places in it, their own places, their units."""
        place = np.searchsorted(sorted_keys, self.keys)
        place[place == len(sorted_keys)] = 0
        hits = np.flatnonzero(sorted_keys[place] == self.keys)
        return place[hits], hits, self.units[np.searchsorted(np.cumsum(self.sizes), hits, side="right")]

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
