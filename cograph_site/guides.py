"""Cograph's own guides, read from ``docs/`` beside the code and rendered like every other document."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from apps.access.errors import NotFound
from apps.access.pages import answer
from apps.markup.parsing import parse
from apps.markup.rendering import render
from apps.markup.rendering.resolved import Resolved, as_written
from apps.markup.values import Asset, Decoded, Limits, Link, Skipped

GROUPS = {"using": "For readers and writers", "operating": "For operators", "agents": "For programs and agents"}


@dataclass(frozen=True, slots=True)
class Guide:
    slug: str
    title: str
    group: str
    file: Path


@cache
def guides() -> Mapping[str, Guide]:
    """Every guide by its slug. SECURITY: addresses are looked up here and never joined to a folder."""
    root = Path(settings.BASE_DIR) / "docs"
    found = {}
    for file in sorted(root.rglob("*.md")):
        slug = file.relative_to(root).with_suffix("").as_posix()
        first = file.read_text(encoding="utf-8").lstrip().splitlines()[:1]
        title = first[0].lstrip("# ").strip() if first else slug
        found["" if slug == "README" else slug] = Guide(slug, title, slug.partition("/")[0], file)
    return found


@cache
def rendered(slug: str) -> str:
    """A guide as safe HTML; links between guides lead to their pages here."""
    page = guides()[slug]
    parsed = parse(Decoded(page.file.read_text(encoding="utf-8"), "utf-8"), page.file.name, Limits())
    if isinstance(parsed, Skipped):
        raise NotFound

    def resolve(link: Link | Asset) -> Resolved:
        path, _, fragment = link.href.partition("#")
        if "//" in path or not path.endswith(".md"):
            return as_written(link)
        wanted = posixpath.normpath(posixpath.join(posixpath.dirname(page.slug), path)).removesuffix(".md")
        key = "" if wanted == "README" else wanted
        if key not in guides():
            return Resolved(None, "broken", "no such guide")
        address = reverse("help-page", args=[key]) if key else reverse("help")
        return Resolved(address + (f"#{fragment}" if fragment else ""))

    return render(parsed, resolve)


@require_safe
def guide(request: HttpRequest, slug: str = "") -> HttpResponse:
    known = guides()
    if slug not in known:
        raise NotFound
    page = known[slug]
    groups = [
        (words, [(key, one.title) for key, one in known.items() if one.group == name]) for name, words in GROUPS.items()
    ]
    context = {"guide": page, "slug": slug, "groups": groups, "html": rendered(slug)}
    return answer(request, "site/guide.html", context)


@require_safe
def keyboard(request: HttpRequest) -> HttpResponse:
    return answer(request, "site/keyboard.html", {})
