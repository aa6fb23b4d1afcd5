"""Addresses of the REST endpoints of search, below ``/api/``."""

from __future__ import annotations

from django.urls import path

from apps.collections.api_urls import ONE as ONE_COLLECTION
from apps.repos.api_urls import ONE as ONE_REPOSITORY
from apps.retrieval import api, api_lint, api_query_log, api_questions

urlpatterns = [
    path("search", api.SearchView.as_view()),
    path("route", api_questions.RouteView.as_view()),
    path("retrieve", api_questions.RetrieveView.as_view()),
    path("context", api_questions.ContextView.as_view()),
    path("explain", api_questions.ExplainView.as_view()),
    path("me/query-logs", api_query_log.MyQueryLogView.as_view()),
    path("query-logs", api_query_log.QueryLogView.as_view()),
    path("query-logs/stats", api_query_log.QueryStatisticsView.as_view()),
    path("suggest", api.SuggestView.as_view()),
    path("chunks/<int:chunk_id>", api.ChunkView.as_view()),
    path(f"{ONE_REPOSITORY}/search", api.RepositorySearchView.as_view()),
    path(f"{ONE_REPOSITORY}/lint", api_lint.RepositoryLintView.as_view()),
    path(f"{ONE_COLLECTION}/lint", api_lint.CollectionLintView.as_view()),
    path(f"{ONE_COLLECTION}/search", api.CollectionSearchView.as_view()),
]
