"""Addresses of the pages of search."""

from __future__ import annotations

from django.urls import path

from apps.retrieval import views

urlpatterns = [
    path("search", views.search_page, name="search"),
    path("chunks/<int:chunk_id>", views.chunk_page, name="chunk"),
]
