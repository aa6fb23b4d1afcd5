"""The inside of a heading, link or picture: its events up to the end of the node, as plain text (``markup.md`` 3)."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from typing import Any

from apps.markup.anchors import slugify
from apps.markup.links import split_href
from apps.markup.tree import Events, HeadingDraft, Tree
from apps.markup.values import Link
from apps.markup.wikilinks import without_brackets

_EXPLICIT_ANCHOR = re.compile(r"\{#([^\s{}]+)\}\Z")
_new = tuple.__new__


class TooDeep(Exception):
    """Raised inside a reading when the limit of levels is passed."""


def read_label(tree: Tree, events: Events, inline_end: int, depth: int, section: int) -> str:
    """Plain text of a link or picture whose start was read, up to its end, which is consumed."""
    event, span = next(events)
    if "Text" in event and not tree.brackets:
        # Nine labels of ten are one piece of text.
        text: str = event["Text"]
        event, span = next(events)
        if "End" in event:
            return text
        return text + read_inline(tree, events, event, span, inline_end, depth, section, True)
    return read_inline(tree, events, event, span, inline_end, depth, section, True)


def read_alt(tree: Tree, events: Events, inline_end: int, depth: int, section: int) -> str:
    """Plain text of a picture: links and pictures written in it are shown nowhere, so they are none."""
    links, assets = len(tree.links), len(tree.assets)
    text = read_label(tree, events, inline_end, depth, section)
    del tree.links[links:], tree.assets[assets:]
    return text


def read_inline(
    tree: Tree, events: Events, event: Any, span: Any, inline_end: int, depth: int, section: int, linked: bool
) -> str:
    """Plain text from ``event`` to the end of the node that it stands in, which is consumed.

    ``linked``: inside a link or picture, where a bare address is no link of its own.
    """
    pieces: list[str] = []
    level = depth
    while True:
        if "Text" in event:
            content = event["Text"]
            pieces.append(content)
            if "://" in content and not linked:
                tree.urls.append((span["start"], span["end"], inline_end))
            if tree.brackets and "[" in content:
                tree.brackets_in_text(span["start"], span["end"], inline_end)
        elif "End" in event:
            if level == depth:
                return "".join(pieces)
            level -= 1
        elif "Start" in event:
            tag = event["Start"]
            if level >= tree.max_nesting:
                raise TooDeep
            start, end = span["start"], span["end"]
            if "Link" in tag:
                pieces.append(read_link(tree, events, tag["Link"], start, end, inline_end, level + 1, section))
            elif "Image" in tag:
                alt = read_alt(tree, events, inline_end, level + 1, section)
                tree.assets.append((start, end, alt, tag["Image"]["dest_url"]))
                pieces.append(alt)
            else:
                level += 1
        elif "Code" in event:
            pieces.append(event["Code"])
            tree.add_code_span(event["Code"], span["start"], span["end"])
        elif event == "SoftBreak" or event == "HardBreak":
            pieces.append(" ")
        elif "InlineHtml" in event:
            tree.add_tag(span["start"], span["end"])
        elif "FootnoteReference" in event:
            tree.footnote_references.append((span["start"], event["FootnoteReference"]))
        event, span = next(events)


def read_link(
    tree: Tree, events: Events, link: Any, start: int, end: int, inline_end: int, depth: int, section: int
) -> str:
    """Add a link of any kind, its content read to the end; returns its text."""
    kind, href = link["link_type"], link["dest_url"]
    if kind == "Email":
        href = f"mailto:{href}"
    elif kind == "Collapsed" and tree.raw[end : end + 2] == b"[]":
        end += 2  # The parser's range leaves the empty label out.
    if tree.brackets:
        tree.add_link_place(start, end, inline_end, automatic=kind in ("Autolink", "Email"))
    text = read_label(tree, events, inline_end, depth, section)
    line = bisect_right(tree.starts, start)
    link_type, path, query, fragment = split_href(href)
    tree.links.append(
        _new(Link, (
            text, href, line, link_type, path, query, fragment, "", "", False, "body", "", section,
            bisect_left(tree.starts, end), tree.column(line, start), start, end,
        ))
    )  # fmt: skip
    return text


def read_heading(
    tree: Tree, events: Events, level: int, first: int, last: int, start: int, end: int, section: int, nested: bool
) -> int:
    """Add a heading, its content read to the end; returns the section that goes on below it."""
    links_before, brackets_before = len(tree.links), len(tree.wiki)
    event, span = next(events)
    if "Text" in event and not tree.brackets and "://" not in event["Text"]:
        # Most headings are one piece of text.
        text = event["Text"]
        event, span = next(events)
        if "End" not in event:
            text += read_inline(tree, events, event, span, end, 1, section, False)
    else:
        text = read_inline(tree, events, event, span, end, 1, section, False)
    text = text.strip()
    if len(tree.wiki) > brackets_before:
        text = without_brackets(text)
    anchor = ""
    if text.endswith("}") and (explicit := _EXPLICIT_ANCHOR.match(text, max(text.rfind("{#"), 0))):
        written = tree.raw.rfind(explicit[0].encode(), start, end)
        if written >= 0 and tree.raw[written - 1 : written] != b"\\":
            text, anchor = text[: explicit.start()].rstrip(), explicit[1]
    anchor = tree.anchors.claim(anchor or slugify(text))
    if not text and not nested:
        # An empty heading opens no section: what it holds belongs to the one before.
        section -= 1
        if section < 0:
            section, tree.lead = 0, True
        for number in range(links_before, len(tree.links)):
            tree.links[number] = tree.links[number]._replace(section=section)
    stop = tree.starts[last] - 1
    tree.headings.append(
        _new(HeadingDraft, (level, text, anchor, first, last, start, stop if stop < end else end, nested, 0))
    )
    return section
