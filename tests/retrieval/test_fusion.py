"""Ranks into one order: `retrieval.md` facts 60 to 65 and the collapse of copies."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.retrieval.fusion import Place, boost, collapse, factor_of, fuse, fuse_places


def order(fused: dict[str, float]) -> list[str]:
    return sorted(fused, key=lambda key: (-fused[key], key))


def test_retrieval_fact_60_three_streams() -> None:
    ranks = {"a": (1, 1), "b": (2, 1, 3), "c": (2, 2)}
    fused = fuse_places((key, Place(rank)) for key, places in ranks.items() for rank in places)
    assert order(fused) == ["b", "a", "c"]
    assert [fused[key] for key in "bac"] == pytest.approx([0.048396, 0.032787, 0.032258], abs=1e-6)


def test_retrieval_fact_61_five_streams_none_and_errors() -> None:
    assert fuse([["a"]] * 5)["a"] == pytest.approx(5 / 61)
    assert fuse([]) == {}
    assert fuse([[], []]) == {}
    with pytest.raises(ValueError, match="must be positive"):
        fuse([["a"]], k=0)
    with pytest.raises(ValueError, match="2 streams need as many weights, not 3"):
        fuse([["a"], ["b"]], [1, 1, 1])


def test_retrieval_fact_63_name_rows_bring_their_own_weight() -> None:
    assert Place(1, 0.7**2).share == pytest.approx(0.49 / 61)
    assert Place(1, 6).share == pytest.approx(6 / 61)


def test_retrieval_fact_64_page_boost() -> None:
    standings = boost({"P1": 0.04, "Q1": 0.03, "P2": 0.02}, {"P1": "P", "P2": "P", "Q1": "Q"})
    assert {key: standing.final for key, standing in standings.items()} == {"P1": 1.3, "Q1": 0.9, "P2": 0.8}


def test_retrieval_fact_65_factors() -> None:
    standings = boost(
        {"P1": 0.04, "Q1": 0.03, "P2": 0.02},
        {"P1": "P", "P2": "P", "Q1": "Q"},
        {"Q1": factor_of(status="superseded")},
    )
    assert standings["Q1"].final == pytest.approx(0.54)
    assert factor_of(priority=100) == pytest.approx(1.1)
    assert factor_of(priority=0) == pytest.approx(0.9)
    assert factor_of(status="superseded", named=True) == 1
    assert factor_of(side=True) == pytest.approx(0.6)
    assert factor_of(status="archived") == pytest.approx(0.4)


def test_boost_counts_the_three_best_rows_of_a_page() -> None:
    standings = boost({"a": 0.4, "b": 0.3, "c": 0.2, "d": 0.1}, dict.fromkeys("abcd", "page"))
    assert standings["d"].page == pytest.approx(0.9)
    assert boost({}, {}) == {}


def test_copies_collapse_to_the_first_and_short_ones_stay() -> None:
    long = "the same words again and again " * 10
    kept, copies = collapse(["a", "b", "c", "d"], {"a": long, "b": "short", "c": long.replace(" ", "\n"), "d": "short"})
    assert kept == ["a", "b", "d"]
    assert copies == {"a": ["c"]}


@given(st.lists(st.lists(st.integers(0, 20), unique=True, max_size=12), max_size=5))
def test_a_better_rank_never_lowers_a_row(streams: list[list[int]]) -> None:
    fused = fuse(streams)
    for number, stream in enumerate(streams):
        if len(stream) > 1:
            raised = [*streams[:number], [stream[-1], *stream[:-1]], *streams[number + 1 :]]
            assert fuse(raised)[stream[-1]] > fused[stream[-1]]
