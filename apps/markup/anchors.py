"""Anchors: one function for renderer, table of contents, link checker, chunks and permalinks (``markup.md`` 6)."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection
from functools import lru_cache
from urllib.parse import unquote

_VARIATION_SELECTORS = "\ufe0e\ufe0f"
_ASCII = bytes(0x2D if code == 0x20 else ord(chr(code).lower()) if code < 128 else code for code in range(256))
_ASCII_DROPPED = bytes(code for code in range(128) if not (chr(code).isalnum() or chr(code) in "_- "))
_KEPT = frozenset({"Nd", "Nl", "Pc"})


def slugify(text: str) -> str:
    """The anchor that a heading's plain text gives by itself, before it is made unique; never empty."""
    if text.isascii():
        return text.encode().translate(_ASCII, _ASCII_DROPPED).decode() or "section"
    return "".join(map(_keep, text.lower())) or "section"


@lru_cache(maxsize=4096)
def _keep(character: str) -> str:
    if character == " ":
        return "-"
    if character == "-":
        return character
    if character in _VARIATION_SELECTORS:  # category Mn, yet no part of the word: "⚙️" and "⚙" are one anchor
        return ""
    category = unicodedata.category(character)
    return character if category[0] in "LM" or category in _KEPT else ""


class Anchors:
    """The table of used anchors of one document; source order decides who keeps a base."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._next: dict[str, int] = {}

    def claim(self, base: str) -> str:
        """Take ``base``, or the first free of ``base-1``, ``base-2``, ... and return what was taken."""
        if base not in self._used:
            self._used.add(base)
            return base
        number = self._next.get(base, 1)
        while (anchor := f"{base}-{number}") in self._used:
            number += 1
        # The counter keeps 50,000 equal headings linear.
        self._next[base] = number + 1
        self._used.add(anchor)
        return anchor


def match_fragment(fragment: str, anchors: Collection[str]) -> str | None:
    """The true anchor that a fragment (as written in an address) or a wiki heading means; None when there is none."""
    decoded = unquote(fragment, errors="replace")
    for selector in _VARIATION_SELECTORS:
        decoded = decoded.replace(selector, "")
    if decoded in anchors:
        return decoded
    slug = slugify(decoded)
    return slug if decoded and slug in anchors else None
