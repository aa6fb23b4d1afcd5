"""Dividing what is longer than the character budget allows (``collections.md`` 4.4 to 4.6).

All offsets are characters of the text. Parts adjoin: a part ends where the next one begins, so blank lines between two
parts end the first.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from apps.markup.chunking.derive import LINE_KINDS, Derivation, is_line_run
from apps.markup.chunking.offsets import TextMap
from apps.markup.chunking.words import grapheme_edge
from apps.markup.values import Block, CharacterBudget

LONGEST_LINE = 16_000
"""Characters of a table row or code line that are never cut."""
_SENTENCE_END = re.compile(r"[.!?…][)\"'”’»\]*_]*(?=\s)|[。！？]")
_INSIDE_LINE = ("cut_inside_line",)


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a block that was cut; ``end`` is where the next part begins."""

    start: int
    end: int
    flags: tuple[str, ...] = ()


class Divider:
    """Cuts blocks of one document."""

    def __init__(self, places: TextMap, derivation: Derivation, profile: CharacterBudget) -> None:
        self._text = places.text
        self._places = places
        self._derivation = derivation
        self._most = profile.max_chars
        self._hard = 2 * profile.max_chars
        self._parts: list[Part] = []
        self._begin = 0
        self._reached = 0

    def stands_whole(self, block: Block) -> bool:
        """Whether the block is a table, fence or line run within the hard limit: never cut."""
        return self._has_lines(block) and self._end(block) - self._places.character(block.start_byte) <= self._hard

    def cut(self, block: Block, start: int, end: int) -> list[Part]:
        """Cut a block into parts; ``start`` may lie before it, where a fastened heading begins."""
        self._parts = []
        self._begin = self._reached = start
        self._place(block, end)
        if self._begin < end:
            self._parts.append(Part(self._begin, end))
        return self._parts

    def _has_lines(self, block: Block) -> bool:
        return block.kind in LINE_KINDS or is_line_run(block, self._places.raw)

    def _end(self, block: Block) -> int:
        return self._places.character(block.end_byte)

    def _place(self, block: Block, end: int) -> None:
        """Add a block to the current part, or begin a new one with it, or divide it."""
        if end - self._begin <= self._most:
            self._reached = end
            return
        if self._reached > self._begin:
            self._close(self._reached)
            if end - self._begin <= self._most:
                self._reached = end
                return
        if self._has_lines(block):
            if end - self._begin > self._hard:
                self._cut_lines(block, end)
            self._reached = end
            self._close(end)
        elif block.children:
            for child in block.children:
                self._place(child, min(self._end(child), end))
            if self._reached < end:
                self._place_text(end)
        else:
            self._place_text(end)

    def _close(self, end: int, flags: tuple[str, ...] = ()) -> None:
        """End the current part; blank lines after it still belong to it, indentation to what follows."""
        following = self._after_blank(end)
        if following - self._begin > self._most >= end - self._begin:
            self._parts.append(Part(self._begin, end, flags))
        else:
            self._parts.append(Part(self._begin, following, flags))
        self._begin = self._reached = following

    def _after_blank(self, place: int) -> int:
        text = self._text
        at = place
        while at < len(text) and text[at].isspace():
            at += 1
        line = text.rfind("\n", place, at) + 1
        return line or at

    def _place_text(self, end: int) -> None:
        """Cut running text: at line ends, sentence ends, blanks, between graphemes."""
        while end - self._begin > self._most:
            edge = self._text_edge(self._begin, self._begin + self._most)
            self._parts.append(Part(self._begin, edge))
            self._begin = edge
        self._reached = end

    def _text_edge(self, begin: int, limit: int) -> int:
        text = self._text
        # An edge in the first half would leave most of the budget unused: the next sort of edge is better then.
        half = begin + self._most // 2
        edge = text.rfind("\n", half, limit) + 1
        if edge:
            return edge
        last = 0
        for found in _SENTENCE_END.finditer(text, half, limit):
            last = found.end()
        if not last:
            last = max(text.rfind(blank, begin + self._most // 4, limit) for blank in " \t\n\u00a0\u3000") + 1
        if last:
            while last < limit and text[last].isspace():
                last += 1
            return last
        return grapheme_edge(text, begin, limit)

    def _cut_lines(self, block: Block, end: int) -> None:
        """Cut a table, fence or line run between its lines; afterwards the last part is open."""
        places = self._places
        inside = self._derivation.region_at(block.start_byte + 1)
        before, after = self._derivation.overhead(inside) if inside else (0, 0)
        top = places.character(block.start_byte)
        starts = places.line_starts()
        edges = starts[bisect_left(starts, top + 1) : bisect_left(starts, end)]
        closing = after and self._closes(edges, end)
        if closing:
            edges.pop()
        # What opens the block stays with its first row or line.
        first = (2 if before and block.kind == "table" else 1) if before else 0
        edges = [*edges[first:], end]
        while self._begin < end:
            room = self._most - after - (before if self._begin > top else 0)
            limit = self._begin + max(room, 1)
            low = bisect_right(edges, self._begin)
            if end - self._begin <= room + (after if closing else 0):
                return
            high = bisect_right(edges, limit) - 1
            if high < low:
                high = low  # a line that is longer than the budget
            edge = edges[high]
            line = edges[high - 1] if high > low else self._begin
            if high == low and edge - line > LONGEST_LINE:
                self._cut_inside(edge, self._most - before - after)
                continue
            if block.kind != "table" and edge < end:
                edge = self._blank_line(edges, low, high)
            if edge >= end:
                return
            self._parts.append(Part(self._begin, edge))
            self._begin = edge

    def _closes(self, edges: list[int], end: int) -> bool:
        """Whether the last line is a closing fence, which stays with the line before it."""
        last = self._text[edges[-1] : end].strip(" \t>") if edges else ""
        return len(last) >= 3 and last[0] in "`~" and not last.strip(last[0])

    def _blank_line(self, edges: list[int], low: int, high: int) -> int:
        """The last edge after a blank line in the last quarter of the part, else the last edge."""
        quarter = self._begin + (edges[high] - self._begin) * 3 // 4
        for number in range(high, low, -1):
            if edges[number] < quarter:
                break
            if not self._text[edges[number - 1] : edges[number]].strip():
                return edges[number]
        return edges[high]

    def _cut_inside(self, edge: int, room: int) -> None:
        while edge - self._begin > room:
            cut = grapheme_edge(self._text, self._begin, self._begin + max(room, 1))
            self._parts.append(Part(self._begin, cut, _INSIDE_LINE))
            self._begin = cut
        self._parts.append(Part(self._begin, edge, _INSIDE_LINE))
        self._begin = edge
