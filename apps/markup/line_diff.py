"""Two texts line by line. Pure, and close to linear for any input: a page shows it of files of several megabytes.

Lines that occur once in both texts are matched first, as a chain that rises in both (the patience method of Bram
Cohen); what lies between two of them is matched the same way. A stretch without any such line is compared pair by pair
while that stays cheap, and counts as replaced otherwise.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from typing import Literal

CONTEXT = 3
PAIRS_AT_ONCE = 40_000
"""Pairs of lines in one stretch without a line of its own that are compared one by one."""
PAIRS_IN_ALL = 2_000_000
DEPTH = 64

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Line:
    """``old`` and ``new`` are line numbers from 1; None on the side that does not have the line."""

    kind: Literal["same", "removed", "added"]
    old: int | None
    new: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Hunk:
    """Changed lines that stand near each other, with what surrounds them."""

    lines: Sequence[Line]

    @property
    def header(self) -> str:
        """``-12,7 +12,8`` as in a unified diff: first line and number of lines on each side."""
        old = [line.old for line in self.lines if line.old is not None]
        new = [line.new for line in self.lines if line.new is not None]
        return f"-{_span(old)} +{_span(new)}"


@dataclass(frozen=True, slots=True)
class LineDiff:
    hunks: Sequence[Hunk]
    added: int
    removed: int


def line_diff(old: str, new: str, *, context: int = CONTEXT) -> LineDiff:
    """The lines that changed, each with up to ``context`` lines around it."""
    lines = list(_lines(_split(old), _split(new)))
    near = _near(lines, context)
    hunks = [
        Hunk([lines[place] for place in places])
        for shown, group in groupby(range(len(lines)), key=near.__getitem__)
        if shown and (places := list(group))
    ]
    kinds = Counter(line.kind for line in lines)
    return LineDiff(tuple(hunks), kinds["added"], kinds["removed"])


def as_patch(diff: LineDiff, old_name: str, new_name: str) -> str:
    """The diff as unified text; empty when nothing changed."""
    if not diff.hunks:
        return ""
    signs = {"same": " ", "removed": "-", "added": "+"}
    out = [f"--- {old_name}", f"+++ {new_name}"]
    for hunk in diff.hunks:
        out.append(f"@@ {hunk.header} @@")
        out += [signs[line.kind] + line.text for line in hunk.lines]
    return "\n".join(out) + "\n"


def longest_chain(pairs: Sequence[Pair]) -> list[Pair]:
    """The longest part of ``pairs``, given in rising order of their first numbers, that rises in both."""
    ends: list[int] = []
    heads: list[int] = []
    before: list[int] = []
    for place, (_, second) in enumerate(pairs):
        length = bisect_left(ends, second)
        before.append(heads[length - 1] if length else -1)
        ends[length : length + 1] = [second]
        heads[length : length + 1] = [place]
    chain: list[Pair] = []
    place = heads[-1] if heads else -1
    while place >= 0:
        chain.append(pairs[place])
        place = before[place]
    return chain[::-1]


def _split(text: str) -> list[str]:
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines


def _span(numbers: Sequence[int]) -> str:
    return f"{numbers[0]},{len(numbers)}" if numbers else "0,0"


def _near(lines: Sequence[Line], context: int) -> bytearray:
    near = bytearray(len(lines))
    for place, line in enumerate(lines):
        if line.kind != "same":
            first, end = max(place - context, 0), min(place + context + 1, len(lines))
            near[first:end] = b"\x01" * (end - first)
    return near


def _lines(old: Sequence[str], new: Sequence[str]) -> Iterator[Line]:
    first = second = 0
    for left, right in [*sorted(_Matching(old, new).pairs), (len(old), len(new))]:
        for place in range(first, left):
            yield Line("removed", place + 1, None, old[place])
        for place in range(second, right):
            yield Line("added", None, place + 1, new[place])
        if left < len(old):
            yield Line("same", left + 1, right + 1, old[left])
        first, second = left + 1, right + 1


class _Matching:
    """``pairs``: (line of old, line of new) that are equal, rising in both, in no order."""

    def __init__(self, old: Sequence[str], new: Sequence[str]) -> None:
        self.old, self.new = old, new
        self.pairs: list[Pair] = []
        self.left = PAIRS_IN_ALL
        waiting = [(0, len(old), 0, len(new), 0)]
        while waiting:
            low, high, start, end, depth = waiting.pop()
            low, high, start, end = self._trimmed(low, high, start, end)
            if low == high or start == end:
                continue
            chain = self._unique(low, high, start, end) if depth < DEPTH else []
            if not chain:
                self._one_by_one(low, high, start, end)
                continue
            self.pairs += chain
            for first, second in [*chain, (high, end)]:
                waiting.append((low, first, start, second, depth + 1))
                low, start = first + 1, second + 1

    def _trimmed(self, low: int, high: int, start: int, end: int) -> tuple[int, int, int, int]:
        while low < high and start < end and self.old[low] == self.new[start]:
            self.pairs.append((low, start))
            low, start = low + 1, start + 1
        while low < high and start < end and self.old[high - 1] == self.new[end - 1]:
            high, end = high - 1, end - 1
            self.pairs.append((high, end))
        return low, high, start, end

    def _unique(self, low: int, high: int, start: int, end: int) -> list[Pair]:
        often_old, often_new = Counter(self.old[low:high]), Counter(self.new[start:end])
        places = {self.new[place]: place for place in range(start, end) if often_new[self.new[place]] == 1}
        return longest_chain(
            [
                (place, places[self.old[place]])
                for place in range(low, high)
                if often_old[self.old[place]] == 1 and self.old[place] in places
            ]
        )

    def _one_by_one(self, low: int, high: int, start: int, end: int) -> None:
        size = (high - low) * (end - start)
        if size > PAIRS_AT_ONCE or size > self.left:
            return
        self.left -= size
        matcher = SequenceMatcher(None, self.old[low:high], self.new[start:end], autojunk=False)
        for block in matcher.get_matching_blocks():
            self.pairs += [(low + block.a + step, start + block.b + step) for step in range(block.size)]
