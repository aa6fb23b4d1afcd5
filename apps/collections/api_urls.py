"""Addresses of the REST endpoints of collections, below ``/api/``."""

from __future__ import annotations

from django.urls import path

from apps.collections import api, api_upkeep

ONE = "md-collections/<uuid:collection_id>"

urlpatterns = [
    path("md-collections", api.CollectionsView.as_view()),
    path("md-collections/-/jobs", api_upkeep.AllCollectionJobsView.as_view()),
    path("md-collections/-/jobs/<uuid:job_id>/retry", api_upkeep.CollectionJobRetryView.as_view()),
    path(ONE, api.CollectionView.as_view()),
    path(f"{ONE}/documents", api.DocumentsView.as_view()),
    path(f"{ONE}/documents/batch", api.BatchView.as_view()),
    path(f"{ONE}/documents/<uuid:document_id>", api.DocumentView.as_view()),
    path(f"{ONE}/documents/<uuid:document_id>/restore", api.RestoreView.as_view()),
    path(f"{ONE}/documents/<uuid:document_id>/chunks", api.DocumentChunksView.as_view()),
    path(f"{ONE}/jobs", api_upkeep.CollectionJobsView.as_view()),
    path(f"{ONE}/embed-status", api_upkeep.EmbedStatusView.as_view()),
    path(f"{ONE}/re-embed", api_upkeep.CollectionReembedView.as_view()),
    path(f"{ONE}/grants", api_upkeep.CollectionGrantsView.as_view()),
    path(f"{ONE}/grants/<str:kind>/<path:grantee>", api_upkeep.CollectionGrantView.as_view()),
]
