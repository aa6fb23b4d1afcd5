"""The stored graph as it was at a revision."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from apps.knowledge_graph.models import Edge, EdgePast, Evidence, EvidencePast, GraphSource, Node, NodePast

NODE_COLUMNS = ("node_uid", "node_type", "label", "status", "priority", "payload")
EDGE_COLUMNS = ("edge_uid", "weight", "provenance", "type_source")
EVIDENCE_COLUMNS = ("edge_uid", "provenance", "raw", "line", "outcome")


@dataclass(frozen=True, slots=True)
class PastNode:
    uid: str
    node_type: str
    label: str
    status: str
    priority: int
    payload: dict[str, Any]


@dataclass(frozen=True, slots=True)
class PastEdge:
    uid: str
    weight: Decimal
    provenance: str
    type_source: str


@dataclass(frozen=True, slots=True)
class PastEvidence:
    edge_uid: str | None
    provenance: str
    raw: str
    line: int
    outcome: str


@dataclass(frozen=True, slots=True)
class PastGraph:
    """All rows valid at one revision. Ends of edges that were erased for good since then are in no list of nodes."""

    nodes: tuple[PastNode, ...]
    edges: tuple[PastEdge, ...]
    evidence: tuple[PastEvidence, ...]


def graph_at(graph: GraphSource, revision: int) -> PastGraph:
    """Nodes, edges and evidence at ``revision``; a number above the present one gives the present state."""
    return PastGraph(
        tuple(sorted((PastNode(*row) for row in _rows(Node, NodePast, graph, revision, NODE_COLUMNS)), key=_uid)),
        tuple(sorted((PastEdge(*row) for row in _rows(Edge, EdgePast, graph, revision, EDGE_COLUMNS)), key=_uid)),
        tuple(
            sorted(
                (PastEvidence(*row) for row in _rows(Evidence, EvidencePast, graph, revision, EVIDENCE_COLUMNS)),
                key=lambda row: (row.edge_uid or "", row.line, row.raw, row.provenance, row.outcome),
            )
        ),
    )


def _rows(current: Any, past: Any, graph: GraphSource, revision: int, columns: tuple[str, ...]) -> list[Any]:
    now = current.objects.filter(source=graph, valid_from__lte=revision)
    then = past.objects.filter(source=graph, valid_from__lte=revision, valid_to__gt=revision)
    return [*now.values_list(*columns), *then.values_list(*columns)]


def _uid(row: PastNode | PastEdge) -> str:
    return row.uid
