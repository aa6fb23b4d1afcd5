"""The context page: a task becomes the pack that an agent would get, beside the documents that it came from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db.models import Value
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from apps.access.errors import Invalid
from apps.access.pages import answer
from apps.access.viewers import viewer_of
from apps.collections.models import Collection
from apps.repos.models import Repository
from apps.retrieval import query_log
from apps.retrieval.asking import named_sources
from apps.retrieval.context import DEFAULT_TOKENS, MAX_TASK_CHARS, MAX_TOKENS, MIN_TOKENS, context
from apps.retrieval.context_links import PackLinks, links_of
from apps.retrieval.context_picture import picture_of
from apps.retrieval.context_presentation import pack_body, sample_tasks
from apps.retrieval.models import Door
from apps.retrieval.packing import Pack

if TYPE_CHECKING:
    from apps.access.viewers import Viewer

MOST_CHOICES = 300
"""Sources offered in the list of choices; others are reached by their own address."""
BUDGETS = (500, 2000, 4000, 8000, 16_000, 24_000)


@require_safe
def context_page(request: HttpRequest) -> HttpResponse:
    """One form, by GET. Without a task, tasks to try; otherwise the pack and its picture."""
    viewer = viewer_of(request)
    task = request.GET.get("task", "").strip()
    source = request.GET.get("source", "")
    budget = request.GET.get("budget", "").strip() or str(DEFAULT_TOKENS)
    pack: Pack | None = None
    problem = ""
    if task:
        try:
            pack = _asked(request, viewer, task, budget, source)
        except Invalid as refusal:
            problem = refusal.message
    links = links_of(viewer, pack) if pack else PackLinks()
    choices = _choices(viewer)
    values = {
        "task": task,
        "source": source,
        "budget": budget,
        "budgets": BUDGETS,
        "least": MIN_TOKENS,
        "most": MAX_TOKENS,
        "longest": MAX_TASK_CHARS,
        "choices": choices,
        "problem": problem,
        "pack": pack,
        "body": pack_body(pack, links) if pack else None,
        "picture": picture_of(pack, links) if pack and not pack.empty else None,
        "call": _call(pack, source, dict(choices)) if pack else "",
        "samples": [] if pack else sample_tasks(viewer),
    }
    return answer(request, "retrieval/context.html", values)


def _asked(request: HttpRequest, viewer: Viewer, task: str, budget: str, source: str) -> Pack:
    """The pack, with its row in the query log. Raises Invalid in words for the reader."""
    named = named_sources([source], viewer)
    try:
        max_tokens = int(budget)
    except ValueError:
        raise Invalid(f"The budget is a number from {MIN_TOKENS} to {MAX_TOKENS:,} tokens.", field="budget") from None
    ids: dict[str, UUID] = dict(named)
    with query_log.noting(by=request.user, door=Door.PAGE, tool="context", query=task, named=named) as note:
        pack = context(
            viewer=viewer,
            task=task,
            max_tokens=max_tokens,
            repository=ids.get(Repository.kind),
            collection=ids.get(Collection.kind),
        )
        note.answered(((part.source.kind, part.source.id) for part in pack.parts), tokens=pack.tokens)
    return pack


def _choices(viewer: Viewer) -> list[tuple[str, str]]:
    """(kind:id, what people call it) of the sources that the viewer reads."""
    slugs: Any = Repository.objects.visible_to(viewer).order_by("slug")[:MOST_CHOICES]
    names: Any = Collection.objects.visible_to(viewer).order_by("name", "pk")[:MOST_CHOICES]
    rows = slugs.values_list(Value(0), "slug", "pk").union(names.values_list(Value(1), "name", "pk"), all=True)
    kinds = (Repository.kind, Collection.kind)
    return [(f"{kinds[kind]}:{pk}", label) for kind, label, pk in sorted(rows)]


def _call(pack: Pack, source: str, labels: Mapping[str, str]) -> str:
    """The same question as an agent puts it."""
    arguments: dict[str, Any] = {"task": pack.task, "max_tokens": pack.max_tokens}
    kind, _, number = source.partition(":")
    if kind == Repository.kind:
        # A source was chosen by its address where the list of choices does not reach it.
        arguments["repository"] = labels.get(source) or Repository.objects.values_list("slug", flat=True).get(pk=number)
    elif kind == Collection.kind:
        arguments["collection"] = number
    return json.dumps({"name": "cograph_context", "arguments": arguments}, ensure_ascii=False, indent=2)
