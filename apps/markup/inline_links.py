"""From places in the tree to links and assets: written ones, bare addresses, wiki links, raw HTML (``markup.md`` 5)."""

from __future__ import annotations

import html
import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Literal

from apps.markup.links import split_href
from apps.markup.raw_html import RawHtml
from apps.markup.tree import Tree
from apps.markup.values import Asset, Link, Section
from apps.markup.wikilinks import WikiLink, find_at, is_image, to_link

_URL = re.compile(rb'https?://[^\s<>"`\x00-\x20\x7f]+')
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
# Closing marks of prose in any script; a bracket stays when the address opened it.
_TRAILING = "?!.,:;*_~'\"\\>”’…"
# Scripts without blanks go on with prose right behind their own marks.
_FULL_WIDTH_MARK = re.compile("[。，、；：！？」』）】》]")


def collect_html(tree: Tree, raw: bytes, extra: Sequence[tuple[int, int]]) -> RawHtml:
    """Comments, tags, links and anchors of raw HTML; ``extra`` are lines of JSX, which count for links only."""
    found = RawHtml()
    for start, end, parts in tree.html:
        if parts and sum(last - first for first, last in parts) != end - start:
            # A quote or list writes its own marks between the lines: they are no HTML.
            source = bytearray(b" " * (end - start))
            for first, last in parts:
                source[first - start : last - start] = raw[first:last]
            found.read(bytes(source), 0, end - start, offset=start)
        else:
            found.read(raw, start, end)
    for start, end in extra:
        lines = RawHtml()
        lines.read(raw, start, end)
        found.links += lines.links
        found.assets += lines.assets
        found.anchors += lines.anchors
    return found


def collect_links(
    tree: Tree, raw: bytes, sections: Sequence[Section], found: RawHtml
) -> tuple[list[Link], list[Asset]]:
    """All links and assets of the body in source order, each with the section that holds it."""
    links = tree.links
    if sections and sections[0].heading is None and not tree.lead:
        # Definitions before the first heading have no event, yet they make a section.
        links = [each._replace(section=(each.section or 0) + 1) for each in links]
    wiki = _wiki_links(tree, raw)
    pictures = tree.assets
    if wiki:
        links = [each for each in links if _free(each.start_byte, each.end_byte, wiki)]
        pictures = [each for each in pictures if _free(each[0], each[1], wiki)]
    starts = tree.starts
    assets = [Asset(alt, href, bisect_right(starts, start), start, end) for start, end, alt, href in pictures]
    places = _Places(tree, sections)
    written = len(links)
    if tree.urls:
        links = links + [places.link(start, end, href, href, "body") for start, end, href in _urls(tree, raw, wiki)]
    links = links + [places.link(*each, "html") for each in found.links]
    for each in wiki:
        if is_image(each):
            width = each.alias if each.alias.isdigit() else ""
            alt = "" if width else each.alias
            assets.append(Asset(alt, each.target, places.line(each.start), each.start, each.end, width, "wiki"))
        else:
            links.append(places.wiki_link(each))
    assets += [Asset(a, h, places.line(s), s, e, "", "html") for s, e, a, h in found.assets]
    if len(links) > written:
        links.sort(key=lambda each: each.start_byte)
    if len(assets) > len(pictures):
        assets.sort(key=lambda each: each.start_byte)
    return links, assets


class _Places:
    """Lines, columns and sections of byte offsets."""

    def __init__(self, tree: Tree, sections: Sequence[Section]) -> None:
        self._tree, self._starts, self._sections = tree, tree.starts, sections

    def line(self, start: int) -> int:
        return bisect_right(self._starts, start)

    def _section(self, start: int) -> int | None:
        number = bisect_right(self._sections, start, key=lambda each: each.start_byte) - 1
        return number if number >= 0 else None

    def link(self, start: int, end: int, text: str, href: str, origin: Literal["body", "html"]) -> Link:
        line, last = self.line(start), bisect_left(self._starts, end)
        kind, path, query, fragment = split_href(href)
        return Link(
            text, href, line, kind, path, query, fragment, origin=origin, section=self._section(start), end_line=last,
            column=self._tree.column(line, start), start_byte=start, end_byte=end,
        )  # fmt: skip

    def wiki_link(self, found: WikiLink) -> Link:
        line, last = self.line(found.start), bisect_left(self._starts, found.end)
        link = to_link(found, line, last, column=self._tree.column(line, found.start), in_front_matter=False)
        return link._replace(section=self._section(found.start))


def _wiki_links(tree: Tree, raw: bytes) -> list[WikiLink]:
    found: list[WikiLink] = []
    last = -1
    for place, limit in tree.wiki:
        if place >= last and (link := find_at(raw, place, limit, tree.masks)):
            found.append(link)
            last = link.end
    return found


def _free(start: int, end: int, wiki: list[WikiLink]) -> bool:
    """Whether a link shares no character with a wiki link, which is the stronger of the two."""
    number = bisect_right(wiki, start, key=lambda each: each.end)
    return number == len(wiki) or wiki[number].start >= end


def _urls(tree: Tree, raw: bytes, wiki: list[WikiLink]) -> list[tuple[int, int, str]]:
    """Bare addresses in running text: start, end, address. One ends before the next link, wiki link or tag."""
    found: list[tuple[int, int, str]] = []
    barriers = sorted(
        [each.start_byte for each in tree.links] + [each.start for each in wiki] + [each[0] for each in tree.html]
    )
    last = -1
    for start, end, limit in tree.urls:
        for match in _URL.finditer(raw, start, max(limit, end)):
            place = match.start()
            if place >= end:
                break
            if place < last or not _boundary(raw, place) or not _free(place, place + 1, wiki):
                continue
            number = bisect_right(barriers, place)
            stop = min(match.end(), barriers[number]) if number < len(barriers) else match.end()
            address = _without_tail(raw[place:stop].decode(errors="ignore"))
            if len(address) > len("https://"):
                last = place + len(address.encode())
                plain = _ESCAPED.sub(r"\1", address) if "\\" in address else address
                found.append((place, last, html.unescape(plain) if "&" in plain else plain))
    return found


def _boundary(raw: bytes, place: int) -> bool:
    before = raw[place - 1 : place]
    return not (before.isalnum() or before == b"_")


def _without_tail(address: str) -> str:
    """The address without the punctuation of the sentence around it."""
    if mark := _FULL_WIDTH_MARK.search(address):
        address = address[: mark.start()]
    surplus = {mark: address.count(mark) - address.count(opening) for opening, mark in ("()", "[]", "{}")}
    end = len(address)
    while end:
        last = address[end - 1]
        if surplus.get(last, 0) > 0:
            surplus[last] -= 1
        elif last not in _TRAILING:
            break
        end -= 1
    return address[:end]
