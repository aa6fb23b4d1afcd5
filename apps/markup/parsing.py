"""A decoded file to a ``ParsedDocument``: the one door for every format (``markup.md`` 3 and 4)."""

from __future__ import annotations

from collections.abc import Iterable

from apps.markup.decoding import line_count
from apps.markup.events import fill_gaps, line_starts, read_events
from apps.markup.front_matter import FrontMatter, read_front_matter
from apps.markup.inline_links import collect_html, collect_links
from apps.markup.outline import first_title, lay_out
from apps.markup.values import Block, Decoded, Format, Limits, ParsedDocument, Skipped, Warning_
from apps.markup.words import count_words

_FORMATS: dict[str, Format] = {
    "md": "markdown",
    "markdown": "markdown",
    "mdx": "mdx",
    "rst": "rst",
}


def format_of(path: str) -> Format:
    """The format that the extension of a path names; everything unknown is plain text."""
    name = path.rpartition("/")[2]
    return _FORMATS.get(name.rpartition(".")[2].lower(), "text") if "." in name else "text"


def parse(decoded: Decoded, path: str, limits: Limits) -> ParsedDocument | Skipped:
    """Structure of a text. Never raises for content; Skipped when it is nested deeper than ``limits.max_nesting``."""
    kind = format_of(path)
    return parse_markdown(decoded, path, kind, limits)


def parse_markdown(decoded: Decoded, path: str, kind: Format, limits: Limits) -> ParsedDocument | Skipped:
    text = decoded.text
    raw = text.encode()
    starts = line_starts(raw)
    front = read_front_matter(text, path, limits)
    body_line = front.body_line
    last_line = line_count(text)
    body_start = starts[body_line - 1] if body_line <= last_line else len(raw)
    removed: list[tuple[int, int]] = []
    warnings = [*decoded.warnings, *front.warnings]
    seen = text
    hidden = starts[front.hidden_lines] if front.hidden_lines < len(starts) else len(raw)
    if hidden:
        hidden = min(hidden, len(raw))
        seen = blank(raw[:hidden]).decode() + raw[hidden:].decode()
    tree = read_events(seen, raw, starts, limits.max_nesting)
    if isinstance(tree, Skipped):
        return tree
    if front.hidden_lines >= body_line:
        _add_header(tree.blocks, front, starts)
    fill_gaps(tree, raw, body_line, last_line)
    html = collect_html(tree, raw, ())
    opening = next((each.start_line for each in tree.headings if each.text and not each.nested), last_line + 1)
    lead = bool(tree.blocks) and tree.blocks[0].start_line < opening
    headings, sections = lay_out(tree.headings, starts, body_line, last_line, len(raw), lead=lead)
    links, assets = collect_links(tree, raw, sections, html)
    warnings += tree.warnings
    words = count_words(raw[body_start:] if body_start else raw)
    return ParsedDocument(
        path=path,
        format=kind,
        text=text,
        encoding=decoded.encoding,
        encoding_guessed=decoded.guessed,
        replaced_characters=decoded.replaced,
        frontmatter=front.metadata,
        frontmatter_values=front.values,
        frontmatter_span=front.span,
        body_start_byte=body_start,
        title=front.title or first_title(tree.headings),
        heading_tree=tuple(headings),
        sections=tuple(sections),
        code_blocks=tuple(tree.code_blocks),
        tables=tuple(tree.tables),
        links=(*front.links, *links),
        assets=tuple(assets),
        anchors=unique([*(each.anchor for each in headings), *(each.anchor for each in tree.items), *html.anchors]),
        blocks=tuple(tree.blocks),
        items=tuple(tree.items),
        code_refs=tuple(tree.code_refs),
        footnotes=tuple(tree.footnotes),
        word_count=words,
        line_count=last_line,
        empty=not words,
        warnings=in_line_order(warnings),
        removed_spans=tuple(removed),
        hidden_spans=tuple(html.comments),
        tag_spans=tuple(html.tags),
        footnote_references=tuple(tree.footnote_references),
    )


def blank(raw: bytes) -> bytes:
    """The same number of bytes and lines without anything to see."""
    return raw.translate(_BLANKED)


_BLANKED = bytes(0x0A if code == 0x0A else 0x20 for code in range(256))


def unique(names: Iterable[str]) -> tuple[str, ...]:
    """Names without repetition, first places kept."""
    return tuple(dict.fromkeys(names))


def in_line_order(warnings: list[Warning_]) -> tuple[Warning_, ...]:
    return tuple(sorted(warnings, key=lambda each: (each.line, each.column)))


def _add_header(blocks: list[Block], front: FrontMatter, starts: list[int]) -> None:
    """The lines of a broken front matter block, as they stand, before everything else."""
    last = front.hidden_lines
    blocks.insert(0, Block("header", 1, last, 0, starts[last] - 1))
