"""The one reading of a Markdown text: pyromark's events, in one pass, into lists of values (``markup.md`` 3).

This loop is the hottest of the product (some 60,000 events a megabyte), hence one long function with local names, the
most frequent event first, and byte places looked up only where they are needed.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import pyromark
from pyromark import Options

from apps.markup.anchors import Anchors, slugify
from apps.markup.building import fast
from apps.markup.references import code_reference, item_id, list_item_id
from apps.markup.tables import fit_cells
from apps.markup.values import Block, BlockKind, CodeBlock, CodeRef, Footnote, Item, Skipped, Table, Warning_
from apps.markup.wikilinks import without_brackets

OPTIONS = (
    Options.ENABLE_TABLES
    | Options.ENABLE_STRIKETHROUGH
    | Options.ENABLE_FOOTNOTES
    | Options.ENABLE_TASKLISTS
    | Options.ENABLE_GFM
)
_MARKDOWN = pyromark.Markdown(options=OPTIONS)
_NEVER = 1 << 62
_BARE_URL = re.compile(rb"https?://(?=[^\s<>])")
_WIKI = re.compile(rb"\[(?=\[)")
_EXPLICIT_ANCHOR = re.compile(r"\s*\{#([^\s{}]+)\}$")
_LEVELS = {"H1": 1, "H2": 2, "H3": 3, "H4": 4, "H5": 5, "H6": 6}
_LIST, _ITEM, _QUOTE, _NOTE, _HEADING, _CODE, _HTML, _LINK, _IMAGE, _TABLE, _ROW = range(11)
_block = fast(Block)


@dataclass(slots=True)
class HeadingDraft:
    """A heading as the events give it; sections are laid out later."""

    level: int
    text: str
    anchor: str
    start_line: int
    end_line: int
    start_byte: int
    end_byte: int
    nested: bool


@dataclass(slots=True)
class Tree:
    """What one pass over the events collects. Places are bytes; lists are in source order."""

    starts: list[int]
    """Byte offset of each line, then one past the end (counted as if the last line ended with LF)."""
    blocks: list[Block] = field(default_factory=list)
    headings: list[HeadingDraft] = field(default_factory=list)
    code_blocks: list[CodeBlock] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    links: list[tuple[int, int, str, str]] = field(default_factory=list)
    """Start, end, text, href."""
    assets: list[tuple[int, int, str, str]] = field(default_factory=list)
    urls: list[tuple[int, int]] = field(default_factory=list)
    """Where a bare address may begin, and the end of its paragraph, heading or cell."""
    wiki: list[tuple[int, int]] = field(default_factory=list)
    """The same for double brackets."""
    masks: list[tuple[int, int]] = field(default_factory=list)
    """Code spans, inline HTML, autolinks; kept only when the text has double brackets."""
    html: list[tuple[int, int, list[tuple[int, int]]]] = field(default_factory=list)
    """Inline tags and HTML blocks; for a block its pieces, since a quote writes marks between them."""
    items: list[Item] = field(default_factory=list)
    code_refs: list[CodeRef] = field(default_factory=list)
    footnotes: list[Footnote] = field(default_factory=list)
    footnote_references: list[tuple[int, str]] = field(default_factory=list)
    warnings: list[Warning_] = field(default_factory=list)


def line_starts(raw: bytes) -> list[int]:
    """Byte offset of each line, then the end of the text (one more when the last line has no LF)."""
    starts = list(accumulate(map(len, raw.splitlines(keepends=True)), initial=0))
    if raw and not raw.endswith(b"\n"):
        starts[-1] += 1
    return starts


def read_events(text: str, raw: bytes, starts: list[int], max_nesting: int) -> Tree | Skipped:
    """Parse Markdown. ``text`` is what the parser sees (hidden lines blanked), ``raw`` the true bytes, equally long."""
    tree = Tree(starts)
    anchors = Anchors()
    siblings: list[Block] = tree.blocks
    top = siblings
    stack: list[tuple[Any, ...] | None] = []
    pieces: list[str] = []
    cells: list[str] = []
    rows: list[tuple[str, ...]] = []
    parts: list[tuple[int, int]] = []
    item_ids: set[str] = set()
    gather = links_open = inline_end = 0
    trim_from = trim_to = 0
    urls, wikis = iter(_BARE_URL.finditer(raw)), iter(_WIKI.finditer(raw))
    next_url = match.start() if (match := next(urls, None)) else _NEVER
    next_wiki = match.start() if (match := next(wikis, None)) else _NEVER
    watch = min(next_url, next_wiki)
    masked = next_wiki != _NEVER
    events: Iterator[tuple[Any, Any]] = _MARKDOWN.events_with_range(text)
    for event, span in events:
        if "Text" in event:
            if gather:
                pieces.append(event["Text"])
            if span["end"] > watch:
                start, end = span["start"], span["end"]
                while next_url < end:
                    if next_url >= start and not links_open:
                        tree.urls.append((next_url, inline_end))
                    next_url = match.start() if (match := next(urls, None)) else _NEVER
                while next_wiki < end:
                    if next_wiki >= start:
                        tree.wiki.append((next_wiki, inline_end))
                    next_wiki = match.start() if (match := next(wikis, None)) else _NEVER
                watch = next_url if next_url < next_wiki else next_wiki
        elif "Start" in event:
            tag = event["Start"]
            if len(stack) >= max_nesting:
                return Skipped("nesting", f"nested deeper than {max_nesting} levels")
            node: tuple[Any, ...] | None = None
            if tag.__class__ is str:
                if tag == "Paragraph":
                    start, inline_end = span["start"], span["end"]
                    first, last = bisect_right(starts, start), bisect_left(starts, inline_end)
                    siblings.append(_block("paragraph", first, last, starts[first - 1], starts[last] - 1, ()))
                elif tag == "Item":
                    start, inline_end = span["start"], span["end"]
                    node = (_ITEM, start, inline_end, siblings)
                    siblings = []
                    if found := list_item_id(raw, start):
                        _add_item(tree, anchors, item_ids, found, bisect_right(starts, start))
                elif tag == "TableCell":
                    start, inline_end = span["start"], span["end"]
                    cells.append(raw[start:inline_end].decode().strip().replace("\\|", "|"))
                elif tag in ("TableRow", "TableHead"):
                    node = (_ROW, span["start"], span["end"])
                    cells = []
                elif tag == "HtmlBlock":
                    start, end = span["start"], span["end"]
                    first, last = bisect_right(starts, start), bisect_left(starts, end)
                    siblings.append(_make_block("html", first, last, tree, raw))
                    parts = []
                    node = (_HTML, start, end)
            elif "Link" in tag:
                link = tag["Link"]
                kind, start, end = link["link_type"], span["start"], span["end"]
                href = link["dest_url"]
                if kind == "Email":
                    href = f"mailto:{href}"
                elif kind == "Collapsed" and raw[end : end + 2] == b"[]":
                    end += 2
                if masked:
                    if kind in ("Autolink", "Email"):
                        tree.masks.append((start, end))
                        next_wiki, watch = _after(wikis, next_wiki, end, next_url)
                    elif next_wiki == start:
                        tree.wiki.append((start, inline_end))
                node = (_LINK, start, end, len(pieces), href)
                gather += 1
                links_open += 1
            elif "Heading" in tag:
                start, inline_end = span["start"], span["end"]
                first, last = bisect_right(starts, start), bisect_left(starts, inline_end)
                siblings.append(_block("heading", first, last, starts[first - 1], starts[last] - 1, ()))
                node = (_HEADING, start, inline_end, first, last, _LEVELS[tag["Heading"]["level"]], len(tree.wiki))
                gather += 1
                pieces.clear()
            elif "List" in tag:
                node = (_LIST, span["start"], span["end"], siblings)
                siblings = []
            elif "CodeBlock" in tag:
                node = (_CODE, span["start"], span["end"], tag["CodeBlock"])
                gather += 1
                pieces.clear()
                if span["end"] > watch:
                    next_url = _skip(urls, next_url, span["end"])
                    next_wiki, watch = _after(wikis, next_wiki, span["end"], next_url)
            elif "Image" in tag:
                node = (_IMAGE, span["start"], span["end"], len(pieces), tag["Image"])
                gather += 1
                links_open += 1
            elif "BlockQuote" in tag:
                node = (_QUOTE, span["start"], span["end"], siblings)
                siblings = []
            elif "Table" in tag:
                node = (_TABLE, span["start"], span["end"])
                rows = []
            elif "FootnoteDefinition" in tag:
                node = (_NOTE, span["start"], span["end"], siblings, tag["FootnoteDefinition"])
                siblings = []
            stack.append(node)
        elif "End" in event:
            node = stack.pop()
            if node is None:
                continue
            code, start, end = node[:3]
            if code == _LINK:
                gather -= 1
                links_open -= 1
                tree.links.append((start, end, "".join(pieces[node[3] :]), node[4]))
                if not gather:
                    pieces.clear()
                if end > watch:
                    next_url = _skip(urls, next_url, end)
                    watch = next_url if next_url < next_wiki else next_wiki
            elif code <= _NOTE:
                first, last = bisect_right(starts, start), bisect_left(starts, end)
                # Nested containers often end together: the walk over trailing blank lines is done once.
                if last == trim_from:
                    last = trim_to
                else:
                    trim_from = last
                    while last > first and raw[starts[last - 1] : starts[last]].isspace():
                        last -= 1
                    trim_to = last
                last = max(first, last)
                children, siblings = siblings, node[3]
                block_kind: BlockKind = "item"
                if code == _ITEM:
                    if children:
                        children = _with_text_runs(children, first, last, tree, raw)
                elif code == _LIST:
                    block_kind = "list"
                elif code == _QUOTE:
                    block_kind = "quote"
                else:
                    block_kind = "footnote"
                    _add_footnote(tree, raw, node[4], start, starts[last] - 1)
                siblings.append(_block(block_kind, first, last, starts[first - 1], starts[last] - 1, tuple(children)))
            elif code == _HEADING:
                gather -= 1
                heading = "".join(pieces).strip()
                pieces.clear()
                _, _, _, first, last, level, wiki_before = node
                if len(tree.wiki) > wiki_before:
                    heading = without_brackets(heading)
                base = ""
                if heading.endswith("}") and (explicit := _EXPLICIT_ANCHOR.search(heading)):
                    written = raw.rfind(f"{{#{explicit[1]}}}".encode(), start, end)
                    if written >= 0 and raw[written - 1 : written] != b"\\":
                        heading, base = heading[: explicit.start()], explicit[1]
                anchor = anchors.claim(base or slugify(heading))
                stop = min(end, starts[last] - 1)
                tree.headings.append(
                    HeadingDraft(level, heading, anchor, first, last, start, stop, siblings is not top)
                )
            elif code == _CODE:
                gather -= 1
                _add_code(tree, raw, start, end, node[3], "".join(pieces), siblings)
                pieces.clear()
            elif code == _HTML:
                tree.html.append((start, end, parts))
                parts = []
            elif code == _IMAGE:
                gather -= 1
                links_open -= 1
                href = node[4]["dest_url"]
                tree.assets.append((start, end, "".join(pieces[node[3] :]), href))
                if not gather:
                    pieces.clear()
                if end > watch:
                    next_url = _skip(urls, next_url, end)
                    watch = next_url if next_url < next_wiki else next_wiki
            elif code == _ROW:
                row = fit_cells(tree.warnings, cells, rows, raw, start, end, starts)
                rows.append(row)
                if identifier := item_id(row[0]):
                    _add_item(tree, anchors, item_ids, (identifier, " | ".join(row)), bisect_right(starts, start))
            else:
                first, last = bisect_right(starts, start), bisect_left(starts, end)
                tree.tables.append(Table(rows[0] if rows else (), tuple(rows[1:]), first, last))
                siblings.append(_block("table", first, last, starts[first - 1], starts[last] - 1, ()))
        elif "Code" in event:
            content = event["Code"]
            if gather:
                pieces.append(content)
            start, end = span["start"], span["end"]
            if masked:
                tree.masks.append((start, end))
            if end > watch:
                next_url = _skip(urls, next_url, end)
                next_wiki, watch = _after(wikis, next_wiki, end, next_url)
            if ("." in content or "/" in content) and (reference := code_reference(content)):
                line = bisect_right(starts, start)
                tree.code_refs.append(CodeRef(content, *reference, line))
        elif event in ("SoftBreak", "HardBreak"):
            if gather:
                pieces.append(" ")
        elif "InlineHtml" in event or "Html" in event:
            start, end = span["start"], span["end"]
            if "Html" in event:
                parts.append((start, end))
            else:
                tree.html.append((start, end, []))
                if masked:
                    tree.masks.append((start, end))
            if end > watch:
                next_url = _skip(urls, next_url, end)
                next_wiki, watch = _after(wikis, next_wiki, end, next_url)
        elif event == "Rule":
            first = bisect_right(starts, span["start"])
            siblings.append(_block("rule", first, first, starts[first - 1], starts[first] - 1, ()))
        elif "FootnoteReference" in event:
            tree.footnote_references.append((span["start"], event["FootnoteReference"]))
    return tree


def _skip(matches: Iterator[re.Match[bytes]], place: int, end: int) -> int:
    while place < end:
        place = match.start() if (match := next(matches, None)) else _NEVER
    return place


def _after(matches: Iterator[re.Match[bytes]], place: int, end: int, other: int) -> tuple[int, int]:
    """The first match at or after ``end``, and the nearer of it and ``other``."""
    place = _skip(matches, place, end)
    return place, min(place, other)


def _make_block(kind: BlockKind, first: int, last: int, tree: Tree, raw: bytes) -> Block:
    """A block of lines, blank ones at its end excluded."""
    starts = tree.starts
    while last > first and raw[starts[last - 1] : starts[last]].isspace():
        last -= 1
    return _block(kind, first, last, starts[first - 1], starts[last] - 1, ())


def _with_text_runs(children: list[Block], first: int, last: int, tree: Tree, raw: bytes) -> list[Block]:
    """Children of a tight list item with its plain lines, which have no event of their own, as paragraphs."""
    filled: list[Block] = []
    line = first
    for child in children:
        _add_gap(filled, "paragraph", line, child.start_line - 1, tree, raw)
        filled.append(child)
        line = child.end_line + 1
    _add_gap(filled, "paragraph", line, last, tree, raw)
    return filled


def _add_gap(blocks: list[Block], kind: BlockKind, first: int, last: int, tree: Tree, raw: bytes) -> None:
    starts = tree.starts
    while first <= last and not raw[starts[first - 1] : starts[first]].strip():
        first += 1
    if first <= last:
        blocks.append(_make_block(kind, first, last, tree, raw))


def fill_gaps(tree: Tree, raw: bytes, first: int, last: int) -> None:
    """Lines that no event covers (link definitions) become blocks, so that blocks cover the body."""
    filled: list[Block] = []
    line = first
    for block in tree.blocks:
        if block.start_line > line:
            _add_gap(filled, "definitions", line, block.start_line - 1, tree, raw)
        filled.append(block)
        line = block.end_line + 1
    _add_gap(filled, "definitions", line, last, tree, raw)
    tree.blocks = filled


def _add_code(tree: Tree, raw: bytes, start: int, end: int, tag: Any, content: str, siblings: list[Block]) -> None:
    starts = tree.starts
    first, last = bisect_right(starts, start), bisect_left(starts, end)
    if tag == "Indented":
        siblings.append(_make_block("code", first, last, tree, raw))
        return
    info = tag["Fenced"]
    lines = content.count("\n") + (not content.endswith("\n") and bool(content))
    closed = last - first == lines + 1
    words = info.split(None, 1)
    tree.code_blocks.append(CodeBlock(words[0] if words else "", content, first, last, info, closed))
    siblings.append(_make_block("fence", first, last, tree, raw))
    if not closed:
        column = len(raw[starts[first - 1] : start].decode(errors="replace")) + 1
        tree.warnings.append(Warning_("unclosed_fence", first, column, "the fence is never closed"))


def _add_footnote(tree: Tree, raw: bytes, label: str, start: int, end: int) -> None:
    source = raw[start:end]
    colon = source.find(b"]:")
    text = source[colon + 2 :].decode(errors="replace").strip() if colon >= 0 else ""
    tree.footnotes.append(Footnote(label, start, end, text))


def _add_item(tree: Tree, anchors: Anchors, seen: set[str], found: tuple[str, str], line: int) -> None:
    identifier, text = found
    if identifier not in seen:
        seen.add(identifier)
        tree.items.append(Item(identifier, anchors.claim(slugify(identifier)), line, text))
