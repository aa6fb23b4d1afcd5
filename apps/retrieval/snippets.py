"""The part of a chunk that a result shows: an exact slice of its source, opened where the query is met best.

Pure; offsets are characters of the chunk's source. Rules: ``retrieval.md`` 9.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import regex

DEFAULT_CHARS = 600
MIN_CHARS = 80
MAX_CHARS = 4000

_GRAPHEME = regex.compile(r"\X")
_JOINED = regex.compile(r".[\p{M}\u200d]|\u200d|\p{Regional_Indicator}\p{Regional_Indicator}", regex.DOTALL)
"""Two characters, or one and what follows, that may be of one grapheme."""
_LINES_BEFORE = 3
"""Lines before the first match from which on a page opens the text at that match."""
_SLACK = 60
"""How far a cut may move to reach the end of a word, in characters."""


class Match(NamedTuple):
    """One occurrence of a query term: characters ``start`` to ``end`` of the source, end excluded."""

    start: int
    end: int
    term: str


class Snippet(NamedTuple):
    text: str
    start: int
    end: int
    start_line: int
    end_line: int
    start_byte: int
    end_byte: int
    marks: tuple[tuple[int, int], ...]
    """Pairs of offsets into ``text``, disjoint and in order."""
    cut_before: bool
    cut_after: bool
    anchored: bool
    head: int = 0
    """Characters of ``text`` that are headings, before its body begins."""

    @property
    def truncated(self) -> bool:
        return self.cut_before or self.cut_after

    def parts(self) -> list[tuple[str, bool]]:
        """The text split at its marks: (piece, marked). Faces escape each piece; nothing is ever pasted into it."""
        return self._parts(0)

    @property
    def opening(self) -> int:
        """Where a page that has few lines for it opens the text: below headings that it names elsewhere, if a match
        stands there, and at the line of the first match, if that is far down.
        """
        in_body = [start for start, _ in self.marks if start >= self.head]
        begin = self.head if in_body and self.head < len(self.text) else 0
        first = in_body[0] if in_body else begin
        far = self.text.count("\n", begin, first) >= _LINES_BEFORE
        return self.text.rfind("\n", begin, first) + 1 if far else begin

    @property
    def opens_inside(self) -> bool:
        """Whether text of the chunk, other than headings, stands before the opening."""
        opening = self.opening
        return opening > self.head if opening else self.cut_before

    def opened_parts(self) -> list[tuple[str, bool]]:
        """``parts`` from the opening on."""
        return self._parts(self.opening)

    def _parts(self, at: int) -> list[tuple[str, bool]]:
        pieces: list[tuple[str, bool]] = []
        for start, end in self.marks:
            if start < at:
                continue
            if start > at:
                pieces.append((self.text[at:start], False))
            pieces.append((self.text[start:end], True))
            at = end
        if at < len(self.text):
            pieces.append((self.text[at:], False))
        return pieces


def snip(
    source: str,
    matches: Sequence[Match],
    weights: Mapping[str, float],
    *,
    chars: int = DEFAULT_CHARS,
    first_line: int = 1,
    first_byte: int = 0,
    body_start: int = 0,
) -> Snippet:
    """The window of at most ``chars`` characters with the largest sum of term weights, the earliest of equals.

    ``matches`` in source order; ``weights`` maps terms to their idf. ``first_line`` and ``first_byte`` say where the
    source stands in its document. Without a match: the first lines from ``body_start`` on, ``anchored`` false.
    Raises ValueError when ``chars`` is out of bounds.
    """
    if not MIN_CHARS <= chars <= MAX_CHARS:
        raise ValueError(f"snippet_chars is {chars}; allowed are {MIN_CHARS} to {MAX_CHARS}")
    if len(source) <= chars:
        start, end = 0, len(source)
    elif matches:
        opening, last = _best(matches, weights, chars)
        start, end = _window(source, opening, last, chars)
    else:
        place = min(body_start, len(source) - 1)
        start, end = _window(source, place, place, chars)
    marks = _merge(
        [(match.start - start, match.end - start) for match in matches if match.start >= start and match.end <= end]
    )
    text = source[start:end]
    line = first_line + source.count("\n", 0, start)
    return Snippet(
        text=text,
        start=start,
        end=end,
        start_line=line,
        end_line=line + text.rstrip("\n").count("\n"),
        start_byte=first_byte + len(source[:start].encode()),
        end_byte=first_byte + len(source[:end].encode()),
        marks=tuple(marks),
        cut_before=start > 0 and bool(source[:start].strip()),
        cut_after=end < len(source) and bool(source[end:].strip()),
        anchored=bool(matches),
        head=min(max(0, body_start - start), len(text)),
    )


def _best(matches: Sequence[Match], weights: Mapping[str, float], chars: int) -> tuple[int, int]:
    """Start of the first and end of the last match of the heaviest window.

    Two pointers: each match enters and leaves once, so this is linear in the matches.
    """
    held: Counter[str] = Counter()
    total = 0.0
    best = -1.0
    window = (matches[0].start, matches[0].end)
    right = 0
    for left, opening in enumerate(matches):
        while right < len(matches) and matches[right].end - opening.start <= chars:
            term = matches[right].term
            held[term] += 1
            if held[term] == 1:
                total += weights.get(term, 0.0)
            right += 1
        if right <= left:  # a single match longer than the window
            right = left + 1
            continue
        if round(total, 9) > best:
            best = round(total, 9)
            window = (opening.start, matches[right - 1].end)
        held[opening.term] -= 1
        if held[opening.term] == 0:
            total -= weights.get(opening.term, 0.0)
    return window


def _window(source: str, opening: int, last: int, chars: int) -> tuple[int, int]:
    room = chars - (last - opening)
    line_start = source.rfind("\n", 0, opening) + 1
    # A run-up to the start of the line keeps the sentence readable; it may not push a match out at the other end.
    if opening - line_start <= min(room, chars // 3):
        start = line_start
    else:
        start = _word_start(source, opening - min(room, chars // 8), limit=opening)
    tail = len(source) - chars
    if start > tail:
        start = _word_start(source, tail, limit=min(start, opening))
    end = min(len(source), start + chars)
    if end < len(source):
        end = _word_end(source, end, floor=max(start + 1, last))
    # One grapheme that is longer than the window is cut all the same.
    return start, end if end > start else start + chars


def _word_start(source: str, at: int, limit: int) -> int:
    """The first word start from ``at`` to ``limit`` within the slack, else the grapheme that begins at ``at`` or next;
    where that is beyond ``limit``, the one that holds ``at``."""
    if at <= 0:
        return 0
    for place in range(at, min(limit, at + _SLACK) + 1):
        # A mark that stands on a blank is no word.
        if source[place - 1].isspace() and not source[place].isspace() and _grapheme_start(source, place) == place:
            return place
    boundary = _grapheme_start(source, at)
    if boundary == at:
        return at
    found = _GRAPHEME.match(source, boundary)
    return found.end() if found and found.end() <= limit else boundary


def _word_end(source: str, at: int, floor: int) -> int:
    """The last word end from ``floor`` to ``at`` within the slack, else the grapheme boundary before ``at``."""
    for place in range(at, max(floor, at - _SLACK) - 1, -1):
        if source[place].isspace() and not source[place - 1].isspace() and _grapheme_start(source, place) == place:
            return place
    return _grapheme_start(source, at)


def _grapheme_start(source: str, at: int) -> int:
    """The largest grapheme boundary that is not after ``at``."""
    if at <= 0 or at >= len(source):
        return max(0, min(at, len(source)))
    if source[at - 1 : at + 1].isascii():
        return at - 1 if source[at - 1 : at + 1] == "\r\n" else at
    begin = max(0, at - 64)
    # Flags are pairs, and a letter may bear any number of marks: from inside of either, borders are seen wrongly.
    while begin and _JOINED.match(source, begin - 1):
        begin -= 1
    boundary = begin
    for match in _GRAPHEME.finditer(source, begin):
        if match.start() > at:
            break
        boundary = match.start()
        if match.end() == at:
            return at
    return boundary


def _merge(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged
