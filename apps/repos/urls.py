"""Addresses of the pages of repositories. ``<repository:slug>`` is ``host/owner/name``."""

from __future__ import annotations

from django.urls import path

from apps.repos import (
    code_views,
    compare_views,
    converters,
    reader_views,
    report_views,
    settings_views,
    views,
    webhook_views,
)

__all__ = ["app_name", "converters", "urlpatterns"]

app_name = "repos"

urlpatterns = [
    path("repos", views.repository_list, name="list"),
    path("repos/add", settings_views.add, name="add"),
    path("repos/<repository:slug>", views.overview, name="overview"),
    path("repos/<repository:slug>/docs", reader_views.docs, name="docs"),
    path("repos/<repository:slug>/docs/<str:doc_slug>", reader_views.reader, name="reader"),
    path("repos/<repository:slug>/docs/<str:doc_slug>/compare", compare_views.compare_page, name="compare"),
    path("repos/<repository:slug>/docs/<str:doc_slug>/compare/raw", compare_views.compare_patch, name="compare-raw"),
    path("repos/<repository:slug>/code", code_views.code, name="code"),
    path("repos/<repository:slug>/code/<uuid:node_id>", code_views.node, name="node"),
    path("repos/<repository:slug>/files", reader_views.files, name="files"),
    path("repos/<repository:slug>/files/<path:path>", reader_views.file, name="file"),
    path("repos/<repository:slug>/images/<path:path>", reader_views.image, name="image"),
    path("repos/<repository:slug>/report", report_views.report, name="report"),
    path("repos/<repository:slug>/report/<uuid:job_id>", report_views.report, name="report-of"),
    path("repos/<repository:slug>/settings", settings_views.settings_page, name="settings"),
    path("repos/<repository:slug>/sync", settings_views.sync, name="sync"),
    path("repos/<repository:slug>/held-deletions", settings_views.held, name="held"),
    path("webhooks/<str:provider>/<str:hook_id>", webhook_views.webhook, name="webhook"),
]
