"""What our own inline rules put over the text: wiki links, bare addresses, explicit anchors (``markup.md`` 5, 3.3)."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from apps.markup.rendering.resolved import Addresses
from apps.markup.values import Link, ParsedDocument


@dataclass(frozen=True, slots=True)
class Overlay:
    """HTML in place of a byte range of the text."""

    start: int
    end: int
    html: str
    text: str
    """The same without a link, for inside of one."""
    is_link: bool = True
    embed: str | None = None
    """Rendered content of an embedded document."""


def overlays(parsed: ParsedDocument, raw: bytes, addresses: Addresses) -> list[Overlay]:
    """All overlays of a document in source order, disjoint."""
    found = [
        _link(link, addresses)
        for link in parsed.links
        if link.origin == "body" and link.end_byte and (link.link_type == "wiki" or raw[link.start_byte] not in b"[<")
    ]
    for asset in parsed.assets:
        if asset.origin == "wiki":
            html = addresses.image(asset, in_link=False)
            inside = addresses.image(asset, in_link=True)
            found.append(Overlay(asset.start_byte, asset.end_byte, html, inside))
    for heading in parsed.heading_tree:
        written = f"{{#{heading.anchor}}}".encode()
        place = raw.rfind(written, heading.start_byte, heading.end_byte)
        if place >= 0 and not heading.text.endswith(written.decode()):
            found.append(Overlay(place, place + len(written), "", "", is_link=False))
    found.sort(key=lambda over: over.start)
    disjoint: list[Overlay] = []
    for over in found:
        if not disjoint or over.start >= disjoint[-1].end:
            disjoint.append(over)
    return disjoint


def _link(link: Link, addresses: Addresses) -> Overlay:
    text = escape(link.text, quote=False)
    embed = addresses.resolved(link).html if link.embed else None
    return Overlay(link.start_byte, link.end_byte, f"{addresses.opening(link)}{text}</a>", text, embed=embed)
