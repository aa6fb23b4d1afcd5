"""What raw HTML says: comments, tags, links, pictures and anchors (``markup.md`` 5.1, 8.1)."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field

# Alternatives exclude each other by their first character and a tag stops at the next "<": linear.
_PIECE = re.compile(rb"""<!--.*?(?:-->|\Z)|</?[A-Za-z][A-Za-z0-9.:-]*(?:[^<>"']|"[^"]*"|'[^']*')*>|</?>""", re.DOTALL)
_NAME = re.compile(r"</?([A-Za-z][A-Za-z0-9.:-]*)")
_ATTRIBUTE = re.compile(r"""([^\s"'<>/=]+)(?:\s*=\s*("[^"]*"|'[^']*'|[^\s"'=<>`]+))?""")
_TAG = re.compile(r"<[^<>]*>")


@dataclass(slots=True)
class RawHtml:
    """Findings in source order; offsets are bytes of the text. Links: start, end, text, href; assets: ... alt, src."""

    comments: list[tuple[int, int]] = field(default_factory=list)
    tags: list[tuple[int, int]] = field(default_factory=list)
    links: list[tuple[int, int, str, str]] = field(default_factory=list)
    assets: list[tuple[int, int, str, str]] = field(default_factory=list)
    anchors: list[str] = field(default_factory=list)

    def read(self, source: bytes, start: int, end: int, *, offset: int = 0) -> None:
        """Add what stands in ``source[start:end]``; ``offset`` is where ``source`` begins in the text."""
        for piece in _PIECE.finditer(source, start, end):
            if piece[0].startswith(b"<!--"):
                self.comments.append((piece.start() + offset, piece.end() + offset))
                continue
            self.tags.append((piece.start() + offset, piece.end() + offset))
            if b"=" in piece[0]:
                self._attributes(source, piece.start(), piece.end(), offset)

    def _attributes(self, source: bytes, start: int, end: int, offset: int) -> None:
        tag = source[start:end].decode(errors="replace")
        name = _NAME.match(tag)
        if not name or tag.startswith("</"):
            return
        element = name[1].lower()
        values: dict[str, str] = {}
        for attribute in _ATTRIBUTE.finditer(tag, name.end()):
            values.setdefault(attribute[1].lower(), html.unescape((attribute[2] or "").strip("\"'")))
        if values.get("id"):
            self.anchors.append(values["id"])
        if element == "a":
            if values.get("name"):
                self.anchors.append(values["name"])
            if "href" in values:
                self.links.append((start + offset, end + offset, _text_after(source, end), values["href"]))
        elif element == "img" and "src" in values:
            self.assets.append((start + offset, end + offset, values.get("alt", ""), values["src"]))


def _text_after(source: bytes, place: int) -> str:
    """Text between an opening ``<a>`` and its end tag, which is looked for within 2,000 bytes."""
    window = source[place : place + 2000]
    stop = window.lower().find(b"</a")
    inner = window[:stop].decode(errors="replace") if stop >= 0 else ""
    return " ".join(html.unescape(_TAG.sub("", inner)).split())
