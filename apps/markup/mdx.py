"""MDX: which lines are ESM or JSX, and the text that is left to read as Markdown (``markup.md`` 3.10).

Where code is, the parser says: lines that begin with a tag are disguised for this question only, since an HTML block
(which MDX does not know) would swallow the fence below it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyromark

from apps.markup.tree import OPTIONS
from apps.markup.values import Warning_

_CANDIDATE = re.compile(rb"^(?:(import|export)\b|([ \t]*)[<{])", re.MULTILINE)
_IMPORT = re.compile(rb"import(?:\s*['\"{*]|\s+[\w$]+(?:\s*,|\s+from\b))")
_EXPORT = re.compile(rb"export(?:\s+(?:default|const|let|var|function|async|class)\b|\s*[{*])")
# Strings and comments are taken whole; what is left of them unclosed has an alternative of its own.
_SCRIPT = re.compile(
    rb"""//[^\n]*|/\*.*?\*/|(?P<open>/\*)|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|[`(\[{)\]}\n]""", re.DOTALL
)
_TEMPLATE = re.compile(rb"\\.|`|\$\{", re.DOTALL)
_TAG_OPEN = re.compile(rb"<(?:/?[A-Za-z][\w.:-]*(?=[\s/>{])(?!//)|/?(?=>))")
_IN_TAG = re.compile(rb"""[^"'{}<>]+|"[^"]*"|'[^']*'|(?P<brace>\{)|(?P<end>>)""")
_BLANK_LINE = re.compile(rb"\n[ \t]*(?:\n|\Z)")
_LINE_TAG = re.compile(
    rb"^([ \t]*(?:>[ \t]?|[-*+][ \t]+|\d{1,9}[.)][ \t]+)*</?)[A-Za-z](?=[A-Za-z0-9-]*(?:[\s/>]|\Z))", re.MULTILINE
)
_DISGUISED = re.compile(rb"^([ \t]*)<", re.MULTILINE)
_BLANKED = bytes(0x0A if code == 0x0A else 0x20 for code in range(256))
_MAX_RESTARTS = 50


@dataclass(slots=True)
class Mdx:
    """What MDX adds to a text. Spans are bytes of whole lines, the last LF excluded, in source order."""

    seen: bytes
    """As long as the text, with the same lines: what is left to the Markdown parser."""
    esm: list[tuple[int, int]] = field(default_factory=list)
    jsx: list[tuple[int, int]] = field(default_factory=list)
    warnings: list[Warning_] = field(default_factory=list)


def read_mdx(raw: bytes, starts: list[int], body_start: int) -> Mdx:
    """Find ESM and JSX lines outside of code, from ``body_start`` on."""
    reader = _Reader(raw, starts)
    reader.read(body_start)
    seen = bytearray(raw)
    for start, end in (*reader.esm, *reader.jsx):
        seen[start:end] = raw[start:end].translate(_BLANKED)
    return Mdx(without_html_blocks(bytes(seen)), reader.esm, reader.jsx, reader.warnings)


def without_html_blocks(raw: bytes) -> bytes:
    """The text, equally long, in which no line opens an HTML block: block-level names there get another first letter.

    What is shown or searched is read from the true bytes at the same places.
    """
    return _LINE_TAG.sub(rb"\1x", raw)


class _Reader:
    def __init__(self, raw: bytes, starts: list[int]) -> None:
        self.raw = raw
        self._starts = starts
        self.esm: list[tuple[int, int]] = []
        self.jsx: list[tuple[int, int]] = []
        self.warnings: list[Warning_] = []
        # Unfinished statements are looked for up to here in all, so that many of them stay linear.
        self._budget = 4 * len(raw) + 100_000

    def read(self, start: int) -> None:
        for _ in range(_MAX_RESTARTS):
            following = self._walk(start)
            if following is None:
                return
            start = following
        self._warn(start, "too many statements that hold code fences; the rest is read as Markdown")

    def _walk(self, offset: int) -> int | None:
        """Go through the lines from ``offset``; returns where to begin anew when a statement ends inside of code."""
        blocks, codes = self._structure(offset)
        block_starts = [each[0] for each in blocks]
        code_starts = [each[0] for each in codes]
        removed_to = offset
        for candidate in _CANDIDATE.finditer(self.raw, offset):
            place = candidate.start()
            indent = len(candidate[2] or b"")
            # The range of indented code begins after its indent: asked for is the first visible character.
            if place < removed_to or _inside(place + indent, codes, code_starts):
                continue
            number = bisect_right(block_starts, place + indent) - 1
            end = None
            if candidate[1]:
                # Prose may wrap before the word "export": a statement begins a block, or follows removed lines.
                if removed_to == place or number < 0 or self.raw.find(b"\n", blocks[number][0], place) < 0:
                    end = self._esm(place)
            elif not indent or number < 0 or blocks[number][2] == "Paragraph":
                end = self._jsx(place + indent, place)
            if end is None:
                continue
            removed_to = end + 1
            cut = bisect_right(code_starts, end) - 1
            if cut >= 0 and codes[cut][0] < end < codes[cut][1] and codes[cut][0] >= place:
                return min(removed_to, len(self.raw))
        return None

    def _structure(self, offset: int) -> tuple[list[tuple[int, int, str]], list[tuple[int, int]]]:
        """Top-level blocks and all code, as byte ranges of the whole text."""
        text = _DISGUISED.sub(rb"\1x", self.raw[offset:]).decode()
        blocks: list[tuple[int, int, str]] = []
        codes: list[tuple[int, int]] = []
        depth = 0
        events: Iterator[tuple[Any, Any]] = pyromark.events_with_range(text, options=OPTIONS)
        for event, span in events:
            if "Start" in event:
                tag = event["Start"]
                kind = tag if isinstance(tag, str) else next(iter(tag))
                place = (span["start"] + offset, span["end"] + offset)
                if depth == 0:
                    blocks.append((*place, kind))
                if kind == "CodeBlock":
                    codes.append(place)
                depth += 1
            elif "End" in event:
                depth -= 1
        return blocks, codes

    def _esm(self, place: int) -> int | None:
        """End of the statement that begins at ``place``, which is then noted; None when there is none."""
        pattern = _IMPORT if self.raw.startswith(b"import", place) else _EXPORT
        if not pattern.match(self.raw, place):
            return None
        end = self._statement_end(place)
        if end is None:
            self._warn(place, "the statement is never complete")
            blank = _BLANK_LINE.search(self.raw, place)
            end = blank.start() if blank else len(self.raw.rstrip())
        self.esm.append((place, end))
        return end

    def _statement_end(self, place: int) -> int | None:
        """The first line end at which brackets, strings, templates and comments are closed."""
        raw, open_marks = self.raw, [b""]
        start = place
        while self._budget > 0:
            in_template = open_marks[-1] == b"`"
            token = (_TEMPLATE if in_template else _SCRIPT).search(raw, place)
            if token is None:
                self._budget -= len(raw) - start
                return len(raw) if len(open_marks) == 1 else None
            self._budget -= token.end() - place
            place = token.end()
            mark = token[0]
            if in_template:
                if mark == b"`":
                    open_marks.pop()
                elif mark == b"${":
                    open_marks.append(b"{")
            elif token["open"]:
                self._budget -= len(raw) - place
                return None
            elif mark in (b"`", b"(", b"[", b"{"):
                open_marks.append(mark)
            elif mark in (b")", b"]", b"}"):
                if len(open_marks) > 1:
                    open_marks.pop()
            elif mark == b"\n" and len(open_marks) == 1:
                return token.start()
        return None

    def _jsx(self, place: int, line_start: int) -> int | None:
        """End of the lines from ``line_start`` that hold nothing but tags and expressions; None when they hold more."""
        raw = self.raw
        while place < len(raw):
            if raw[place] == 0x0A:
                break
            if raw[place] in b" \t":
                place += 1
                continue
            stop = self._braces(place) if raw[place] == 0x7B else self._tag(place) if raw[place] == 0x3C else None
            if stop is None:
                return None
            place = stop
        self.jsx.append((line_start, place))
        return place

    def _tag(self, place: int) -> int | None:
        opening = _TAG_OPEN.match(self.raw, place)
        place = opening.end() if opening else -1
        while place >= 0 and self._budget > 0:
            token = _IN_TAG.match(self.raw, place)
            if token is None:
                return None
            self._budget -= token.end() - place
            if token["end"]:
                return token.end()
            stop = self._braces(place) if token["brace"] else token.end()
            if stop is None:
                return None
            place = stop
        return None

    def _braces(self, place: int) -> int | None:
        """Where the expression that begins with ``{`` at ``place`` ends."""
        open_marks: list[bytes] = []
        while self._budget > 0:
            in_template = bool(open_marks) and open_marks[-1] == b"`"
            token = (_TEMPLATE if in_template else _SCRIPT).search(self.raw, place)
            if token is None or (not in_template and token["open"]):
                self._budget -= len(self.raw) - place
                return None
            self._budget -= token.end() - place
            place, mark = token.end(), token[0]
            if in_template:
                if mark == b"`":
                    open_marks.pop()
                elif mark == b"${":
                    open_marks.append(b"{")
            elif mark in (b"`", b"(", b"[", b"{"):
                open_marks.append(mark)
            elif mark in (b")", b"]", b"}"):
                open_marks.pop()
                if not open_marks:
                    return place
        return None

    def _warn(self, place: int, message: str) -> None:
        line = bisect_right(self._starts, place)
        self.warnings.append(Warning_("mdx_incomplete", line, 1, message))


def _inside(place: int, ranges: list[tuple[int, int]], starts: list[int]) -> bool:
    number = bisect_right(starts, place) - 1
    return number >= 0 and place < ranges[number][1]
