"""Addresses of the pages of collections."""

from __future__ import annotations

from django.urls import path

from apps.collections import compare_views, document_views, settings_views, upload_views, views

app_name = "collections"

urlpatterns = [
    path("docs", views.collection_list, name="list"),
    path("docs/<uuid:collection_id>", views.collection_page, name="collection"),
    path("docs/<uuid:collection_id>/upload", upload_views.upload, name="upload"),
    path("docs/<uuid:collection_id>/uploads/<uuid:job_id>", upload_views.upload_state, name="upload-state"),
    path("docs/<uuid:collection_id>/links", views.links, name="links"),
    path("docs/<uuid:collection_id>/trash", settings_views.trash_page, name="trash"),
    path("docs/<uuid:collection_id>/settings", settings_views.settings_page, name="settings"),
    path("docs/<uuid:collection_id>/upkeep", settings_views.upkeep, name="upkeep"),
    path(
        "docs/<uuid:collection_id>/documents/<uuid:document_id>",
        document_views.document_page,
        name="document",
    ),
    path("docs/<uuid:collection_id>/documents/<uuid:document_id>/raw", document_views.raw, name="raw"),
    path("docs/<uuid:collection_id>/documents/<uuid:document_id>/compare", compare_views.compare_page, name="compare"),
    path(
        "docs/<uuid:collection_id>/documents/<uuid:document_id>/compare/raw",
        compare_views.compare_patch,
        name="compare-raw",
    ),
    path(
        "docs/<uuid:collection_id>/documents/<uuid:document_id>/trash",
        settings_views.trash_one,
        name="trash-one",
    ),
    path("docs/<uuid:collection_id>/assets/<uuid:asset_id>", document_views.asset, name="asset"),
]
