"""Pages of repositories: the list and the overview. The reader, files, reports and settings stand beside this file."""

from __future__ import annotations

from typing import Any

from django.db.models import Count, F, Q, QuerySet, Sum
from django.db.models.functions import Length, Lower
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from apps.access import rules
from apps.access.compiled import MARK_OF_NOW, ReadableList, ReadableValues
from apps.access.pages import answer, paged
from apps.access.viewers import viewer_of
from apps.jobs.models import Job, Status
from apps.jobs.presentation import JobLine
from apps.repos import presentation
from apps.repos.catalogue import narrowed
from apps.repos.lookup import repository_for, with_document_total
from apps.repos.models import FileState, Repository, RepositoryDocument, RepositoryFile
from apps.repos.models_code import CodeNode
from apps.repos.page_body import page_body
from apps.repos.querysets import overdue_before

ORDERS = {
    "name": (Lower("slug"), "id"),
    "size": (F("document_total").desc(), Lower("slug"), "id"),
    "fresh": (F("last_checked_at").desc(nulls_last=True), Lower("slug"), "id"),
}
STATES = (
    ("ready", "ready"),
    ("stale", "stale"),
    ("syncing", "syncing"),
    ("error", "last run failed"),
    ("never_synced", "never synced"),
    ("empty", "empty"),
    ("not_found_upstream", "not found upstream"),
)
HISTORY = 20


_SHOWN = ("slug", "visibility", "description", "state", "schedule", "synced_commit", "last_checked_at")
_BY_NAME: ReadableList[Repository] = ReadableList(
    lambda viewer, *_: (
        with_document_total(Repository.objects.visible_to(viewer).with_state(MARK_OF_NOW))
        .order_by(*ORDERS["name"])
        .only(*_SHOWN)
    ),
    *overdue_before(MARK_OF_NOW),
)
_SLUGS = ReadableValues(lambda viewer: Repository.objects.visible_to(viewer).order_by().values_list("slug")[:1000])


@require_safe
def repository_list(request: HttpRequest) -> HttpResponse:
    viewer = viewer_of(request)
    text, host, state, order = (request.GET.get(name, "") for name in ("q", "host", "state", "order"))
    text = text.replace("\0", " ").strip()[:200]
    chosen = ORDERS.get(order, ORDERS["name"])
    if chosen is ORDERS["name"] and not (text or host or state):
        listed: Any = _BY_NAME.of(viewer, *overdue_before(timezone.now()))
    else:
        listed = _narrowed(Repository.objects.visible_to(viewer), text, host, state).order_by(*chosen)
    hosts = sorted({slug.partition("/")[0] for (slug,) in _SLUGS.all(viewer)})
    page = paged(listed, request)
    context = {
        "page": page,
        "q": text,
        "host": host,
        "hosts": hosts,
        "state": state,
        "states": STATES,
        "order": order if order in ORDERS else "name",
        "filtered": bool(text or host or state),
        "administrator": rules.is_administrator(viewer),
    }
    return answer(request, "repos/list.html", context, fragment="repos/_list.html")


def _narrowed(mine: Any, text: str, host: str, state: str) -> QuerySet[Any]:
    rows = mine.in_state(state) if state in dict(STATES) else mine.with_state()
    return with_document_total(narrowed(rows, search=text, host=host[:200]))


@require_safe
def overview(request: HttpRequest, slug: str) -> HttpResponse:
    viewer = viewer_of(request)
    repository = repository_for(viewer, slug)
    documents = RepositoryDocument.objects.visible_to(viewer).filter(repository=repository)
    files = RepositoryFile.objects.visible_to(viewer).filter(repository=repository)
    counts = documents.aggregate(
        total=Count("pk"),
        chunks=Sum("chunk_count"),
        lines=Sum("line_count"),
        held=Count("pk", filter=Q(absence="held")),
    )
    symbols = CodeNode.objects.visible_to(viewer).filter(repository=repository).exclude(kind="module")
    counts["symbols"] = symbols.count()
    readme = (
        documents.filter(path__iregex=r"^(docs/)?(readme|index)\.(md|mdx|rst)$")
        .order_by(Length("path"), "path")
        .first()
    )
    if readme is not None:
        readme.repository = repository
    file_counts = dict(files.values_list("state").annotate(n=Count("pk")).order_by())
    sizes = (
        files.exclude(size=None)
        .extra(select={"extension": "lower(substring(path from '[^./]+$'))"})
        .values_list("extension")
        .annotate(bytes=Sum("size"))
        .order_by()
    )
    syncs = list(
        Job.objects.visible_to(viewer)
        .of_source("repository", repository.pk)
        .filter(kind="sync")
        .select_related("requested_by")
        .order_by("-created_at", "id")[:HISTORY]
    )
    live = next((job for job in syncs if job.is_live), None)
    # It may have begun or ended since the row was read: a page says one thing.
    repository.is_syncing = live is not None  # type: ignore[attr-defined]
    finished = [job for job in reversed(syncs) if not job.is_live]
    body = None
    if readme is not None:
        body = page_body(readme, readme.links.select_related("target_document").order_by("id"))
    context = {
        "header": presentation.header(repository, "repos:overview", heading=body is None or not body.has_heading),
        "counts": counts,
        "file_total": sum(file_counts.values()),
        "taken": file_counts.get(FileState.INDEXED, 0),
        "coverage": presentation.shares(
            (
                ("indexed", file_counts.get(FileState.INDEXED, 0), "fill-ok"),
                ("skipped", file_counts.get(FileState.SKIPPED, 0), "fill-warn"),
                ("error", file_counts.get(FileState.ERROR, 0), "fill-bad"),
                ("quarantined", file_counts.get(FileState.QUARANTINED, 0), "fill-bad"),
                ("not taken", file_counts.get(FileState.NOT_TAKEN, 0), "fill-6"),
            )
        ),
        "languages": presentation.languages({extension: size for extension, size in sizes if extension}),
        "live": JobLine(live) if live else None,
        "failed": finished[-1] if finished and finished[-1].status == Status.ERROR else None,
        "syncs": [JobLine(job) for job in reversed(finished)],
        "columns": presentation.sync_history(finished),
        "width": HISTORY * presentation.COLUMN,
        "readme": readme,
        "body": body,
    }
    return answer(request, "repos/overview.html", context)
