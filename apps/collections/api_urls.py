"""Addresses of the REST endpoints of collections, below ``/api/``."""

from __future__ import annotations

from django.urls import path

from apps.collections import api

urlpatterns = [
    path("md-collections", api.CollectionsView.as_view()),
    path("md-collections/<uuid:collection_id>", api.CollectionView.as_view()),
    path("md-collections/<uuid:collection_id>/documents", api.DocumentsView.as_view()),
    path("md-collections/<uuid:collection_id>/documents/batch", api.BatchView.as_view()),
    path("md-collections/<uuid:collection_id>/documents/<uuid:document_id>", api.DocumentView.as_view()),
    path("md-collections/<uuid:collection_id>/documents/<uuid:document_id>/restore", api.RestoreView.as_view()),
    path("md-collections/<uuid:collection_id>/documents/<uuid:document_id>/chunks", api.DocumentChunksView.as_view()),
]
