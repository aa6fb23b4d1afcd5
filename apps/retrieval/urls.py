"""Addresses of the pages of search."""

from __future__ import annotations

from django.urls import path

from apps.retrieval import context_views, query_pages, views

urlpatterns = [
    path("search", views.search_page, name="search"),
    path("context", context_views.context_page, name="context"),
    path("account/queries", query_pages.queries, name="queries"),
    path("chunks/<int:chunk_id>", views.chunk_page, name="chunk"),
]
