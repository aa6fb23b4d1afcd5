"""REST: the graph of one source as the caller sees it. Each endpoint looks up by scope and shapes one answer."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.http import StreamingHttpResponse
from rest_framework.response import Response

from apps.access import audit, rules
from apps.access.errors import BadRequest, NotFound
from apps.access.models import TokenScope, User
from apps.access.rest.cursors import Page, identity, page_of_list, page_of_rows, read_cursor, write_cursor
from apps.access.rest.etags import etag_of, not_modified, tagged
from apps.access.rest.schema import list_of
from apps.access.rest.strict import ListQuery
from apps.access.rest.views import ApiView, Door
from apps.access.rules import Right
from apps.access.sources import Source
from apps.jobs.api_values import JobOutput, present_line
from apps.jobs.presentation import lines
from apps.jobs.queue import enqueue
from apps.knowledge_graph import api_values as shape
from apps.knowledge_graph import export, layout
from apps.knowledge_graph.describing import NodeFilters, list_nodes, picture
from apps.knowledge_graph.detail import node_detail
from apps.knowledge_graph.lint import lint_seen
from apps.knowledge_graph.linting.formats import as_json
from apps.knowledge_graph.models import GraphRevision, GraphSource
from apps.knowledge_graph.naming_sources import find_by_address, source_word
from apps.knowledge_graph.node_edges import Position, page_of_edges
from apps.knowledge_graph.observing import PROJECT_GRAPH
from apps.knowledge_graph.reader import Reader, open_graph
from apps.knowledge_graph.snapshot import in_one_snapshot, one_snapshot
from apps.knowledge_graph.walks import Filters, neighbourhood, shortest_path


class GraphView(ApiView):
    """Below the graph of one source, which is looked up by the caller's scope before anything else."""

    source: Source

    def authorize(self, **names: Any) -> None:
        kind, name = ("repo", names["slug"]) if "slug" in names else ("collection", str(names["collection_id"]))
        self.source = find_by_address(kind, name, self.viewer, Right(self.door.right))

    def open(self) -> tuple[Reader, GraphSource | None]:
        return open_graph(self.viewer, self.source)

    def answer(self, graph: GraphSource | None, body: Any) -> Any:
        """The body with a tag of revision, reader and what is said; 304 when the caller has it."""
        etag = etag_of(graph.revision if graph else 0, identity(self.viewer), body)
        return not_modified(self.request, etag) or tagged(Response(body), etag)

    def filters(self) -> Filters:
        query = self.query
        return Filters(
            types=tuple(query["types"]),
            provenance=tuple(query["provenance"]),
            status=tuple(query["status"]),
            inferred=query["inferred"],
            direction=query.get("direction", "both"),
        )


class NodesView(GraphView):
    doors = {
        "GET": Door(
            right="read",
            summary="Nodes of a graph, by slug",
            query=shape.NodesQuery,
            output=list_of(shape.GraphListedNodeOutput),
            tagged=True,
        )
    }

    @in_one_snapshot
    def get(self, request: Any, **names: Any) -> Any:
        query = self.query
        reader, graph = self.open()
        question = {**query, "source": str(self.source.pk)}
        after = read_cursor(query["cursor"], viewer=self.viewer, question=question)
        dangling = {"true": True, "false": False}.get(query.get("dangling", ""))
        filters = NodeFilters(query["type"], query["status"], dangling, query["tag"], query["q"])
        found, total = list_nodes(
            reader, graph, filters, after=str(after[0]) if after else "", limit=query["limit"] + 1
        )
        more, found = len(found) > query["limit"], found[: query["limit"]]
        cursor = write_cursor([found[-1].node.uid], viewer=self.viewer, question=question) if more else None
        return self.answer(graph, Page(found, total, cursor).body(shape.present_listed))


class NodeView(GraphView):
    doors = {
        "GET": Door(
            right="read",
            summary="One node with its edges, their evidence, what has replaced it, and its findings",
            query=shape.NodeQuery,
            output=shape.GraphNodeDetailOutput,
            tagged=True,
        )
    }

    @in_one_snapshot
    def get(self, request: Any, uid: str, **names: Any) -> Any:
        reader, graph = self.open()
        detail = node_detail(
            self.viewer, self.source, reader, graph, uid, types=self.query["types"], most=self.query["edges"]
        )
        return self.answer(graph, shape.present_detail(detail))


class EdgesView(GraphView):
    doors = {
        "GET": Door(
            right="read",
            summary="All edges of one node with their evidence, in pages, the heaviest first",
            query=shape.EdgesQuery,
            output=list_of(shape.GraphNodeEdgeOutput),
            tagged=True,
        )
    }

    @in_one_snapshot
    def get(self, request: Any, uid: str, **names: Any) -> Any:
        reader, graph = self.open()
        query = self.query
        question = {**query, "source": str(self.source.pk), "node": uid}
        at = read_cursor(query["cursor"], viewer=self.viewer, question=question)
        found = page_of_edges(
            reader,
            graph,
            uid,
            direction=query["direction"],
            types=query["types"],
            after=Position.unpacked(at) if at else None,
            limit=query["limit"],
        )
        last = found.edges[-1].position.packed if found.more else None
        cursor = write_cursor(last, viewer=self.viewer, question=question) if last else None
        return self.answer(graph, Page(list(found.edges), found.total, cursor).body(shape.present_listed_edge))


class NeighbourhoodView(GraphView):
    doors = {
        "GET": Door(
            right="read",
            summary="What lies around one node",
            query=shape.AroundQuery,
            output=shape.GraphAroundOutput,
            tagged=True,
        )
    }

    @in_one_snapshot
    def get(self, request: Any, uid: str, **names: Any) -> Any:
        reader, graph = self.open()
        centre = reader.node(graph.pk, uid) if graph else None
        if graph is None or centre is None:
            raise NotFound
        query = self.query
        around = neighbourhood(
            reader,
            graph.pk,
            centre,
            depth=query["depth"],
            filters=self.filters(),
            max_nodes=query["nodes"],
            max_edges=query["edges"],
        )
        body = {
            "nodes": [shape.present_node(node) for node in around.nodes],
            "hops": around.hops,
            "edges": [shape.present_edge(edge) for edge in around.edges],
            "truncated": around.truncated,
        }
        return self.answer(graph, body)


class PathView(GraphView):
    doors = {
        "GET": Door(
            right="read",
            summary="The shortest way between two nodes, at most six steps",
            query=shape.PathQuery,
            output=shape.GraphWayOutput,
            tagged=True,
        )
    }

    @in_one_snapshot
    def get(self, request: Any, **names: Any) -> Any:
        reader, graph = self.open()
        ends = []
        for name in ("from", "to"):
            if not self.query[name]:
                raise BadRequest("The slug of a node is wanted here.", code="required", field=name)
            ends.append(self.query[name])
        known = reader.nodes(graph.pk, ends) if graph else {}
        if graph is None or not set(ends) <= set(known):
            raise NotFound
        way = shortest_path(reader, graph.pk, *ends)
        body = {
            "nodes": [shape.present_node(node) for node in way.nodes],
            "edges": [shape.present_edge(edge) for edge in way.edges],
            "truncated": way.truncated,
        }
        return self.answer(graph, body)


def picture_body(reader: Reader, graph: GraphSource | None, query: dict[str, Any], filters: Filters) -> dict[str, Any]:
    """The picture of a graph with places, as the graph page and the endpoint give it."""
    seen = picture(
        reader,
        graph,
        filters,
        node_types=query["type"],
        min_weight=query["min_weight"],
        max_nodes=query["nodes"],
        max_edges=query["edges"],
    )
    places = layout.arrange(
        {node.uid: layout.box_width(node.label) for node in seen.nodes},
        [(edge.from_uid, edge.to_uid) for edge in seen.edges],
    ).shares()
    return {
        "revision": graph.revision if graph else 0,
        "nodes": [
            {
                **shape.present_node(node),
                "degree": seen.degrees[node.uid],
                "x": places[node.uid][0],
                "y": places[node.uid][1],
            }
            for node in seen.nodes
        ],
        "edges": [shape.present_edge(edge) for edge in seen.edges],
        "total_nodes": seen.total_nodes,
        "truncated": seen.truncated,
    }


class SubgraphView(GraphView):
    doors = {
        "GET": Door(
            right="read",
            summary="The strongest part of a graph, laid out",
            query=shape.PictureQuery,
            output=shape.GraphPictureOutput,
            tagged=True,
        )
    }

    @in_one_snapshot
    def get(self, request: Any, **names: Any) -> Any:
        reader, graph = self.open()
        return self.answer(graph, picture_body(reader, graph, self.query, self.filters()))


class LintView(GraphView):
    doors = {
        "GET": Door(
            right="read",
            summary="What lint finds in what the caller sees, by path and line",
            query=shape.LintQuery,
            output=list_of(shape.GraphLintFindingOutput),
        )
    }

    @in_one_snapshot
    def get(self, request: Any, **names: Any) -> Response:
        wanted, severity = self.query["rule"], self.query.get("severity")
        found = [
            finding
            for finding in lint_seen(self.viewer, self.source)
            if (not wanted or finding.rule in wanted) and severity in (None, finding.severity)
        ]
        question = {**self.query, "source": str(self.source.pk)}
        return Response(page_of_list(found, viewer=self.viewer, question=question).body(as_json))


class RevisionsView(GraphView):
    doors = {
        "GET": Door(
            right="read",
            summary="States of a graph, newest first",
            query=ListQuery,
            output=list_of(shape.GraphRevisionOutput),
        )
    }

    @in_one_snapshot
    def get(self, request: Any, **names: Any) -> Response:
        rows = GraphRevision.objects.visible_to(self.viewer).filter(**{f"source__{self.source.kind}": self.source.pk})
        question = {**self.query, "source": str(self.source.pk)}
        page = page_of_rows(rows, order=("-number",), viewer=self.viewer, question=question)
        return Response(page.body(shape.present_revision))


class ExportView(GraphView):
    doors = {
        "GET": Door(
            right="read",
            summary="The whole graph as the caller sees it, as JSON or GraphML; audited",
            query=shape.ExportQuery,
            output=shape.GraphExportOutput,
            media=(("application/xml", '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"></graphml>'),),
        )
    }

    def get(self, request: Any, **names: Any) -> Any:
        with one_snapshot():
            reader, graph = self.open()
            nodes, edges = export.reader_rows(reader, graph)
        viewer = self.viewer
        by = viewer if rules.is_signed_in(viewer) and isinstance(viewer, User) else None
        with transaction.atomic():
            audit.record(audit.Act.EXPORTED, by=by, target=self.source, after={"graph": self.query["format"]})
        pieces = export.write(
            self.query["format"], source_word(self.source), graph.revision if graph else 0, nodes, edges
        )
        return StreamingHttpResponse(pieces, content_type=export.CONTENT_TYPES[self.query["format"]])


class RebuildView(GraphView):
    doors = {
        "POST": Door(
            right="write",
            summary="Project all pages again and apply the difference",
            scope=TokenScope.WRITE,
            output=JobOutput,
            status=202,
            also=(200,),
            creates=True,
        )
    }

    def post(self, request: Any, **names: Any) -> Response:
        enqueued = enqueue(PROJECT_GRAPH, source=self.source, by=self.user)
        [line] = lines([enqueued.job], self.viewer)
        if enqueued.deduplicated:
            return Response(present_line(line))
        return Response(present_line(line), status=202, headers={"Location": f"/api/jobs/{enqueued.job.pk}"})
