"""What one reading of a Markdown text collects, and the small steps that fill it (``markup.md`` 3)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, NamedTuple

from pyromark import Options

from apps.markup.anchors import Anchors, slugify
from apps.markup.references import code_reference, item_id
from apps.markup.values import (
    Block,
    BlockKind,
    CodeBlock,
    CodeRef,
    Footnote,
    Item,
    Link,
    Table,
    Warning_,
)

OPTIONS = (
    Options.ENABLE_TABLES
    | Options.ENABLE_STRIKETHROUGH
    | Options.ENABLE_FOOTNOTES
    | Options.ENABLE_TASKLISTS
    | Options.ENABLE_GFM
)
BLANKS = b" \t\n"
"""What a blank line may hold. Other white characters (VT, FF, no-break blanks) make a paragraph in CommonMark."""
Events = Iterator[tuple[Any, Any]]


class HeadingDraft(NamedTuple):
    """A heading as the events give it; sections are laid out later."""

    level: int
    text: str
    anchor: str
    start_line: int
    end_line: int
    start_byte: int
    end_byte: int
    nested: bool
    line: int = 0
    """Line of the text itself when it is not the first one (an overline in reStructuredText)."""


@dataclass(slots=True)
class Tree:
    """Lists in source order; places are bytes of the text."""

    raw: bytes
    starts: list[int]
    """Byte offset of each line, then one past the end (counted as if the last line ended with LF)."""
    max_nesting: int
    lead: bool = False
    """Whether something stands before the first section."""
    brackets: bool = False
    """Whether the text has double brackets; most texts have none, which saves their bookkeeping."""
    disguised: bool = False
    """Whether the parser sees another text than ``raw`` (MDX): code is then taken from ``raw``."""
    ascii_only: bool = field(init=False)
    _counted: tuple[int, int, int] = (0, 0, 1)
    """Line, byte offset and column of the last place asked for."""
    blocks: list[Block] = field(default_factory=list)
    headings: list[HeadingDraft] = field(default_factory=list)
    code_blocks: list[CodeBlock] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    """Written links; those of the other kinds come later."""
    assets: list[tuple[int, int, str, str]] = field(default_factory=list)
    """Start, end, alt, href."""
    urls: list[tuple[int, int, int]] = field(default_factory=list)
    """Texts that may hold a bare address: start, end, and the end of their paragraph, heading or cell."""
    wiki: list[tuple[int, int]] = field(default_factory=list)
    """Double brackets, and the end of their paragraph, heading or cell."""
    masks: list[tuple[int, int]] = field(default_factory=list)
    """Code spans, inline HTML, autolinks; kept only when the text has double brackets."""
    html: list[tuple[int, int, list[tuple[int, int]]]] = field(default_factory=list)
    """Inline tags and HTML blocks; for a block its pieces, since a quote writes marks between them."""
    items: list[Item] = field(default_factory=list)
    code_refs: list[CodeRef] = field(default_factory=list)
    footnotes: list[Footnote] = field(default_factory=list)
    footnote_references: list[tuple[int, str]] = field(default_factory=list)
    warnings: list[Warning_] = field(default_factory=list)
    anchors: Anchors = field(default_factory=Anchors)
    item_ids: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.ascii_only = self.raw.isascii()

    def column(self, line: int, start: int) -> int:
        """Characters before byte ``start`` of its line, plus one; counted on from the last place asked for."""
        known_line, place, column = self._counted
        if known_line != line or place > start:
            place, column = self.starts[line - 1], 1
        column += start - place if self.ascii_only else len(self.raw[place:start].decode(errors="replace"))
        self._counted = (line, start, column)
        return column

    def brackets_in_text(self, start: int, end: int, limit: int) -> None:
        """Note the double brackets that begin in a text event; it may end between the two."""
        place = self.raw.find(b"[[", start, end + 1)
        while place >= 0:
            self.wiki.append((place, limit))
            place = self.raw.find(b"[[", place + 1, end + 1)

    def add_link_place(self, start: int, end: int, limit: int, *, automatic: bool) -> None:
        """A link hides brackets (an autolink) or begins with them (``[[a]][b]``, which a wiki link outranks)."""
        if automatic:
            self.masks.append((start, end))
        elif self.raw.startswith(b"[[", start):
            self.wiki.append((start, limit))

    def add_code_span(self, content: str, start: int, end: int) -> None:
        if self.brackets:
            self.masks.append((start, end))
        if ("/" in content or "." in content) and " " not in content and (reference := code_reference(content)):
            self.code_refs.append(CodeRef(content, *reference, bisect_right(self.starts, start)))

    def add_tag(self, start: int, end: int) -> None:
        self.html.append((start, end, []))
        if self.brackets:
            self.masks.append((start, end))

    def read_html_block(self, events: Events, start: int, end: int) -> Block:
        """Take the lines of an HTML block, up to its end."""
        parts: list[tuple[int, int]] = []
        for event, span in events:
            if "End" in event:
                break
            parts.append((span["start"], span["end"]))
        self.html.append((start, end, parts))
        return self.block_of_lines("html", bisect_right(self.starts, start), bisect_left(self.starts, end))

    def read_code(self, events: Events, first: int, start: int, end: int, tag: Any) -> Block:
        """A fence or indented code that begins in line ``first``, up to its end; ``tag`` is pyromark's kind.

        An unclosed fence has no event of its own: lines are counted.
        """
        pieces: list[str] = []
        for event, span in events:
            if "End" in event:
                break
            pieces.append(self.raw[span["start"] : span["end"]].decode() if self.disguised else event["Text"])
        last = bisect_left(self.starts, end)
        if tag == "Indented":
            return self.block_of_lines("code", first, last)
        content = "".join(pieces)
        info = tag["Fenced"]
        lines = content.count("\n") + (not content.endswith("\n") and bool(content))
        closed = last - first == lines + 1
        words = info.split(None, 1)
        self.code_blocks.append(CodeBlock(words[0] if words else "", content, first, last, info, closed))
        if not closed:
            self.warnings.append(
                Warning_("unclosed_fence", first, self.column(first, start), "the fence is never closed")
            )
        return self.block_of_lines("fence", first, last)

    def add_footnote(self, label: str, start: int, end: int) -> None:
        source = self.raw[start:end]
        colon = source.find(b"]:")
        text = source[colon + 2 :].decode(errors="replace").strip() if colon >= 0 else ""
        self.footnotes.append(Footnote(label, start, end, text))

    def add_item(self, identifier: str, text: str, start: int) -> None:
        """The first row or list item with this identifier; later ones only mention it."""
        if identifier not in self.item_ids:
            self.item_ids.add(identifier)
            line = bisect_right(self.starts, start)
            self.items.append(Item(identifier, self.anchors.claim(slugify(identifier)), line, text))

    def add_row(self, cells: list[str], rows: list[tuple[str, ...]], start: int, end: int) -> None:
        """A table row. The parser fills up short rows and drops surplus cells silently: these are counted here."""
        if rows and (written := _count_cells(self.raw[start:end])) > len(rows[0]):
            line = bisect_right(self.starts, start)
            message = f"{written} cells in a table of {len(rows[0])} columns; the surplus ones are not shown"
            self.warnings.append(Warning_("table_cells_dropped", line, 1, message))
        rows.append(tuple(cells))
        if cells and (identifier := item_id(cells[0])):
            self.add_item(identifier, " | ".join(cells), start)

    def add_table(self, rows: list[tuple[str, ...]], first: int, last: int) -> None:
        self.tables.append(Table(rows[0] if rows else (), tuple(rows[1:]), first, last))

    def block_of_lines(self, kind: BlockKind, first: int, last: int) -> Block:
        """A block of whole lines, blank ones at its end excluded."""
        starts = self.starts
        while last > first and not self.raw[starts[last - 1] : starts[last]].strip(BLANKS):
            last -= 1
        return Block(kind, first, last, starts[first - 1], starts[last] - 1)

    def with_text_runs(self, children: list[Block], first: int, last: int) -> list[Block]:
        """Children of a tight list item with its plain lines, which have no event of their own, as paragraphs."""
        filled: list[Block] = []
        line = first
        for child in children:
            if child.start_line > line:
                self._add_gap(filled, "paragraph", line, child.start_line - 1)
            filled.append(child)
            line = child.end_line + 1
        if line <= last:
            self._add_gap(filled, "paragraph", line, last)
        return filled

    def fill_gaps(self, first: int, last: int) -> None:
        """Lines that no event covers (link definitions) become blocks, so that blocks cover the body."""
        filled: list[Block] = []
        line, end = first, self.starts[first - 1] if first <= last else len(self.raw)
        for block in self.blocks:
            _, start_line, end_line, start, stop, _ = block
            if start - end > 2 and not self.raw[end:start].isspace():
                self._add_gap(filled, "definitions", line, start_line - 1)
            filled.append(block)
            line, end = end_line + 1, stop
        if line <= last:
            self._add_gap(filled, "definitions", line, last)
        self.blocks = filled

    def insert_blocks(self, kind: BlockKind, spans: Iterable[tuple[int, int]]) -> None:
        """Add blocks for whole lines that the parser did not see, save those inside of a block of its own."""
        for start, end in spans:
            first, last = bisect_right(self.starts, start), bisect_right(self.starts, end)
            place = bisect_right(self.blocks, start, key=lambda each: each.start_byte)
            if not place or self.blocks[place - 1].end_byte < start:
                self.blocks.insert(place, Block(kind, first, last, start, end))

    def _add_gap(self, blocks: list[Block], kind: BlockKind, first: int, last: int) -> None:
        starts = self.starts
        while first <= last and not self.raw[starts[first - 1] : starts[first]].strip():
            first += 1
        if first <= last:
            blocks.append(self.block_of_lines(kind, first, last))


def line_starts(raw: bytes) -> list[int]:
    """Byte offset of each line, then the end of the text (one more when the last line has no LF)."""
    starts = list(accumulate(map(len, raw.splitlines(keepends=True)), initial=0))
    if raw and not raw.endswith(b"\n"):
        starts[-1] += 1
    return starts


def _count_cells(row: bytes) -> int:
    row = row.strip()
    pipes = row.count(b"|") - row.count(b"\\|")
    return pipes + 1 - row.startswith(b"|") - (row.endswith(b"|") and not row.endswith(b"\\|") and len(row) > 1)
