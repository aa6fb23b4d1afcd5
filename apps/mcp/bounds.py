"""How much a tool says: room in characters and bytes, fences that hold, cuts at line ends."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

DEFAULT_CHARS = 25_000
"""An answer to a call with default sizes stays under this many characters."""
MOST_TOKENS = 25_000
"""Whatever is asked for: clients refuse more, whole."""
OVERHEAD = 3_000
"""Kept free for freshness, lists around a text and the cursor."""
LONGEST_TITLE = 160
LEAST_BODY = 2_000

_TICKS = re.compile(r"`+")


def tokens_of(text: str) -> int:
    """Estimated as everywhere: three bytes a token."""
    return math.ceil(len(text.encode("utf-8", "replace")) / 3)


@dataclass(frozen=True, slots=True)
class Room:
    """What the body of an answer may take."""

    chars: int
    bytes: int

    def holds(self, text: str) -> bool:
        return len(text) <= self.chars and len(text.encode("utf-8", "replace")) <= self.bytes


def room_for(*, more: bool) -> Room:
    """``more``: the caller chose a size above the default."""
    most = MOST_TOKENS * 3 - OVERHEAD
    return Room(most, most) if more else Room(DEFAULT_CHARS - OVERHEAD, most)


def size_of(text: str) -> int:
    """Bytes in UTF-8."""
    return len(text.encode("utf-8", "replace"))


def fitting_lines(lines: Sequence[str], room: Room, *, share: int = 1) -> list[str]:
    """As many of ``lines``, from the first on, as the ``share``-th part of ``room`` holds."""
    shown: list[str] = []
    chars = size = 0
    for line in lines:
        chars += len(line) + 1
        size += size_of(line) + 1
        if chars > room.chars // share or size > room.bytes // share:
            break
        shown.append(line)
    return shown


def beside(room: Room, texts: Sequence[str]) -> Room:
    """What ``room`` leaves for a body when ``texts`` stand around it. They are paid from the overhead first."""
    chars = max(0, sum(len(text) + 1 for text in texts) - OVERHEAD // 3)
    size = max(0, sum(size_of(text) + 1 for text in texts) - OVERHEAD // 3)
    return Room(max(LEAST_BODY, room.chars - chars), max(3 * LEAST_BODY, room.bytes - size))


def cut_to_tokens(text: str, most: int = MOST_TOKENS) -> str:
    """``text``, or its beginning up to a line end with a word about the cut: the last resort, not the way to page."""
    if tokens_of(text) <= most:
        return text
    note = "\n\ncut: the answer was longer than any client takes; ask for less."
    begun = text.encode("utf-8", "replace")[: most * 3 - len(note)].decode("utf-8", "ignore")
    return begun[: begun.rfind("\n") + 1 or len(begun)].rstrip("\n") + note


def fitting(blocks: Sequence[str], room: Room) -> int:
    """How many of ``blocks`` fit, at least one of them."""
    chars = size = 0
    for count, block in enumerate(blocks):
        chars += len(block) + 2
        size += len(block.encode("utf-8", "replace")) + 2
        if count and (chars > room.chars or size > room.bytes):
            return count
    return len(blocks)


@dataclass(frozen=True, slots=True)
class Slice:
    """Characters ``start`` to ``end`` of a text; ``inside_line`` says that its last line goes on."""

    text: str
    start: int
    end: int
    total: int
    inside_line: bool

    @property
    def more(self) -> bool:
        return self.end < self.total


def slice_from(text: str, start: int, room: Room) -> Slice:
    """As much of ``text`` from ``start`` on as fits, ended at a line end, or inside a line that is too long itself."""
    end = min(len(text), start + room.chars)
    piece = text[start:end].encode("utf-8", "replace")
    if len(piece) > room.bytes:
        end = start + len(piece[: room.bytes].decode("utf-8", "ignore"))
    inside = False
    if end < len(text):
        border = text.rfind("\n", start, end)
        if border >= start:
            end = border + 1
        else:
            inside = True
    return Slice(text[start:end], start, end, len(text), inside)


def fenced(text: str, label: str = "") -> str:
    """``text`` in a fence longer than any run of back-ticks inside it.

    SECURITY: source text is data. Whatever it says, it cannot leave its fence and speak as the server.
    """
    longest = max((len(run) for run in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    end = "" if text.endswith("\n") or not text else "\n"
    return f"{fence}{label}\n{text}{end}{fence}"


def one_line(text: str, longest: int = LONGEST_TITLE) -> str:
    """Text from a source for use inside a line: blanks and control characters collapsed, back-ticks plain, cut."""
    flat = " ".join(text.split())
    if not flat.isprintable():
        flat = " ".join("".join(letter if letter.isprintable() else " " for letter in flat).split())
    return flat if len(flat) <= longest else flat[: longest - 1] + "…"
