"""Ranks and scores of the candidates of one block, as columns: hundreds of rows to each search, of which few are shown.

Formulas and constants: ``retrieval.md`` 7. Seen from outside these are mappings from the ref of a candidate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from django.conf import settings
from numpy.typing import NDArray

from apps.retrieval.fusion import ROUND, Place, Standing

if TYPE_CHECKING:
    from apps.retrieval.rows import Rows
    from apps.retrieval.values import StreamName


def backing_of(rarity: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far rows found by words speak for their page, 0 to 1: those that hold a good part of what is rare in the
    question do so fully. Ranks alone tell nothing of it: a page with many rows that hold but its one common word would
    stand above the page with the rare ones.
    """
    enough = settings.COGRAPH.retrieval.page_coverage * float(rarity.max(initial=0.0))
    return np.minimum(1.0, rarity / enough) if enough else np.ones(len(rarity))


class Ties:
    """Rows in order; those of equal scores, and only those, by source, path and place."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    @cached_property
    def _keys(self) -> list[tuple[Any, ...]]:
        return self._rows.ties

    def sorted(self, places: NDArray[np.int64], *worth: NDArray[Any]) -> NDArray[np.int64]:
        """``places`` by columns of ``worth``, the largest first, the first column first, then by the ties."""
        if not len(places):
            return places
        columns = [-column[places] for column in reversed(worth)]
        ordered = places[np.lexsort(columns)]
        equal = np.ones(len(places) - 1, bool)
        for column in worth:
            equal &= np.diff(column[ordered]) == 0
        if equal.any():
            # Stretches of equal rows: from the first pair of equal neighbours to the last.
            edges = np.diff(np.concatenate(([0], equal.view(np.int8), [0])))
            for first, last in zip(
                np.flatnonzero(edges == 1).tolist(), np.flatnonzero(edges == -1).tolist(), strict=True
            ):
                alike = ordered[first : last + 1].tolist()
                ordered[first : last + 1] = sorted(alike, key=self._keys.__getitem__)
        return ordered


class Places(Mapping[int, "dict[StreamName, tuple[Place, float]]"]):
    """Rank, weight and score of each row in each stream that holds it."""

    def __init__(self, index: Mapping[int, int]) -> None:
        self.index = index
        self.sums = np.zeros(len(index))
        """fused = sum of weight / (60 + rank)."""
        self.votes = np.zeros(len(index))
        """What a row adds to its page: fused, each stream's part times its backing."""
        self.agreed = 0.0
        """The fused score of a row that words and meaning both put first."""
        self._streams: dict[StreamName, tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]] = {}

    def add(
        self,
        name: StreamName,
        rows: NDArray[np.int64],
        ranks: NDArray[np.int64],
        weights: NDArray[np.float64],
        scores: NDArray[np.float64],
        backing: NDArray[np.float64] | float = 1.0,
        agreed: float = 0.0,
    ) -> None:
        """A stream's rows. ``backing``: how far each of them speaks for its page. ``agreed``: what the first place of
        words or meaning weighs by itself, whatever row stands there."""
        columns = (np.zeros(len(self.index), np.int64), np.zeros(len(self.index)), np.zeros(len(self.index)))
        for column, values in zip(columns, (ranks, weights, scores), strict=True):
            column[rows] = values
        self._streams[name] = columns
        shares = weights / (settings.COGRAPH.retrieval.rank_offset + ranks)
        self.sums[rows] += shares
        if len(rows):
            self.agreed += Place(1, agreed).share
        self.votes[rows] += shares * backing

    @property
    def held(self) -> NDArray[np.int64]:
        """Rows that any stream holds."""
        held = np.zeros(len(self.index), bool)
        for ranks, _, _ in self._streams.values():
            held |= ranks > 0
        return np.flatnonzero(held)

    def rank_of(self, name: StreamName, row: int) -> int:
        """0 for a row that the stream does not hold."""
        return int(self._streams[name][0][row]) if name in self._streams else 0

    def first_in_both(self) -> int | None:
        """The row that stands first by words and by meaning alike, if there is one."""
        if not {"lexical", "dense"} <= self._streams.keys():
            return None
        words, meaning = (self._streams[name][0] for name in ("lexical", "dense"))
        both = np.flatnonzero((words == 1) & (meaning == 1))
        return int(both[0]) if len(both) else None

    def __getitem__(self, ref: int) -> dict[StreamName, tuple[Place, float]]:
        row = self.index[ref]
        return {
            name: (Place(int(ranks[row]), float(weights[row])), float(scores[row]))
            for name, (ranks, weights, scores) in self._streams.items()
            if ranks[row]
        }

    def __iter__(self) -> Iterator[int]:
        return iter(self.index)

    def __len__(self) -> int:
        return len(self.index)


class Standings(Mapping[int, Standing]):
    """What the final score of each row is made of."""

    def __init__(self, index: Mapping[int, int], *columns: NDArray[np.float64]) -> None:
        self.index = index
        self.fused, self.page, self.factor, self.final = columns

    @classmethod
    def of(
        cls,
        index: Mapping[int, int],
        fused: NDArray[np.float64],
        documents: NDArray[np.int64],
        factors: NDArray[np.float64],
        votes: NDArray[np.float64] | None = None,
        first: int | None = None,
        agreed: float = 0.0,
    ) -> Standings:
        """final = 1.3 · s / best s × factor, s = fused + 0.3 · agreed · p / best p, p = sum of a document's three best
        ``votes``: fused scores, where none are given. ``documents`` numbers the document of each row from 0 on.

        ``agreed`` is the fused score of a row that words and meaning both put first; without it, the best one. A page
        thus helps its rows alike whatever the question: against the best score it would help more where a name lifts
        one row far above all others, and every row of its page with it.

        ``first`` is a row whose page counts as the best one: what words and meaning both put first needs no neighbours
        to vouch for it, and a long page whose sections all touch the question does not push it down.
        """
        if not len(fused):
            return cls(index, fused, fused, factors, fused)
        chosen = settings.COGRAPH.retrieval
        votes = fused if votes is None else votes
        order = np.lexsort((-votes, documents))
        owners = documents[order]
        firsts = np.flatnonzero(np.diff(owners, prepend=-1))
        ranks = np.arange(len(order)) - np.repeat(firsts, np.diff(firsts, append=len(order)))
        best = order[ranks < chosen.page_rows]
        pages = np.bincount(documents[best], weights=votes[best])
        page = pages[documents]
        if first is not None:
            page[first] = pages.max()
        share = fused + chosen.page_boost * (agreed or fused.max()) * page / (pages.max() or 1.0)
        share *= (1 + chosen.page_boost) / (share.max() or 1.0)
        return cls(index, np.round(fused, ROUND), np.round(page, ROUND), factors, np.round(share * factors, ROUND))

    def order(self, ties: Ties, canonical: Sequence[bool], rows: NDArray[np.int64]) -> list[int]:
        """``rows`` by final, fused, canonical pages before plain ones, then what never depends on the ids of rows."""
        found: list[int] = ties.sorted(rows, self.final, self.fused, np.array(canonical, np.int64)).tolist()
        return found

    def exchange(self, to: Sequence[int], of: Sequence[int]) -> None:
        """Gives the rows ``to`` the standings that the rows ``of`` have."""
        for name in ("fused", "page", "factor", "final"):
            column: NDArray[Any] = getattr(self, name)
            column[list(to)] = column[list(of)]

    def finals(self, refs: Iterable[int]) -> list[float]:
        """The final scores of many rows at once."""
        found: list[float] = self.final[[self.index[ref] for ref in refs]].tolist()
        return found

    def __getitem__(self, ref: int) -> Standing:
        row = self.index[ref]
        return Standing(float(self.fused[row]), float(self.page[row]), float(self.factor[row]), float(self.final[row]))

    def __iter__(self) -> Iterator[int]:
        return iter(self.index)

    def __len__(self) -> int:
        return len(self.index)
