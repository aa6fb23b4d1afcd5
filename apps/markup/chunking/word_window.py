"""Chunks of prose for repositories: sections, and windows of words over sections that are too long.

Windows overlap, sections never; nothing is merged (``repository-documents.md`` 5.4 to 5.7).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from apps.markup.building import fast
from apps.markup.chunking.derive import Derivation
from apps.markup.chunking.offsets import TextMap
from apps.markup.chunking.words import count_words, word_spans
from apps.markup.values import Chunk, ChunkedDocument, ParsedDocument, Section, WordWindow

_chunk = fast(Chunk)


def chunk_words(parsed: ParsedDocument, profile: WordWindow, kind_label: str | None = None) -> ChunkedDocument:
    """Cut a parsed document by the word window. ``kind_label``, if given, begins each heading path."""
    if parsed.empty:
        return ChunkedDocument(())
    places = TextMap(parsed.text)
    derivation = Derivation(parsed, places, longest=profile.max_chars)
    raw = places.raw
    chunks: list[Chunk] = []
    label = () if kind_label is None else (kind_label,)
    for section, start, line in _joined(parsed, derivation):
        text = raw[start : section.end_byte].decode()
        body = text.strip()
        if not body:
            continue
        path = label + section.heading_path
        first = start
        if text[0] != body[0]:
            blank = text[: len(text) - len(text.lstrip())]
            first += len(blank.encode())
            line += blank.count("\n")
        if len(body) > profile.max_chars or _has_more_words(body, profile.max_words):
            _cut(chunks, section, path, body, first, line, profile, derivation)
            continue
        end = first + (len(body) if body.isascii() else len(body.encode()))
        chunks.append(
            _chunk(
                len(chunks), path, section.level, section.anchor, line, line + body.count("\n"), first, end, body,
                derivation.text(first, end, body, cut=False),
            )
        )  # fmt: skip
    return ChunkedDocument(tuple(chunks))


def _has_more_words(body: str, number: int) -> bool:
    """Counted only when it can be: a word of ASCII text takes two characters, its blank included."""
    return len(body) > (2 * number if body.isascii() else number) and count_words(body) > number


def _cut(
    chunks: list[Chunk],
    section: Section,
    path: tuple[str, ...],
    body: str,
    first: int,
    line: int,
    profile: WordWindow,
    derivation: Derivation,
) -> None:
    """Add the windows over a section whose visible part ``body`` begins at byte ``first`` in ``line``."""
    within = TextMap(body)
    before = 0
    for begin, end in _windows(body, first, profile, derivation):
        source = body[begin:end]
        start_byte, end_byte = first + within.byte(begin), first + within.byte(end)
        line += body.count("\n", before, begin)
        before = begin
        chunks.append(
            _chunk(
                len(chunks), path, section.level, section.anchor, line, line + source.count("\n"), start_byte, end_byte,
                source, derivation.text(start_byte, end_byte, source, cut=True),
            )
        )  # fmt: skip


def _joined(parsed: ParsedDocument, derivation: Derivation) -> Iterator[tuple[Section, int, int]]:
    """Sections with a text of their own, each with the byte and line where it begins.

    The lines of a heading without text, and comments alone, go to the front of the next section.
    """
    waiting: Section | None = None
    last = len(parsed.sections) - 1
    for number, section in enumerate(parsed.sections):
        begin = waiting or section
        after = section.start_byte if section.heading is None else parsed.heading_tree[section.heading].end_byte
        if number < last and not derivation.visible(after, section.end_byte):
            if section.heading is not None or not derivation.removed(section.start_byte, section.end_byte):
                waiting = begin
            continue
        waiting = None
        if not parsed.removed_spans or not derivation.removed(begin.start_byte, section.end_byte):
            yield section, begin.start_byte, begin.start_line


def _windows(body: str, first: int, profile: WordWindow, derivation: Derivation) -> Iterator[tuple[int, int]]:
    """Character ranges of the windows over a section's visible part, which begins at byte ``first``."""
    spans = word_spans(body, longest=profile.max_chars)
    starts = [start for start, _ in spans]
    ends = [end for _, end in spans]
    lines = _LineEdges(body, first, derivation)
    half = max(profile.max_words // 2, 1)
    begin = 0
    """Number of the first word of the window."""
    reached = 0
    """Number of words that the windows so far cover."""
    while True:
        end = min(begin + profile.max_words, len(spans))
        if ends[end - 1] - starts[begin] > profile.max_chars:
            end = bisect_left(ends, starts[begin] + profile.max_chars + 1, begin, end)
        if end <= reached:
            # The overlap alone fills the window: go on without it.
            begin = reached
            continue
        if end < len(spans):
            moved = bisect_left(starts, lines.start_of(starts[end]), begin, end)
            if moved - begin >= half and moved > reached:
                end = moved
        yield starts[begin], ends[end - 1]
        if end >= len(spans):
            return
        reached = end
        # A window that its characters ended early shares at most half of itself with the next.
        begin = max(end - profile.overlap_words, (begin + end + 1) // 2)
        moved = bisect_left(starts, lines.start_of(starts[begin]), 0, begin)
        if end - moved <= half:
            begin = moved


class _LineEdges:
    """Finds the start of the row or code line in which an edge lies."""

    def __init__(self, body: str, first: int, derivation: Derivation) -> None:
        within = TextMap(body)
        size = len(within.raw)
        self._body = body
        self._regions = [
            (within.character(max(region.start - first, 0)), within.character(min(region.end - first, size)))
            for region in derivation.regions_within(first, first + size)
        ]
        self._starts = [start for start, _ in self._regions]

    def start_of(self, character: int) -> int:
        """The line's start for a place inside a table or fence, the place itself elsewhere."""
        number = bisect_left(self._starts, character) - 1
        if number < 0 or character >= self._regions[number][1]:
            return character
        return self._body.rfind("\n", 0, character) + 1
