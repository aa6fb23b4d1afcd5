"""What a row's place and standing are made of (``retrieval.md`` 7); the constants are settings.

A score of one stream is never added to a score of another: only ranks meet. `apps.retrieval.standings` does the sums.
"""

from __future__ import annotations

from typing import NamedTuple

from django.conf import settings

ROUND = 9
"""Decimals to which scores are rounded before they are compared, so that the order is the same on every machine."""


class Place(NamedTuple):
    """A row's place in one stream: its rank from 1 and the weight of that place."""

    rank: int
    weight: float = 1.0

    @property
    def share(self) -> float:
        return self.weight / (settings.COGRAPH.retrieval.rank_offset + self.rank)


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
    chosen = settings.COGRAPH.retrieval
    of_status = {
        "superseded": chosen.superseded_factor,
        "deprecated": chosen.deprecated_factor,
        "archived": chosen.archived_factor,
    }
    factor: float = of_status.get(status, 1.0) * (1 + (priority - 50) / 500)
    return factor * chosen.side_factor if side else factor
