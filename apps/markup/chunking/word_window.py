"""Chunks of prose for repositories: sections, and windows of words over sections that are too long.

Windows overlap, sections never; nothing is merged (``repository-documents.md`` 5.4 to 5.7).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from apps.markup.chunking.derive import Derivation
from apps.markup.chunking.offsets import TextMap
from apps.markup.chunking.words import count_words, has_unspaced, word_edges
from apps.markup.values import Chunk, ChunkedDocument, ParsedDocument, Section, WordWindow

_new = tuple.__new__


def chunk_words(parsed: ParsedDocument, profile: WordWindow, kind_label: str | None = None) -> ChunkedDocument:
    """Cut a parsed document by the word window. ``kind_label``, if given, begins each heading path."""
    if parsed.empty:
        return ChunkedDocument(())
    places = TextMap(parsed.text)
    derivation = Derivation(parsed, places, longest=profile.max_chars)
    raw, max_words, max_chars = places.raw, profile.max_words, profile.max_chars
    chunks: list[Chunk] = []
    mixed = has_unspaced(parsed.text)
    label = () if kind_label is None else (kind_label,)
    for section, start, line in _joined(parsed, derivation):
        stop = section.end_byte
        text = raw[start:stop].decode()
        body = text.strip()
        if not body:
            continue
        path = label + section.heading_path
        first, size, lead = start, len(body), 0
        if text[0] != body[0]:
            lead = len(text) - len(text.lstrip())
            first += len(text[:lead].encode())
            line += text.count("\n", 0, lead)
        end = stop - len(text[lead + size :].encode())
        unspaced = mixed and size > max_words and has_unspaced(body)
        # A word takes two characters, its blank included, or one in a script without blanks.
        many = max_words if unspaced else 2 * max_words
        too_long = size > max_chars
        if not too_long and size > many:
            too_long = count_words(body, unspaced=unspaced, raw=raw[first:end]) > max_words
        if too_long:
            _cut(chunks, section, path, body, first, line, profile, derivation, unspaced)
            continue
        searched = derivation.text(first, end, body, cut=False) if derivation.changes else body
        chunks.append(
            _new(Chunk, (
                len(chunks), path, section.level, section.anchor, line, line + body.count("\n"), first, end, body,
                searched, 1, 1, (),
            ))
        )  # fmt: skip
    return ChunkedDocument(tuple(chunks))


def _cut(
    chunks: list[Chunk],
    section: Section,
    path: tuple[str, ...],
    body: str,
    first: int,
    line: int,
    profile: WordWindow,
    derivation: Derivation,
    unspaced: bool,
) -> None:
    """Add the windows over a section whose visible part ``body`` begins at byte ``first`` in ``line``."""
    within = TextMap(body)
    before = 0
    for begin, end in _windows(within, first, profile, derivation, unspaced):
        source = body[begin:end]
        start_byte, end_byte = first + within.byte(begin), first + within.byte(end)
        line += body.count("\n", before, begin)
        before = begin
        chunks.append(
            _new(Chunk, (
                len(chunks), path, section.level, section.anchor, line, line + source.count("\n"), start_byte, end_byte,
                source, derivation.text(start_byte, end_byte, source, cut=True), 1, 1, (),
            ))
        )  # fmt: skip


def _joined(parsed: ParsedDocument, derivation: Derivation) -> Iterator[tuple[Section, int, int]]:
    """Sections with a text of their own, each with the byte and line where it begins.

    The lines of a heading without text, and comments alone, go to the front of the next section.
    """
    headings, removed_spans, visible = parsed.heading_tree, parsed.removed_spans, derivation.visible
    waiting: Section | None = None
    last = len(parsed.sections) - 1
    for number, section in enumerate(parsed.sections):
        begin = waiting or section
        after = section.start_byte if section.heading is None else headings[section.heading].end_byte
        if number < last and not visible(after, section.end_byte):
            if section.heading is not None or not derivation.removed(section.start_byte, section.end_byte):
                waiting = begin
            continue
        waiting = None
        if not removed_spans or not derivation.removed(begin.start_byte, section.end_byte):
            yield section, begin.start_byte, begin.start_line


def _windows(
    within: TextMap, first: int, profile: WordWindow, derivation: Derivation, unspaced: bool
) -> Iterator[tuple[int, int]]:
    """Character ranges of the windows over a section's visible part, which begins at byte ``first``."""
    starts, ends = word_edges(within.text, longest=profile.max_chars, unspaced=unspaced)
    lines = _LineEdges(within, first, derivation)
    half = max(profile.max_words // 2, 1)
    begin = 0
    """Number of the first word of the window."""
    reached = 0
    """Number of words that the windows so far cover."""
    while True:
        end = min(begin + profile.max_words, len(starts))
        if ends[end - 1] - starts[begin] > profile.max_chars:
            end = bisect_left(ends, starts[begin] + profile.max_chars + 1, begin, end)
        if end <= reached:
            # The overlap alone fills the window: go on without it.
            begin = reached
            continue
        if end < len(starts):
            moved = bisect_left(starts, lines.start_of(starts[end]), begin, end)
            if moved - begin >= half and moved > reached:
                end = moved
        yield starts[begin], ends[end - 1]
        if end >= len(starts):
            return
        reached = end
        # A window that its characters ended early shares at most half of itself with the next.
        begin = max(end - profile.overlap_words, (begin + end + 1) // 2)
        moved = bisect_left(starts, lines.start_of(starts[begin]), 0, begin)
        if end - moved <= half:
            begin = moved


class _LineEdges:
    """Finds the start of the row or code line in which an edge lies."""

    def __init__(self, within: TextMap, first: int, derivation: Derivation) -> None:
        size = len(within.raw)
        self._body = within.text
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
