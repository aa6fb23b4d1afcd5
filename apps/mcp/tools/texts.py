"""Reading text in pages: a cursor is bound to the content that it pages through, and pages joined are the source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from apps.access.rest.cursors import read_cursor, write_cursor
from apps.mcp.bounds import Room, fenced, slice_from, tokens_of
from apps.mcp.replies import Call

CUT_LINE = "The last line is cut at a character; it goes on at next_cursor."


@dataclass(frozen=True, slots=True)
class TextPage:
    """``notes`` tell of cuts; ``meta`` holds the range in characters."""

    block: str
    notes: list[str]
    next_cursor: str | None
    meta: dict[str, Any] = field(default_factory=dict)
    first: bool = True


def text_page(
    call: Call,
    text: str,
    *,
    bound_to: Mapping[str, Any],
    label: str = "",
    room: Room | None = None,
    advice: str = "",
    first_line: int = 1,
) -> TextPage:
    """The part of ``text`` that the call's cursor stands at. ``bound_to`` names the content (its hash).

    ``advice`` says how to read less. Raises BadRequest ``stale_cursor``.
    """
    question = call.question(**bound_to)
    position = read_cursor(call["cursor"], viewer=call.viewer, question=question)
    start = int(position[0]) if position else 0
    part = slice_from(text, start, room or call.room)
    before = text.count("\n", 0, part.start)
    lines = part.text.count("\n") + (0 if part.text.endswith("\n") or not part.text else 1)
    from_line = first_line + before
    notes = []
    whole = part.start == 0 and not part.more
    if not whole:
        notes.append(
            f"characters {part.start}-{part.end} of {part.total} (lines {from_line}-{from_line + max(0, lines - 1)};"
            f" {tokens_of(text)} tokens in all)."
        )
        if part.more and advice:
            notes.append(advice)
    if part.inside_line:
        notes.append(CUT_LINE)
    cursor = write_cursor([part.end], viewer=call.viewer, question=question) if part.more else None
    return TextPage(
        block=fenced(part.text, label),
        notes=notes,
        next_cursor=cursor,
        meta={
            "returned": part.end - part.start,
            "total": part.total,
            "range": {"start": part.start, "end": part.end, "total": part.total, "unit": "characters"},
            "lines": {"start": from_line, "end": from_line + max(0, lines - 1)},
            "tokens": tokens_of(text),
        },
        first=part.start == 0,
    )


def numbered(text: str, first_line: int, *, goes_on: bool) -> str:
    """``text`` with ``12<tab>`` before each line; ``12+<tab>`` before the rest of a line that began a page earlier."""
    joined = text[:-1] if text.endswith("\n") else text
    rows = []
    for place, line in enumerate(joined.split("\n")):
        mark = "+" if place == 0 and goes_on else ""
        rows.append(f"{first_line + place}{mark}\t{line}")
    return "\n".join(rows)
