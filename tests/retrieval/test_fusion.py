"""Ranks into one order: `retrieval.md` facts 60 to 65."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as sampling
from hypothesis import strategies as st

from apps.retrieval.fusion import Place, factor_of
from apps.retrieval.standings import Places, Standings
from apps.retrieval.values import StreamName


def standings(fused: list[float], documents: list[int], factors: list[float] | None = None) -> Standings:
    """Of the rows 0, 1, ..., each with the number of its document."""
    return Standings.of(
        {row: row for row in range(len(fused))},
        np.array(fused),
        np.array(documents, np.int64),
        np.array(factors or [1.0] * len(fused)),
    )


NAMES: tuple[StreamName, ...] = ("lexical", "dense", "name", "symbol")


def placed(count: int, *streams: Sequence[tuple[int, int]]) -> Places:
    """Of the rows 0 to ``count``; each stream holds (row, rank) with weight 1."""
    places = Places({row: row for row in range(count)})
    for name, ranked in zip(NAMES, streams, strict=False):
        rows, ranks = np.array(ranked, np.int64).reshape(-1, 2).T
        places.add(name, rows, ranks, np.ones(len(rows)), np.ones(len(rows)))
    return places


def test_retrieval_fact_60_three_streams() -> None:
    a, b, c = 0, 1, 2
    places = placed(3, [(a, 1), (b, 2)], [(b, 1), (c, 2)], [(a, 1), (c, 2), (b, 3)])
    assert np.argsort(-places.sums).tolist() == [b, a, c]
    assert places.sums[[b, a, c]] == pytest.approx([0.048396, 0.032787, 0.032258], abs=1e-6)
    assert places[b]["name"] == (Place(3), 1.0)
    assert "lexical" not in places[c]


def test_retrieval_fact_61_first_in_every_stream_and_nothing_anywhere() -> None:
    assert placed(1, *[[(0, 1)]] * 4).sums.tolist() == pytest.approx([4 / 61])
    assert placed(2, [], []).held.tolist() == []
    assert dict(standings([], [])) == {}


def test_retrieval_fact_63_name_rows_bring_their_own_weight() -> None:
    assert Place(1, 0.7**2).share == pytest.approx(0.49 / 61)
    assert Place(1, 6).share == pytest.approx(6 / 61)


P1, Q1, P2 = 0, 1, 2


def test_retrieval_fact_64_page_boost() -> None:
    found = standings([0.04, 0.03, 0.02], [0, 1, 0])
    assert {row: standing.final for row, standing in found.items()} == {P1: 1.3, Q1: 0.9, P2: 0.8}


def test_retrieval_rule_7_8_the_constants_are_settings(settings: Any) -> None:
    chosen = dataclasses.replace(
        settings.COGRAPH.retrieval, rank_offset=0, page_boost=1, page_rows=1, superseded_factor=0.5, side_factor=0.25
    )
    settings.COGRAPH = dataclasses.replace(settings.COGRAPH, retrieval=chosen)
    assert placed(2, [(0, 1), (1, 2)]).sums.tolist() == [1, 0.5]
    assert Place(4).share == 0.25
    found = standings([0.04, 0.03, 0.02], [0, 1, 0])
    assert {row: standing.final for row, standing in found.items()} == {P1: 2, Q1: 1.5, P2: 1.5}
    assert factor_of(status="superseded", side=True) == pytest.approx(0.125)


def test_retrieval_fact_65_factors() -> None:
    found = standings([0.04, 0.03, 0.02], [0, 1, 0], [1, factor_of(status="superseded"), 1])
    assert found[Q1].final == pytest.approx(0.54)
    assert factor_of(priority=100) == pytest.approx(1.1)
    assert factor_of(priority=0) == pytest.approx(0.9)
    assert factor_of(status="superseded", named=True) == 1
    assert factor_of(side=True) == pytest.approx(0.6)
    assert factor_of(status="archived") == pytest.approx(0.4)


def test_a_row_that_words_and_meaning_put_first_stands_above_a_long_page() -> None:
    lone, *long = range(4)
    places = placed(4, [(lone, 1), (1, 2), (2, 3), (3, 4)], [(lone, 1), (3, 2), (2, 3), (1, 4)])
    assert places.first_in_both() == lone
    pages = np.array([0, 1, 1, 1])
    helped = Standings.of(places.index, places.sums, pages, np.ones(4), places.votes, places.first_in_both())
    assert helped[lone].final == 1.3
    assert max(helped[row].final for row in long) < 1.3
    alone = Standings.of(places.index, places.sums, pages, np.ones(4), places.votes)
    assert alone[lone].final < max(alone[row].final for row in long)


def test_a_row_lifted_by_its_name_does_not_lift_the_rest_of_its_page() -> None:
    named, beside, better = range(3)
    fused, pages = np.array([8 / 61, 1 / 70, 2 / 63]), np.array([0, 0, 1])
    found = Standings.of({row: row for row in range(3)}, fused, pages, np.ones(3), agreed=2 / 61)
    assert found[named].final == 1.3
    assert found[named].final > found[better].final > found[beside].final
    against_the_best = Standings.of({row: row for row in range(3)}, fused, pages, np.ones(3))
    assert against_the_best[beside].final > against_the_best[better].final


def test_first_in_both_needs_two_streams_of_one_mind() -> None:
    assert placed(2, [(0, 1), (1, 2)]).first_in_both() is None
    assert placed(2, [(0, 1), (1, 2)], [(1, 1), (0, 2)]).first_in_both() is None


def test_boost_counts_the_three_best_rows_of_a_page() -> None:
    assert standings([0.4, 0.3, 0.2, 0.1], [0, 0, 0, 0])[3].page == pytest.approx(0.9)
    assert dict(standings([], [])) == {}


@sampling(deadline=None)
@given(st.lists(st.lists(st.integers(0, 20), unique=True, max_size=12), max_size=4))
def test_a_better_rank_never_lowers_a_row(streams: list[list[int]]) -> None:
    def fused(ranked: list[list[int]]) -> list[float]:
        found: list[float] = placed(21, *[[(row, rank) for rank, row in enumerate(s, 1)] for s in ranked]).sums.tolist()
        return found

    before = fused(streams)
    for number, stream in enumerate(streams):
        if len(stream) > 1:
            raised = [*streams[:number], [stream[-1], *stream[:-1]], *streams[number + 1 :]]
            assert fused(raised)[stream[-1]] > before[stream[-1]]
