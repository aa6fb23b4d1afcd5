"""What every page knows: the chosen theme and the entries of the navigation. No query."""

from __future__ import annotations

import contextlib
import functools
from dataclasses import dataclass

from django.conf import settings
from django.http import HttpRequest
from django.urls import NoReverseMatch, get_urlconf, reverse

THEMES = ("light", "dark")
THEME_COOKIE = "cg_theme"

NAVIGATION = (
    ("search", "Search"),
    ("repos:list", "Repositories"),
    ("collections:list", "Collections"),
    ("context", "Context"),
    ("graph", "Graph"),
    ("jobs:list", "Jobs"),
    ("connect", "Connect an agent"),
)
"""URL name and words. A room that is not joined to the site shows no entry."""


@dataclass(frozen=True, slots=True)
class Entry:
    href: str
    words: str
    current: bool


def navigation(path: str) -> list[Entry]:
    return [
        Entry(href, words, path == href or path.startswith(href + "/"))
        for href, words in _addresses(get_urlconf() or settings.ROOT_URLCONF)
    ]


@functools.lru_cache(maxsize=8)
def _addresses(urls: object) -> list[tuple[str, str]]:
    """Looked up once for each set of addresses: every page shows them all."""
    found = []
    for name, words in NAVIGATION:
        with contextlib.suppress(NoReverseMatch):
            found.append((reverse(name), words))
    return found


def portal(request: HttpRequest) -> dict[str, object]:
    theme = request.COOKIES.get(THEME_COOKIE, "")
    return {"theme": theme if theme in THEMES else "", "navigation": navigation(request.path)}
