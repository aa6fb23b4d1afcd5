"""Counts as parts of a bar, for the pictures of every room."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Share:
    """One part of a bar: ``offset`` and ``share`` in per cent of the width, ``style`` one of the fill classes."""

    words: str
    count: int
    offset: float
    share: float
    style: str


def shares(counts: Iterable[tuple[str, int, str]]) -> list[Share]:
    """Counts as parts of a bar; parts that are nothing are left out."""
    rows = [row for row in counts if row[1] > 0]
    total = sum(count for _, count, _ in rows)
    found, offset = [], 0.0
    for words, count, style in rows:
        share = 100 * count / total
        found.append(Share(words, count, round(offset, 3), round(share, 3), style))
        offset += share
    return found
