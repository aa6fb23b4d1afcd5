"""Safe HTML (``markup.md`` 9): the one place of the product that turns content into markup.

The same document, answers and allowed hosts give the same bytes, so pages are cached under the document's hash and
`RENDERER_VERSION`.
"""

from __future__ import annotations

from collections.abc import Collection

from apps.markup.rendering.cleaning import clean
from apps.markup.rendering.code import source_page
from apps.markup.rendering.markdown import MarkdownPage
from apps.markup.rendering.resolved import Addresses, Resolve, Resolved, as_written
from apps.markup.values import ParsedDocument

RENDERER_VERSION = "3"
"""Changes whenever the same input would give other bytes; part of every cache key."""

__all__ = ["RENDERER_VERSION", "Resolve", "Resolved", "render", "render_source"]


def render(
    parsed: ParsedDocument, resolve: Resolve = as_written, *, images: Collection[str] = (), embedded_at: str = ""
) -> str:
    """The page of a document as safe HTML.

    ``resolve`` is asked for every link that leaves the document and every image that is not from another host;
    ``images`` are the host names from which pictures may be shown. Block elements carry ``data-line`` and ``data-end``
    (lines of the file), headings their anchors. ``embedded_at`` is the address of the document when it is drawn within
    another one: then it has no ids and lines, and its links to itself lead there.
    """
    embedded = bool(embedded_at)
    if parsed.format in ("markdown", "mdx"):
        addresses = Addresses(resolve, parsed.anchors, images, page=embedded_at)
        return clean(MarkdownPage(parsed, addresses).render(), embedded=embedded)
    if parsed.format == "rst":
        # docutils is large and rarely needed.
        from apps.markup.rendering.rst import RstPage

        addresses = Addresses(resolve, parsed.anchors, images, labels=True, page=embedded_at)
        return clean(RstPage(parsed, addresses).render(), embedded=embedded)
    return clean(source_page(parsed.text, parsed.path), embedded=embedded)


def render_source(text: str, path: str, first: int = 1) -> str:
    """Any text as it stands, line by line with the ids ``L1``, ``L2``, ..., highlighted by its name. ``first`` is the
    number of its first line."""
    return clean(source_page(text, path, first))
