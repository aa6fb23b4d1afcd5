"""A stored document as the reader shows it: body, table of contents, findings of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apps.repos.models import RepositoryDocument


@dataclass(frozen=True, slots=True)
class TocEntry:
    level: int
    text: str
    anchor: str
    line: int


@dataclass(frozen=True, slots=True)
class PageBody:
    """``html`` is safe HTML made by ``apps.markup.rendering``; empty when the document is shown as lines of text."""

    html: str
    lines: Sequence[tuple[int, str]]
    toc: Sequence[TocEntry]
    notes: Sequence[str]


def page_body(document: RepositoryDocument) -> PageBody:
    return PageBody(
        html="",
        lines=numbered(document.text),
        toc=contents(document.structure),
        notes=notes_of(document),
    )


def numbered(text: str, first: int = 1) -> list[tuple[int, str]]:
    """The lines of a text with their numbers; a final line end makes no line of its own."""
    lines = text.split("\n")
    if lines and lines[-1] == "":
        lines.pop()
    return list(enumerate(lines, start=first))


def contents(structure: Mapping[str, Any]) -> list[TocEntry]:
    """The headings of levels 2 to 4, and those of level 1 when there are several."""
    headings = [
        TocEntry(int(row["level"]), str(row["text"]), str(row["anchor"]), int(row["line"]))
        for row in structure.get("headings", ())
        if row.get("anchor") and not row.get("nested")
    ]
    titles = sum(heading.level == 1 for heading in headings)
    return [heading for heading in headings if 2 <= heading.level <= 4 or (heading.level == 1 and titles > 1)]


def notes_of(document: RepositoryDocument) -> list[str]:
    """What a reader must know before reading: guessed encoding, cut parts, unread front matter, redaction, absence."""
    notes = [
        f"{document.path}, line {row.get('line', 1)}: {row['message']}"
        for row in document.warnings
        if isinstance(row, Mapping) and row.get("message")
    ]
    if document.redacted_count:
        notes.append(f"{document.redacted_count} secret-looking values of this file are shown as [redacted].")
    if document.absence:
        notes.append(f"This page is {document.get_absence_display()}.")
    return notes
