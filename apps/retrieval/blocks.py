"""The two blocks of an answer, documents and code: which is better, and both as one list (``retrieval.md`` 1.4 to 1.6).

Neither displaces the other: each has its own candidates, statistics and order. The strength only says which comes
first.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from apps.retrieval.fusion import ROUND
from apps.retrieval.ordering import Fused, fuse_blocks, sort_key
from apps.retrieval.streams import Streams, rarity

if TYPE_CHECKING:
    from apps.retrieval.shelf_values import Candidate

JUDGED_ROWS = 10


@dataclass(frozen=True, slots=True)
class Block:
    streams: Streams
    fused: Fused
    strength: float
    """E, 0 to 1."""

    @property
    def name(self) -> str:
        return self.streams.block


def blocks_of(asked: Sequence[Streams], set_aside: Callable[[Streams, Fused], Fused] | None = None) -> list[Block]:
    """Each with its rows in order, the better block first; equal ones: documents first. ``set_aside`` takes rows out
    that have their place beside the hits."""
    known = rarity(asked)
    blocks = []
    for streams, fused in zip(asked, fuse_blocks(asked), strict=True):
        if set_aside is not None:
            fused = set_aside(streams, fused)
        blocks.append(Block(streams, fused, strength(streams, fused, known)))
    return sorted(blocks, key=lambda block: (-block.strength, block.name != "docs"))


def strength(streams: Streams, fused: Fused, known: Mapping[tuple[int, int, bool], float]) -> float:
    """(coverage + evidence) / 2, both the best of the first ten rows: the share of the question's rarity that a row
    holds, and how surely the question names it."""
    whole = sum(known.values())
    rows = fused.order[:JUDGED_ROWS]
    coverage = 0.0
    fields = fused.fields_of(rows)
    for row in rows:
        units = (streams.terms.units[unit] for unit in fields.get(row.ref, ()))
        held = {(unit.start, unit.end, unit.whole) for unit in units}
        coverage = max(coverage, sum(known[key] for key in sorted(held) if key in known))
    evidence = max((fused.evidence.get(row.ref, 0.0) for row in rows), default=0.0)
    return round(((coverage / whole if whole else 0.0) + evidence) / 2, ROUND)


def merged(blocks: Sequence[Block], most: int) -> list[tuple[Block, Candidate]]:
    """The first ``most`` rows of both blocks as one list, by strength × final score; each block keeps its order."""
    lists = [[(block, row) for row in block.fused.order[:most]] for block in blocks]
    if len(lists) == 1:
        return lists[0]

    def key(entry: tuple[Block, Candidate]) -> tuple[object, ...]:
        block, row = entry
        standing = block.fused.standings[row.ref]
        return (-round(block.strength * standing.final, ROUND), *sort_key(row, standing)[1:])

    return list(itertools.islice(heapq.merge(*lists, key=key), most))
