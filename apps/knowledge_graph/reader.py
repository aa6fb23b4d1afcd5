"""The graph as one reader sees it: the projection of the live documents in sources that the reader may read.

The stored graph is the projection of all *kept* documents. Where a source has pages in its trash, what they reach is
projected again without them, in memory, and laid over the stored rows (`Overlay`); everything that is asked then goes
through two SQL sub-queries, ``reader_nodes`` and ``reader_edges``, that hold the one over the other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db.models import Exists, OuterRef, Q

from apps.access.compiled import MARK_OF_ID, ReadableRows
from apps.access.cursors import prepared_cursor
from apps.knowledge_graph.models import CanonicalPage, Evidence, GraphSource
from apps.knowledge_graph.projection import reproject
from apps.knowledge_graph.storing.applying import difference
from apps.knowledge_graph.storing.incremental import StoredPages, desired_of
from apps.knowledge_graph.values import EvidenceValue
from apps.knowledge_graph.vocabulary import walk_rank

if TYPE_CHECKING:
    from apps.access.sources import Source
    from apps.access.viewers import Viewer

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class SeenNode:
    """A node of the reader's graph. ``page`` is the row of its canonical page, None while it dangles."""

    source: int
    uid: str
    node_type: str
    label: str
    status: str
    priority: int
    page: int | None
    dangling: bool


@dataclass(frozen=True, slots=True)
class SeenEdge:
    source: int
    from_uid: str
    to_uid: str
    edge_type: str
    weight: Decimal
    provenance: str
    type_source: str
    payload: Mapping[str, Any]

    @property
    def uid(self) -> str:
        return f"{self.from_uid}>{self.edge_type}>{self.to_uid}"


@dataclass(slots=True)
class Overlay:
    """What differs from the stored rows for readers of one source, because pages lie in its trash."""

    hidden_nodes: set[str] = field(default_factory=set)
    nodes: list[Row] = field(default_factory=list)
    hidden_edges: set[str] = field(default_factory=set)
    edges: list[Row] = field(default_factory=list)
    unreal: set[str] = field(default_factory=set)
    """Slugs that no live page bears: guesses about them are not shown."""
    pages: set[int] = field(default_factory=set)
    """Pages whose stored evidence is not what the reader sees; ``evidence`` says what is."""
    evidence: list[tuple[int, EvidenceValue]] = field(default_factory=list)


def overlay_of(graph: GraphSource) -> Overlay:
    """Empty, by one query, when no page of the source lies in the trash."""
    trashed = list(CanonicalPage.objects.filter(source=graph).kept().trashed().values_list("document", flat=True))
    found = Overlay()
    if not trashed:
        return found
    store = StoredPages(graph)
    desired = desired_of(reproject(store, dict.fromkeys(trashed)), ())
    seen = difference(store.rows, desired)
    found.pages = set(seen.page_ids.values())
    for uid, node in seen.nodes.items():
        found.hidden_nodes.add(uid)
        if node is None or node.dangling:
            found.unreal.add(uid)
        if node is not None:
            page = seen.page_ids[node.document] if node.document else None
            found.nodes.append(
                {
                    "source_id": graph.pk,
                    "node_uid": uid,
                    "node_type": node.node_type,
                    "label": node.label,
                    "status": node.status,
                    "priority": node.priority,
                    "page_id": page,
                    "dangling": node.dangling,
                }
            )
    found.hidden_edges = seen.stored_edges | set(desired.edges)
    found.edges = [
        {
            "source_id": graph.pk,
            "edge_uid": edge.uid,
            "from_uid": edge.from_uid,
            "to_uid": edge.to_uid,
            "edge_type": edge.edge_type,
            "weight": str(edge.weight),
            "provenance": edge.provenance,
            "type_source": edge.type_source,
            "payload": {},
            "walk_weight": str(edge.weight),
            "walk_rank": walk_rank(edge.edge_type, edge.provenance, edge.type_source),
        }
        for edge in desired.edges.values()
    ]
    found.evidence = [(seen.page_ids[d], row) for d, rows in desired.evidence.items() for row in rows]
    return found


_NODES = (
    "SELECT n.source_id, n.node_uid, n.node_type, n.label, n.status, n.priority, n.page_id, n.dangling"
    " FROM kb_nodes n WHERE n.source_id = ANY(%(sources)s){hidden_nodes}"
)
_EDGES = (
    "SELECT e.source_id, e.edge_uid, e.from_uid, e.to_uid, e.edge_type, e.weight, e.provenance, e.type_source,"
    " e.payload, e.walk_weight, e.walk_rank FROM kb_edges e WHERE e.source_id = ANY(%(sources)s){hidden_edges}"
)
_HIDDEN_NODES = (
    " AND NOT EXISTS (SELECT FROM unnest(%(hidden_node_sources)s::bigint[], %(hidden_nodes)s::text[]) h(s, u)"
    " WHERE h.s = n.source_id AND h.u = n.node_uid)"
)
_HIDDEN_EDGES = (
    " AND NOT EXISTS (SELECT FROM unnest(%(hidden_edge_sources)s::bigint[], %(hidden_edges)s::text[]) h(s, u)"
    " WHERE h.s = e.source_id AND h.u = e.edge_uid)"
    " AND NOT (e.provenance = 'inferred' AND EXISTS (SELECT FROM unnest(%(unreal_sources)s::bigint[],"
    " %(unreal)s::text[]) h(s, u) WHERE h.s = e.source_id AND h.u IN (e.from_uid, e.to_uid)))"
)
_ADDED_NODES = (
    " UNION ALL SELECT * FROM jsonb_to_recordset(%(added_nodes)s::jsonb) AS added (source_id bigint, node_uid text,"
    " node_type text, label text, status text, priority int, page_id bigint, dangling boolean)"
)
_ADDED_EDGES = (
    " UNION ALL SELECT * FROM jsonb_to_recordset(%(added_edges)s::jsonb) AS added (source_id bigint, edge_uid text,"
    " from_uid text, to_uid text, edge_type text, weight numeric, provenance text, type_source text, payload jsonb,"
    " walk_weight numeric, walk_rank smallint)"
)


_OF_TYPES = " AND e.edge_type = ANY(%(types)s::text[])"


class Reader:
    """One reader's graph of some sources, for the time of one request."""

    def __init__(self, graphs: Sequence[GraphSource], overlays: Mapping[int, Overlay]) -> None:
        self.graphs = {graph.pk: graph for graph in graphs}
        self.overlays = overlays
        laid_over = any(overlays.values())
        self.nodes_sql = _NODES.format(hidden_nodes=_HIDDEN_NODES if laid_over else "")
        self.edges_sql = _EDGES.format(hidden_edges=_HIDDEN_EDGES if laid_over else "")
        self.params: dict[str, Any] = {"sources": list(self.graphs)}
        if laid_over:
            self.nodes_sql += _ADDED_NODES
            self.edges_sql += _ADDED_EDGES
            self._lay_over()

    def _lay_over(self) -> None:
        hidden_nodes = [(key, uid) for key, one in self.overlays.items() for uid in sorted(one.hidden_nodes)]
        hidden_edges = [(key, uid) for key, one in self.overlays.items() for uid in sorted(one.hidden_edges)]
        unreal = [(key, uid) for key, one in self.overlays.items() for uid in sorted(one.unreal)]
        self.params |= {
            "hidden_node_sources": [key for key, _ in hidden_nodes],
            "hidden_nodes": [uid for _, uid in hidden_nodes],
            "hidden_edge_sources": [key for key, _ in hidden_edges],
            "hidden_edges": [uid for _, uid in hidden_edges],
            "unreal_sources": [key for key, _ in unreal],
            "unreal": [uid for _, uid in unreal],
            "added_nodes": json.dumps([row for one in self.overlays.values() for row in one.nodes]),
            "added_edges": json.dumps([row for one in self.overlays.values() for row in one.edges]),
        }

    def rows(self, sql: str, **params: Any) -> list[Row]:
        """Rows of a statement that may name the sub-queries ``{nodes}`` and ``{edges}``."""
        text = sql.replace("{nodes}", f"({self.nodes_sql})").replace("{edges}", f"({self.edges_sql})")
        with prepared_cursor() as cursor:
            cursor.execute(text, {**self.params, **params})
            names = [column[0] for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def nodes(self, source: int, uids: Iterable[str]) -> dict[str, SeenNode]:
        rows = self.rows(
            "SELECT * FROM {nodes} n WHERE n.source_id = %(source)s AND n.node_uid = ANY(%(uids)s)",
            source=source,
            uids=list(uids),
        )
        return {row["node_uid"]: node_of(row) for row in rows}

    def node(self, source: int, uid: str) -> SeenNode | None:
        return self.nodes(source, [uid]).get(uid)

    def all_nodes(self, source: int) -> list[SeenNode]:
        rows = self.rows("SELECT * FROM {nodes} n WHERE n.source_id = %(source)s ORDER BY n.node_uid", source=source)
        return [node_of(row) for row in rows]

    def all_edges(self, source: int, *, inferred: bool = True) -> list[SeenEdge]:
        rows = self.rows(
            "SELECT * FROM {edges} e WHERE e.source_id = %(source)s AND (%(inferred)s OR e.provenance <> 'inferred')"
            " ORDER BY e.from_uid, e.to_uid, e.edge_type",
            source=source,
            inferred=inferred,
        )
        return [edge_of(row) for row in rows]

    def degrees(self, source: int, uid: str, types: Sequence[str] = ()) -> tuple[int, int]:
        """How many edges begin at a node, and how many end there."""
        count = "(SELECT count(*) FROM {edges} e WHERE e.source_id = %(source)s AND e.{at} = %(uid)s{types})"
        parts = (
            count.replace("{at}", at).replace("{types}", _OF_TYPES if types else "") for at in ("from_uid", "to_uid")
        )
        (row,) = self.rows(
            "SELECT {} AS outgoing, {} AS incoming".format(*parts), source=source, uid=uid, types=list(types)
        )
        return row["outgoing"], row["incoming"]

    def evidence(self, source: int, edge_uids: Iterable[str]) -> dict[str, list[Evidence]]:
        """Evidence of these edges, as unsaved rows where the trash makes it differ from the stored ones."""
        from apps.knowledge_graph.resolution import evidence_order
        from apps.knowledge_graph.storing.rows import evidence_row, occurrence_value

        wanted = set(edge_uids)
        found: dict[str, list[Evidence]] = {}
        overlay = self.overlays.get(source) or Overlay()
        stored = Evidence.objects.filter(source=source, edge_uid__in=wanted).exclude(page__in=overlay.pages)
        for row in stored:
            found.setdefault(row.edge_uid or "", []).append(row)
        for page_id, value in overlay.evidence:
            if value.edge_uid in wanted:
                row = evidence_row(value, source_id=source, page_id=page_id)
                found.setdefault(value.edge_uid or "", []).append(row)
        for rows in found.values():
            rows.sort(
                key=lambda row: evidence_order(EvidenceValue(UUID(int=0), occurrence_value(row), "edge", "", (), None))
            )
        return found

    def pages(self, ids: Iterable[int | None]) -> dict[int, CanonicalPage]:
        wanted = [each for each in ids if each is not None]
        return {row.pk: row for row in CanonicalPage.objects.filter(pk__in=wanted).with_key()} if wanted else {}


def node_of(row: Mapping[str, Any]) -> SeenNode:
    return SeenNode(
        row["source_id"],
        row["node_uid"],
        row["node_type"],
        row["label"],
        row["status"],
        row["priority"],
        row["page_id"],
        row["dangling"],
    )


def json_of(value: Any) -> Any:
    """A JSON column of a plain statement, which comes as text."""
    return json.loads(value) if isinstance(value, str) else value


def edge_of(row: Mapping[str, Any]) -> SeenEdge:
    return SeenEdge(
        row["source_id"],
        row["from_uid"],
        row["to_uid"],
        row["edge_type"],
        row["weight"],
        row["provenance"],
        row["type_source"],
        json_of(row["payload"]),
    )


def _graphs(viewer: Viewer) -> Any:
    trash = CanonicalPage.objects.filter(source=OuterRef("pk")).kept().trashed()
    rows = GraphSource.objects.visible_to(viewer).select_related("repository", "collection")
    return rows.annotate(has_trash=Exists(trash)).order_by("pk")


_ALL: ReadableRows[GraphSource] = ReadableRows(_graphs)
_OF: ReadableRows[GraphSource] = ReadableRows(
    lambda viewer, key: _graphs(viewer).filter(Q(repository=key) | Q(collection=key)), MARK_OF_ID
)


def open_reader(viewer: Viewer) -> Reader:
    """The graph of all that the viewer may read.

    One query, and for each source with pages in its trash those that project their surroundings again.
    """
    return _reader_of(_ALL.all(viewer))


def open_graph(viewer: Viewer, source: Source) -> tuple[Reader, GraphSource | None]:
    """The reader's graph of one source that was found by the viewer's scope; no graph when it has no pages."""
    reader = _reader_of(_OF.all(viewer, source.pk))
    return reader, next(iter(reader.graphs.values()), None)


def _reader_of(graphs: Sequence[Any]) -> Reader:
    return Reader(graphs, {graph.pk: overlay_of(graph) for graph in graphs if graph.has_trash})
