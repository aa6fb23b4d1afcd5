"""Addresses of this room: the MCP server, and the page that connects an agent to it."""

from __future__ import annotations

from django.urls import path

from apps.mcp import door, views

urlpatterns = [
    path("mcp", door.endpoint, name="mcp"),
    path("connect", views.connect, name="connect"),
]
