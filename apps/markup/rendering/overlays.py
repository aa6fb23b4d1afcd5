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


class Cursor:
    """Goes through overlays along with the events, which come in source order too."""

    def __init__(self, overlays: list[Overlay]) -> None:
        self._overlays = overlays
        self._number = 0
        self._written = -1

    def covering(self, start: int, end: int) -> Overlay | None:
        """The overlay in which the whole range lies; those that end before it are left behind."""
        while self._number < len(self._overlays) and self._overlays[self._number].end <= start:
            self._number += 1
        over = self.before(end)
        return over if over is not None and over.start <= start and end <= over.end else None

    def before(self, end: int) -> Overlay | None:
        """The current overlay if it begins before ``end``."""
        if self._number < len(self._overlays) and self._overlays[self._number].start < end:
            return self._overlays[self._number]
        return None

    def first_time(self) -> bool:
        """Whether the current overlay is met for the first time; from now on it is not."""
        if self._written >= self._number:
            return False
        self._written = self._number
        return True


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
