"""Uploads by a person: one text is stored at once, several and archives go to a job whose bar stands in the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from apps.access.errors import Invalid, NotFound, Refusal
from apps.access.limits import takes_body
from apps.access.pages import answer, wants_fragment
from apps.access.rules import Right
from apps.access.viewers import Viewer, viewer_of
from apps.collections import uploads
from apps.collections.lookup import collection_for
from apps.collections.models import Collection
from apps.collections.parse_warnings import with_place
from apps.jobs.models import Job, JobItem
from apps.jobs.presentation import JobLine

if TYPE_CHECKING:
    from apps.access.models import User

STOP_POLLING = 286
SHOWN_ITEMS = 50
SHOWN_UPLOADS = 5


@dataclass(frozen=True, slots=True)
class UploadLine:
    """An upload with what became of its files, those with something to tell first."""

    line: JobLine
    items: Sequence[JobItem]
    total: int


def upload_lines(viewer: Viewer, collection: Collection, ids: Iterable[str]) -> list[UploadLine]:
    """The uploads that an address names, as far as they are of this collection."""
    wanted = [found for found in map(_uuid, ids) if found is not None][:SHOWN_UPLOADS]
    if not wanted:
        return []
    jobs = (
        Job.objects.visible_to(viewer)
        .of_source(Collection.kind, collection.pk)
        .filter(kind="upload", pk__in=wanted)
        .select_related("requested_by")
    )
    return [_upload_line(job, collection) for job in jobs.order_by("created_at", "id")]


def _upload_line(job: Job, collection: Collection) -> UploadLine:
    if job.is_live:
        return UploadLine(JobLine(job, collection), (), 0)
    items = list(job.items.order_by("-warning", "path")[: SHOWN_ITEMS + 1])
    total = len(items) if len(items) <= SHOWN_ITEMS else job.items.count()
    return UploadLine(JobLine(job, collection), items[:SHOWN_ITEMS], total)


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _body_limit() -> int:
    limits = settings.COGRAPH.upload
    return int(max(limits.zip_bytes, limits.batch_bytes)) + (1 << 20)


@require_POST
@takes_body(_body_limit)
def upload(request: HttpRequest, collection_id: UUID) -> HttpResponse:
    """Files from the picker or dropped. With script the answer is what stands in the page; else the page itself."""
    viewer = viewer_of(request)
    collection = collection_for(viewer, collection_id, right=Right.WRITE)
    context: dict[str, Any] = {
        "collection": collection,
        "outcome": None,
        "warnings": (),
        "uploads": (),
        "problem": None,
    }
    try:
        context |= _take(request, collection, viewer)
    except Refusal as refusal:
        if refusal.status in (403, 404):
            raise
        context["problem"] = refusal
    page = reverse("collections:collection", args=[collection.pk])
    started = context["uploads"]
    if started:
        page += "?" + "&".join(f"upload={one.line.job.pk}" for one in started)
    if wants_fragment(request):
        response = answer(request, "collections/_uploaded.html", context)
        if started:
            response["HX-Replace-Url"] = page
        return response
    _say(request, context)
    return redirect(page)


def _take(request: HttpRequest, collection: Collection, viewer: Viewer) -> dict[str, Any]:
    by = cast("User", request.user)
    files = [file for file in request.FILES.getlist("files") if isinstance(file, UploadedFile)]
    if not files:
        raise Invalid("Choose one or more files.", code="required", field="files")
    folder = request.POST.get("folder", "").strip().strip("/")
    archives = [file for file in files if str(file.name).lower().endswith(".zip")]
    texts = [file for file in files if file not in archives]
    if len(texts) == 1 and not archives:
        outcome = uploads.upload_document(collection=collection, by=by, **_one(texts[0], folder)).outcome
        return {"outcome": outcome, "warnings": [with_place(row) for row in outcome.warnings]}
    with transaction.atomic():  # a refused part leaves nothing of the others, or nobody would learn what was stored
        staged = [
            uploads.stage_archive(collection=collection, by=by, file=cast("Any", file), size=int(file.size or 0))
            for file in archives
        ]
        if texts:
            entries = [(one["source_key"], one["raw"], None) for one in (_one(file, folder) for file in texts)]
            staged.append(uploads.stage_batch(collection=collection, by=by, entries=entries))
    return {"uploads": [UploadLine(JobLine(one.job, collection), (), 0) for one in staged]}


def _one(file: Any, folder: str) -> dict[str, Any]:
    name = str(file.name or "")
    return {"source_key": f"{folder}/{name}" if folder else name, "raw": file.read()}


def _say(request: HttpRequest, context: dict[str, Any]) -> None:
    problem, outcome = context["problem"], context["outcome"]
    if problem is not None:
        messages.error(request, problem.message)
    elif outcome is not None:
        level = messages.warning if context["warnings"] else messages.success
        level(request, " ".join((f"{outcome.source_key}: {outcome.state}.", *context["warnings"])))


@require_safe
def upload_state(request: HttpRequest, collection_id: UUID, job_id: UUID) -> HttpResponse:
    """The bar of one upload while it is live, then the result of each file; the page itself for people."""
    viewer = viewer_of(request)
    collection = collection_for(viewer, collection_id)
    found = upload_lines(viewer, collection, [str(job_id)])
    if not found:
        raise NotFound
    if not wants_fragment(request):
        return redirect(reverse("collections:collection", args=[collection.pk]) + f"?upload={job_id}")
    response = answer(request, "collections/_upload.html", {"collection": collection, "upload": found[0]})
    if not found[0].line.job.is_live:
        response.status_code = STOP_POLLING
    return response
