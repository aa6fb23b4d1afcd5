"""What every page knows: the chosen theme and the entries of the navigation. No query."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

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
    entries = []
    for name, words in NAVIGATION:
        try:
            href = reverse(name)
        except NoReverseMatch:
            continue
        entries.append(Entry(href, words, path == href or path.startswith(href + "/")))
    return entries


def portal(request: HttpRequest) -> dict[str, object]:
    theme = request.COOKIES.get(THEME_COOKIE, "")
    return {"theme": theme if theme in THEMES else "", "navigation": navigation(request.path)}
