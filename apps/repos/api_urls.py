"""Addresses of the REST endpoints of repositories, below ``/api/``."""

from __future__ import annotations

from django.urls import URLPattern, path

from apps.repos import api, api_code, api_reading, converters

__all__ = ["converters", "urlpatterns"]

ONE = "repos/<slug_part:host>/<slug_part:owner>/<slug_part:name>"


def below(rest: str, view: type[api.InRepository]) -> URLPattern:
    return path(f"{ONE}/{rest}", view.as_view())


urlpatterns = [
    path("repos", api.RepositoriesView.as_view()),
    path(ONE, api.RepositoryView.as_view()),
    below("sync", api.SyncView),
    below("re-chunk", api.RechunkView),
    below("re-embed", api.ReembedView),
    below("held-deletions", api.HeldDeletionsView),
    below("report", api.ReportView),
    below("jobs", api.RepositoryJobsView),
    below("grants", api.RepositoryGrantsView),
    below("grants/<str:kind>/<path:grantee>", api.RepositoryGrantView),
    below("documents", api_reading.RepositoryDocumentsView),
    below("documents/<uuid:document_id>", api_reading.RepositoryDocumentView),
    below("documents/<uuid:document_id>/chunks", api_reading.RepositoryDocumentChunksView),
    below("docs", api_reading.DocsView),
    below("docs/<str:doc_slug>", api_reading.DocPageView),
    below("nodes", api_code.NodesView),
    below("nodes/<uuid:node_id>", api_code.NodeView),
    below("nodes/<uuid:node_id>/related", api_code.NodeRelatedView),
    below("re-link", api_code.RelinkView),
    below("files", api_reading.FilesView),
    below("files/range", api_reading.FileRangeView),
]
