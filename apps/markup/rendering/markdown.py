"""Markdown to HTML from the same events that gave the structure, so both agree about every heading, link and line."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from html import escape
from typing import Any

import pyromark

from apps.markup.mdx import without_html_blocks
from apps.markup.parsing import blank
from apps.markup.rendering.code import code_block
from apps.markup.rendering.footnotes import Footnotes
from apps.markup.rendering.highlighting import Highlighter
from apps.markup.rendering.overlays import Cursor, Overlay, overlays
from apps.markup.rendering.raw_tags import STRUCTURE, RawTags
from apps.markup.rendering.resolved import Addresses
from apps.markup.tree import OPTIONS
from apps.markup.values import Asset, Heading, Link, ParsedDocument

_MARKDOWN = pyromark.Markdown(options=OPTIONS)
_INLINE = {"Emphasis": "em", "Strong": "strong", "Strikethrough": "del"}
_TEXT = frozenset({"Paragraph", "Heading", "TableCell"})
_LEVELS = {"H1": 1, "H2": 2, "H3": 3, "H4": 4, "H5": 5, "H6": 6}
_CELL = {"Left": ' class="align-left"', "Center": ' class="align-center"', "Right": ' class="align-right"'}


def seen(parsed: ParsedDocument) -> str:
    """What the Markdown parser gets: the text with front matter and removed lines blanked, byte for byte as long."""
    raw = parsed.text.encode()
    spans = [(0, parsed.body_start_byte), *parsed.removed_spans]
    if parsed.blocks and parsed.blocks[0].kind == "header":
        spans.append((parsed.blocks[0].start_byte, parsed.blocks[0].end_byte))
    whole = bytearray(raw)
    for start, end in spans:
        whole[start:end] = blank(raw[start:end])
    return (without_html_blocks(bytes(whole)) if parsed.format == "mdx" else whole).decode()


class MarkdownPage:
    """Renders one parsed document; every block element carries ``data-line`` and ``data-end``."""

    def __init__(self, parsed: ParsedDocument, addresses: Addresses) -> None:
        self.parsed = parsed
        self.addresses = addresses
        self.raw = parsed.text.encode()
        self.starts = [0, *(match.end() for match in re.finditer(rb"\n", self.raw))]
        self.out: list[str] = []
        self.highlighter = Highlighter()
        body = [link for link in parsed.links if link.origin == "body"]
        self.links: dict[int, Link] = {link.start_byte: link for link in body if link.link_type != "wiki"}
        self.assets: dict[int, Asset] = {asset.start_byte: asset for asset in parsed.assets}
        self.tags = RawTags(
            addresses,
            {link.href: link for link in parsed.links if link.origin == "html"},
            {asset.href: asset for asset in parsed.assets if asset.origin == "html"},
        )
        self.items = {item.line: item.anchor for item in reversed(parsed.items)}
        self.headings: dict[int, Heading] = {heading.start_byte: heading for heading in parsed.heading_tree}
        self.footnotes = Footnotes()
        self.over = Cursor(overlays(parsed, self.raw, addresses))
        self.in_link = 0
        self.in_image = 0
        self.alt: list[str] = []
        self.image_title = ""
        self.code: list[str] | None = None
        self.info: str | None = None
        """Info string of the open fence, None for indented code."""
        self.html: list[str] | None = None
        self.alignments: list[tuple[str, ...]] = []
        self.column = 0
        self.head = False
        self.raw_depth = 0
        """Raw tags that were open where the running text began."""
        self.closing: list[str | None] = []
        """What each open tag is closed with; None for a link that a wiki link displaces."""

    def render(self) -> str:
        """The HTML, still to be cleaned."""
        if self.parsed.blocks and self.parsed.blocks[0].kind == "header":
            block = self.parsed.blocks[0]
            text = self.raw[block.start_byte : block.end_byte].decode()
            self.out.append(
                f'<pre class="front-matter" data-line="{block.start_line}" data-end="{block.end_line}">'
                f"<code>{escape(text, quote=False)}</code></pre>\n"
            )
        mdx = self.parsed.format == "mdx"
        for event, span in _MARKDOWN.events_with_range(seen(self.parsed)):
            start, end = span["start"], span["end"]
            if isinstance(event, str):
                self.plain_event(event, start, end)
                continue
            kind: str
            value: Any
            ((kind, value),) = event.items()
            if kind == "Start":
                self.open(value, start, end)
                continue
            if kind == "End":
                self.close(value, start, end)
                continue
            if mdx and isinstance(value, str) and len(value.encode()) == end - start:
                # What the parser saw there may have other letters than the document.
                value = self.raw[start:end].decode()
            if kind == "Text":
                self.text(value, start, end)
            else:
                self.inline(kind, value, start, end)
        self.out.append(self.footnotes.section())
        return "".join(self.out)

    # -- places

    def line_range(self, start: int, end: int) -> tuple[int, int]:
        """First and last line of a byte range, blank lines at its end left out."""
        while end > start + 1 and self.raw[end - 1] in b" \t\n":
            end -= 1
        first = bisect_right(self.starts, start)
        return first, max(bisect_left(self.starts, end), first)

    def lines(self, start: int, end: int) -> str:
        first, last = self.line_range(start, end)
        return f' data-line="{first}" data-end="{last}"'

    # -- text and what lies over it

    def covering(self, start: int, end: int) -> Overlay | None:
        """The overlay in which a whole event lies."""
        return self.over.covering(start, end)

    def put(self, over: Overlay) -> None:
        """Write an overlay once, however many events it covers."""
        if self.over.first_time():
            self.out.append(over.text if self.in_link and over.is_link else over.html)

    def text(self, value: str, start: int, end: int) -> None:
        if self.code is not None:
            self.code.append(value)
            return
        if self.in_image:
            self.alt.append(value)
            return
        over = self.covering(start, end)
        while over is None and (found := self.over.before(end)) is not None:
            # Text that an overlay covers in part is written as it stands in the source there.
            if found.start > start:
                self.out.append(escape(self.raw[start : found.start].decode(errors="ignore"), quote=False))
            self.put(found)
            if found.end >= end:
                return
            value = self.raw[found.end : end].decode(errors="ignore")
            start = found.end
            over = self.covering(start, end)
        if over is not None:
            self.put(over)
        else:
            self.out.append(escape(value, quote=False))

    def plain_event(self, event: str, start: int, end: int) -> None:
        if event == "Rule":
            self.out.append(f"<hr{self.lines(start, end)}>\n")
        elif self.in_image:
            self.alt.append(" ")
        elif (over := self.covering(start, end)) is not None:
            self.put(over)
        else:
            self.out.append("<br>\n" if event == "HardBreak" else "\n")

    def inline(self, kind: str, value: Any, start: int, end: int) -> None:
        if kind == "Html":
            if self.html is not None:
                self.html.append(value)
            return
        if self.in_image:
            self.alt.append(value if kind == "Code" else "")
            return
        over = self.covering(start, end)
        if over is not None:
            self.put(over)
        elif kind == "Code":
            self.out.append(f"<code>{escape(value, quote=False)}</code>")
        elif kind == "InlineHtml":
            self.out.append(self.tags.inline(value, in_link=self.in_link > 0))
        elif kind == "FootnoteReference":
            self.out.append(self.footnotes.reference(value))
        elif kind == "TaskListMarker":
            done = " checked" if value else ""
            self.out.append(f'<input type="checkbox" disabled{done}> ')

    # -- tags

    def open(self, tag: Any, start: int, end: int) -> None:
        name: str = tag if isinstance(tag, str) else next(iter(tag))
        value: Any = None if isinstance(tag, str) else tag[name]
        if name in _TEXT:
            self.raw_depth = self.tags.depth
        if name == "Paragraph":
            self.paragraph(start, end)
        elif name in _INLINE:
            self.inline_tag(_INLINE[name], start, end)
        elif name == "Link":
            self.link(value, start, end)
        elif name == "Image":
            self.in_image += 1
            if self.in_image == 1:
                self.alt = []
                self.image_title = value["title"]
        elif name == "Heading":
            heading = self.headings.get(start)
            level = _LEVELS[value["level"]]
            anchor = heading.anchor if heading and not heading.anchor.lower().startswith("cg-") else ""
            named = f' id="{escape(anchor)}"' if anchor else ""
            self.out.append(f"<h{level}{named}{self.lines(start, end)}>")
            target = escape(anchor.replace("%", "%25"))
            own = (
                f'<a class="heading-anchor" href="#{target}" aria-label="Link to this section">#</a>' if anchor else ""
            )
            self.closing.append(f"{own}</h{level}>\n")
        elif name == "CodeBlock":
            self.code = []
            self.info = value["Fenced"] if isinstance(value, dict) else None
        elif name == "HtmlBlock":
            self.html = []
        else:
            self.container(name, value, start, end)

    def container(self, name: str, value: Any, start: int, end: int) -> None:
        lines = self.lines(start, end)
        if name == "List":
            ordered = value is not None
            number = f' start="{value}"' if ordered and value != 1 else ""
            self.out.append(f"<ol{number}{lines}>\n" if ordered else f"<ul{lines}>\n")
            self.closing.append("</ol>\n" if ordered else "</ul>\n")
        elif name == "Item":
            self.out.append(f"<li{self.item_id(start)}{lines}>")
            self.closing.append("</li>\n")
        elif name == "BlockQuote":
            kind = f' class="note note-{value.lower()}"' if value else ""
            title = f'<p class="note-title">{escape(value)}</p>\n' if value else ""
            self.out.append(f"<blockquote{kind}{lines}>\n{title}")
            self.closing.append("</blockquote>\n")
        elif name == "Table":
            self.alignments.append(value)
            self.out.append(f'<div class="table"><table{lines}>\n')
            self.closing.append("</tbody></table></div>\n")
        elif name in ("TableHead", "TableRow"):
            self.head = name == "TableHead"
            self.column = 0
            self.out.append(("<thead>" if self.head else "") + f"<tr{self.item_id(start)}{lines}>")
            self.closing.append("</tr></thead><tbody>\n" if self.head else "</tr>\n")
        elif name == "TableCell":
            element = "th" if self.head else "td"
            aligned = self.alignments[-1] if self.alignments else ()
            side = _CELL.get(aligned[self.column], "") if self.column < len(aligned) else ""
            self.column += 1
            self.out.append(f"<{element}{side}>")
            self.closing.append(f"</{element}>")
        elif name == "FootnoteDefinition":
            self.footnotes.begin(value, self.out, lines)
            self.out = []
            self.closing.append("")
        else:
            self.closing.append("")

    def item_id(self, start: int) -> str:
        anchor = self.items.get(bisect_right(self.starts, start))
        return f' id="{escape(anchor)}"' if anchor and not anchor.lower().startswith("cg-") else ""

    def paragraph(self, start: int, end: int) -> None:
        over = self.covering(start, start + 1)
        if over is not None and over.embed is not None and not self.raw[over.end : end].strip():
            self.over.first_time()
            self.out.append(f'<div class="embed"{self.lines(start, end)}>{over.embed}</div>\n')
            self.closing.append("")
            return
        self.out.append(f"<p{self.lines(start, end)}>")
        self.closing.append("</p>\n")

    def inline_tag(self, element: str, start: int, end: int) -> None:
        if self.in_image or self.covering(start, end) is not None:
            self.closing.append("")
            return
        self.out.append(f"<{element}>")
        self.closing.append(f"</{element}>")

    def link(self, value: Any, start: int, end: int) -> None:
        link = self.links.get(start)
        if self.in_image or link is None:
            # No such link in the parsed document: a wiki link, which is the stronger one, took its place.
            self.closing.append(None)
            return
        self.out.append(self.addresses.opening(link, value["title"]))
        self.in_link += 1
        self.closing.append("</a>")

    def close(self, tag: Any, start: int, end: int) -> None:
        name = tag if isinstance(tag, str) else next(iter(tag))
        if name == "CodeBlock":
            code, self.code = "".join(self.code or ()), None
            self.out.append(code_block(code, self.info, *self.line_range(start, end), self.highlighter))
            return
        if name == "HtmlBlock":
            source, self.html = "".join(self.html or ()), None
            self.out.append(self.tags.block(source, self.lines(start, end)))
            return
        if name == "Image":
            self.in_image -= 1
            if not self.in_image:
                self.image(start, end)
            return
        closing = self.closing.pop()
        if name in _TEXT:
            self.out.append(self.tags.end_of_text(since=self.raw_depth))
        elif name == "Item":
            self.out.append(self.tags.end_of_text(keep=STRUCTURE))
        if name == "Link" and closing:
            self.in_link -= 1
        if name == "FootnoteDefinition":
            self.out = self.footnotes.end("".join(self.out))
        elif name == "Table":
            self.alignments.pop()
        self.out.append(closing or "")

    def image(self, start: int, end: int) -> None:
        over = self.covering(start, end)
        if over is not None:
            self.put(over)
            return
        asset = self.assets.get(start)
        if asset is None:
            self.out.append(escape("".join(self.alt), quote=False))
            return
        in_link = self.in_link > 0 or self.tags.open_links > 0
        self.out.append(self.addresses.image(asset, title=self.image_title, in_link=in_link))
