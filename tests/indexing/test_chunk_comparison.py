"""The chunks of two versions: as before, moved, changed, added, gone, embedded anew."""

from __future__ import annotations

from apps.indexing.chunk_comparison import CutText, compare_chunks, counts
from apps.markup.values import Chunk


def cut(title: str, *pieces: tuple[str, str]) -> CutText:
    """(heading path with slashes, text) of each chunk."""
    return CutText(
        title,
        [
            Chunk(place, tuple(path.split("/")), 1, "", place + 1, place + 1, 0, len(text), text, text)
            for place, (path, text) in enumerate(pieces)
        ],
    )


A, B, C, D = ("A", "alpha"), ("B", "beta"), ("C", "gamma"), ("D", "delta")


def told(old: CutText, new: CutText) -> list[tuple[str, str, bool]]:
    return [
        (change.state, (change.new or change.old).text, change.embedded_anew)  # type: ignore[union-attr]
        for change in compare_chunks(old, new)
    ]


def test_each_state() -> None:
    old = cut("T", A, B, C, D)
    assert told(old, old) == [("same", text, False) for _, text in (A, B, C, D)]
    assert told(old, cut("T", A, ("B", "better"), D, ("E", "epsilon"))) == [
        ("same", "alpha", False),
        ("changed", "better", True),
        ("gone", "gamma", False),
        ("same", "delta", False),
        ("added", "epsilon", True),
    ]
    assert told(old, cut("T", B, C, D, A)) == [
        ("same", "beta", False),
        ("same", "gamma", False),
        ("same", "delta", False),
        ("moved", "alpha", False),
    ]
    assert told(old, cut("T")) == [("gone", text, False) for _, text in (A, B, C, D)]


def test_other_headings_over_the_same_text_move_it_and_embed_it_anew() -> None:
    assert told(cut("T", A, B), cut("T", A, ("X/B", "beta"))) == [("same", "alpha", False), ("moved", "beta", True)]


def test_another_title_embeds_all_anew_and_changes_nothing() -> None:
    assert counts(compare_chunks(cut("T", A, B), cut("U", A, B))) == {"same": 2, "embedded_anew": 2}


def test_equal_chunks_are_paired_once_each() -> None:
    assert told(cut("T", A, A), cut("T", A, A, A)) == [
        ("same", "alpha", False),
        ("same", "alpha", False),
        ("added", "alpha", False),
    ]
