"""Job lists, one job with its live bar, cancel and retry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from django.contrib import messages
from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST, require_safe

from apps.access.compiled import ReadableList
from apps.access.errors import Conflict, NotFound, Throttled
from apps.access.pages import answer, paged, wants_fragment
from apps.access.sources import source_models
from apps.access.viewers import Viewer, viewer_of
from apps.jobs import control, presentation
from apps.jobs.kinds import kind_names
from apps.jobs.models import ItemState, Job, Status

if TYPE_CHECKING:
    from apps.access.models import User

STOP_POLLING = 286
"""What htmx takes as the end of a poll, with a last swap."""

STATES = (
    ("queued", "queued"),
    ("running", "running"),
    ("done", "done"),
    ("warnings", "done with warnings"),
    ("error", "failed"),
    ("cancelled", "cancelled"),
)
STATE_FILTERS: dict[str, Q] = {
    "queued": Q(status=Status.QUEUED),
    "running": Q(status=Status.RUNNING),
    "done": Q(status=Status.SUCCESS, warnings=0),
    "warnings": Q(status=Status.SUCCESS, warnings__gt=0),
    "error": Q(status=Status.ERROR),
    "cancelled": Q(status=Status.CANCELLED),
}


_ALL: ReadableList[Job] = ReadableList(
    lambda viewer: (
        Job.objects.visible_to(viewer).unfolded().select_related("requested_by").order_by("-created_at", "id")
    )
)


@require_safe
def job_list(request: HttpRequest, source_kind: str = "") -> HttpResponse:
    """All jobs that the viewer may see, newest first; those of one kind of source when ``source_kind`` is given.

    Jobs that are small parts of others are folded, unless one failed or their kind is asked for.
    """
    viewer = viewer_of(request)
    state, kind, source = (request.GET.get(name, "") for name in ("state", "kind", "source"))
    about = request.GET.get("about", "").replace("\0", " ").strip()[:200]
    rows = Job.objects.visible_to(viewer).select_related("requested_by")
    if source_kind:
        rows = rows.filter(source_kind=source_kind)
    if state in STATE_FILTERS:
        rows = rows.filter(STATE_FILTERS[state])
    rows = rows.filter(kind=kind[:40]) if kind else rows.unfolded()
    if about:
        rows = rows.filter(_of_sources_called(about, viewer))
    if key := _source_key(source):
        rows = rows.filter(source_kind=key[0], source_id=key[1])
    filtered = bool(state or kind or source or about)
    whole: Any = rows.order_by("-created_at", "id")
    page = paged(whole if filtered or source_kind else _ALL.of(viewer), request)
    context = {
        "page": page,
        "lines": presentation.lines(page.object_list, viewer),
        "is_live": any(job.is_live for job in page.object_list),
        "states": STATES,
        "kinds": [(name, presentation.kind_words(name)) for name in kind_names()],
        "state": state,
        "kind": kind,
        "source": source,
        "named": presentation.label_of(*key, viewer) if key else "",
        "about": about,
        "source_kind": source_kind,
        "filtered": filtered,
    }
    return answer(request, "jobs/list.html", context, fragment="jobs/_list.html")


def _of_sources_called(text: str, viewer: Viewer) -> Q:
    found = Q(pk__in=())
    for model in source_models():
        called = model.objects.visible_to(viewer).filter(**{f"{model.label_field}__icontains": text})
        found |= Q(source_kind=model.kind, source_id__in=called.values("pk"))
    return found


def _source_key(value: str) -> tuple[str, UUID] | None:
    kind, _, number = value.partition(":")
    try:
        return (kind, UUID(number)) if kind else None
    except ValueError:
        return None


@require_safe
def job_page(request: HttpRequest, job_id: UUID) -> HttpResponse:
    """One job. While it is live, htmx asks for the bar alone; a new attempt and the end are answered with all of it."""
    viewer = viewer_of(request)
    job = _job(viewer, job_id)
    if not wants_fragment(request):
        return answer(request, "jobs/job.html", _whole(request, viewer, job))
    same = request.GET.get("run", str(job.runs)) == str(job.runs)
    if request.GET.get("bar") or (job.is_live and same):
        # What stands around the bar is as it was before the job: once it has ended, the source is one link away.
        line = presentation.JobLine(job, None if job.is_live else presentation.source_of(job, viewer))
        response = answer(request, "jobs/job.html", {"line": line}, fragment="jobs/_live.html")
    else:
        response = answer(request, "jobs/job.html", _whole(request, viewer, job), fragment="jobs/_job.html")
        response["HX-Retarget"] = "#cg-job"
        response["HX-Reswap"] = "outerHTML"
    if not job.is_live:
        response.status_code = STOP_POLLING
    return response


def _job(viewer: Viewer, job_id: UUID) -> Job:
    job: Job | None = Job.objects.visible_to(viewer).select_related("requested_by").filter(pk=job_id).first()
    if job is None:
        raise NotFound
    return job


def _whole(request: HttpRequest, viewer: Viewer, job: Job) -> dict[str, Any]:
    state, text = request.GET.get("state", ""), request.GET.get("q", "").replace("\0", " ")[:200]
    items = job.items.order_by("-warning", "path")
    counts = dict(items.values_list("state").annotate(n=Count("pk")).order_by())
    warned = items.filter(warning=True).count() if job.warnings else 0
    if state == "warnings":
        items = items.filter(warning=True)
    elif state in ItemState.values:
        items = items.filter(state=state)
    if text:
        items = items.filter(path__icontains=text)
    page = paged(items, request)
    return {
        "line": presentation.JobLine(job, presentation.source_of(job, viewer)),
        "attempts": presentation.attempt_lines(job.attempt_rows.order_by("number")),
        "page": page,
        "counts": [(value, counts[value]) for value in ItemState.values if value in counts],
        "items_total": sum(counts.values()),
        "warned": warned,
        "state": state,
        "q": text,
        "may_change": control.may_write(job, viewer),
        "can_be_retried": control.can_be_retried(job),
        "newer": job.retries.order_by("-created_at").first(),
        "counters": presentation.counters(job),
    }


@require_POST
def cancel(request: HttpRequest, job_id: UUID) -> HttpResponse:
    job = _job(viewer_of(request), job_id)
    control.cancel(job, by=cast("User", request.user))
    messages.success(request, "The job ends between two batches. What it has stored stays whole.")
    return redirect("jobs:job", job_id=job.pk)


@require_POST
def retry(request: HttpRequest, job_id: UUID) -> HttpResponse:
    job = _job(viewer_of(request), job_id)
    try:
        again = control.retry(job, by=cast("User", request.user))
    except (Conflict, Throttled) as refusal:
        messages.error(request, refusal.message)
        return redirect("jobs:job", job_id=job.pk)
    return redirect("jobs:job", job_id=again.job.pk)
