"""Sync reports: what was taken, what was not, and why; as page, JSON and CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from io import StringIO
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from apps.access.errors import NotFound
from apps.access.pages import answer, paged
from apps.access.viewers import viewer_of
from apps.jobs.models import ItemState, Job, JobItem
from apps.jobs.presentation import JobLine
from apps.repos import presentation
from apps.repos.lookup import repository_for
from apps.repos.models import Repository, RepositoryDocument
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
    "clean": "files without a warning",
    "listed": "paths in the commit",
}
HISTORY = 20
COLUMNS = ("path", "state", "reason", "message", "line", "column", "size", "milliseconds", "chunks")


@require_safe
def report(request: HttpRequest, slug: str, job_id: UUID | None = None) -> HttpResponse:
    """The newest finished sync, or the one that is named."""
    viewer = viewer_of(request)
    repository = repository_for(viewer, slug)
    try:
        found = report_of(repository, job_id)
    except NotFound:
        if job_id is not None:
            raise
        found = None
    form = request.GET.get("format", "")
    if found is not None and form == "csv":
        return _csv(found.job)
    if found is not None and form == "json":
        return JsonResponse(_as_json(repository, found))
    values = _values(request, repository, found)
    return answer(request, "repos/report.html", values, fragment="repos/_report_items.html")


def _values(request: HttpRequest, repository: Repository, found: ReportView | None) -> dict[str, Any]:
    syncs = list(
        Job.objects.visible_to(viewer_of(request))
        .of_source(repository.kind, repository.pk)
        .filter(kind="sync")
        .select_related("requested_by")
        .order_by("-created_at", "id")[: HISTORY + 1]
    )
    live = next((one for one in syncs if one.is_live), None)
    finished = [one for one in reversed(syncs) if not one.is_live][-HISTORY:]
    values: dict[str, Any] = {
        "header": presentation.header(repository, "repos:report"),
        "live": JobLine(live) if live else None,
        "line": JobLine(found.job) if found else None,
        "history": [JobLine(one) for one in reversed(finished)],
        "columns": presentation.sync_history(finished),
        "width": HISTORY * presentation.COLUMN,
    }
    return values if found is None else values | _found(request, repository, found, newest=found.job in finished[-1:])


def _found(request: HttpRequest, repository: Repository, found: ReportView, *, newest: bool) -> dict[str, Any]:
    state, text = request.GET.get("state", ""), request.GET.get("q", "").strip()[:200]
    items = found.job.items.order_by("-warning", "path")
    if state == "warnings":
        items = items.filter(warning=True)
    elif state in ItemState.values:
        items = items.filter(state=state)
    if text:
        items = items.filter(path__icontains=text)
    held = RepositoryDocument.objects.filter(repository=repository).held().order_by("path") if newest else []
    return {
        "page": paged(items, request),
        "counts": [(value, found.states[value]) for value in ItemState.values if value in found.states],
        "items_total": sum(found.states.values()),
        "bar": presentation.state_bar(found.states),
        "counters": [(COUNTER_WORDS[name], value) for name, value in found.counters.items()],
        "totals": [(words, found.totals[name]) for name, words in TOTAL_WORDS.items() if found.totals.get(name)],
        "report": found.report,
        "not_taken": presentation.reasons(found.report.not_taken if found.report else {}),
        "held": list(held),
        "state": state,
        "q": text,
    }


def _rows(job: Job) -> Iterable[JobItem]:
    return job.items.order_by("path").iterator(chunk_size=500)


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
