"""Which rooms have pages and endpoints. A room joins the site by having `urls.py` or `api_urls.py`."""

from __future__ import annotations

import importlib.util

from django.urls import URLResolver, include, path

# The higher room first: what it adds below an address of a lower one must be found before that one's general patterns.
ROOMS = ("mcp", "retrieval", "knowledge_graph", "repos", "collections", "indexing", "jobs", "access")


def pages() -> list[URLResolver]:
    """The `urls.py` of every room, each with whole addresses."""
    return _present("urls")


def endpoints() -> list[URLResolver]:
    """The `api_urls.py` of every room; addresses in them are relative to `/api/`."""
    return _present("api_urls")


def _present(module: str) -> list[URLResolver]:
    names = [f"apps.{room}.{module}" for room in ROOMS]
    return [path("", include(name)) for name in names if importlib.util.find_spec(name) is not None]
