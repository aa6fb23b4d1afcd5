"""One document, with its older versions where the newest header is broken, to a page or to none."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from uuid import UUID

from apps.knowledge_graph.naming import PAGE_ENDINGS
from apps.knowledge_graph.reading.body import read_body
from apps.knowledge_graph.reading.header import HeaderReading, read_header
from apps.knowledge_graph.values import Header, HeaderState, Page, Problem
from apps.markup.values import ParsedDocument


@dataclass(frozen=True, slots=True)
class OlderHeader:
    """An older version of a document: its header as it was read, and its hash."""

    reading: HeaderReading
    version_hash: str


@dataclass(frozen=True, slots=True)
class PageReading:
    """``page`` is None for a plain document; ``problems`` are then those that lint tells of it."""

    page: Page | None
    problems: tuple[Problem, ...] = ()


def may_be_page(path: str) -> bool:
    return path.lower().endswith(PAGE_ENDINGS)


def read_page(
    parsed: ParsedDocument,
    *,
    document: UUID,
    version_hash: str,
    live: bool = True,
    older: Callable[[], Iterable[OlderHeader]] = tuple,
) -> PageReading:
    """The page of ``parsed``. ``older`` gives its earlier versions, newest first; asked only when the header is broken.

    The nearest version whose header is not broken decides: a page lends its header, a plain one lends nothing.
    """
    if not may_be_page(parsed.path):
        return PageReading(None)
    reading = read_header(parsed)
    if reading.header is not None:
        page = Page(
            document, parsed.path, reading.header, read_body(parsed), live, "current", version_hash, version_hash
        )
        return PageReading(page)
    if reading.verdict == "plain":
        return PageReading(None)
    lent = lent_header(older())
    if lent is None:
        return PageReading(None, plain_problems(reading))
    header, header_hash = lent
    state: HeaderState = "stale_header"
    problems: tuple[Problem, ...] = ()
    if reading.fault is not None:
        kept = "; the header of the last readable version is kept"
        problems = (dataclasses.replace(reading.fault, message=f"{reading.fault.message}{kept}"),)
    body = read_body(parsed)
    page = Page(document, parsed.path, header, body, live, state, version_hash, header_hash, problems)
    return PageReading(page)


def lent_header(older: Iterable[OlderHeader]) -> tuple[Header, str] | None:
    for version in older:
        if version.reading.header is not None:
            # What was wrong with the older text stands in no line of the present one.
            header = dataclasses.replace(version.reading.header, problems=(), project_line=0)
            return header, version.version_hash
        if version.reading.verdict == "plain":
            return None
    return None


def plain_problems(reading: HeaderReading) -> tuple[Problem, ...]:
    """What is told of a document that never was a page."""
    if reading.hint is not None:
        return (reading.hint,)
    if reading.verdict == "broken" and reading.fault is not None:
        message = f"{reading.fault.message}; the document is no page"
        return (dataclasses.replace(reading.fault, severity="warning", message=message),)
    return ()
