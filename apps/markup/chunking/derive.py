"""The searched text of a slice: equal to its source, save for the derivations of ``markup.md`` 8.1."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from apps.markup.chunking.mermaid import labels
from apps.markup.chunking.offsets import TextMap
from apps.markup.values import Block, Footnote, ParsedDocument

_LEADING_BLANK = re.compile(r"\A(?:[ \t]*\n)+")
_FENCE_LINE = re.compile(r"(`{3,}|~{3,})[ \t]*([^\s`]*)")
_DELIMITER_ROW = re.compile(r"[\s>]*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*")
_DATA_DEFINITION = re.compile(rb"^ {0,3}\[[^\]\n]+\]:[ \t]*<?data:[^\n]*", re.MULTILINE | re.IGNORECASE)
_BLANKS = bytes([*range(9, 14), *range(28, 33)])
_VISIBLE = re.compile(rb"[^\s\x1c-\x1f]")
_LIST_MARKER = re.compile(r"([\s>]*)([-*+]|\d{1,9}[.)])(?=[ \t])")
LINE_KINDS = frozenset({"table", "fence", "code"})
"""Blocks that are made of lines and never flow: no cut inside a row or code line."""


@dataclass(frozen=True, slots=True)
class Region:
    """A table, fence, indented code or run of ``|`` lines, at any depth. Offsets are bytes."""

    kind: str
    start: int
    end: int
    nested: bool
    mermaid: bool = False


def is_line_run(block: Block, raw: bytes) -> bool:
    """Whether a paragraph is a run of lines that all begin with ``|`` (``markup.md`` 3.6: a table without header)."""
    if block.kind != "paragraph" or block.end_line == block.start_line:
        return False
    if not raw[block.start_byte : block.start_byte + 200].lstrip(b" \t>").startswith(b"|"):
        return False
    lines = raw[block.start_byte : block.end_byte].split(b"\n")
    return all(line.lstrip(b" \t>").startswith(b"|") for line in lines)


class Derivation:
    """Makes the searched text of slices of one document.

    ``longest`` (characters) bounds what is added to one slice: repeated lines over half of it are not repeated, and
    notes beyond it stay out, so that the texts together stay linear in the document.
    """

    def __init__(self, parsed: ParsedDocument, places: TextMap, *, longest: int) -> None:
        self._parsed = parsed
        self._places = places
        self._raw = places.raw
        self._longest = longest
        self._regions: list[Region] | None = None
        self._region_starts: list[int] = []
        self._mermaid_lines = {block.start_line for block in parsed.code_blocks if block.language.lower() == "mermaid"}
        self._edits = self._collect_edits()
        self._edit_starts = [edit[0] for edit in self._edits]
        self._notes: dict[str, Footnote] = {}
        for note in parsed.footnotes:
            self._notes.setdefault(note.label.casefold(), note)
        self._references = [place for place, _ in parsed.footnote_references] if parsed.footnotes else []
        self.changes = bool(self._edits or self._references)
        """Whether the text of any slice may differ from its source, apart from what a cut puts around it."""

    # -- what changes inside a slice

    def _collect_edits(self) -> list[tuple[int, int, str | None]]:
        """Sorted, disjoint (start, end, replacement); None stands for the labels of a diagram."""
        parsed = self._parsed
        edits: list[tuple[int, int, str | None]] = [(start, end, "") for start, end in parsed.removed_spans]
        edits += [(start, end, "") for start, end in parsed.hidden_spans]
        edits += [
            (asset.start_byte, asset.end_byte, asset.alt)
            for asset in parsed.assets
            if asset.end_byte and asset.href[:5].lower() == "data:"
        ]
        if edits and any(asset.href[:5].lower() == "data:" for asset in parsed.assets):
            edits += self._data_definitions()
        edits += [(start, end, " ") for start, end in parsed.tag_spans]
        if self._mermaid_lines:
            edits += [(region.start, region.end, None) for region in self.regions() if region.mermaid]
        if len(edits) < 2:
            return edits
        # The sort is stable and the outer of two overlapping ones begins first or was named first above.
        edits.sort(key=lambda edit: edit[0])
        kept: list[tuple[int, int, str | None]] = []
        for edit in edits:
            if not kept or edit[0] >= kept[-1][1]:
                kept.append(edit)
        return kept

    def _data_definitions(self) -> Iterator[tuple[int, int, str]]:
        """Definitions of reference-style images that carry their picture as data."""
        for block in self._parsed.blocks:
            if block.kind == "definitions":
                for found in _DATA_DEFINITION.finditer(self._raw, block.start_byte, block.end_byte):
                    yield *found.span(), ""

    def _edited(self, start: int, end: int, source: str | None = None) -> str:
        """The slice with its edits; ``source`` is the slice itself, if it is at hand."""
        raw = self._raw
        number = bisect_right(self._edit_starts, start)
        if number and self._edits[number - 1][1] > start:
            number -= 1
        if number == len(self._edits) or self._edits[number][0] >= end:
            return raw[start:end].decode() if source is None else source
        pieces: list[str] = []
        at = start
        while number < len(self._edits) and self._edits[number][0] < end:
            first, last, replacement = self._edits[number]
            if first > at:
                pieces.append(raw[at:first].decode())
            at = min(last, end)
            if replacement is None:
                replacement = _diagram(raw[max(first, start) : at].decode())
            pieces.append(replacement)
            number += 1
        pieces.append(raw[at:end].decode())
        return _LEADING_BLANK.sub("", "".join(pieces)).rstrip()

    # -- what is put around a slice

    def regions(self) -> list[Region]:
        """Tables, fences, code and line runs at any depth, in order."""
        if self._regions is None:
            self._regions = list(self._walk(self._parsed.blocks))
            self._region_starts = [region.start for region in self._regions]
        return self._regions

    def _walk(self, blocks: tuple[Block, ...]) -> Iterator[Region]:
        for top in blocks:
            stack = [top]
            while stack:
                block = stack.pop()
                kind, first, last, start, end, children = block
                if kind in LINE_KINDS or (kind == "paragraph" and first < last and is_line_run(block, self._raw)):
                    mermaid = kind == "fence" and first in self._mermaid_lines
                    yield Region(kind, start, end, block is not top, mermaid)
                elif children:
                    stack += reversed(children)

    def region_at(self, byte: int) -> Region | None:
        """The region in whose inside the byte lies (an edge at its first byte is not inside)."""
        regions = self.regions()
        number = bisect_left(self._region_starts, byte) - 1
        return regions[number] if number >= 0 and byte < regions[number].end else None

    def regions_within(self, start: int, end: int) -> list[Region]:
        """Regions that have a byte in the range."""
        regions = self.regions()
        first = bisect_left(self._region_starts, start)
        if first and regions[first - 1].end > start:
            first -= 1
        return regions[first : bisect_left(self._region_starts, end)]

    def overhead(self, region: Region) -> tuple[int, int]:
        """Characters that a part inside a region gets before and after it."""
        if region.mermaid:
            return 0, 0
        if region.kind == "fence":
            return len(self._opening(region)) + 1, len(self._closing(region, region.start + 1))
        return len(self._header(region, region.end)), 0

    def frame(self, start: int, end: int) -> tuple[str, str]:
        """Lines that a slice lacks: table header or opening fence before it, closing fence after it."""
        before = after = ""
        opened = self.region_at(start)
        if opened is not None and not opened.mermaid:
            before = self._opening(opened) + "\n" if opened.kind == "fence" else self._header(opened, start)
        closed = self.region_at(end) or (opened if opened is not None and end == opened.end else None)
        if closed is not None and closed.kind == "fence" and not closed.mermaid:
            after = self._closing(closed, end)
        return before, after

    def _opening(self, region: Region) -> str:
        line = self._first_line(region)
        prefix, marker, language = _fence_parts(line)
        if 2 * len(line) > self._longest:
            line = prefix + marker + (language if 2 * len(language) <= self._longest else "")
        return _without_marker(prefix) + line[len(prefix) :]

    def _closing(self, region: Region, end: int) -> str:
        prefix, marker, _ = _fence_parts(self._first_line(region))
        if end == region.end:
            last = self._raw[self._raw.rfind(b"\n", region.start, end) + 1 : end].decode().strip(" \t>")
            if last.startswith(marker) and not last.strip(marker[0]):
                return ""
        line_end = "" if self._raw[end - 1 : end] == b"\n" else "\n"
        return line_end + _without_marker(prefix) + marker

    def _first_line(self, region: Region) -> str:
        """The line that opens a region, as much of it as may ever be repeated."""
        most = min(region.end, region.start + 4 * self._longest)
        end = self._raw.find(b"\n", region.start, most)
        return self._raw[region.start : most if end < 0 else end].decode(errors="ignore")

    def _header(self, region: Region, start: int) -> str:
        raw = self._raw
        if region.kind != "table":
            return ""
        first = raw.find(b"\n", region.start, region.end)
        second = raw.find(b"\n", first + 1, region.end) if first >= 0 else -1
        if second < 0 or start <= first or second - region.start > 4 * self._longest:
            return ""
        head, delimiter = raw[region.start : first].decode(), raw[first + 1 : second].decode()
        if not _DELIMITER_ROW.fullmatch(delimiter) or 2 * (len(head) + len(delimiter)) > self._longest:
            return ""
        if region.nested:
            head = _without_marker(head)
        return f"{head}\n" if start <= second else f"{head}\n{delimiter}\n"

    def _notes_of(self, start: int, end: int) -> list[str]:
        found: dict[str, str] = {}
        left = self._longest
        first = bisect_left(self._references, start)
        for _, label in self._parsed.footnote_references[first : bisect_left(self._references, end)]:
            note = self._notes.get(label.casefold())
            if note is None or note.label in found or (start <= note.start_byte and note.end_byte <= end):
                continue
            if note.end_byte - note.start_byte > 4 * left:
                continue
            text = self._edited(note.start_byte, note.end_byte).strip()
            if len(text) <= left:
                left -= len(text)
                found[note.label] = text
        return list(found.values())

    # -- the text

    def text(self, start: int, end: int, source: str, *, cut: bool) -> str:
        """The searched text of a slice (bytes). ``cut`` says that an edge may lie inside a block."""
        text = self._edited(start, end, source) if self._edits else source
        if cut:
            before, after = self.frame(start, end)
            text = before + text + after
        if self._references and (notes := self._notes_of(start, end)):
            text = "\n\n".join([text, "\n".join(notes)])
        return text

    def removed(self, start: int, end: int) -> bool:
        """Whether nothing stands in the slice but lines that no search text holds (MDX) and blanks."""
        spans = self._parsed.removed_spans
        at = start
        for number in range(max(bisect_right(spans, (start, start)) - 1, 0), len(spans)):
            first, last = spans[number]
            if first >= end:
                break
            if self._raw[at:first].strip():
                return False
            at = max(at, last)
        return not self._raw[at:end].decode(errors="ignore").strip()

    def visible(self, start: int, end: int) -> bool:
        """Whether anything that is searched stands in the slice."""
        if not self._edits:
            if start + 2 < end and 0x20 < self._raw[start + 2] < 0x80:
                return True  # as behind most headings: the line's end, a blank line, then text
            rest = self._raw[start:end].lstrip(_BLANKS)
            # Blanks beyond ASCII are rare: only then is the text decoded.
            return bool(rest) and (rest[0] < 0x80 or bool(rest.decode().strip()))
        at = start
        while found := _VISIBLE.search(self._raw, at, end):
            at = found.start()
            number = bisect_right(self._edit_starts, at) - 1
            if number < 0 or self._edits[number][1] <= at:
                return self._raw[at] < 0x80 or bool(self._edited(at, end).strip())
            if self._edits[number][2] is None or str(self._edits[number][2]).strip():
                return True
            at = self._edits[number][1]
        return False


def _diagram(source: str) -> str:
    """Labels of a Mermaid fence or a part of one, one a line."""
    lines = source.split("\n")
    return "\n".join(labels("\n".join(line for line in lines if not _FENCE_LINE.match(line.lstrip(" \t>-*+")))))


def _fence_parts(line: str) -> tuple[str, str, str]:
    """What stands before the marker, the marker, the language."""
    found = _FENCE_LINE.search(line)
    return (line[: found.start()], found[1], found[2]) if found else ("", "```", "")


def _without_marker(line: str) -> str:
    """The line with list markers at its start replaced by blanks: it continues the item, it does not open one."""
    blank: Callable[[re.Match[str]], str] = lambda match: match[1] + " " * len(match[2])  # noqa: E731
    while _LIST_MARKER.match(line):
        line = _LIST_MARKER.sub(blank, line, count=1)
    return line
