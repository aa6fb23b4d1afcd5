"""Addresses of the REST endpoints of graphs, below ``/api/``: a repository by its slug, a collection by its id."""

from __future__ import annotations

from typing import Any

from django.urls import URLPattern, path

from apps.knowledge_graph import api
from apps.repos import converters

__all__ = ["converters", "urlpatterns"]

PLACES = {"Repository": "graph/repo/<repository:slug>", "Collection": "graph/collection/<uuid:collection_id>"}


def below(rest: str, view: type[api.GraphView]) -> list[URLPattern]:
    """One view for each kind of source, so that the schema can name them apart."""
    made: list[URLPattern] = []
    for kind, place in PLACES.items():
        own: Any = type(f"{kind}Graph{view.__name__}", (view,), {"__doc__": view.__doc__})
        made.append(path(f"{place}/{rest}", own.as_view()))
    return made


urlpatterns = [
    *below("nodes", api.NodesView),
    *below("nodes/<str:uid>", api.NodeView),
    *below("nodes/<str:uid>/edges", api.EdgesView),
    *below("nodes/<str:uid>/neighbourhood", api.NeighbourhoodView),
    *below("path", api.PathView),
    *below("subgraph", api.SubgraphView),
    *below("lint", api.LintView),
    *below("revisions", api.RevisionsView),
    *below("export", api.ExportView),
    *below("rebuild", api.RebuildView),
]
