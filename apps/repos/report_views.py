"""Sync reports: what was taken, what was not, and why; as page, JSON and CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from io import StringIO
from typing import Any
from uuid import UUID

from django.db.models import Count
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from apps.access.errors import NotFound
from apps.access.pages import answer, paged
from apps.access.viewers import viewer_of
from apps.jobs.models import ItemState, Job, JobItem
from apps.jobs.presentation import JobLine
from apps.repos import presentation
from apps.repos.lookup import repository_for
from apps.repos.models import Repository, RepositoryDocument, SyncReport

COUNTERS = (
    ("discovered_files", "files found"),
    ("indexed_documents", "documents indexed"),
    ("indexed_chunks", "chunks of these"),
    ("unchanged_documents", "unchanged"),
    ("deleted_documents", "removed"),
    ("replaced_files", "replaced"),
)
HISTORY = 20
COLUMNS = ("path", "state", "reason", "message", "line", "column", "size", "milliseconds", "chunks")


@require_safe
def report(request: HttpRequest, slug: str, job_id: UUID | None = None) -> HttpResponse:
    """The newest finished sync, or the one that is named."""
    viewer = viewer_of(request)
    repository = repository_for(viewer, slug)
    syncs = list(
        Job.objects.visible_to(viewer)
        .of_source("repository", repository.pk)
        .filter(kind="sync")
        .select_related("requested_by")
        .order_by("-created_at", "id")[: HISTORY + 1]
    )
    finished = [job for job in syncs if not job.is_live]
    job = next((one for one in finished if job_id in (None, one.pk)), None)
    if job is None and job_id is not None:
        job = (
            Job.objects.visible_to(viewer).of_source("repository", repository.pk).filter(pk=job_id, kind="sync").first()
        )
        if job is None:
            raise NotFound
    form = request.GET.get("format", "")
    if job is not None and form == "csv":
        return _csv(job)
    if job is not None and form == "json":
        return JsonResponse(_as_json(repository, job))
    return answer(
        request, "repos/report.html", _values(request, repository, job, syncs), fragment="repos/_report_items.html"
    )


def _values(request: HttpRequest, repository: Repository, job: Job | None, syncs: list[Job]) -> dict[str, Any]:
    live = next((one for one in syncs if one.is_live), None)
    finished = [one for one in reversed(syncs) if not one.is_live][-HISTORY:]
    values: dict[str, Any] = {
        "header": presentation.header(repository, "repos:report"),
        "live": JobLine(live) if live else None,
        "line": JobLine(job) if job else None,
        "history": [JobLine(one) for one in reversed(finished)],
        "columns": presentation.sync_history(finished),
        "width": HISTORY * presentation.COLUMN,
    }
    if job is None:
        return values
    state, text = request.GET.get("state", ""), request.GET.get("q", "").replace("\0", " ").strip()[:200]
    counts = dict(job.items.values_list("state").annotate(n=Count("pk")).order_by())
    items = job.items.order_by("-warning", "path")
    if state == "warnings":
        items = items.filter(warning=True)
    elif state in ItemState.values:
        items = items.filter(state=state)
    if text:
        items = items.filter(path__icontains=text)
    found: SyncReport | None = SyncReport.objects.filter(job=job, repository=repository).first()
    held = (
        list(RepositoryDocument.objects.held().filter(repository=repository).order_by("path")[:50])
        if not syncs or job == next((one for one in syncs if not one.is_live), None)
        else []
    )
    return values | {
        "page": paged(items, request),
        "counts": [(value, counts[value]) for value in ItemState.values if value in counts],
        "items_total": sum(counts.values()),
        "bar": presentation.state_bar(counts),
        "counters": [(words, job.counters.get(name, 0)) for name, words in COUNTERS],
        "sentence": sentence(job, counts, found),
        "report": found,
        "not_taken": presentation.reasons(found.not_taken if found else {}),
        "totals": sorted((name.replace("_", " "), value) for name, value in found.totals.items()) if found else [],
        "held": held,
        "state": state,
        "q": text,
    }


def sentence(job: Job, counts: dict[str, int], found: SyncReport | None) -> str:
    """What happened, in one sentence with the whole beside each part."""
    discovered = int(job.counters.get("discovered_files", 0))
    skipped = counts.get("skipped", 0)
    bad = counts.get("error", 0) + counts.get("quarantined", 0)
    where = f" at {found.commit[:7]}" if found and found.commit else ""
    changed = int(job.counters.get("indexed_documents", 0)) + int(job.counters.get("deleted_documents", 0))
    return (
        f"{discovered} files{where}: {max(0, discovered - skipped - bad)} taken, {skipped} skipped, {bad} with errors; "
        f"{changed} changed since the last sync."
    )


def _rows(job: Job) -> Iterable[JobItem]:
    return job.items.order_by("path").iterator(chunk_size=500)


def _as_json(repository: Repository, job: Job) -> dict[str, Any]:
    return {
        "repository": repository.slug,
        "job": str(job.pk),
        "status": job.status,
        "warnings": job.warnings,
        "counters": {name: job.counters.get(name, 0) for name, _ in COUNTERS},
        "notes": job.notes,
        "items": [{name: getattr(item, name) for name in COLUMNS} for item in _rows(job)],
    }


def _csv(job: Job) -> HttpResponse:
    out = StringIO()
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    for item in _rows(job):
        writer.writerow([_cell(getattr(item, name)) for name in COLUMNS])
    return HttpResponse(
        out.getvalue(),
        content_type="text/csv; charset=utf-8",
        headers={
            "Content-Disposition": f'attachment; filename="sync-{job.pk}.csv"',
            "X-Content-Type-Options": "nosniff",
        },
    )


def _cell(value: object) -> object:
    """SECURITY: a spreadsheet runs a cell that begins like a formula; file names are the attacker's."""
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return "'" + value
    return "" if value is None else value


@require_safe
def settings_page(request: HttpRequest, slug: str) -> HttpResponse:
    viewer = viewer_of(request)
    repository = repository_for(viewer, slug)
    return answer(request, "repos/settings.html", {"header": presentation.header(repository, "repos:settings")})
