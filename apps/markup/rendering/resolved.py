"""What a link or image leads to, as the room that owns the document answers, and the tags made of that."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from html import escape
from typing import Literal
from urllib.parse import urlsplit

from apps.markup.anchors import match_fragment
from apps.markup.values import Asset, Link

_OTHER_HOST = re.compile(r"(?:https?:|ftp:)?//", re.IGNORECASE)
_SCHEME = re.compile(r"[\x00-\x20]*([A-Za-z][A-Za-z0-9+.-]*):")
SCHEMES = frozenset({"http", "https", "mailto", "ftp", "tel"})
_SIZE = re.compile(r"\d{1,4}%?")


@dataclass(frozen=True, slots=True)
class Resolved:
    """The answer to one link or image.

    With an ``address`` the link works (``anchor missing`` marks one whose fragment leads nowhere); without one it is
    shown as broken with its ``reason``. ``html`` is the rendered content of an embedded document, made by this
    package and nothing else; it replaces an embed that stands alone in its paragraph.
    """

    address: str | None = None
    state: Literal["resolved", "anchor missing", "asset", "external", "broken"] = "resolved"
    reason: str = ""
    html: str | None = None


Resolve = Callable[[Link | Asset], Resolved]


def as_written(link: Link | Asset) -> Resolved:
    """The answer when no room is asked: every address stays as the author wrote it."""
    return Resolved(link.href, "external" if _OTHER_HOST.match(link.href) else "resolved")


class Addresses:
    """Writes the opening tags of links and whole images."""

    def __init__(
        self,
        resolve: Resolve,
        anchors: Collection[str],
        images: Collection[str],
        *,
        labels: bool = False,
        page: str = "",
    ) -> None:
        """``labels``: what is no anchor of this document may be a label of another one, which the room knows.
        ``page``: the address of this document, when it is shown within another one.
        """
        self._page = page
        self._resolve = resolve
        self._labels = labels and resolve is not as_written
        self._anchors = frozenset(anchors)
        self._images = frozenset(host.lower() for host in images)

    def resolved(self, link: Link) -> Resolved:
        """The answer for a link; those within the document are settled here."""
        if link.link_type != "anchor" and not (link.link_type == "wiki" and not link.path):
            return self._resolve(link)
        if link.fragment.lower() in ("", "top"):
            return Resolved(self._page or f"#{link.fragment}")
        anchor = match_fragment(link.fragment, self._anchors)
        if anchor is None and self._labels:
            return self._resolve(link)
        if anchor is None:
            return Resolved(None, "broken", "no such section on this page")
        return Resolved(f"{self._page}#{anchor.replace('%', '%25')}")

    def opening(self, link: Link, title: str = "") -> str:
        """The ``<a ...>`` of a link."""
        answer = self.resolved(link)
        address = answer.address
        if address is not None and not _allowed(address):
            return "<a>"
        if address is None:
            reason = answer.reason or "not found"
            return f'<a class="broken" title="{escape(reason)}">'
        classes = []
        relation = ""
        if answer.state == "anchor missing":
            classes.append("anchor-missing")
            title = title or answer.reason or "no such section on that page"
        if _OTHER_HOST.match(address):
            classes.append("external")
            relation = ' rel="noopener noreferrer nofollow"'
        written = f' class="{" ".join(classes)}"' if classes else ""
        named = f' title="{escape(title)}"' if title else ""
        return f'<a href="{escape(address)}"{written}{named}{relation}>'

    def image(self, asset: Asset, *, title: str = "", width: str = "", height: str = "", in_link: bool) -> str:
        """A picture, or what stands for it: a link to another host, a broken mark, its text."""
        address: str | None = asset.href
        reason = ""
        alt = escape(asset.alt)
        if not _OTHER_HOST.match(asset.href) and not _SCHEME.match(asset.href):
            answer = self._resolve(asset)
            address, reason = answer.address, answer.reason or "not found"
        if address is None:
            return f'<span class="broken" title="{escape(reason)}">{alt or escape(asset.href)}</span>'
        if _OTHER_HOST.match(address) and not self._shown(address):
            # SECURITY: a picture from elsewhere tells its host who reads what, and when.
            text = alt or escape(address)
            if in_link:
                return f'<span class="external-image">{text}</span>'
            return f'<a href="{escape(address)}" class="external-image" rel="noopener noreferrer nofollow">{text}</a>'
        if not _allowed(address):
            return f'<span class="image-left-out">{alt}</span>'
        named = f' title="{escape(title)}"' if title else ""
        width = width or asset.width
        size = "".join(
            f' {name}="{value}"' for name, value in (("width", width), ("height", height)) if _SIZE.fullmatch(value)
        )
        return f'<img src="{escape(address)}" alt="{alt}"{named}{size}>'

    def _shown(self, address: str) -> bool:
        try:
            host = urlsplit(address).hostname or ""
        except ValueError:
            return False
        return host in self._images and not address.lower().startswith("ftp:")


def _allowed(address: str) -> bool:
    scheme = _SCHEME.match(address)
    return scheme is None or scheme.group(1).lower() in SCHEMES
