"""From a finished tree of any format to the ``ParsedDocument`` (``markup.md`` 4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from apps.markup.front_matter import FrontMatter
from apps.markup.inline_links import collect_html, collect_links
from apps.markup.mdx import Mdx
from apps.markup.outline import first_title, lay_out
from apps.markup.tree import Tree
from apps.markup.values import Decoded, Format, ParsedDocument, Warning_
from apps.markup.words import count_words


def assemble(
    decoded: Decoded,
    path: str,
    kind: Format,
    tree: Tree,
    front: FrontMatter,
    mdx: Mdx,
    more_anchors: Sequence[str] = (),
) -> ParsedDocument:
    """The document of a finished tree: gaps filled, sections laid out, links and assets collected."""
    raw, starts, text = tree.raw, tree.starts, decoded.text
    last_line = len(starts) - 1
    body_line = front.body_line
    body_start = starts[body_line - 1] if body_line <= last_line else len(raw)
    tree.fill_gaps(body_line, last_line)
    html = collect_html(tree, raw, mdx.jsx)
    headings, sections = lay_out(tree, body_line, last_line, len(raw))
    links, assets = collect_links(tree, raw, sections, html)
    warnings = [*decoded.warnings, *front.warnings, *mdx.warnings, *tree.warnings]
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
        anchors=unique(
            [*(each.anchor for each in headings), *(each.anchor for each in tree.items), *html.anchors, *more_anchors]
        ),
        blocks=tuple(tree.blocks),
        items=tuple(tree.items),
        code_refs=tuple(tree.code_refs),
        footnotes=tuple(tree.footnotes),
        word_count=words,
        line_count=last_line,
        empty=not words,
        warnings=in_line_order(warnings),
        removed_spans=tuple(sorted([*mdx.esm, *mdx.jsx])),
        hidden_spans=tuple(html.comments),
        tag_spans=tuple(html.tags),
        footnote_references=tuple(tree.footnote_references),
    )


def unique(names: Iterable[str]) -> tuple[str, ...]:
    """Names without repetition, first places kept."""
    return tuple(dict.fromkeys(names))


def in_line_order(warnings: list[Warning_]) -> tuple[Warning_, ...]:
    return tuple(sorted(warnings, key=lambda each: (each.line, each.column)))
