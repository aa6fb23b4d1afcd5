"""Places of a picture: no label on another, parts apart, the same each time."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.knowledge_graph.layout import BOX_HEIGHT, arrange, box_width


def overlaps(widths: dict[str, float], at: dict[str, tuple[float, float]]) -> list[tuple[str, str]]:
    uids = sorted(at)
    return [
        (a, b)
        for number, a in enumerate(uids)
        for b in uids[number + 1 :]
        if abs(at[a][0] - at[b][0]) < (widths[a] + widths[b]) / 2 - 1 and abs(at[a][1] - at[b][1]) < BOX_HEIGHT - 1
    ]


def graph(count: int, links: int, seed: int) -> tuple[dict[str, float], list[tuple[str, str]]]:
    draw = random.Random(seed)
    widths = {f"page-{number}": box_width("x" * draw.randint(1, 40)) for number in range(count)}
    uids = sorted(widths)
    return widths, [(draw.choice(uids), draw.choice(uids)) for _ in range(links)] if uids else []


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 40), st.integers(0, 80), st.integers(0, 10_000))
def test_boxes_lie_inside_the_picture_and_none_on_another(count: int, links: int, seed: int) -> None:
    widths, edges = graph(count, links, seed)
    found = arrange(widths, edges)
    assert set(found.at) == set(widths)
    for uid, (x, y) in found.at.items():
        assert widths[uid] / 2 - 0.2 <= x <= found.width - widths[uid] / 2 + 0.2
        assert BOX_HEIGHT / 2 - 0.2 <= y <= found.height - BOX_HEIGHT / 2 + 0.2
    assert not overlaps(widths, dict(found.at))


@pytest.mark.parametrize("seed", range(3))
def test_portal_fact_30_the_order_of_rows_changes_nothing(seed: int) -> None:
    widths, edges = graph(30, 45, seed)
    shuffled = list(widths.items())
    random.Random(seed).shuffle(shuffled)
    assert arrange(dict(shuffled), edges[::-1]) == arrange(widths, edges)


def test_a_chain_lies_level_and_in_order() -> None:
    widths = dict.fromkeys("abcdef", 60.0)
    at = arrange(widths, [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e"), ("e", "f")]).at
    across = [at[uid][0] for uid in "abcdef"]
    assert across in (sorted(across), sorted(across, reverse=True))
    assert max(y for _, y in at.values()) - min(y for _, y in at.values()) < BOX_HEIGHT


def test_parts_that_nothing_joins_are_packed_apart() -> None:
    widths = {f"{part}{number}": 80.0 for part in "abc" for number in range(8)}
    edges = [(f"{part}0", f"{part}{number}") for part in "abc" for number in range(1, 8)]
    found = arrange(widths, edges)
    frames = []
    for part in "abc":
        xs, ys = zip(*(place for uid, place in found.at.items() if uid[0] == part), strict=True)
        frames.append((min(xs) - 40, max(xs) + 40, min(ys) - BOX_HEIGHT / 2, max(ys) + BOX_HEIGHT / 2))
    for number, (left, right, top, bottom) in enumerate(frames):
        for other in frames[number + 1 :]:
            assert right <= other[0] or other[1] <= left or bottom <= other[2] or other[3] <= top
    assert found.width < 3 * found.height
