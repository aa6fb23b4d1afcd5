"""Cograph's own guides, read from ``docs/`` beside the code and rendered like every other document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from apps.access.errors import NotFound
from apps.access.pages import answer

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


@require_safe
def guide(request: HttpRequest, slug: str = "") -> HttpResponse:
    known = guides()
    if slug not in known:
        raise NotFound
    page = known[slug]
    groups = [
        (words, [(key, one.title) for key, one in known.items() if one.group == name]) for name, words in GROUPS.items()
    ]
    context = {"guide": page, "slug": slug, "groups": groups, "text": page.file.read_text(encoding="utf-8")}
    return answer(request, "site/guide.html", context)


@require_safe
def keyboard(request: HttpRequest) -> HttpResponse:
    return answer(request, "site/keyboard.html", {})
