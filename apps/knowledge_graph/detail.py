"""What faces show of one node, as values: its edges, the places that say so, what has replaced it, its findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import UUID

from apps.access.errors import NotFound
from apps.knowledge_graph.crossing import CrossLink, cross_links
from apps.knowledge_graph.lint import lint_seen
from apps.knowledge_graph.models import GraphSource
from apps.knowledge_graph.reader import Overlay, Reader, SeenEdge, SeenNode, edge_of, json_of, node_of
from apps.knowledge_graph.resolution import evidence_order
from apps.knowledge_graph.storing.rows import evidence_row, occurrence_value
from apps.knowledge_graph.values import EvidenceValue
from apps.knowledge_graph.vocabulary import EDGE_TYPES, strength, strength_sql
from apps.knowledge_graph.walks import Newest, newest

if TYPE_CHECKING:
    from apps.access.sources import Source
    from apps.access.viewers import Viewer

EDGES, MOST_EDGES = 100, 400
"""Edges that are shown of a node in each direction."""
EVIDENCE = 20
"""Places that are shown of an edge, the strongest first."""


@dataclass(frozen=True, slots=True)
class ShownEvidence:
    """One place that says so. ``raw`` is the text as written, ``section`` the headings above it."""

    path: str
    line: int
    column: int
    raw: str
    provenance: str
    section: tuple[str, ...]
    anchor: str
    label: str
    embed: bool


@dataclass(frozen=True, slots=True)
class ShownEdge:
    edge: SeenEdge
    other: SeenNode
    evidence: tuple[ShownEvidence, ...]
    places: int
    """How many places say so, shown or not."""

    @property
    def by_page_types(self) -> bool:
        """Nobody has written the type: the types of the two pages gave it."""
        return self.edge.type_source == "matrix"


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
    cross_links: tuple[CrossLink, ...]
    newest: Newest | None
    findings: tuple[Mapping[str, Any], ...] = field(default=())


_OF_EDGE = "v.source_id = e.source_id AND v.edge_uid = e.edge_uid AND v.page_id <> ALL(%(laid_over)s)"
_ONE_WAY = (
    "(SELECT * FROM {edges} e WHERE e.source_id = %(source)s AND e.{at} = %(uid)s"
    " AND (cardinality(%(types)s::text[]) = 0 OR e.edge_type = ANY(%(types)s::text[]))"
    " ORDER BY e.walk_weight DESC, e.walk_rank, e.{other} LIMIT %(most)s)"
)
_EDGES_OF_ONE = (
    "SELECT e.source_id, e.edge_uid, e.from_uid, e.to_uid, e.edge_type, e.weight, e.provenance, e.type_source,"  # noqa: S608
    " e.payload, n.node_uid, n.node_type, n.label, n.status, n.priority, n.page_id, n.dangling,"
    f" (SELECT count(*) FROM kb_evidence v WHERE {_OF_EDGE}) AS places,"
    " (SELECT json_agg(json_build_object('path', p.path, 'line', v.line, 'column', v.\"column\", 'raw', v.raw,"
    " 'provenance', v.provenance, 'stated', v.stated_type, 'section', v.heading_path, 'anchor', v.anchor,"
    f" 'label', v.label, 'embed', v.embed)) FROM (SELECT * FROM kb_evidence v WHERE {_OF_EDGE}"
    f' ORDER BY {strength_sql("stated_type IS NOT NULL")}, v.line, v."column" LIMIT %(places)s) v'
    " JOIN kb_pages p ON p.id = v.page_id) AS evidence"
    f" FROM ({_ONE_WAY.replace('{at}', 'from_uid').replace('{other}', 'to_uid')} UNION ALL"
    f" {_ONE_WAY.replace('{at}', 'to_uid').replace('{other}', 'from_uid')}) e"
    " JOIN {nodes} n ON n.source_id = e.source_id"
    " AND n.node_uid = CASE WHEN e.from_uid = %(uid)s THEN e.to_uid ELSE e.from_uid END"
)


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
        "SELECT n.*, p.path, p.header, p.header_state, COALESCE(p.repository_document_id, p.document_id) AS document,"
        ' (SELECT json_agg(f ORDER BY f.line) FROM (SELECT rule, severity, path, line, "column", message, hint'
        " FROM kb_lint_findings WHERE page_id = n.page_id) f) AS findings,"
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
    edges = reader.rows(
        _EDGES_OF_ONE,
        source=graph.pk,
        uid=uid,
        laid_over=list(overlay.pages),
        types=list(types),
        most=most,
        places=EVIDENCE,
    )
    laid_over = _laid_over_evidence(reader, graph, overlay)
    outgoing: list[ShownEdge] = []
    incoming: list[ShownEdge] = []
    for one in edges:
        here = laid_over.get(one["edge_uid"], ())
        evidence = here[:EVIDENCE] or _evidence(json_of(one["evidence"]) or [])
        shown = ShownEdge(edge_of(one), node_of(one), evidence, len(here) or one["places"])
        (outgoing if shown.edge.from_uid == uid else incoming).append(shown)
    rank = {name: place for place, name in enumerate(EDGE_TYPES)}
    for shown_edges in (outgoing, incoming):
        shown_edges.sort(key=lambda each: (rank[each.edge.edge_type], each.other.uid))
    degrees = (len(outgoing), len(incoming))
    if max(degrees) >= most:
        degrees = reader.degrees(graph.pk, uid, types)
    findings = json_of(row["findings"]) or []
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
    return NodeDetail(
        node,
        row["path"] or "",
        row["document"],
        json_of(row["header"]) or {},
        row["header_state"] or "",
        tuple(outgoing),
        tuple(incoming),
        degrees,
        cross_links(viewer, json_of(row["crossing"]) or []),
        newest(reader, [(graph.pk, uid)]).get((graph.pk, uid)),
        tuple(findings),
    )


def _evidence(rows: Sequence[Mapping[str, Any]]) -> tuple[ShownEvidence, ...]:
    ordered = sorted(
        rows, key=lambda row: (strength(row["provenance"], row["stated"] is not None), row["line"], row["column"])
    )
    return tuple(
        ShownEvidence(
            row["path"],
            row["line"],
            row["column"],
            row["raw"],
            row["provenance"],
            tuple(row["section"]),
            row["anchor"],
            row["label"],
            row["embed"],
        )
        for row in ordered
    )


def _laid_over_evidence(reader: Reader, graph: GraphSource, overlay: Overlay) -> dict[str, tuple[ShownEvidence, ...]]:
    if not overlay.evidence:
        return {}
    paths = {key: page.path for key, page in reader.pages({page for page, _ in overlay.evidence}).items()}
    groups: dict[str, list[tuple[int, EvidenceValue]]] = {}
    for page_id, value in overlay.evidence:
        if value.edge_uid:
            groups.setdefault(value.edge_uid, []).append((page_id, value))
    found: dict[str, tuple[ShownEvidence, ...]] = {}
    for uid, values in groups.items():
        values.sort(key=lambda pair: evidence_order(pair[1]))
        shown = []
        for page_id, value in values:
            occurrence = occurrence_value(evidence_row(value, source_id=graph.pk, page_id=page_id))
            shown.append(
                ShownEvidence(
                    paths.get(page_id, ""),
                    occurrence.line,
                    occurrence.column,
                    occurrence.raw,
                    occurrence.provenance,
                    occurrence.heading_path,
                    occurrence.anchor,
                    occurrence.label,
                    occurrence.embed,
                )
            )
        found[uid] = tuple(shown)
    return found
