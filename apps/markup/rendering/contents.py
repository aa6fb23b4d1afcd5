"""The table of contents of a drawn page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

RENDERED_CHARACTERS = 2_000_000
"""A longer text is shown as lines: parsing and cleaning it would take longer than a reader waits."""


@dataclass(frozen=True, slots=True)
class TocEntry:
    level: int
    text: str
    anchor: str
    line: int


def contents(headings: Iterable[Mapping[str, Any]]) -> list[TocEntry]:
    """The headings of levels 2 to 4, and those of level 1 when there are several. Nested ones are left out."""
    entries = [
        TocEntry(int(row["level"]), str(row["text"]), str(row["anchor"]), int(row["line"]))
        for row in headings
        if row.get("anchor") and not row.get("nested")
    ]
    titles = sum(entry.level == 1 for entry in entries)
    return [entry for entry in entries if 2 <= entry.level <= 4 or (entry.level == 1 and titles > 1)]
