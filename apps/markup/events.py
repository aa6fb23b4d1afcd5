"""The one reading of a Markdown text: pyromark's events, in one pass, into a ``Tree`` (``markup.md`` 3).

This loop is the hottest of the product (some 60,000 events a megabyte), hence one long function with local names, the
most frequent event first, and places looked up only where they are needed.
"""

from __future__ import annotations

import dataclasses
import re
from bisect import bisect_left, bisect_right
from typing import Any

import pyromark

from apps.markup.anchors import slugify
from apps.markup.building import fast
from apps.markup.links import split_href
from apps.markup.references import LIST_ITEM
from apps.markup.tree import BLANKS, OPTIONS, Events, HeadingDraft, Tree, make_block
from apps.markup.values import Block, BlockKind, Link, LinkType, Skipped
from apps.markup.wikilinks import without_brackets

_MARKDOWN = pyromark.Markdown(options=OPTIONS)
_EXPLICIT_ANCHOR = re.compile(r"\{#([^\s{}]+)\}\Z")
_LEVELS = {"H1": 1, "H2": 2, "H3": 3, "H4": 4, "H5": 5, "H6": 6}
_WEB = ("https:", "http:")
_make_link = fast(Link)


class TooDeep(Exception):
    """Raised inside a reading when the limit of levels is passed."""


def read_events(text: str, tree: Tree) -> Skipped | None:
    """Fill ``tree``. ``text`` is what the parser sees (hidden lines blanked), as long as ``tree.raw`` in bytes."""
    try:
        _read(tree, _MARKDOWN.events_with_range(text))
    except TooDeep:
        return Skipped("nesting", f"nested deeper than {tree.max_nesting} levels")
    return None


def _read(tree: Tree, events: Events) -> None:
    raw, starts, room, brackets = tree.raw, tree.starts, tree.max_nesting, tree.brackets
    siblings = top = tree.blocks
    stack: list[tuple[BlockKind, int, int, list[Block], str] | None] = []
    cells: list[str] = []
    rows: list[tuple[str, ...]] = []
    inline_end = trim_from = trim_to = row_start = row_end = 0
    section = 0 if tree.lead else -1
    ascii_only, list_item, add_link = tree.ascii_only, LIST_ITEM.match, tree.links.append
    link_type: LinkType
    line = line_start = line_end = 0
    """The line of the link before: most links stand in the same one or need one look-up."""
    for event, span in events:
        if "Text" in event:
            content = event["Text"]
            if "://" in content:
                tree.urls.append((span["start"], span["end"], inline_end))
            if brackets and "[" in content:
                tree.brackets_in_text(span["start"], span["end"], inline_end)
        elif "Start" in event:
            tag = event["Start"]
            if tag.__class__ is str:
                if tag == "Paragraph":
                    start, inline_end = span["start"], span["end"]
                    first = bisect_right(starts, start)
                    last = first if starts[first] >= inline_end else bisect_left(starts, inline_end)
                    siblings.append(make_block("paragraph", first, last, starts[first - 1], starts[last] - 1, ()))
                    if section < 0:
                        section, tree.lead = 0, True
                    stack.append(None)
                elif tag == "Item":
                    if len(stack) >= room:
                        raise TooDeep
                    start, inline_end = span["start"], span["end"]
                    stack.append(("item", start, inline_end, siblings, ""))
                    siblings = []
                    if found := list_item(raw, start):
                        tree.add_item(found[2].decode(), found[1].decode(errors="replace").strip(), start)
                elif tag == "TableCell":
                    start, inline_end = span["start"], span["end"]
                    cells.append(raw[start:inline_end].decode().strip().replace("\\|", "|"))
                    stack.append(None)
                elif tag == "TableRow" or tag == "TableHead":
                    stack.append(None)
                    if cells:
                        tree.add_row(cells, rows, row_start, row_end)
                        cells = []
                    row_start, row_end = span["start"], span["end"]
                elif tag == "HtmlBlock":
                    siblings.append(tree.read_html_block(events, span["start"], span["end"]))
                    if section < 0:
                        section, tree.lead = 0, True
                else:
                    if len(stack) >= room:
                        raise TooDeep
                    stack.append(None)
            elif "Link" in tag:
                link = tag["Link"]
                kind, href, start, end = link["link_type"], link["dest_url"], span["start"], span["end"]
                if kind == "Inline" and not brackets:
                    # Nine links of ten hold one piece of text.
                    event, span = next(events)
                    if "Text" in event:
                        label = event["Text"]
                        event, span = next(events)
                        if "End" not in event:
                            label += read_inline(tree, events, event, span, inline_end, len(stack), section, True)
                    else:
                        label = read_inline(tree, events, event, span, inline_end, len(stack), section, True)
                    if not line_start <= start < line_end:
                        line = bisect_right(starts, start)
                        line_start, line_end = starts[line - 1], starts[line]
                    if href.startswith(_WEB) and "#" not in href and "?" not in href:
                        link_type, path, query, fragment = "absolute", href, "", ""
                    else:
                        link_type, path, query, fragment = split_href(href)
                    add_link(
                        _make_link(
                            label, href, line, link_type, path, query, fragment, "", "", False, "body", "", section,
                            line if end < line_end else bisect_left(starts, end),
                            start - line_start + 1 if ascii_only else tree.column(line, start), start, end,
                        )
                    )  # fmt: skip
                else:
                    read_link(tree, events, link, start, end, inline_end, len(stack), section)
            elif "Heading" in tag:
                start, end = span["start"], span["end"]
                first = bisect_right(starts, start)
                last = first if starts[first] >= end else bisect_left(starts, end)
                siblings.append(make_block("heading", first, last, starts[first - 1], starts[last] - 1, ()))
                if siblings is top:
                    section += 1
                elif section < 0:
                    section, tree.lead = 0, True
                section = _read_heading(
                    tree,
                    events,
                    _LEVELS[tag["Heading"]["level"]],
                    first,
                    last,
                    start,
                    end,
                    section,
                    siblings is not top,
                )
            elif "CodeBlock" in tag:
                siblings.append(tree.read_code(events, span["start"], span["end"], tag["CodeBlock"]))
                if section < 0:
                    section, tree.lead = 0, True
            elif "Image" in tag:
                start, end, href = span["start"], span["end"], tag["Image"]["dest_url"]
                alt = read_inline(tree, events, *next(events), inline_end, len(stack), section, True)
                tree.assets.append((start, end, alt, href))
            else:
                if len(stack) >= room:
                    raise TooDeep
                if section < 0:
                    section, tree.lead = 0, True
                if "List" in tag:
                    stack.append(("list", span["start"], span["end"], siblings, ""))
                elif "BlockQuote" in tag:
                    stack.append(("quote", span["start"], span["end"], siblings, ""))
                elif "Table" in tag:
                    stack.append(("table", span["start"], span["end"], siblings, ""))
                    rows = []
                elif "FootnoteDefinition" in tag:
                    stack.append(("footnote", span["start"], span["end"], siblings, tag["FootnoteDefinition"]))
                else:
                    stack.append(None)
                    continue
                siblings = []
        elif "End" in event:
            node = stack.pop()
            if node is None:
                continue
            kind, start, end, parent, label = node
            if kind == "table":
                tree.add_row(cells, rows, row_start, row_end)
                cells = []
                siblings = parent
                siblings.append(tree.add_table(rows, start, end))
                continue
            first, last = bisect_right(starts, start), bisect_left(starts, end)
            # Nested containers often end together: the walk over trailing blank lines is done once.
            if last == trim_from:
                last = trim_to
            elif end < starts[last] or raw[starts[last] - 2] <= 32:
                trim_from = last
                # A range may end behind the indent of the next block, on a line that is not its own.
                while last > first and not raw[starts[last - 1] : min(end, starts[last])].strip(BLANKS):
                    last -= 1
                trim_to = last
            if last < first:
                last = first
            if siblings:
                children = tuple(tree.with_text_runs(siblings, first, last) if kind == "item" else siblings)
            else:
                children = ()
            if kind == "footnote":
                tree.add_footnote(label, start, starts[last] - 1)
            siblings = parent
            siblings.append(make_block(kind, first, last, starts[first - 1], starts[last] - 1, children))
        elif "Code" in event:
            tree.add_code_span(event["Code"], span["start"], span["end"])
        elif event == "SoftBreak" or event == "HardBreak":
            pass
        elif "InlineHtml" in event:
            tree.add_tag(span["start"], span["end"])
        elif event == "Rule":
            first = bisect_right(starts, span["start"])
            siblings.append(make_block("rule", first, first, starts[first - 1], starts[first] - 1, ()))
            if section < 0:
                section, tree.lead = 0, True
        elif "FootnoteReference" in event:
            tree.footnote_references.append((span["start"], event["FootnoteReference"]))


def read_inline(
    tree: Tree, events: Events, event: Any, span: Any, inline_end: int, depth: int, section: int, linked: bool
) -> str:
    """Plain text from ``event`` to the end of the node that it stands in, which is consumed.

    ``linked``: inside a link or picture, where a bare address is no link of its own.
    """
    pieces: list[str] = []
    level = depth
    while True:
        if "Text" in event:
            content = event["Text"]
            pieces.append(content)
            if "://" in content and not linked:
                tree.urls.append((span["start"], span["end"], inline_end))
            if tree.brackets and "[" in content:
                tree.brackets_in_text(span["start"], span["end"], inline_end)
        elif "End" in event:
            if level == depth:
                return "".join(pieces)
            level -= 1
        elif "Start" in event:
            tag = event["Start"]
            if level >= tree.max_nesting:
                raise TooDeep
            if "Link" in tag:
                start, end = span["start"], span["end"]
                pieces.append(read_link(tree, events, tag["Link"], start, end, inline_end, level + 1, section))
            elif "Image" in tag:
                start, end = span["start"], span["end"]
                alt = read_inline(tree, events, *next(events), inline_end, level + 1, section, True)
                tree.assets.append((start, end, alt, tag["Image"]["dest_url"]))
                pieces.append(alt)
            else:
                level += 1
        elif "Code" in event:
            pieces.append(event["Code"])
            tree.add_code_span(event["Code"], span["start"], span["end"])
        elif event == "SoftBreak" or event == "HardBreak":
            pieces.append(" ")
        elif "InlineHtml" in event:
            tree.add_tag(span["start"], span["end"])
        elif "FootnoteReference" in event:
            tree.footnote_references.append((span["start"], event["FootnoteReference"]))
        event, span = next(events)


def read_link(
    tree: Tree, events: Events, link: Any, start: int, end: int, inline_end: int, depth: int, section: int
) -> str:
    """Add a link of any kind, its content read to the end; returns its text."""
    kind, href = link["link_type"], link["dest_url"]
    if kind == "Email":
        href = f"mailto:{href}"
    elif kind == "Collapsed" and tree.raw[end : end + 2] == b"[]":
        end += 2  # The parser's range leaves the empty label out.
    if tree.brackets:
        tree.add_link_place(start, end, inline_end, automatic=kind in ("Autolink", "Email"))
    text = read_inline(tree, events, *next(events), inline_end, depth, section, True)
    line = bisect_right(tree.starts, start)
    link_type, path, query, fragment = split_href(href)
    tree.links.append(
        _make_link(
            text, href, line, link_type, path, query, fragment, "", "", False, "body", "", section,
            bisect_left(tree.starts, end), tree.column(line, start), start, end,
        )
    )  # fmt: skip
    return text


def _read_heading(
    tree: Tree, events: Events, level: int, first: int, last: int, start: int, end: int, section: int, nested: bool
) -> int:
    """Add a heading, its content read to the end; returns the section that goes on below it."""
    links_before, brackets_before = len(tree.links), len(tree.wiki)
    event, span = next(events)
    if "Text" in event:
        # Most headings are one piece of text.
        content = event["Text"]
        plain = "://" not in content and not tree.brackets
        if plain:
            event, span = next(events)
            text = content
            if "End" not in event:
                text += read_inline(tree, events, event, span, end, 1, section, False)
        else:
            text = read_inline(tree, events, event, span, end, 1, section, False)
    else:
        text = read_inline(tree, events, event, span, end, 1, section, False)
    text = text.strip()
    if len(tree.wiki) > brackets_before:
        text = without_brackets(text)
    anchor = ""
    if text.endswith("}") and (explicit := _EXPLICIT_ANCHOR.match(text, max(text.rfind("{#"), 0))):
        written = tree.raw.rfind(explicit[0].encode(), start, end)
        if written >= 0 and tree.raw[written - 1 : written] != b"\\":
            text, anchor = text[: explicit.start()].rstrip(), explicit[1]
    anchor = tree.anchors.claim(anchor or slugify(text))
    if not text and not nested:
        # An empty heading opens no section: what it holds belongs to the one before.
        section -= 1
        if section < 0:
            section, tree.lead = 0, True
        for number in range(links_before, len(tree.links)):
            tree.links[number] = dataclasses.replace(tree.links[number], section=section)
    stop = tree.starts[last] - 1
    tree.headings.append(HeadingDraft(level, text, anchor, first, last, start, min(stop, end), nested))
    return section
