"""Sections of stored documents as units of reading: where they begin and end, and where a text may be cut. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import regex

MAX_CHARS = 8000
WRAPPER_SHARE = 0.6
WRAPPER_HEADINGS = 4

_FENCE = re.compile(r"[ \t]{0,3}(`{3,}|~{3,})")
_SENTENCE = regex.compile(r"(?<=[.!?])\s+|(?<=[。！？])")
_TABLE_ROW = re.compile(r"[ \t]*\|")
LONGEST_ANCHOR = 150
"""Bytes of an anchor that a location bears: lines alone tell a place as well, and a head may not outgrow its text."""


@dataclass(frozen=True, slots=True)
class SectionUnit:
    """Lines ``start`` to ``end`` (ends included) of a document; ``below`` are sub-sections left to pointers."""

    anchor: str
    heading_path: tuple[str, ...]
    start: int
    end: int
    below: tuple[SectionUnit, ...] = ()


def headings_of(structure: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The headings that open sections, of a repository's or a collection's document."""
    rows = structure.get("headings") or structure.get("heading_tree") or ()
    return [row for row in rows if row.get("text") and not row.get("nested")]


def unit_at(structure: Mapping[str, Any], lines: Sequence[str], line: int) -> SectionUnit:
    """The section that holds ``line``: whole with its sub-headings, or its own part when that is too much.

    Too much is more than 8,000 characters, or a heading over most of a file with several headings.
    """
    headings = headings_of(structure)
    total = len(lines)
    place = _holding(headings, line)
    if place is None:
        first = int(headings[0]["line"]) - 1 if headings else total
        return SectionUnit("", (), _body_start(structure), max(first, 1))
    return unit_of(headings, place, lines)


def unit_of(headings: Sequence[Mapping[str, Any]], place: int, lines: Sequence[str]) -> SectionUnit:
    heading = headings[place]
    start, end = int(heading["line"]), int(heading["section_end_line"])
    whole = SectionUnit(_anchor(heading), _path(headings, place), start, end)
    children = [
        number
        for number in range(place + 1, len(headings))
        if int(headings[number]["line"]) <= end and _parent(headings, number) == place
    ]
    if not children or (not _is_wrapper(heading, headings, len(lines)) and _length(lines, start, end) <= MAX_CHARS):
        return whole
    own_end = int(headings[children[0]]["line"]) - 1
    below = tuple(
        SectionUnit(
            _anchor(headings[number]),
            _path(headings, number),
            int(headings[number]["line"]),
            int(headings[number]["section_end_line"]),
        )
        for number in children
    )
    return SectionUnit(whole.anchor, whole.heading_path, start, max(own_end, start), below)


def text_of(lines: Sequence[str], unit: SectionUnit) -> str:
    """The unit's lines without blank ones at its ends."""
    return "\n".join(lines[unit.start - 1 : unit.end]).strip("\n")


class Cut(NamedTuple):
    """The beginning of a text. ``whole`` lines of it are complete, so that one reads on after them; ``shown`` are begun
    at least."""

    text: str
    whole: int
    shown: int


def cut_to_fit(text: str, size: int) -> Cut:
    """The longest beginning of ``text`` within ``size`` bytes that ends after a block.

    A block ends at a blank line outside a fence; where none fits, a line, then a sentence, then a character. So does a
    line that is longer than all that fits before it. A fence that is cut is closed again.
    """
    if len(text.encode()) <= size:
        count = text.count("\n") + 1
        return Cut(text, count, count)
    lines = text.split("\n")
    fence = ""
    used = 0
    after_block = after_line = 0
    closing_at: dict[int, str] = {0: ""}
    for number, line in enumerate(lines, start=1):
        opened = _FENCE.match(line)
        if opened and (not fence or (opened[1][0] == fence[0] and len(opened[1]) >= len(fence))):
            fence = "" if fence else opened[1]
        used += len(line.encode()) + 1
        closing = f"\n{fence}" if fence else ""
        if used - 1 + len(closing.encode()) > size:
            break
        after_line = number
        closing_at[number] = closing
        if not fence and (not line.strip() or (number < len(lines) and not lines[number].strip())):
            after_block = number
    kept = after_block if after_block and after_block * 2 >= after_line else after_line
    if not kept:
        return Cut(_cut_line(lines[0], size), 0, 1)
    held = "\n".join(lines[:kept])
    room = size - len(held.encode()) - 1
    is_long = kept == after_line and room > size // 2 and not closing_at[kept] and _is_prose(lines[kept])
    if is_long and (begun := _cut_line(lines[kept], room)):
        return Cut(f"{held}\n{begun}", kept, kept + 1)
    return Cut(held.rstrip("\n") + closing_at[kept], kept, kept)


def _is_prose(line: str) -> bool:
    return not _FENCE.match(line) and not _TABLE_ROW.match(line)


def _cut_line(line: str, size: int) -> str:
    best = 0
    for match in _SENTENCE.finditer(line):
        if len(line[: match.start()].encode()) > size:
            break
        best = match.start()
    if best:
        return line[:best]
    kept = line.encode()[:size].decode("utf-8", "ignore")
    boundary = max(
        (match.end() for match in regex.finditer(r"\X", line[: len(kept) + 1]) if match.end() <= len(kept)), default=0
    )
    return kept[:boundary]


def _holding(headings: Sequence[Mapping[str, Any]], line: int) -> int | None:
    found = None
    for place, heading in enumerate(headings):
        if int(heading["line"]) > line:
            break
        found = place
    return found


def _parent(headings: Sequence[Mapping[str, Any]], place: int) -> int | None:
    level = int(headings[place]["level"])
    for number in range(place - 1, -1, -1):
        if int(headings[number]["level"]) < level:
            return number
    return None


def _anchor(heading: Mapping[str, Any]) -> str:
    anchor = str(heading["anchor"])
    return anchor if len(anchor.encode()) <= LONGEST_ANCHOR else ""


def _path(headings: Sequence[Mapping[str, Any]], place: int) -> tuple[str, ...]:
    path = [str(headings[place]["text"])]
    above = _parent(headings, place)
    while above is not None:
        path.insert(0, str(headings[above]["text"]))
        above = _parent(headings, above)
    return tuple(path)


def _is_wrapper(heading: Mapping[str, Any], headings: Sequence[Mapping[str, Any]], total: int) -> bool:
    span = int(heading["section_end_line"]) - int(heading["line"]) + 1
    return len(headings) >= WRAPPER_HEADINGS and span > WRAPPER_SHARE * total


def _length(lines: Sequence[str], start: int, end: int) -> int:
    return sum(len(line) + 1 for line in lines[start - 1 : end])


def _body_start(structure: Mapping[str, Any]) -> int:
    span = structure.get("frontmatter_lines") or structure.get("frontmatter_span")
    return int(span[1]) + 1 if span else 1
