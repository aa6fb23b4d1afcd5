"""A stored document as its preview shows it: safe HTML, links and pictures resolved, embedded documents drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from django.conf import settings

from apps.collections.embeds import Answer, Shown, load_shown
from apps.collections.models import Document, LinkState
from apps.markup.parsing import parse
from apps.markup.rendering import render, render_source
from apps.markup.rendering.contents import RENDERED_CHARACTERS, TocEntry, contents
from apps.markup.rendering.kept import KeptPages
from apps.markup.rendering.resolved import Resolved
from apps.markup.values import Asset, Decoded, Limits, Link, ParsedDocument, Skipped

EMBED_DEPTH = 3
DRAWN_EMBEDS = 40
"""Embedded documents of one page; further ones are links."""

_kept = KeptPages()


@dataclass(frozen=True, slots=True)
class PageBody:
    """``html`` is safe HTML made by ``apps.markup.rendering`` and by nothing else."""

    html: str
    toc: Sequence[TocEntry]
    has_heading: bool
    """Whether the text brings a level-1 heading of its own; without one the page shows the title."""


def page_body(document: Document) -> PageBody:
    """The preview of a document that the reader may read. Links never leave its collection, so neither do embeds."""
    headings = [row for row in document.parsed.get("heading_tree", ()) if not row.get("nested")]
    drawn = document.format in ("markdown", "mdx", "rst") and len(document.text) <= RENDERED_CHARACTERS
    return PageBody(
        html=_Page(document).html() if drawn else source_html(document.text, document.source_key),
        toc=contents(headings),
        has_heading=drawn and any(row["level"] == 1 for row in headings),
    )


def source_html(text: str, key: str) -> str:
    """Any text line by line, with the ids ``L1``, ``L2``, …"""
    return render_source(text, key)


class _Page:
    """One page with all that it embeds, drawn depth first."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.images = settings.COGRAPH.external_images
        self.shown = load_shown(document, depth=EMBED_DEPTH)
        self.left = DRAWN_EMBEDS
        self.characters = RENDERED_CHARACTERS

    def html(self) -> str:
        own = self.shown[self.document.pk]
        if any(answer.embed for answer in own.answers.values()):
            return self._rendered(own, chain=(own.id,)) or source_html(own.text, own.key)
        key = (own.key, own.content_hash, own.address, tuple(sorted(own.answers.items())), self.images)
        page = _kept.get(key)
        if page is None:
            page = self._rendered(own, chain=(own.id,)) or source_html(own.text, own.key)
            _kept.put(key, page)
        return page

    def _rendered(self, shown: Shown, *, chain: tuple[Any, ...], part: str = "") -> str | None:
        """The HTML of a document, or of one of its sections within another page; None when there is nothing to draw."""
        embedded = len(chain) > 1
        parsed = _parsed(shown.text, shown)
        if embedded and parsed is not None and part:
            piece = section_of(parsed, part)
            parsed = _parsed(piece, shown) if piece else None
        if parsed is None:
            return None

        def resolve(link: Link | Asset) -> Resolved:
            is_asset = isinstance(link, Asset)
            answer = shown.answers.get(("" if is_asset else link.link_type, link.href))  # type: ignore[union-attr]
            if answer is None:
                return Resolved(None, "broken", "not looked up yet: links are resolved after an upload")
            drawn = None
            if not is_asset and link.embed:  # type: ignore[union-attr]
                drawn = self._embedded(answer, link.fragment, chain)  # type: ignore[union-attr]
                if answer.document is None:
                    # What cannot be drawn gives no hint why.
                    return Resolved(None, "broken", "cannot be shown here")
            return resolved(answer, html=drawn)

        return render(parsed, resolve, images=self.images, embedded_at=shown.address if embedded else "")

    def _embedded(self, answer: Answer, fragment: str, chain: tuple[Any, ...]) -> str | None:
        target = self.shown.get(answer.document) if answer.document else None
        if target is None or target.id in chain or len(chain) > EMBED_DEPTH or self.left <= 0:
            return None
        if len(target.text) > self.characters:
            return None
        self.left -= 1
        self.characters -= len(target.text)
        part = answer.anchor or (fragment if fragment.startswith("^") else "")
        return self._rendered(target, chain=(*chain, target.id), part=part)


def _parsed(text: str, shown: Shown) -> ParsedDocument | None:
    parsed = parse(Decoded(text, shown.encoding), shown.key, Limits())
    return None if isinstance(parsed, Skipped) else parsed


def section_of(parsed: ParsedDocument, anchor: str) -> str:
    """The source of the section at ``anchor`` with what stands below it, or of the item ``^id``; nothing if neither."""
    lines = parsed.text.split("\n")
    if anchor.startswith("^"):
        found = next((item.line for item in parsed.items if item.id == anchor[1:]), None)
        return lines[found - 1] if found else ""
    for heading in parsed.heading_tree:
        if heading.anchor == anchor:
            return "\n".join(lines[heading.start_line - 1 : heading.section_end_line])
    return ""


def resolved(answer: Answer, *, html: str | None = None) -> Resolved:
    """What the renderer is told about one link or picture."""
    fragment = f"#{quote(answer.anchor)}" if answer.anchor else ""
    if answer.state == LinkState.EXTERNAL:
        if answer.address:
            return Resolved(answer.address, "external")
        return Resolved(None, "external", "names a page of another source")
    if answer.state == LinkState.RESOLVED and answer.address:
        return Resolved(answer.address + fragment, "resolved", html=html)
    if answer.state == LinkState.ANCHOR_MISSING and answer.address:
        near = f"; the nearest is {answer.suggestion}" if answer.suggestion else ""
        return Resolved(answer.address, "anchor missing", f"no such section on that page{near}", html=html)
    if answer.state == LinkState.ASSET and answer.address:
        return Resolved(answer.address, "asset")
    return Resolved(None, "broken", reason_words(answer.state, answer.reason, answer.candidates, answer.suggestion))


def reason_words(state: str, reason: str, candidates: Sequence[str] = (), suggestion: str = "") -> str:
    """Why a link leads nowhere, as a sentence without its end."""
    near = f"; did you mean {suggestion}?" if suggestion else ""
    if state == LinkState.PENDING:
        return "not looked up yet: links are resolved after an upload"
    if state == LinkState.ANCHOR_MISSING:
        return f"no such section on that page{near}"
    return {
        "outside": "leads out of the collection",
        "ambiguous": f"several documents have this name: {', '.join(candidates)}",
        "unknown type": "the word before :: is no relation",
    }.get(reason, f"not found in this collection{near}")
