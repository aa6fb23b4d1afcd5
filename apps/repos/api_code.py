"""REST: symbols of a repository, what surrounds them, and linking documents to them anew."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from rest_framework.response import Response

from apps.access.rest.cursors import page_of_list, page_of_rows
from apps.access.rest.etags import etag_of, not_modified, tagged
from apps.access.rest.views import Door
from apps.jobs.api import queued
from apps.repos import api_code_values as shape
from apps.repos.api import QUEUED, InRepository
from apps.repos.api_values import freshness
from apps.repos.code.bodies import body_of
from apps.repos.code.neighbours import counts, neighbours
from apps.repos.code.related import related_chunks
from apps.repos.code.relinking import request_link_symbols
from apps.repos.code.searching import search
from apps.repos.globs import matches_any
from apps.repos.models_code import CodeNode


class NodesView(InRepository):
    doors = {
        "GET": Door(
            right="read",
            summary="Symbols of a repository: ranked by a name, or by path and line",
            query=shape.NodeQuery,
            output=shape.NodePage,
        )
    }

    def get(self, request: Any, **names: Any) -> Response:
        asked, held = self.query, self.repository
        question = self.question(commit=held.synced_commit)
        filters = {"kind": asked.get("kind", ""), "language": asked["language"], "path": asked["path"]}
        if asked["q"].strip():
            found = search(viewer=self.viewer, query=asked["q"], repository=held, whole=True, **filters)
            ranked = page_of_list(found, viewer=self.viewer, question=question)
            body = ranked.body(lambda one: shape.present_found(held, one))
        else:
            rows = CodeNode.objects.visible_to(self.viewer).filter(repository=held)
            rows = rows.filter(**{name: filters[name] for name in ("kind", "language") if filters[name]})
            path = filters["path"]
            if any(character in path for character in "*?["):
                paths = held.code_files.values_list("path", flat=True)
                rows = rows.filter(file__path__in=[one for one in paths if matches_any(one, [path])])
            elif path:
                rows = rows.filter(file__path__startswith=path)
            rows = rows.select_related("file").defer("search_keys")
            page = page_of_rows(
                rows, order=("file__path", "start_byte", "-end_byte", "id"), viewer=self.viewer, question=question
            )
            body = page.body(lambda node: shape.present_node(held, node))
        return Response({**body, "repository": freshness(held)})


class InNode(InRepository):
    """Below one symbol of the repository."""

    node: CodeNode

    def authorize(self, **names: Any) -> None:
        super().authorize(**names)
        rows = CodeNode.objects.filter(repository=self.repository).select_related("file").defer("search_keys")
        self.node = rows.get_for(self.viewer, pk=names["node_id"])


class NodeView(InNode):
    doors = {
        "GET": Door(
            right="read",
            summary="One symbol with its body and the passages that discuss it",
            query=shape.OneNodeQuery,
            output=shape.NodeOutput,
            tagged=True,
        )
    }

    def get(self, request: Any, node_id: UUID, **names: Any) -> Any:
        asked, held = self.query, self.node
        body = body_of(held, context_lines=asked["context_lines"])
        related = related_chunks([held.pk], asked["related"]).get(held.pk, ())
        answer = shape.present_whole(self.repository, held, body, counts(held), related)
        etag = etag_of(repr(answer))
        return not_modified(request, etag) or tagged(Response(answer), etag)


class NodeRelatedView(InNode):
    doors = {
        "GET": Door(
            right="read",
            summary="Symbols around a symbol: callers, callees, imports, bases, members",
            query=shape.RelatedQuery,
            output=shape.NeighbourhoodOutput,
        )
    }

    def get(self, request: Any, node_id: UUID, **names: Any) -> Response:
        asked = self.query
        around = neighbours(
            self.node,
            depth=asked["depth"],
            direction=asked["direction"],
            kinds=asked["kinds"],
            limit=asked["limit"],
        )
        return Response(shape.present_around(self.repository, self.node, around))


class RelinkView(InRepository):
    doors = {
        "POST": Door(
            right="write", summary="Link names in documents to symbols anew; nothing is read or embedded", **QUEUED
        )
    }

    def post(self, request: Any, **names: Any) -> Response:
        return queued(self, request_link_symbols(repository=self.repository, by=self.user))
