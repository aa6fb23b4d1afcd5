"""A decoded file to a ``ParsedDocument``: the one door for every format (``markup.md`` 3 and 4)."""

from __future__ import annotations

import re

from apps.markup.assembling import assemble
from apps.markup.decoding import line_count
from apps.markup.events import read_events
from apps.markup.front_matter import FrontMatter, read_front_matter
from apps.markup.links import is_reference
from apps.markup.mdx import Mdx, read_mdx
from apps.markup.tree import Tree, line_starts
from apps.markup.values import Block, Decoded, Format, Limits, ParsedDocument, Skipped

# A pattern finds two bytes in half of the time that `in` takes.
_BRACKETS = re.compile(rb"\[\[")
_FORMATS: dict[str, Format] = {
    "md": "markdown",
    "markdown": "markdown",
    "mdx": "mdx",
    "rst": "rst",
}


def format_of(path: str) -> Format:
    """The format that the extension of a path names; what is no path is Markdown, everything unknown plain text."""
    if is_reference(path):
        return "markdown"
    name = path.rpartition("/")[2]
    return _FORMATS.get(name.rpartition(".")[2].lower(), "text") if "." in name else "text"


def parse(decoded: Decoded, path: str, limits: Limits) -> ParsedDocument | Skipped:
    """Structure of a text. Never raises for content; Skipped when it is nested deeper than ``limits.max_nesting``."""
    kind = format_of(path)
    if kind == "rst":
        # docutils is large and rarely needed.
        from apps.markup.rst import parse_rst

        return parse_rst(decoded, path, limits)
    if kind == "text":
        return parse_plain(decoded, path)
    return parse_markdown(decoded, path, kind, limits)


def parse_plain(decoded: Decoded, path: str) -> ParsedDocument:
    """A file of any other format: groups of lines between blank ones, without headings and links."""
    raw = decoded.text.encode()
    tree = Tree(raw, line_starts(raw), 1)
    last_line = line_count(decoded.text)
    group = 0
    for line in range(1, last_line + 2):
        visible = line <= last_line and not raw[tree.starts[line - 1] : tree.starts[line]].isspace()
        if visible and not group:
            group = line
        elif not visible and group:
            tree.blocks.append(tree.block_of_lines("paragraph", group, line - 1))
            group = 0
    return assemble(decoded, path, "text", tree, FrontMatter(), Mdx(raw))


def parse_markdown(decoded: Decoded, path: str, kind: Format, limits: Limits) -> ParsedDocument | Skipped:
    """Markdown and MDX."""
    text = decoded.text
    raw = text.encode()
    starts = line_starts(raw)
    front = read_front_matter(text, path, limits)
    hidden = min(starts[front.hidden_lines], len(raw))
    mdx = read_mdx(raw, starts, hidden) if kind == "mdx" else Mdx(raw)
    seen = text
    if hidden or kind == "mdx":
        seen = (blank(mdx.seen[:hidden]) + mdx.seen[hidden:]).decode()
    header = front.hidden_lines >= front.body_line
    tree = Tree(
        raw, starts, limits.max_nesting, lead=header, brackets=bool(_BRACKETS.search(raw)), disguised=kind == "mdx"
    )
    if skipped := read_events(seen, tree):
        return skipped
    if header:
        # The lines of a broken block as they stand: plain text, without headings and links.
        tree.blocks.insert(0, Block("header", 1, front.hidden_lines, 0, starts[front.hidden_lines] - 1))
    if kind == "mdx":
        tree.insert_blocks("esm", mdx.esm)
        tree.insert_blocks("jsx", mdx.jsx)
    return assemble(decoded, path, kind, tree, front, mdx)


def blank(raw: bytes) -> bytes:
    """The same number of bytes and lines without anything to see."""
    return raw.translate(_BLANKED)


_BLANKED = bytes(0x0A if code == 0x0A else 0x20 for code in range(256))
