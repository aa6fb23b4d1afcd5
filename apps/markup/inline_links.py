"""From places in the tree to links and assets: written ones, bare addresses, wiki links, raw HTML (``markup.md`` 5)."""

from __future__ import annotations

import html
import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from apps.markup.building import fast
from apps.markup.events import Tree
from apps.markup.links import split_href
from apps.markup.raw_html import RawHtml
from apps.markup.values import Asset, Link, Section
from apps.markup.wikilinks import WikiLink, find_at, is_image, to_link

_URL = re.compile(rb'https?://[^\s<>"`\x00-\x20\x7f]+')
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
# Closing marks of prose in any script; a bracket stays when the address opened it.
_TRAILING = "?!.,:;*_~'\"\\>。，、；：！？”’」』）】》…"
_link = fast(Link)
_asset = fast(Asset)


def collect_html(tree: Tree, raw: bytes, extra: Sequence[tuple[int, int]]) -> RawHtml:
    """Comments, tags, links and anchors of raw HTML; ``extra`` are lines of JSX, which count for links only."""
    found = RawHtml()
    for start, end, parts in tree.html:
        if parts and sum(last - first for first, last in parts) != end - start:
            # A quote or list writes its own marks between the lines: they are no HTML.
            source = bytearray(b" " * end)
            for first, last in parts:
                source[first:last] = raw[first:last]
            found.read(bytes(source), start, end)
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
    starts = tree.starts
    wiki = _wiki_links(tree, raw)
    written = tree.links
    if wiki:
        written = _not_crossing(written, wiki)
    drafts = [(*each, "body") for each in written]
    if tree.urls:
        drafts += [(start, end, href, href, "body") for start, end, href in _bare_urls(tree, raw, wiki)]
    drafts += [(*each, "html") for each in found.links]
    if len(drafts) > len(written):
        drafts.sort(key=lambda each: each[0])
    ascii_only = raw.isascii()
    links: list[Link] = []
    section, section_end = -1, sections[0].start_byte if sections else 1 << 62
    for start, end, text, href, origin in drafts:
        while start >= section_end:
            section += 1
            section_end = sections[section + 1].start_byte if section + 1 < len(sections) else 1 << 62
        line = bisect_right(starts, start)
        before = starts[line - 1]
        column = start - before + 1 if ascii_only else len(raw[before:start].decode(errors="replace")) + 1
        last = line if end < starts[line] else bisect_left(starts, end)
        kind, path, query, fragment = split_href(href)
        links.append(
            _link(
                text, href, line, kind, path, query, fragment, "", "", False, origin, "",  # type: ignore[arg-type]
                section if section >= 0 else None, last, column, start, end,
            )
        )  # fmt: skip
    pictures = _not_crossing(tree.assets, wiki) if wiki else tree.assets
    assets = [_asset(alt, href, bisect_right(starts, start), start, end) for start, end, alt, href in pictures]
    if wiki or found.assets:
        _add_wiki(links, assets, wiki, tree, raw, sections)
        assets += [_asset(a, h, bisect_right(starts, s), s, e, "", "html") for s, e, a, h in found.assets]
        assets.sort(key=lambda each: each.start_byte)
    return links, assets


def _add_wiki(
    links: list[Link], assets: list[Asset], wiki: list[WikiLink], tree: Tree, raw: bytes, sections: Sequence[Section]
) -> None:
    starts = tree.starts
    section_starts = [each.start_byte for each in sections]
    for found in wiki:
        line, last = bisect_right(starts, found.start), bisect_left(starts, found.end)
        if is_image(found):
            width = found.alias if found.alias.isdigit() else ""
            alt = "" if width else found.alias
            assets.append(_asset(alt, found.target, line, found.start, found.end, width, "wiki"))
            continue
        column = len(raw[starts[line - 1] : found.start].decode(errors="replace")) + 1
        link = to_link(found, line, last, column=column, in_front_matter=False)
        section = bisect_right(section_starts, found.start) - 1
        links.append(_in_section(link, section if section >= 0 else None))
    if wiki:
        links.sort(key=lambda each: each.start_byte)


def _in_section(link: Link, section: int | None) -> Link:
    return _link(
        link.text, link.href, link.line, link.link_type, link.path, link.query, link.fragment, link.alias,
        link.rel_type, link.embed, link.origin, link.field, section, link.end_line, link.column, link.start_byte,
        link.end_byte,
    )  # fmt: skip


def _wiki_links(tree: Tree, raw: bytes) -> list[WikiLink]:
    found: list[WikiLink] = []
    last = -1
    for place, limit in tree.wiki:
        if place >= last and (link := find_at(raw, place, limit, tree.masks)):
            found.append(link)
            last = link.end
    return found


def _not_crossing(written: list[tuple[int, int, str, str]], wiki: list[WikiLink]) -> list[tuple[int, int, str, str]]:
    """Links that share no character with a wiki link, which is the stronger of the two."""
    ends = [each.end for each in wiki]
    kept = []
    for link in written:
        number = bisect_right(ends, link[0])
        if number == len(wiki) or wiki[number].start >= link[1]:
            kept.append(link)
    return kept


def _bare_urls(tree: Tree, raw: bytes, wiki: list[WikiLink]) -> list[tuple[int, int, str]]:
    found: list[tuple[int, int, str]] = []
    barriers = sorted(
        [each[0] for each in tree.links] + [each.start for each in wiki] + [each[0] for each in tree.html]
    )
    ends = [each.end for each in wiki]
    last = -1
    for start, limit in tree.urls:
        if start < last or (start and (raw[start - 1 : start].isalnum() or raw[start - 1] == 0x5F)):
            continue
        number = bisect_right(ends, start)
        if number < len(wiki) and wiki[number].start <= start:
            continue
        barrier = bisect_right(barriers, start)
        limit = max(limit, start + 1) if limit > start else len(raw)
        if barrier < len(barriers):
            limit = min(limit, barriers[barrier])
        match = _URL.match(raw, start, limit)
        if not match:
            continue
        address = _without_tail(match[0].decode(errors="ignore"))
        if address.endswith("//"):
            continue
        last = start + len(address.encode())
        found.append((start, last, html.unescape(_ESCAPED.sub(r"\1", address)) if "\\" in address else address))
    return found


def _without_tail(address: str) -> str:
    """The address without the punctuation of the sentence around it."""
    surplus = {mark: address.count(mark) - address.count(opening) for opening, mark in ("()", "[]", "{}")}
    end = len(address)
    while end:
        mark = address[end - 1]
        if surplus.get(mark, 0) > 0:
            surplus[mark] -= 1
        elif mark not in _TRAILING:
            break
        end -= 1
    return address[:end]
