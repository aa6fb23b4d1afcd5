"""Addresses of the pages of search."""

from __future__ import annotations

from django.urls import path

from apps.repos import converters
from apps.retrieval import context_views, lint_views, marks_views, query_pages, views, why_views

__all__ = ["converters", "urlpatterns"]

urlpatterns = [
    path("search", views.search_page, name="search"),
    path("search/why-not", why_views.why_not, name="why-not"),
    path("search/marks", marks_views.marks, name="marks"),
    path("context", context_views.context_page, name="context"),
    path("lint", lint_views.all_lint, name="lint"),
    path("repos/<repository:slug>/lint", lint_views.repository_lint, name="repository-lint"),
    path("repos/<repository:slug>/lint/figures", lint_views.repository_lint_figures, name="repository-lint-figures"),
    path("docs/<uuid:collection_id>/lint", lint_views.collection_lint, name="collection-lint"),
    path("account/queries", query_pages.queries, name="queries"),
    path("chunks/<int:chunk_id>", views.chunk_page, name="chunk"),
]
