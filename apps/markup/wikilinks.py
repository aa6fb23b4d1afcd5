"""Wiki links: one inline rule for body and front matter (``markup.md`` 5.3)."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from apps.markup.values import Link

_MAX_CHARACTERS = 200
_BODY = re.compile(r"\[\[([^\[\]]+)\]\](?!\()")
_PARTS = re.compile(r"(?:([a-z][a-z0-9_-]*)::)?([^|#]*)(#[^|]*)?(?:\|(.*))?", re.DOTALL)
_NO_TARGET = re.compile(r'[-]|.*["$=<>{}\x00]', re.DOTALL)
# What a container writes before a continuation line, and what begins a block of its own there.
_LINE_BREAK = re.compile(r"[ \t]*\n[ \t]*(?:>[ \t]?)*[ \t]*")
_BLOCK_BEGIN = re.compile(r"\n[ \t>]*(?:[-*+][ \t]|\d{1,9}[.)][ \t]|#{1,6}[ \t]|\n)")
IMAGE_ENDINGS = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg", ".avif", ".bmp", ".ico")


class WikiLink(NamedTuple):
    """One ``[[...]]``. ``start`` and ``end`` are offsets in the unit of the finder; an embed begins at its ``!``."""

    start: int
    end: int
    href: str
    text: str
    target: str
    heading: str
    alias: str
    rel_type: str
    embed: bool


def find_in_text(text: str) -> Iterator[WikiLink]:
    """The wiki links of a plain string (a front matter value, a heading's text); offsets in characters."""
    place = text.find("[[")
    while place >= 0:
        found = _match(text, place)
        if found:
            yield found
            place = text.find("[[", found.end)
        else:
            place = text.find("[[", place + 1)


def without_brackets(text: str) -> str:
    """The text as a reader sees it: every wiki link by its alias or by what was written."""
    pieces, last = [], 0
    for link in find_in_text(text):
        pieces += [text[last : link.start], link.text]
        last = link.end
    return "".join([*pieces, text[last:]])


def find_at(raw: bytes, place: int, limit: int, masks: Sequence[tuple[int, int]]) -> WikiLink | None:
    """The wiki link whose ``[[`` stands at byte ``place`` and that ends before ``limit``; offsets in bytes.

    ``masks`` are the sorted byte ranges of code spans, raw HTML and autolinks: brackets inside of them are none.
    """
    # Four bytes a character at most, and as much again for the marks of containers before a continuation line.
    window = raw[place : min(limit, place + 4 * _MAX_CHARACTERS + 200)]
    hidden = bytearray(window)
    number = max(bisect_right(masks, (place, place)) - 1, 0)
    while number < len(masks) and masks[number][0] < place + len(window):
        start, end = masks[number]
        start, end = max(start - place, 0), min(end - place, len(window))
        if end > start:  # the mask before the place may end before it
            hidden[start:end] = b"\x00" * (end - start)
        number += 1
    before = raw[max(place - 4, 0) : place].decode(errors="ignore")
    lead = len(before)
    # Masked bytes stay one character each, so alias text is cut from the source by bytes.
    text = before + hidden.decode(errors="ignore")
    found = _match(text, lead)
    if found is None:
        return None
    length = len(text[lead : found.end].encode())
    start = place - (1 if found.embed else 0)
    if "\x00" in found.alias:
        source = window[: length - 2].decode(errors="replace")
        alias = _LINE_BREAK.sub(" ", source[source.index("|") + 1 :]).strip().strip("`")
        found = found._replace(alias=alias, text=alias)
    return found._replace(start=start, end=place + length)


def to_link(found: WikiLink, line: int, end_line: int, *, column: int, in_front_matter: bool, field: str = "") -> Link:
    """The value that documents keep."""
    return Link(
        text=found.text,
        href=found.href,
        line=line,
        link_type="wiki",
        path=found.target,
        fragment=found.heading,
        alias=found.alias,
        rel_type=found.rel_type,
        embed=found.embed,
        origin="frontmatter" if in_front_matter else "body",
        field=field,
        end_line=end_line,
        column=column,
        start_byte=0 if in_front_matter else found.start,
        end_byte=0 if in_front_matter else found.end,
    )


def is_image(found: WikiLink) -> bool:
    """Whether an embed shows a picture, which makes it an asset."""
    return found.embed and found.target.lower().endswith(IMAGE_ENDINGS)


def _match(text: str, place: int) -> WikiLink | None:
    match = _BODY.match(text, place)
    if not match or len(match[1]) > _MAX_CHARACTERS:
        return None
    slashes = 0
    while slashes < place and text[place - slashes - 1] == "\\":
        slashes += 1
    before = text[place - 1] if place else ""
    if slashes % 2 or before.isalnum() or before == "_":
        return None
    body = match[1]
    if "\n" in body:
        if body.count("\n") > 1 or _BLOCK_BEGIN.search(body):
            return None
        body = _LINE_BREAK.sub(" ", body)
    parts = _PARTS.fullmatch(body.replace("\\|", "|").strip())
    if not parts:
        return None
    rel_type, target, heading = parts[1] or "", parts[2].strip(), (parts[3] or "")[1:].strip()
    if not (target or heading) or _NO_TARGET.match(target) or "\x00" in heading:
        return None
    alias = (parts[4] or "").strip()
    href = parts[0].partition("|")[0].strip()
    embed = before == "!" and text[place - 2 : place - 1] != "\\"
    return WikiLink(place - embed, match.end(), href, alias or href, target, heading, alias, rel_type, embed)
