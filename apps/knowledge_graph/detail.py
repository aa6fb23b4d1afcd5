"""What faces show of one node, as values: its edges, the places that say so, what has replaced it, its findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import UUID

from apps.access.errors import NotFound
from apps.indexing.findings import SEVERITIES
from apps.knowledge_graph.crossing import CrossLink, cross_links
from apps.knowledge_graph.lint import lint_seen
from apps.knowledge_graph.models import GraphSource
from apps.knowledge_graph.node_edges import Position, ShownEdge, edges_of_node
from apps.knowledge_graph.reader import Overlay, Reader, SeenNode, json_of, node_of
from apps.knowledge_graph.vocabulary import EDGE_TYPES
from apps.knowledge_graph.walks import Newest, newest

if TYPE_CHECKING:
    from apps.access.sources import Source
    from apps.access.viewers import Viewer

EDGES, MOST_EDGES = 100, 400
"""Edges that are shown of a node in each direction."""
FINDINGS = 50
"""Findings that are shown of a page, the worst first: a page may hold ten thousand broken links."""
_WORST_FIRST = f"array_position(ARRAY[{', '.join(repr(name) for name in SEVERITIES)}], severity::text), line"


@dataclass(frozen=True, slots=True)
class NodeDetail:
    """A node with what a reader may know of it. ``header`` is empty while it dangles. Of its edges the best are there,
    in the order of walks, sorted by type and uid; ``degrees`` say how many begin and end here within the types asked
    for."""

    node: SeenNode
    path: str
    document: UUID | None
    header: Mapping[str, Any]
    header_state: str
    outgoing: tuple[ShownEdge, ...]
    incoming: tuple[ShownEdge, ...]
    degrees: tuple[int, int]
    outgoing_end: Position | None
    """Behind which there are more outgoing edges."""
    incoming_end: Position | None
    cross_links: tuple[CrossLink, ...]
    newest: Newest | None
    findings: tuple[Mapping[str, Any], ...] = field(default=())
    findings_total: int = 0
    """How many there are, shown or not."""


def node_detail(
    viewer: Viewer,
    source: Source,
    reader: Reader,
    graph: GraphSource | None,
    uid: str,
    *,
    types: Sequence[str] = (),
    most: int = EDGES,
) -> NodeDetail:
    """One node, with at most ``most`` edges of ``types`` (none: of all) in each direction. Raises NotFound alike for
    hidden, purged and invented uids that nothing in view links."""
    if graph is None:
        raise NotFound
    rows = reader.rows(
        "SELECT n.*, p.path, p.header, p.header_state, COALESCE(p.repository_document_id, p.document_id) AS document,"  # noqa: S608 - of constants
        ' (SELECT json_agg(f ORDER BY f.line) FROM (SELECT rule, severity, path, line, "column", message, hint'
        f" FROM kb_lint_findings WHERE page_id = n.page_id ORDER BY {_WORST_FIRST} LIMIT {FINDINGS}) f) AS findings,"
        " (SELECT count(*) FROM kb_lint_findings WHERE page_id = n.page_id) AS findings_total,"
        " (SELECT json_agg(r ORDER BY r.line, r.id) FROM kb_cross_source_references r WHERE r.page_id = n.page_id)"
        " AS crossing FROM {nodes} n LEFT JOIN kb_pages p ON p.id = n.page_id"
        " WHERE n.source_id = %(source)s AND n.node_uid = %(uid)s",
        source=graph.pk,
        uid=uid,
    )
    if not rows:
        raise NotFound
    row = rows[0]
    node = node_of(row)
    overlay = reader.overlays.get(graph.pk) or Overlay()
    edges = edges_of_node(reader, graph, uid, types=types, most=most)
    outgoing, incoming = ([edge for edge in edges if edge.position.outward is way] for way in (True, False))
    degrees = (len(outgoing), len(incoming))
    if max(degrees) >= most:
        degrees = reader.degrees(graph.pk, uid, types)
    findings, findings_total = json_of(row["findings"]) or [], row["findings_total"]
    if overlay.pages and node.page is not None:
        # Stored findings know of the trash; this reader does not.
        findings = [
            {
                "rule": each.rule,
                "severity": each.severity,
                "path": each.path,
                "line": each.line,
                "column": each.column,
                "message": each.message,
                "hint": each.hint,
            }
            for each in lint_seen(viewer, source)
            if each.page_id == node.page
        ]
        findings_total = len(findings)
        findings = sorted(sorted(findings, key=_badness)[:FINDINGS], key=lambda each: each["line"] or 0)
    return NodeDetail(
        node,
        row["path"] or "",
        row["document"],
        json_of(row["header"]) or {},
        row["header_state"] or "",
        by_type(outgoing),
        by_type(incoming),
        degrees,
        outgoing[-1].position if len(outgoing) < degrees[0] else None,
        incoming[-1].position if len(incoming) < degrees[1] else None,
        cross_links(viewer, json_of(row["crossing"]) or []),
        newest(reader, [(graph.pk, uid)]).get((graph.pk, uid)),
        tuple(findings),
        findings_total,
    )


def _badness(finding: Mapping[str, Any]) -> tuple[int, int]:
    return SEVERITIES.index(finding["severity"]), finding["line"] or 0


def by_type(edges: Sequence[ShownEdge]) -> tuple[ShownEdge, ...]:
    """A part of the edges of a node as people read it."""
    rank = {name: place for place, name in enumerate(EDGE_TYPES)}
    return tuple(sorted(edges, key=lambda each: (rank[each.edge.edge_type], each.other.uid)))
