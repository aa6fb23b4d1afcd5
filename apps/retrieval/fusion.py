"""From ranked streams to one order: weighted reciprocal ranks, page boost, factors, copies.

Pure arithmetic over keys and values; no database. Formulas and constants: ``retrieval.md`` 7. A score of one stream is
never added to a score of another: only ranks meet.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

K = TypeVar("K", bound=Hashable)

RANK_OFFSET = 60
PAGE_BOOST = 0.3
PAGE_ROWS = 3
ROUND = 9
"""Decimals to which scores are rounded before they are compared, so that the order is the same on every machine."""
COPY_MIN_CHARS = 200

STATUS_FACTORS = {"superseded": 0.6, "deprecated": 0.6, "archived": 0.4}
SIDE_FACTOR = 0.6


@dataclass(frozen=True, slots=True)
class Place:
    """A row's place in one stream: its rank from 1 and the weight of that place."""

    rank: int
    weight: float = 1.0

    @property
    def share(self) -> float:
        return self.weight / (RANK_OFFSET + self.rank)


def fuse(
    streams: Sequence[Sequence[K]], weights: Sequence[float] | None = None, *, k: int = RANK_OFFSET
) -> dict[K, float]:
    """Weighted reciprocal rank fusion: sum of weight / (k + rank) over the streams that hold a row.

    Raises ValueError when ``k`` is not positive or there are not as many weights as streams.
    """
    if k <= 0:
        raise ValueError(f"k is {k}; it must be positive")
    if weights is None:
        weights = [1.0] * len(streams)
    if len(weights) != len(streams):
        raise ValueError(f"{len(streams)} streams need as many weights, not {len(weights)}")
    fused: defaultdict[K, float] = defaultdict(float)
    for stream, weight in zip(streams, weights, strict=True):
        for rank, key in enumerate(stream, start=1):
            fused[key] += weight / (k + rank)
    return dict(fused)


@dataclass(frozen=True, slots=True)
class Standing:
    """What the final score of a row is made of."""

    fused: float
    page: float
    factor: float
    final: float


def factor_of(*, status: str = "", priority: int = 50, side: bool = False, named: bool = False) -> float:
    """What a row's final score is multiplied by. ``named``: the query spells the file or is one of its names."""
    if named:
        return 1.0
    factor = STATUS_FACTORS.get(status, 1.0) * (1 + (priority - 50) / 500)
    return factor * SIDE_FACTOR if side else factor


_BLANKS = re.compile(r"\s+")


def copy_key(text: str) -> str | None:
    """Equal keys mean equal texts, blanks collapsed; None for texts too short to be called copies."""
    collapsed = _BLANKS.sub(" ", text).strip()
    return collapsed if len(collapsed) >= COPY_MIN_CHARS else None


def collapse(ordered: Sequence[K], texts: Mapping[K, str | None]) -> tuple[list[K], dict[K, list[K]]]:
    """Rows of equal text become the first of them, in order; also gives, for each kept row, the rows it stands for."""
    first: dict[str, K] = {}
    kept: list[K] = []
    copies: defaultdict[K, list[K]] = defaultdict(list)
    for key in ordered:
        text = texts.get(key)
        same = copy_key(text) if text is not None else None
        if same is not None and same in first:
            copies[first[same]].append(key)
            continue
        if same is not None:
            first[same] = key
        kept.append(key)
    return kept, dict(copies)
