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
from apps.access.viewers import Viewer, viewer_of
from apps.jobs.items import follow_up_counters
from apps.jobs.models import ItemState, Job, JobItem
from apps.jobs.presentation import JobLine
from apps.repos import presentation
from apps.repos.lookup import repository_for
from apps.repos.models import Repository, RepositoryDocument, SyncReport
from apps.repos.reports import ReportView, report_of

COUNTER_WORDS = {
    "discovered_files": "files found",
    "indexed_documents": "documents indexed",
    "indexed_chunks": "chunks of these",
    "unchanged_documents": "unchanged",
    "deleted_documents": "removed",
    "replaced_files": "replaced",
}
TOTAL_WORDS = {
    "moved": "moved",
    "held": "deletions held back",
    "redacted": "secrets redacted",
    "chunks_kept": "chunks kept",
    "chunks_new": "chunks made anew",
    "embedded": "texts embedded",
    "nodes_added": "nodes added to the graph",
    "nodes_removed": "nodes removed from it by edits",
    "edges_added": "edges added to it",
    "edges_removed": "edges removed from it by edits",
    "clean": "files without a warning",
    "listed": "paths in the commit",
}
HISTORY = 20
COLUMNS = ("path", "state", "reason", "message", "line", "column", "size", "milliseconds", "chunks", "graph")


@require_safe
def report(request: HttpRequest, slug: str, job_id: UUID | None = None) -> HttpResponse:
    """The newest finished sync, or the one that is named."""
    viewer = viewer_of(request)
    repository = repository_for(viewer, slug)
    syncs: list[Job] = list(_syncs(viewer, repository)[: HISTORY + 1])
    finished = [job for job in syncs if not job.is_live]
    job = next((one for one in finished if job_id in (None, one.pk)), None)
    if job is None and job_id is not None:
        job = _syncs(viewer, repository).filter(pk=job_id).first()
        if job is None:
            raise NotFound
    form = request.GET.get("format", "")
    if job is not None and form == "csv":
        return _csv(job)
    if job is not None and form == "json":
        return JsonResponse(_as_json(repository, report_of(repository, job.pk)))
    live = next((one for one in syncs if one.is_live), None)
    values: dict[str, Any] = {
        "header": presentation.header(repository, "repos:report"),
        "live": JobLine(live) if live else None,
        "line": JobLine(job) if job else None,
        "history": [JobLine(one) for one in finished[:HISTORY]],
        "columns": presentation.sync_history(finished[:HISTORY][::-1]),
        "width": HISTORY * presentation.COLUMN,
    }
    if job is not None:
        values |= _found(request, repository, job, newest=job in finished[:1])
    return answer(request, "repos/report.html", values, fragment="repos/_report_items.html")


def _syncs(viewer: Viewer, repository: Repository) -> Any:
    jobs = Job.objects.visible_to(viewer).of_source(repository.kind, repository.pk).filter(kind="sync")
    return jobs.select_related("requested_by", "sync_report").order_by("-created_at", "id")


def _found(request: HttpRequest, repository: Repository, job: Job, *, newest: bool) -> dict[str, Any]:
    state, text = request.GET.get("state", ""), request.GET.get("q", "").strip()[:200]
    states = dict(job.items.values_list("state").annotate(n=Count("pk")).order_by())
    items = job.items.order_by("-warning", "path")
    total: int | None = sum(states.values())
    if state == "warnings":
        items, total = items.filter(warning=True), None
    elif state in ItemState.values:
        items, total = items.filter(state=state), states.get(state, 0)
    if text:
        items, total = items.filter(path__icontains=text), None
    found: SyncReport | None = getattr(job, "sync_report", None)
    totals = {**follow_up_counters(job), **job.counters, **(found.totals if found else {})}
    held = RepositoryDocument.objects.filter(repository=repository).held().order_by("path") if newest else []
    return {
        "page": paged(items, request, total=total),
        "counts": [(value, states[value]) for value in ItemState.values if value in states],
        "items_total": sum(states.values()),
        "bar": presentation.state_bar(states),
        "counters": [(words, job.counters.get(name, 0)) for name, words in COUNTER_WORDS.items()],
        "totals": [(words, totals[name]) for name, words in TOTAL_WORDS.items() if totals.get(name)],
        "report": found,
        "not_taken": presentation.reasons(found.not_taken if found else {}),
        "held": list(held),
        "state": state,
        "q": text,
    }


def _rows(job: Job) -> Iterable[JobItem]:
    return job.items.order_by("path").iterator(chunk_size=500)


def _value(item: JobItem, name: str) -> Any:
    """What later work found out about a file stands in the details of its item."""
    return item.details.get(name, "") if name == "graph" else getattr(item, name)


def _as_json(repository: Repository, found: ReportView) -> dict[str, Any]:
    job = found.job
    return {
        "repository": repository.slug,
        "job": str(job.pk),
        "status": job.status,
        "state": job.state_words,
        "warnings": job.warnings,
        "outcome": job.outcome,
        "commit": found.report.commit if found.report else "",
        "counters": dict(found.counters),
        "totals": dict(found.totals),
        "reasons": dict(found.reasons),
        "notes": job.notes,
        "items": [{name: _value(item, name) for name in COLUMNS} for item in _rows(job)],
    }


def _csv(job: Job) -> HttpResponse:
    out = StringIO()
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    for item in _rows(job):
        writer.writerow([_cell(_value(item, name)) for name in COLUMNS])
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
