"""The constants of fusion, and what a row's place and standing are made of (``retrieval.md`` 7).

A score of one stream is never added to a score of another: only ranks meet. `apps.retrieval.standings` does the sums.
"""

from __future__ import annotations

from typing import NamedTuple

RANK_OFFSET = 60
PAGE_BOOST = 0.3
PAGE_ROWS = 3
ROUND = 9
"""Decimals to which scores are rounded before they are compared, so that the order is the same on every machine."""

STATUS_FACTORS = {"superseded": 0.6, "deprecated": 0.6, "archived": 0.4}
SIDE_FACTOR = 0.6


class Place(NamedTuple):
    """A row's place in one stream: its rank from 1 and the weight of that place."""

    rank: int
    weight: float = 1.0

    @property
    def share(self) -> float:
        return self.weight / (RANK_OFFSET + self.rank)


class Standing(NamedTuple):
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
