"""Between values and rows: the same facts in both forms."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

from apps.knowledge_graph.models import CanonicalPage, CrossSourceReference, Edge, Evidence, Node
from apps.knowledge_graph.resolution import names_of
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

_HEADER_FIELDS = ("title", "summary", "identifier", "project", "project_line")
_HEADER_LISTS = ("aliases", "owners", "tags")
NODE_COMPARED = ("node_type", "label", "status", "priority", "page_id", "payload")
EDGE_COMPARED = ("weight", "provenance", "type_source", "page_id")
EVIDENCE_IDENTITY = ("provenance", "mode", "target", "stated_type", "field", "raw", "label", "anchor", "embed")
EVIDENCE_COMPARED = (
    *EVIDENCE_IDENTITY, "heading_path", "line", "column", "weight", "problem", "outcome", "rivals", "fallback_uid",
    "edge_uid", "wanted",
)  # fmt: skip
EVIDENCE_SILENT = ("version_hash", "ordinal")
"""Of the document, not of the occurrence: kept up to date without a state of its own in the past."""
PAGE_COMPARED = (
    "path", "uid", "node_type", "label", "status", "header", "header_state", "bears", "names", "problems",
    "version_hash", "header_hash", "projector",
)  # fmt: skip


def header_json(page: Page) -> dict[str, Any]:
    header = page.header
    found: dict[str, Any] = {name: getattr(header, name) for name in _HEADER_FIELDS}
    found |= {name: list(getattr(header, name)) for name in _HEADER_LISTS}
    return {**found, "others": dict(header.others), "priority": header.priority, "heading": page.body.heading}


def problems_json(problems: Sequence[Problem]) -> list[dict[str, Any]]:
    return [dataclasses.asdict(problem) for problem in problems]


def problems_of(row: CanonicalPage) -> list[Problem]:
    return [Problem(**entry) for entry in row.problems]


def page_columns(page: Page, *, bears: bool, projector: int) -> dict[str, Any]:
    return {
        "path": page.path,
        "uid": page.uid,
        "node_type": page.header.node_type,
        "label": page.label,
        "status": page.header.status,
        "header": header_json(page),
        "header_state": page.header_state,
        "bears": bears,
        "names": list(names_of(page)),
        "problems": problems_json(page.all_problems),
        "version_hash": page.version_hash,
        "header_hash": page.header_hash,
        "projector": projector,
    }


def page_value(row: CanonicalPage, *, document: UUID, live: bool, evidence: Sequence[Evidence]) -> Page:
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
    return Page(document, row.path, header, body, live, state, row.version_hash, row.header_hash)  # type: ignore[arg-type]


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


def node_row(value: NodeValue, *, source_id: int, page_id: int | None) -> Node:
    return Node(
        source_id=source_id,
        page_id=page_id,
        node_uid=value.uid,
        node_type=value.node_type,
        label=value.label,
        status=value.status,
        priority=value.priority,
        payload=dict(value.payload),
    )


def edge_row(value: EdgeValue, *, source_id: int, page_id: int | None) -> Edge:
    return Edge(
        source_id=source_id,
        page_id=page_id,
        from_uid=value.from_uid,
        to_uid=value.to_uid,
        edge_type=value.edge_type,
        weight=value.weight.quantize(Decimal("0.0001")),
        provenance=value.provenance,
        type_source=value.type_source,
    )


def evidence_row(value: EvidenceValue, *, source_id: int, page_id: int, ordinal: int) -> Evidence:
    occurrence = value.occurrence
    return Evidence(
        source_id=source_id,
        page_id=page_id,
        version_hash=value.version_hash,
        ordinal=ordinal,
        provenance=occurrence.provenance,
        mode=occurrence.mode,
        target=occurrence.target,
        stated_type=occurrence.stated,
        field=occurrence.field,
        heading_path=list(occurrence.heading_path),
        line=occurrence.line,
        column=occurrence.column,
        raw=occurrence.raw,
        anchor=occurrence.anchor,
        label=occurrence.label,
        embed=occurrence.embed,
        weight=occurrence.weight.quantize(Decimal("0.0001")) if occurrence.weight is not None else None,
        problem=occurrence.problem,
        outcome=value.outcome,
        rivals=list(value.rivals),
        fallback_uid=value.fallback_uid,
        edge_uid=value.edge_uid,
        wanted=list(value.wanted),
    )


def reference_row(value: CrossReference, *, source_id: int, page_id: int) -> CrossSourceReference:
    return CrossSourceReference(
        source_id=source_id,
        page_id=page_id,
        line=value.line,
        raw=value.raw,
        wanted_kind=value.source_kind or "",
        wanted_source=value.source,
        wanted_slug=value.slug,
        stated_type=value.stated,
        label=value.label,
        field=value.field,
    )
