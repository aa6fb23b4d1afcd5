"""Joined below ``/api/`` by the site."""

from __future__ import annotations

from django.urls import path

from apps.access import api
from apps.access.rest import docs

urlpatterns = [
    path("schema", docs.schema, name="api-schema"),
    path("docs", docs.docs, name="api-docs"),
    path("audit", api.AuditView.as_view(), name="api-audit"),
    path("me", api.MeView.as_view(), name="api-me"),
    path("me/tokens", api.MyTokensView.as_view(), name="api-my-tokens"),
    path("me/tokens/<str:token_id>", api.MyTokenView.as_view(), name="api-my-token"),
]
