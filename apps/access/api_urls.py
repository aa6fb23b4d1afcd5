"""Joined below ``/api/`` by the site."""

from __future__ import annotations

from django.urls import path

from apps.access import api

urlpatterns = [
    path("me", api.MeView.as_view(), name="api-me"),
    path("me/tokens", api.MyTokensView.as_view(), name="api-my-tokens"),
    path("me/tokens/<str:token_id>", api.MyTokenView.as_view(), name="api-my-token"),
]
