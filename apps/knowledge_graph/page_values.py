"""What the pages of graphs show, in the words and addresses of pages."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from apps.collections.models import Document
from apps.knowledge_graph.detail import NodeDetail
from apps.knowledge_graph.node_edges import ShownEdge, ShownEvidence
from apps.knowledge_graph.reader import Reader

if TYPE_CHECKING:
    from apps.access.sources import Source
    from apps.access.viewers import Viewer

SIGNS: dict[str, tuple[str, str]] = {
    "project": ("PR", "fill-warn"),
    "module": ("MO", "fill-1"),
    "decision": ("DE", "fill-3"),
    "runbook": ("RU", "fill-4"),
    "standard": ("ST", "fill-ok"),
    "incident": ("IN", "fill-bad"),
    "integration": ("IT", "fill-2"),
    "domain-concept": ("DC", "fill-5"),
    "rejected-approach": ("RE", "fill-6"),
    "unknown": ("??", "fill-none"),
}
"""Node type → its two letters and its colour: neither carries the meaning alone."""


BACKWARDS: dict[str, str] = {
    "implements": "is implemented by",
    "supersedes": "is superseded by",
    "decision_for": "is governed by",
    "depends_on": "is needed by",
    "uses": "is used by",
    "affects": "is affected by",
    "invalidated_by": "invalidates",
    "documented_by": "documents",
    "owned_by": "owns",
    "related_to": "is named as related by",
}
"""Edge type → how it reads from its far end."""

READ_FROM: dict[str, str] = {
    "frontmatter_supersedes": "supersedes in the header",
    "frontmatter_superseded_by": "superseded_by in the header",
    "frontmatter_typed": "a type in the header",
    "frontmatter_related": "related in the header",
    "wikilink": "the text",
}
"""Provenance → the place in a page that it means."""


@dataclass(frozen=True, slots=True)
class SourceLine:
    source: Any
    address: str
    nodes: int
    dangling: int
    edges: int
    revision: int
    changed_at: Any


def source_lines(reader: Reader, most: int) -> list[SourceLine]:
    """The reader's graphs with their numbers, by two queries; by name."""
    nodes = {
        row["source_id"]: row
        for row in reader.rows(
            "SELECT n.source_id, count(*) FILTER (WHERE NOT n.dangling) AS real, count(*) FILTER (WHERE n.dangling)"
            " AS dangling FROM {nodes} n WHERE n.source_id = ANY(%(sources)s::bigint[]) GROUP BY n.source_id",
            sources=list(reader.graphs),
        )
    }
    edges = {
        row["source_id"]: row["edges"]
        for row in reader.rows(
            "SELECT e.source_id, count(*) AS edges FROM {edges} e WHERE e.source_id = ANY(%(sources)s::bigint[])"
            " AND e.provenance <> 'inferred' GROUP BY e.source_id",
            sources=list(reader.graphs),
        )
    }
    lines = []
    for graph in reader.graphs.values():
        owner = graph.owner
        counted = nodes.get(graph.pk)
        if counted is None or not counted["real"]:
            continue
        base = f"/graph/repo/{owner.label}" if owner.kind == "repository" else f"/graph/collection/{owner.pk}"
        lines.append(
            SourceLine(
                owner,
                base,
                counted["real"],
                counted["dangling"],
                edges.get(graph.pk, 0),
                graph.revision,
                graph.changed_at,
            )
        )
    lines.sort(key=lambda line: (line.source.label.lower(), line.address))
    return lines[:most]


def newest_lines(source: Source, detail: NodeDetail) -> list[tuple[str, str]]:
    """Label and address of the pages that have replaced this one."""
    ends = detail.newest.ends if detail.newest else ()
    base = source.get_absolute_url()
    return [
        (end.node.label, f"{base}/files/{quote(end.path, safe='/~')}")
        if source.kind == "repository"
        else (end.node.label, f"{base}/documents/{end.document}")
        for end in ends
    ]


@dataclass(frozen=True, slots=True)
class Place:
    """Where an edge is said, with the address of the line."""

    evidence: ShownEvidence
    url: str

    @property
    def section(self) -> str:
        return " › ".join(self.evidence.section)


@dataclass(frozen=True, slots=True)
class EdgeLine:
    shown: ShownEdge
    places: Sequence[Place]

    @property
    def id(self) -> str:
        return edge_id(self.shown.edge.uid)

    @property
    def more(self) -> int:
        """Places that are not shown."""
        return self.shown.places - len(self.places)


def edge_id(uid: str) -> str:
    """The id of an edge on a page: what is written in slugs is not all allowed there."""
    return "cg-edge-" + hashlib.blake2b(uid.encode(), digest_size=6).hexdigest()


def edge_lines(viewer: Viewer, source: Source, edges: Sequence[ShownEdge]) -> list[EdgeLine]:
    """Edges of a node with their evidence; one query for the documents of a collection, none for a repository."""
    paths = {place.path for edge in edges for place in edge.evidence}
    documents: dict[str, Any] = {}
    if source.kind == "collection" and paths:
        rows: Any = Document.objects.visible_to(viewer).filter(collection=source.pk, source_key__in=paths)
        documents = dict(rows.values_list("source_key", "pk"))

    def url(place: ShownEvidence) -> str:
        if source.kind == "repository":
            return f"{source.get_absolute_url()}/files/{quote(place.path, safe='/~')}#L{place.line}"
        pk = documents.get(place.path)
        return f"{source.get_absolute_url()}/documents/{pk}?tab=raw#L{place.line}" if pk else ""

    return [EdgeLine(edge, tuple(Place(place, url(place)) for place in edge.evidence)) for edge in edges]
