"""Addresses of the pages of graphs."""

from __future__ import annotations

from django.urls import path

from apps.knowledge_graph import views
from apps.repos import converters

__all__ = ["converters", "urlpatterns"]

urlpatterns = [
    path("graph", views.graph_list, name="graph"),
    path("graph/repo/<repository:slug>", views.repository_graph, name="graph-repository"),
    path("graph/repo/<repository:slug>/related", views.related, name="graph-related"),
    path("graph/collection/<uuid:collection_id>", views.collection_graph, name="graph-collection"),
    path("graph/document/<uuid:document_id>", views.document_panel, name="graph-document"),
]
