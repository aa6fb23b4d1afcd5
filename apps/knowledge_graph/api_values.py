"""Shapes of the REST answers about graphs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers

from apps.access.rest.strict import Boolean, Choice, Integer, Listed, ListQuery, Number, StrictSerializer, Text
from apps.indexing.findings import SEVERITIES
from apps.knowledge_graph.describing import (
    MOST_PICTURE_EDGES,
    MOST_PICTURE_NODES,
    PICTURE_EDGES,
    PICTURE_NODES,
    ListedNode,
)
from apps.knowledge_graph.detail import EDGES, MOST_EDGES, NodeDetail
from apps.knowledge_graph.export import FORMATS
from apps.knowledge_graph.linting.values import RULES
from apps.knowledge_graph.models import GraphRevision
from apps.knowledge_graph.naming_sources import source_word
from apps.knowledge_graph.node_edges import ShownEdge, ShownEvidence
from apps.knowledge_graph.reader import SeenEdge, SeenNode
from apps.knowledge_graph.vocabulary import EDGE_TYPES, NODE_TYPES, PROVENANCES, STATUSES, UNKNOWN
from apps.knowledge_graph.walking.around import EDGES as EDGES_AROUND
from apps.knowledge_graph.walking.around import MOST_NODES, NODES

DIRECTIONS = ("both", "out", "in")


def _types(choices: tuple[str, ...], help_text: str) -> Listed:
    return Listed(child=Choice(choices), max_length=len(choices), default=list, help_text=help_text)


class NodesQuery(ListQuery):
    """Which nodes."""

    type = _types((*NODE_TYPES, UNKNOWN), "Node types; repeat it for several.")
    status = _types(STATUSES, "Statuses; repeat it for several.")
    dangling = Choice(("true", "false"), required=False, help_text="Only pages that are missing, or none of them.")
    tag = Text(max_length=200, default="", help_text="A tag, exactly.")
    q = Text(max_length=200, default="", query_text=True, help_text="Part of a label or slug, taken literally.")


class NodeQuery(StrictSerializer):
    """Which edges of the node, and how many in each direction."""

    types = _types(EDGE_TYPES, "Edge types; none: all.")
    edges = Integer(min_value=1, max_value=MOST_EDGES, default=EDGES, help_text="At most so many in each direction.")


class EdgesQuery(ListQuery):
    """Which edges of the node."""

    direction = Choice(DIRECTIONS, default="both", help_text="Both: the outgoing ones first.")
    types = _types(EDGE_TYPES, "Edge types; none: all.")


class AroundQuery(StrictSerializer):
    """How far around a node, over which edges."""

    depth = Integer(min_value=1, max_value=3, default=1)
    direction = Choice(DIRECTIONS, default="both")
    types = _types(EDGE_TYPES, "Edge types; none: all.")
    provenance = _types(PROVENANCES, "Where edges come from; none: all but inferred.")
    status = _types(STATUSES, "Statuses of the nodes met; none: all.")
    inferred = Boolean(default=False, help_text="Proposed edges too.")
    nodes = Integer(min_value=1, max_value=MOST_NODES, default=NODES)
    edges = Integer(min_value=1, max_value=EDGES_AROUND, default=EDGES_AROUND)


class PathQuery(StrictSerializer):
    """The two ends, by slug: ``from`` and ``to``."""

    to = Text(max_length=128, default="")

    def get_fields(self) -> dict[str, Any]:
        # ``from`` is no name that a class body takes.
        return {"from": Text(max_length=128, default=""), **super().get_fields()}


class PictureQuery(StrictSerializer):
    """Which part of the graph."""

    type = _types((*NODE_TYPES, UNKNOWN), "Node types; none: all.")
    types = _types(EDGE_TYPES, "Edge types; none: all.")
    provenance = _types(PROVENANCES, "Where edges come from; none: all but inferred.")
    status = _types(STATUSES, "Statuses; none: all.")
    min_weight = Number(min_value=0, max_value=1, default=0)
    inferred = Boolean(default=False)
    nodes = Integer(min_value=1, max_value=MOST_PICTURE_NODES, default=PICTURE_NODES)
    edges = Integer(min_value=1, max_value=MOST_PICTURE_EDGES, default=PICTURE_EDGES)


class LintQuery(ListQuery):
    """Which findings."""

    rule = _types(RULES, "Rules; none: all.")
    severity = Choice(SEVERITIES, required=False)


class ExportQuery(StrictSerializer):
    """In which form."""

    format = Choice(FORMATS, default="json")


class GraphNodeOutput(serializers.Serializer[Any]):
    """A node."""

    uid = serializers.CharField()
    type = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]
    status = serializers.CharField()
    priority = serializers.IntegerField()
    dangling = serializers.BooleanField()


class GraphListedNodeOutput(GraphNodeOutput):
    """A node in a list."""

    tags = serializers.ListField(child=serializers.CharField())
    summary = serializers.CharField()


class GraphEdgeOutput(serializers.Serializer[Any]):
    """An edge. ``by_page_types``: its type was not written, the types of the two pages gave it."""

    to = serializers.CharField()
    type = serializers.CharField()
    weight = serializers.FloatField()
    provenance = serializers.CharField()
    by_page_types = serializers.BooleanField()
    confidence = serializers.FloatField(allow_null=True)

    def get_fields(self) -> dict[str, Any]:
        return {"from": serializers.CharField(), **super().get_fields()}


class GraphEvidenceOutput(serializers.Serializer[Any]):
    """A place that says so."""

    path = serializers.CharField()
    line = serializers.IntegerField()
    column = serializers.IntegerField()
    raw = serializers.CharField()
    provenance = serializers.CharField()
    section = serializers.ListField(child=serializers.CharField())
    anchor = serializers.CharField()
    link_label = serializers.CharField()
    embed = serializers.BooleanField()


class GraphShownEdgeOutput(GraphEdgeOutput):
    """An edge with its other end and its evidence, the strongest first. ``evidence_total``: shown or not."""

    other = GraphNodeOutput()
    evidence = GraphEvidenceOutput(many=True)
    evidence_total = serializers.IntegerField()


class GraphNodeEdgeOutput(GraphShownEdgeOutput):
    """An edge in the list of all edges of a node."""

    outgoing = serializers.BooleanField()


class GraphFindingOutput(serializers.Serializer[Any]):
    """A finding. Lines and columns count from 1."""

    rule = serializers.CharField()
    severity = serializers.CharField()
    path = serializers.CharField()
    line = serializers.IntegerField(allow_null=True)
    column = serializers.IntegerField(allow_null=True)
    message = serializers.CharField()
    hint = serializers.CharField()


class GraphLintFindingOutput(GraphFindingOutput):
    """A finding with its other places and its fingerprint, which stays when lines move."""

    related = serializers.ListField(child=serializers.DictField())
    fingerprint = serializers.CharField()


class GraphCrossLinkOutput(serializers.Serializer[Any]):
    """``[[source:slug]]`` as written, and where it leads for the caller."""

    raw = serializers.CharField()
    line = serializers.IntegerField()
    type = serializers.CharField()
    target_source = serializers.CharField(allow_null=True)
    target_uid = serializers.CharField(allow_null=True)
    target_label = serializers.CharField(allow_null=True)


class GraphNodeDetailOutput(GraphNodeOutput):
    """A node with its header values, its edges and their evidence, what has replaced it, and its findings. The heaviest
    edges are there; the totals count all that the caller sees of the types asked for."""

    path = serializers.CharField()
    document_id = serializers.UUIDField(allow_null=True)
    header = serializers.DictField()
    header_state = serializers.CharField()
    outgoing = GraphShownEdgeOutput(many=True)
    incoming = GraphShownEdgeOutput(many=True)
    outgoing_total = serializers.IntegerField()
    incoming_total = serializers.IntegerField()
    cross_source_links = GraphCrossLinkOutput(many=True)
    newest = GraphNodeOutput(many=True)
    in_circle = serializers.BooleanField()
    findings = GraphFindingOutput(many=True)
    findings_total = serializers.IntegerField()


class GraphAroundOutput(serializers.Serializer[Any]):
    """Nodes, the centre first, and the edges between them."""

    nodes = GraphNodeOutput(many=True)
    hops = serializers.DictField(child=serializers.IntegerField())
    edges = GraphEdgeOutput(many=True)
    truncated = serializers.BooleanField()


class GraphWayOutput(serializers.Serializer[Any]):
    """Nodes from one end to the other and the edges between; both empty when there is no way of six steps."""

    nodes = GraphNodeOutput(many=True)
    edges = GraphEdgeOutput(many=True)
    truncated = serializers.BooleanField()


class GraphPlacedNodeOutput(GraphNodeOutput):
    """A node in a picture; x and y from 0 to 1."""

    degree = serializers.IntegerField()
    x = serializers.FloatField()
    y = serializers.FloatField()


class GraphPictureOutput(serializers.Serializer[Any]):
    """The strongest part of the graph, laid out."""

    revision = serializers.IntegerField()
    nodes = GraphPlacedNodeOutput(many=True)
    edges = GraphEdgeOutput(many=True)
    total_nodes = serializers.IntegerField()
    truncated = serializers.BooleanField()


class GraphRevisionOutput(serializers.Serializer[Any]):
    """A state of the graph."""

    number = serializers.IntegerField()
    cause = serializers.CharField()
    created_at = serializers.DateTimeField()


class GraphExportOutput(serializers.Serializer[Any]):
    """Everything the caller sees."""

    source = serializers.CharField()  # type: ignore[assignment]
    revision = serializers.IntegerField()
    nodes = GraphNodeOutput(many=True)
    edges = serializers.ListField(child=serializers.DictField())


def present_node(node: SeenNode) -> dict[str, Any]:
    return {
        "uid": node.uid,
        "type": node.node_type,
        "label": node.label,
        "status": node.status,
        "priority": node.priority,
        "dangling": node.dangling,
    }


def present_listed(listed: ListedNode) -> dict[str, Any]:
    return {**present_node(listed.node), "tags": list(listed.tags), "summary": listed.summary}


def present_edge(edge: SeenEdge) -> dict[str, Any]:
    return {
        "from": edge.from_uid,
        "to": edge.to_uid,
        "type": edge.edge_type,
        "weight": float(edge.weight),
        "provenance": edge.provenance,
        "by_page_types": edge.type_source == "matrix",
        "confidence": edge.payload.get("confidence"),
    }


def _present_evidence(row: ShownEvidence) -> dict[str, Any]:
    return {
        "path": row.path,
        "line": row.line,
        "column": row.column,
        "raw": row.raw,
        "provenance": row.provenance,
        "section": list(row.section),
        "anchor": row.anchor,
        "link_label": row.label,
        "embed": row.embed,
    }


def present_shown(shown: ShownEdge) -> dict[str, Any]:
    return {
        **present_edge(shown.edge),
        "other": present_node(shown.other),
        "evidence": [_present_evidence(row) for row in shown.evidence],
        "evidence_total": shown.places,
    }


def present_listed_edge(shown: ShownEdge) -> dict[str, Any]:
    return {**present_shown(shown), "outgoing": shown.position.outward}


def present_header(header: Mapping[str, Any]) -> dict[str, Any]:
    """What the page says of itself; keys that mean nothing to the graph as they stand."""
    if not header:
        return {}
    names = {"summary": "summary", "aliases": "aliases", "owners": "owners", "tags": "tags", "identifier": "id"}
    return {**{shown: header[name] for name, shown in names.items()}, "project": header["project"],
            "others": header["others"]}  # fmt: skip


def present_detail(detail: NodeDetail) -> dict[str, Any]:
    return {
        **present_node(detail.node),
        "path": detail.path,
        "document_id": str(detail.document) if detail.document else None,
        "header": present_header(detail.header),
        "header_state": detail.header_state,
        "outgoing": [present_shown(each) for each in detail.outgoing],
        "incoming": [present_shown(each) for each in detail.incoming],
        "outgoing_total": detail.degrees[0],
        "incoming_total": detail.degrees[1],
        "cross_source_links": [
            {
                "raw": link.raw,
                "line": link.line,
                "type": link.edge_type,
                "target_source": source_word(link.source) if link.source else None,
                "target_uid": link.target.uid if link.target else None,
                "target_label": link.target.label if link.target else None,
            }
            for link in detail.cross_links
        ],
        "newest": [present_node(end.node) for end in detail.newest.ends] if detail.newest else [],
        "in_circle": bool(detail.newest and detail.newest.cycle),
        "findings": [dict(each) for each in detail.findings],
        "findings_total": detail.findings_total,
    }


def present_revision(revision: GraphRevision) -> dict[str, Any]:
    return {"number": revision.number, "cause": revision.cause, "created_at": revision.created_at}
