"""Two versions of a document side by side, its lines and its chunks, and what a page shows of them
(``portal.md`` 25). Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from apps.indexing.chunk_comparison import ChunkChange, CutText, compare_chunks, counts
from apps.markup.line_diff import Hunk, LineDiff, line_diff

SHOWN_LINES = 2_000
SHOWN_CHUNKS = 500
_FIGURES = (
    ("added", "Added"),
    ("changed", "Changed"),
    ("moved", "Moved"),
    ("gone", "Gone"),
    ("embedded_anew", "Embedded anew"),
)


@dataclass(frozen=True, slots=True)
class Side:
    """One version as read. ``words``: how people call it; ``unread``: why there is no text, in words; ``ids``: chunk
    index → id, where stored."""

    words: str
    text: str = ""
    cut: CutText = field(default_factory=lambda: CutText("", ()))
    unread: str = ""
    ids: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Comparison:
    old: Side
    new: Side
    lines: LineDiff
    chunks: Sequence[ChunkChange]


@dataclass(frozen=True, slots=True)
class Choice:
    """Which two versions were asked for, by name; None where the address names none that is kept."""

    old: str | None
    new: str | None

    @property
    def both(self) -> tuple[str, str] | None:
        return None if self.old is None or self.new is None else (self.old, self.new)

    @property
    def differs(self) -> bool:
        return self.both is not None and self.old != self.new

    @property
    def query(self) -> str:
        return f"?from={self.old}&to={self.new}"


def choose(asked: Mapping[str, str], kept: Sequence[str]) -> Choice:
    """``from`` and ``to`` of an address among the versions that are kept, newest first; without them the newest one and
    the one before it."""
    old, new = asked.get("from", ""), asked.get("to", "") or next(iter(kept), "")
    if new not in kept:
        return Choice(old if old in kept else None, None)
    before = kept[kept.index(new) + 1 :]
    old = old or (before[0] if before else new)
    return Choice(old if old in kept else None, new)


def compare(old: Side, new: Side) -> Comparison:
    return Comparison(old, new, line_diff(old.text, new.text), compare_chunks(old.cut, new.cut))


def page_values(compared: Comparison) -> dict[str, Any]:
    """For ``_comparison.html``: bounded, with what is left out as numbers."""
    tally = counts(compared.chunks)
    changes = [change for change in compared.chunks if change.state != "same" or change.embedded_anew]
    shown = list(_shown(compared.lines.hunks))
    return {
        "compared": compared,
        "sides": (compared.old, compared.new),
        "hunks": shown,
        "left_out": sum(len(hunk.lines) for hunk in compared.lines.hunks) - sum(len(hunk.lines) for hunk in shown),
        "same": tally.get("same", 0),
        "figures": [(words, tally.get(name, 0)) for name, words in _FIGURES],
        "changes": [ChunkRow(change, compared) for change in changes[:SHOWN_CHUNKS]],
        "more_changes": max(len(changes) - SHOWN_CHUNKS, 0),
    }


def _shown(hunks: Sequence[Hunk]) -> Iterator[Hunk]:
    left = SHOWN_LINES
    for hunk in hunks:
        if left > 0:
            yield Hunk(hunk.lines[:left])
        left -= len(hunk.lines)


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """A chunk that differs, with what the page says of it."""

    change: ChunkChange
    compared: Comparison

    @property
    def headings(self) -> Sequence[str]:
        either = self.change.new or self.change.old
        return either.heading_path if either else ()

    @property
    def address(self) -> str:
        """The permalink of the chunk where it is a stored one, else empty."""
        id_ = self.compared.new.ids.get(self.change.new.chunk_index) if self.change.new else None
        return f"/chunks/{id_}" if id_ is not None else ""
