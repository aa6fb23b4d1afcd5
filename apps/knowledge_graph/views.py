"""The graph page of one source, the list of sources that have a graph, and the panel on document pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.views.decorators.http import require_safe

from apps.access.errors import NotFound
from apps.access.pages import answer, wants_fragment
from apps.access.viewers import viewer_of
from apps.collections.lookup import collection_for
from apps.collections.models import Document
from apps.collections.presentation import header as collection_header
from apps.knowledge_graph import drawing
from apps.knowledge_graph.detail import node_detail
from apps.knowledge_graph.graph_page import (
    LONGEST_NAME,
    STATE,
    WEIGHTS,
    chain_shown,
    depth_of,
    drawn,
    edge_list,
    way_shown,
)
from apps.knowledge_graph.lookup import nodes_called
from apps.knowledge_graph.page_values import READ_FROM, SIGNS, edge_lines, newest_lines, source_lines
from apps.knowledge_graph.panel import panel
from apps.knowledge_graph.reader import open_graph, open_reader
from apps.knowledge_graph.related import related_collections
from apps.knowledge_graph.snapshot import in_one_snapshot
from apps.knowledge_graph.vocabulary import EDGE_TYPES, NODE_TYPES, STATUSES
from apps.knowledge_graph.walks import neighbourhood
from apps.repos.lookup import repository_for
from apps.repos.models import RepositoryDocument
from apps.repos.presentation import header as repository_header

if TYPE_CHECKING:
    from apps.access.sources import Source
    from apps.access.viewers import Viewer

MOST_SOURCES = 50
FILTERS = ("type", "edge", "status", "provenance", "weight", "inferred")
"""Of the state, what stands in the fold of narrow screens."""
NEARBY_NODES = 20
"""Nodes of the small picture on a document page."""


@require_safe
@in_one_snapshot
def graph_list(request: HttpRequest) -> HttpResponse:
    """Sources with a graph, with what the reader sees of them in numbers."""
    reader = open_reader(viewer_of(request))
    return answer(request, "graph/list.html", {"lines": source_lines(reader, MOST_SOURCES)})


@require_safe
@in_one_snapshot
def repository_graph(request: HttpRequest, slug: str) -> HttpResponse:
    viewer = viewer_of(request)
    repository = repository_for(viewer, slug)
    return _page(request, viewer, repository, "repos", repository_header(repository, "graph-repository"))


@require_safe
@in_one_snapshot
def collection_graph(request: HttpRequest, collection_id: UUID) -> HttpResponse:
    viewer = viewer_of(request)
    collection = collection_for(viewer, collection_id)
    return _page(request, viewer, collection, "collections", collection_header(collection, "graph"))


def _page(request: HttpRequest, viewer: Viewer, source: Source, kind: str, header: Any) -> HttpResponse:
    params = request.GET
    reader, graph = open_graph(viewer, source)
    revision = graph.revision if graph else 0
    if "revision" in params and wants_fragment(request):
        return _fresh(request, revision)
    problem, candidates = "", []
    if params.get("q", "").strip():
        try:
            candidates = nodes_called(reader, graph, params["q"][:LONGEST_NAME])
        except NotFound:
            problem = "No node that you can see has this name. The list below holds them all."
        if len(candidates) == 1:
            return redirect(request.path + drawing.address(params, STATE, focus=candidates[0].uid))
    focus = params.get("focus", "")[:200]
    detail = None
    if focus:
        try:
            detail = node_detail(viewer, source, reader, graph, focus)
        except NotFound:
            problem = problem or "There is no such node among those that you can see."
    way = way_shown(reader, graph, detail, params.get("to", ""))
    picture, total, truncated = drawn(params, reader, graph, detail, way)
    context = {
        "kind": kind,
        "header": header,
        "source": source,
        "graph": graph,
        "revision": revision,
        "drawn": picture,
        "way": way,
        "total": total,
        "truncated": truncated,
        "detail": detail,
        "outgoing": edge_list(viewer, source, reader, graph, detail, params, "out") if detail else None,
        "incoming": edge_list(viewer, source, reader, graph, detail, params, "in") if detail else None,
        "chain": chain_shown(reader, graph, detail),
        "problem": problem,
        "candidates": candidates if len(candidates) > 1 else [],
        "state": {name: params.get(name, "") for name in STATE},
        "narrowed": sum(bool(params.get(name)) for name in FILTERS),
        "q": params.get("q", ""),
        "depth": depth_of(params),
        "types": NODE_TYPES,
        "relations": EDGE_TYPES,
        "statuses": STATUSES,
        "provenances": READ_FROM.items(),
        "weights": WEIGHTS,
        "signs": SIGNS,
        "unfocused": drawing.address(params, STATE, focus="", to=""),
        "directed": drawing.address(params, STATE, to=""),
        "rest": "/api" + graph_address(source),
    }
    return answer(request, "graph/graph.html", context)


def _fresh(request: HttpRequest, revision: int) -> HttpResponse:
    """What the page asks every ten seconds: nothing while the graph is as it was."""
    if request.GET["revision"] == str(revision):
        return HttpResponse(status=204)
    return answer(request, "graph/_fresh.html", {"path": request.path, "kept": drawing.address(request.GET, STATE)})


@require_safe
@in_one_snapshot
def document_panel(request: HttpRequest, document_id: UUID) -> HttpResponse:
    """What the graph knows of one document, asked for by its page. Raises NotFound alike for hidden and absent ones."""
    viewer = viewer_of(request)
    document, source, path = _document(viewer, document_id)
    found = panel(viewer, source, document=document_id, path=path)
    base = graph_address(source)
    context: dict[str, Any] = {"title": document.title, "panel": found, "drawn": None, "address": base, "graph": base}
    if found is not None and found.detail is not None:
        reader, graph = open_graph(viewer, source)
        node = found.detail.node
        if graph is not None:
            around = neighbourhood(reader, graph.pk, node, depth=1, max_nodes=NEARBY_NODES)
            links = drawing.Links(QueryDict(), STATE, base)
            context["drawn"] = drawing.draw(around.nodes, around.edges, links, focus=node.uid, small=True)
        context |= {
            "outgoing": edge_lines(viewer, source, found.detail.outgoing),
            "incoming": edge_lines(viewer, source, found.detail.incoming),
            "address": f"{base}?{urlencode({'focus': node.uid})}",
            "newest": newest_lines(source, found.detail),
        }
    return answer(request, "graph/panel.html", context, fragment="graph/_panel.html")


@require_safe
@in_one_snapshot
def related(request: HttpRequest, slug: str) -> HttpResponse:
    """The collections that have to do with a repository, asked for by its overview."""
    viewer = viewer_of(request)
    repository = repository_for(viewer, slug)
    context = {
        "header": repository_header(repository, ""),
        "related": related_collections(viewer, repository),
    }
    return answer(request, "graph/related.html", context, fragment="graph/_related.html")


def _document(viewer: Viewer, document_id: UUID) -> tuple[Any, Source, str]:
    """A readable document of either kind with its source and path. Raises NotFound."""
    own = RepositoryDocument.objects.visible_to(viewer).select_related("repository").filter(pk=document_id).first()
    if own is not None:
        return own, own.repository, own.path
    rows: Any = Document.objects.visible_to(viewer).select_related("collection").filter(pk=document_id)
    found = rows.first()
    if found is None:
        raise NotFound
    return found, found.collection, found.source_key


def graph_address(source: Source) -> str:
    return f"/graph/repo/{source.label}" if source.kind == "repository" else f"/graph/collection/{source.pk}"
