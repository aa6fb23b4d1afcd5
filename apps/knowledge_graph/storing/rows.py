"""Between values and rows: the same facts in both forms."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

from apps.knowledge_graph.models import Evidence
from apps.knowledge_graph.resolution import Answer, Question, names_of
from apps.knowledge_graph.values import (
    Body,
    CrossReference,
    EdgeValue,
    EvidenceValue,
    Header,
    NodeValue,
    Occurrence,
    Page,
    Problem,
)

_FOUR_PLACES = Decimal("0.0001")
_HEADER_FIELDS = ("title", "summary", "identifier", "project", "project_line")
_HEADER_LISTS = ("aliases", "owners", "tags")
NODE_COLUMNS = ("node_type", "label", "status", "priority", "payload")
EDGE_COLUMNS = ("weight", "provenance", "type_source", "payload")
EVIDENCE_IDENTITY = ("provenance", "mode", "target", "stated_type", "field", "raw", "label", "anchor", "embed")
EVIDENCE_COMPARED = (
    *EVIDENCE_IDENTITY, "line", "column", "heading_path", "weight", "problem", "outcome", "rivals", "fallback_uid",
    "edge_uid", "wanted",
)  # fmt: skip
EVIDENCE_SILENT = ("version_hash", "ordinal")
"""Of the document, not of the occurrence: kept up to date without a state of its own in the past."""
EVIDENCE_COLUMNS = (*EVIDENCE_COMPARED, *EVIDENCE_SILENT)
PAGE_COLUMNS = (
    "path", "uid", "node_type", "label", "status", "header", "header_state", "bears", "names", "problems",
    "version_hash", "header_hash", "projector",
)  # fmt: skip
Form = tuple[Any, ...]
"""The values of a row in the order of its columns above."""


class PageRow(NamedTuple):
    """A row of ``kb_pages``. ``crossing``: its text names pages of other sources."""

    id: int
    document: UUID
    live: bool
    crossing: bool
    path: str
    uid: str
    node_type: str
    label: str
    status: str
    header: dict[str, Any]
    header_state: str
    bears: bool
    names: list[str]
    problems: list[dict[str, Any]]
    version_hash: str
    header_hash: str
    projector: int

    @property
    def form(self) -> Form:
        return self[4:]


class NodeRow(NamedTuple):
    id: int
    node_uid: str
    page_id: int | None
    node_type: str
    label: str
    status: str
    priority: int
    payload: dict[str, Any]

    @property
    def form(self) -> Form:
        return self[3:]


class EdgeRow(NamedTuple):
    id: int
    edge_uid: str
    from_uid: str
    to_uid: str
    page_id: int | None
    weight: Decimal
    provenance: str
    type_source: str

    @property
    def form(self) -> Form:
        """Of an edge that is written, which has nothing in its payload. Guesses differ in their provenance."""
        return (*self[5:], {})


class EvidenceRow(NamedTuple):
    id: int
    page_id: int
    provenance: Any
    mode: Any
    target: str
    stated_type: str | None
    field: str
    raw: str
    label: str
    anchor: str
    embed: bool
    line: int
    column: int
    heading_path: list[str]
    weight: Decimal | None
    problem: Any
    outcome: Any
    rivals: list[str]
    fallback_uid: str | None
    edge_uid: str | None
    wanted: list[str]
    version_hash: str
    ordinal: int

    @property
    def form(self) -> Form:
        return self[2:]


def header_json(page: Page) -> dict[str, Any]:
    header = page.header
    found: dict[str, Any] = {name: getattr(header, name) for name in _HEADER_FIELDS}
    found |= {name: list(getattr(header, name)) for name in _HEADER_LISTS}
    return {**found, "others": dict(header.others), "priority": header.priority, "heading": page.body.heading}


def problems_json(problems: Sequence[Problem]) -> list[dict[str, Any]]:
    return [dataclasses.asdict(problem) for problem in problems]


def page_form(page: Page, *, bears: bool, projector: int) -> Form:
    return (
        page.path,
        page.uid,
        page.header.node_type,
        page.label,
        page.header.status,
        header_json(page),
        page.header_state,
        bears,
        list(names_of(page)),
        problems_json(page.all_problems),
        page.version_hash,
        page.header_hash,
        projector,
    )


def page_value(row: PageRow, evidence: Sequence[EvidenceRow]) -> Page:
    """The page of stored rows; ``evidence`` in the order of the text. Problems and references stay in their rows."""
    occurrences = [occurrence_value(each) for each in evidence]
    stored = row.header
    columns: dict[str, Any] = {name: stored[name] for name in _HEADER_FIELDS}
    columns |= {name: tuple(stored[name]) for name in _HEADER_LISTS}
    header = Header(
        uid=row.uid,
        node_type=row.node_type,
        status=row.status,
        priority=stored["priority"],
        others=stored["others"],
        occurrences=tuple(each for each in occurrences if each.in_header),
        **columns,
    )
    body = Body(stored["heading"], tuple(each for each in occurrences if not each.in_header))
    state = "stale_header" if row.header_state == "stale_header" else "current"
    return Page(row.document, row.path, header, body, row.live, state, row.version_hash, row.header_hash)  # type: ignore[arg-type]


def occurrence_value(row: Any) -> Occurrence:
    return Occurrence(
        provenance=row.provenance,
        mode=row.mode,
        target=row.target,
        line=row.line,
        column=row.column,
        raw=row.raw,
        stated=row.stated_type,
        field=row.field,
        heading_path=tuple(row.heading_path),
        anchor=row.anchor,
        label=row.label,
        embed=row.embed,
        weight=row.weight,
        problem=row.problem,
    )


def question_of(row: EvidenceRow) -> Question:
    return row.mode, row.target, row.stated_type, row.problem


def answer_of(row: EvidenceRow) -> Answer:
    return Answer(row.outcome, row.edge_uid, tuple(row.wanted), row.fallback_uid, tuple(row.rivals))


def node_form(value: NodeValue) -> Form:
    return (value.node_type, value.label, value.status, value.priority, dict(value.payload))


def edge_form(value: EdgeValue) -> Form:
    return (value.weight.quantize(_FOUR_PLACES), value.provenance, value.type_source, {})


def evidence_form(value: EvidenceValue, ordinal: int) -> Form:
    occurrence = value.occurrence
    weight = occurrence.weight
    return (
        occurrence.provenance,
        occurrence.mode,
        occurrence.target,
        occurrence.stated,
        occurrence.field,
        occurrence.raw,
        occurrence.label,
        occurrence.anchor,
        occurrence.embed,
        occurrence.line,
        occurrence.column,
        list(occurrence.heading_path),
        weight.quantize(_FOUR_PLACES) if weight is not None else None,
        occurrence.problem,
        value.outcome,
        list(value.rivals),
        value.fallback_uid,
        value.edge_uid,
        list(value.wanted),
        value.version_hash,
        ordinal,
    )


def evidence_row(value: EvidenceValue, *, source_id: int, page_id: int) -> Evidence:
    """As a row that is not stored; for readers who see other evidence than what is stored."""
    columns = dict(zip(EVIDENCE_COLUMNS, evidence_form(value, 0), strict=True))
    return Evidence(source_id=source_id, page_id=page_id, **columns)


REFERENCE_COLUMNS = (
    "page_id", "line", "raw", "wanted_kind", "wanted_source", "wanted_slug", "stated_type", "label", "field",
)  # fmt: skip


def reference_form(value: CrossReference, *, page_id: int) -> Form:
    return (
        page_id,
        value.line,
        value.raw,
        value.source_kind or "",
        value.source,
        value.slug,
        value.stated,
        value.label,
        value.field,
    )
