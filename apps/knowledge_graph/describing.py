"""What faces show of a graph, as values: lists and the picture. Pages, API and MCP take the same functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from apps.knowledge_graph.models import GraphSource
from apps.knowledge_graph.reader import Reader, SeenEdge, SeenNode, json_of, node_of
from apps.knowledge_graph.vocabulary import EDGE_TYPES
from apps.knowledge_graph.walks import Filters, edges_between

PICTURE_NODES, PICTURE_EDGES = 150, 400
MOST_PICTURE_NODES, MOST_PICTURE_EDGES = 500, 1500


@dataclass(frozen=True, slots=True)
class ListedNode:
    node: SeenNode
    tags: tuple[str, ...]
    summary: str


@dataclass(frozen=True, slots=True)
class NodeFilters:
    types: Sequence[str] = ()
    status: Sequence[str] = ()
    dangling: bool | None = None
    tag: str = ""
    q: str = ""


_LISTED = (
    " FROM {nodes} n LEFT JOIN kb_pages p ON p.id = n.page_id WHERE n.source_id = %(source)s"
    " AND (cardinality(%(types)s::text[]) = 0 OR n.node_type = ANY(%(types)s::text[]))"
    " AND (cardinality(%(status)s::text[]) = 0 OR n.status = ANY(%(status)s::text[]))"
    " AND (%(dangling)s::boolean IS NULL OR n.dangling = %(dangling)s::boolean)"
    " AND (%(tag)s = '' OR p.header -> 'tags' @> to_jsonb(%(tag)s::text))"
    " AND (%(q)s = '' OR strpos(lower(n.label), lower(%(q)s)) > 0 OR strpos(n.node_uid, lower(%(q)s)) > 0)"
)


def list_nodes(
    reader: Reader, graph: GraphSource | None, filters: NodeFilters, *, after: str = "", limit: int = 25
) -> tuple[list[ListedNode], int]:
    """Up to ``limit`` nodes with uids behind ``after``, and how many there are in all. ``q`` is taken literally."""
    if graph is None:
        return [], 0
    params = {
        "source": graph.pk,
        "types": list(filters.types),
        "status": list(filters.status),
        "dangling": filters.dangling,
        "tag": filters.tag,
        "q": filters.q.strip(),
    }
    rows = reader.rows(
        "WITH matched AS MATERIALIZED (SELECT n.*, p.header -> 'tags' AS tags, p.header ->> 'summary' AS summary"  # noqa: S608
        f"{_LISTED}) SELECT matched.*, counted.total FROM (SELECT count(*) AS total FROM matched) counted"
        " LEFT JOIN matched ON matched.node_uid > %(after)s ORDER BY matched.node_uid LIMIT %(limit)s",
        **params,
        after=after,
        limit=limit,
    )
    total = rows[0]["total"] if rows else 0
    found = [
        ListedNode(node_of(row), tuple(json_of(row["tags"]) or ()), row["summary"] or "")
        for row in rows
        if row["node_uid"] is not None
    ]
    return found, total


@dataclass(frozen=True, slots=True)
class Picture:
    """The strongest part of a graph. ``degrees`` count what the reader sees of the whole graph within the filters."""

    nodes: tuple[SeenNode, ...]
    degrees: Mapping[str, int]
    edges: tuple[SeenEdge, ...]
    total_nodes: int
    truncated: bool


def picture(
    reader: Reader,
    graph: GraphSource | None,
    filters: Filters,
    *,
    node_types: Sequence[str] = (),
    min_weight: float = 0,
    max_nodes: int = PICTURE_NODES,
    max_edges: int = PICTURE_EDGES,
) -> Picture:
    """The nodes with the most edges within the filters, then by uid, and the edges between them."""
    if graph is None:
        return Picture((), {}, (), 0, False)
    from apps.knowledge_graph.vocabulary import PROVENANCES

    provenance = filters.provenance or [name for name in PROVENANCES if name != "inferred" or filters.inferred]
    rows = reader.rows(
        "WITH kept AS MATERIALIZED (SELECT n.* FROM {nodes} n WHERE n.source_id = %(source)s"
        " AND (cardinality(%(kinds)s::text[]) = 0 OR n.node_type = ANY(%(kinds)s::text[]))"
        " AND (cardinality(%(status)s::text[]) = 0 OR n.status = ANY(%(status)s::text[]))),"
        " ends AS (SELECT e.from_uid, e.to_uid FROM {edges} e JOIN kept a ON a.node_uid = e.from_uid"
        " JOIN kept b ON b.node_uid = e.to_uid WHERE e.source_id = %(source)s"
        " AND e.edge_type = ANY(%(types)s::text[]) AND e.provenance = ANY(%(provenance)s::text[])"
        " AND e.weight >= %(least)s),"
        " degrees AS (SELECT uid, count(*) AS degree FROM (SELECT from_uid AS uid FROM ends UNION ALL"
        " SELECT to_uid FROM ends) both_ends GROUP BY uid)"
        " SELECT kept.*, COALESCE(d.degree, 0) AS degree, count(*) OVER () AS total FROM kept"
        " LEFT JOIN degrees d ON d.uid = kept.node_uid ORDER BY degree DESC, kept.node_uid LIMIT %(limit)s",
        source=graph.pk,
        kinds=list(node_types),
        status=list(filters.status),
        types=list(filters.types or EDGE_TYPES),
        provenance=list(provenance),
        least=min_weight,
        limit=max_nodes,
    )
    nodes = tuple(node_of(row) for row in rows)
    uids = [node.uid for node in nodes]
    edges = edges_between(reader, graph.pk, uids, filters, limit=max_edges + 1, min_weight=min_weight)
    total = rows[0]["total"] if rows else 0
    return Picture(
        nodes,
        {row["node_uid"]: row["degree"] for row in rows},
        tuple(edges[:max_edges]),
        total,
        total > len(nodes) or len(edges) > max_edges,
    )
