"""Sections of a stored document: by anchor, with their lines and what they cost to read. Pure values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apps.markup.anchors import match_fragment
from apps.mcp.bounds import one_line
from apps.mcp.errors import ToolError

SHOWN = 50


@dataclass(frozen=True, slots=True)
class Section:
    """Lines count from 1, the last one belongs to the section."""

    anchor: str
    title: str
    level: int
    start_line: int
    end_line: int
    tokens: int


def split_lines(text: str) -> list[str]:
    """By line feeds alone, ends kept: what counts as a line everywhere in the portal."""
    lines = text.split("\n")
    kept = [line + "\n" for line in lines[:-1]]
    return [*kept, lines[-1]] if lines[-1] else kept


def sections_of(headings: Sequence[Mapping[str, Any]], text: str) -> list[Section]:
    """The sections that headings open; a heading inside a list or a quote opens none."""
    lines = split_lines(text)
    before = [0]
    for line in lines:
        before.append(before[-1] + len(line.encode("utf-8", "replace")))
    found = []
    for heading in headings:
        if heading.get("nested") or not heading.get("anchor"):
            continue
        start = min(max(1, int(heading.get("line") or 1)), len(lines) or 1)
        end = min(max(start, int(heading.get("section_end_line") or start)), len(lines) or 1)
        size = before[min(end, len(lines))] - before[min(start - 1, len(lines))]
        found.append(
            Section(str(heading["anchor"]), str(heading["text"]), int(heading["level"]), start, end, -(-size // 3))
        )
    return found


def pick(sections: Sequence[Section], wanted: str, path: str) -> Section:
    """The section that ``wanted`` names, by anchor or by heading. Raises ToolError listing at most 50."""
    anchors = {section.anchor: section for section in sections}
    anchor = match_fragment(wanted.removeprefix("#"), anchors)
    if anchor is not None:
        return anchors[anchor]
    for section in sections:
        if section.title.casefold() == wanted.strip().casefold():
            return section
    if not sections:
        raise ToolError("not_found", f"{one_line(path)} has no sections; read it without one")
    listed = ", ".join(one_line(section.anchor, 60) for section in sections[:SHOWN])
    more = f" (+{len(sections) - SHOWN} more)" if len(sections) > SHOWN else ""
    raise ToolError("not_found", f"{one_line(path)} has no such section. Sections: {listed}{more}")


def text_of(section: Section, text: str) -> str:
    return "".join(split_lines(text)[section.start_line - 1 : section.end_line])


def listing(sections: Sequence[Section], path: str) -> list[str]:
    """The sections as lines that a reading tool takes back, smaller ones to read instead of the whole."""
    if not sections:
        return []
    top = min(section.level for section in sections)
    lines = [f"sections (read one with section=…; {len(sections)} in {one_line(path)}):"]
    lines += [
        f"{'  ' * min(section.level - top, 5)}- {one_line(section.anchor, 80)} · {one_line(section.title, 80)}"
        f" · {section.tokens} tokens"
        for section in sections[:SHOWN]
    ]
    if len(sections) > SHOWN:
        lines.append(f"+{len(sections) - SHOWN} more sections")
    return lines
