"""The one reading of a Markdown text: pyromark's events, in one pass, into a ``Tree`` (``markup.md`` 3).

This loop is the hottest of the product (some 60,000 events a megabyte), hence one long function with local names: the
most frequent event first, lines looked up once for all that begins on one, values made from tuples. Inside of headings
and links ``inline_events`` goes on.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import pyromark

from apps.markup.inline_events import TooDeep, read_alt, read_heading, read_inline, read_link
from apps.markup.links import split_href
from apps.markup.references import LIST_ITEM
from apps.markup.tree import BLANKS, OPTIONS, Events, Tree
from apps.markup.values import Block, BlockKind, Link, LinkType, Skipped

_MARKDOWN = pyromark.Markdown(options=OPTIONS)
_LEVELS = {"H1": 1, "H2": 2, "H3": 3, "H4": 4, "H5": 5, "H6": 6}


def read_events(text: str, tree: Tree) -> Skipped | None:
    """Fill ``tree``. ``text`` is what the parser sees (hidden lines blanked), as long as ``tree.raw`` in bytes."""
    try:
        _read(tree, _MARKDOWN.events_with_range(text))
    except TooDeep:
        return Skipped("nesting", f"nested deeper than {tree.max_nesting} levels")
    return None


def _read(tree: Tree, events: Events) -> None:
    raw, room, brackets, ascii_only = tree.raw, tree.max_nesting, tree.brackets, tree.ascii_only
    new, list_item, add_link, add_url = tuple.__new__, LIST_ITEM.match, tree.links.append, tree.urls.append
    starts = [*tree.starts, len(raw) + 2]
    """With one line more: a cell that is missing at the end of the text stands there."""
    siblings = top = tree.blocks
    stack: list[tuple[BlockKind, int, int, list[Block], tuple[str, int] | None] | None] = []
    """The open nodes: None for what makes no block of its own at its end, else kind, first line, end, the list that
    the block goes to, and for a footnote its label and start."""
    cells: list[str] = []
    rows: list[tuple[str, ...]] = []
    inline_end = trim_from = trim_to = row_start = row_end = 0
    section = 0 if tree.lead else -1
    line = line_start = line_end = 0
    """The line in which the last node began: most nodes begin in the same one."""
    checked, plain_line = 0, True
    """The line that was last asked whether its characters are bytes, and what it said."""
    link_type: LinkType
    for event, span in events:
        if "Text" in event:
            content = event["Text"]
            if "://" in content:
                add_url((span["start"], span["end"], inline_end))
            if brackets and "[" in content:
                tree.brackets_in_text(span["start"], span["end"], inline_end)
        elif "Start" in event:
            # A tag is a name, or a dictionary whose one key is the name: `in` and `==` do for both.
            tag, start, end = event["Start"], span["start"], span["end"]
            if not line_start <= start < line_end:
                line = bisect_right(starts, start)
                line_start, line_end = starts[line - 1], starts[line]
            if "Link" in tag:
                link = tag["Link"]
                if brackets or link["link_type"] != "Inline":
                    read_link(tree, events, link, start, end, inline_end, len(stack), section)
                    continue
                # `read_link` for the common case, nine links of ten.
                href = link["dest_url"]
                event, span = next(events)
                if "Text" in event:
                    label = event["Text"]
                    event, span = next(events)
                    if "End" not in event:
                        label += read_inline(tree, events, event, span, inline_end, len(stack), section, True)
                else:
                    label = read_inline(tree, events, event, span, inline_end, len(stack), section, True)
                if checked != line:
                    checked, plain_line = line, ascii_only or raw[line_start:line_end].isascii()
                if href[:6] == "https:" and "#" not in href and "?" not in href:
                    link_type, path, query, fragment = "absolute", href, "", ""
                else:
                    link_type, path, query, fragment = split_href(href)
                add_link(
                    new(Link, (
                        label, href, line, link_type, path, query, fragment, "", "", False, "body", "", section,
                        line if end <= line_end else bisect_left(starts, end),
                        start - line_start + 1 if plain_line else tree.column(line, start), start, end,
                    ))
                )  # fmt: skip
            elif tag == "Item":
                if len(stack) >= room:
                    raise TooDeep
                inline_end = end
                stack.append(("item", line, end, siblings, None))
                siblings = []
                if found := list_item(raw, start):
                    tree.add_item(found[2].decode(), found[1].decode(errors="replace").strip(), start)
            elif tag == "Paragraph":
                inline_end = end
                last = line if end <= line_end else bisect_left(starts, end)
                siblings.append(new(Block, ("paragraph", line, last, line_start, starts[last] - 1, ())))
                if section < 0:
                    section, tree.lead = 0, True
                stack.append(None)
            elif "Heading" in tag:
                last = line if end <= line_end else bisect_left(starts, end)
                siblings.append(new(Block, ("heading", line, last, line_start, starts[last] - 1, ())))
                nested = siblings is not top
                if not nested:
                    section += 1
                elif section < 0:
                    section, tree.lead = 0, True
                level = _LEVELS[tag["Heading"]["level"]]
                section = read_heading(tree, events, level, line, last, start, end, section, nested)
            elif tag == "Strong" or tag == "Emphasis":
                if len(stack) >= room:
                    raise TooDeep
                stack.append(None)
            elif "CodeBlock" in tag:
                siblings.append(tree.read_code(events, line, start, end, tag["CodeBlock"]))
                if section < 0:
                    section, tree.lead = 0, True
            elif tag == "TableCell":
                inline_end = end
                cells.append(raw[start:end].decode().strip().replace("\\|", "|"))
                stack.append(None)
            elif tag == "TableRow" or tag == "TableHead":
                stack.append(None)
                if cells:
                    tree.add_row(cells, rows, row_start, row_end)
                    cells = []
                row_start, row_end = start, end
            elif tag == "HtmlBlock":
                siblings.append(tree.read_html_block(events, start, end))
                if section < 0:
                    section, tree.lead = 0, True
            elif "Image" in tag:
                alt = read_alt(tree, events, inline_end, len(stack), section)
                tree.assets.append((start, end, alt, tag["Image"]["dest_url"]))
            else:
                if len(stack) >= room:
                    raise TooDeep
                if "List" in tag:
                    stack.append(("list", line, end, siblings, None))
                elif "BlockQuote" in tag:
                    stack.append(("quote", line, end, siblings, None))
                elif "Table" in tag:
                    stack.append(("table", line, end, siblings, None))
                    rows = []
                elif "FootnoteDefinition" in tag:
                    stack.append(("footnote", line, end, siblings, (tag["FootnoteDefinition"], start)))
                else:  # struck through
                    stack.append(None)
                    continue
                siblings = []
                if section < 0:
                    section, tree.lead = 0, True
        elif "End" in event:
            node = stack.pop()
            if node is None:
                continue
            kind, first, end, parent, note = node
            if end <= starts[first]:
                last = first
            elif kind == "table":
                last = bisect_left(starts, end)
            else:
                last = bisect_left(starts, end)
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
            children: tuple[Block, ...] = ()
            if kind == "table":
                tree.add_row(cells, rows, row_start, row_end)
                cells = []
                tree.add_table(rows, first, last)
            elif siblings:
                children = tuple(tree.with_text_runs(siblings, first, last) if kind == "item" else siblings)
            if note:
                tree.add_footnote(*note, starts[last] - 1)
            siblings = parent
            siblings.append(new(Block, (kind, first, last, starts[first - 1], starts[last] - 1, children)))
        elif "Code" in event:
            content = event["Code"]
            if brackets or "/" in content or "." in content:
                tree.add_code_span(content, span["start"], span["end"])
        elif event == "SoftBreak" or event == "HardBreak":
            pass
        elif "InlineHtml" in event:
            tree.add_tag(span["start"], span["end"])
        elif event == "Rule":
            first = bisect_right(starts, span["start"])
            siblings.append(Block("rule", first, first, starts[first - 1], starts[first] - 1))
            if section < 0:
                section, tree.lead = 0, True
        elif "FootnoteReference" in event:
            tree.footnote_references.append((span["start"], event["FootnoteReference"]))
