"""Addresses of this room: the MCP server."""

from __future__ import annotations

from django.urls import path

from apps.mcp import door

urlpatterns = [
    path("mcp", door.endpoint, name="mcp"),
]
