"""REST: jobs, their files, cancel and retry. The rooms of sources list theirs by ``job_page``."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.utils import timezone
from rest_framework.response import Response

from apps.access.compiled import AFTER_ID, AFTER_TEXT, AFTER_TIME, MARK_OF_ID, MARK_OF_NOW, ReadablePages, ReadableRows
from apps.access.errors import BadRequest, NotFound
from apps.access.models import TokenScope
from apps.access.rest.cursors import Page, page_of_readable, page_of_rows
from apps.access.rest.schema import list_of
from apps.access.rest.strict import Choice, ListQuery, Text
from apps.access.rest.views import ApiView, Door
from apps.jobs import control
from apps.jobs.api_values import (
    JobItemOutput,
    JobOutput,
    QueuedJobOutput,
    WholeJobOutput,
    present_item,
    present_line,
    present_whole,
)
from apps.jobs.models import ItemState, Job, JobItem, Status
from apps.jobs.presentation import lines
from apps.jobs.queue import Enqueued


class JobListQuery(ListQuery):
    """Which jobs."""

    status = Choice(Status.choices, required=False)
    kind = Text(max_length=40, required=False)


class AllJobsQuery(JobListQuery):
    """Which jobs, of one source when ``source`` names it as kind:id."""

    source = Text(max_length=60, required=False)  # type: ignore[assignment]


class ItemQuery(ListQuery):
    """Which files of a job: by state, and by a part of the path."""

    state = Choice(ItemState.choices, required=False)
    q = Text(max_length=200, required=False)


_ALL: ReadablePages[Job] = ReadablePages(
    lambda viewer: Job.objects.visible_to(viewer).select_related("requested_by"),
    order=("-created_at", "id"),
    after=(AFTER_TIME, AFTER_ID),
)
_ONE: ReadableRows[Job] = ReadableRows(
    lambda viewer, id: Job.objects.visible_to(viewer).filter(pk=id).select_related("requested_by"), MARK_OF_ID
)
_ITEMS: ReadablePages[JobItem] = ReadablePages(
    lambda viewer, id, now: JobItem.objects.of_report(id, now),
    MARK_OF_ID,
    MARK_OF_NOW,
    order=("path",),
    after=(AFTER_TEXT,),
)


def job_page(view: ApiView, rows: Any) -> Response:
    """One page of ``rows``, jobs that the caller may see, newest first, by ``status`` and ``kind`` of the query."""
    for name in ("status", "kind"):
        if wanted := view.query.get(name):
            rows = rows.filter(**{name: wanted})
    rows = rows.select_related("requested_by")
    question = {**view.query, "path": view.request.path}
    return _answered(view, page_of_rows(rows, order=("-created_at", "id"), viewer=view.viewer, question=question))


def _answered(view: ApiView, page: Page[Job]) -> Response:
    shown = {line.job.pk: line for line in lines(page.items, view.viewer)}
    return Response(page.body(lambda job: present_line(shown[job.pk])))


class JobsView(ApiView):
    doors = {
        "GET": Door(
            right="read",
            summary="Jobs of readable sources, newest first; jobs of the deployment for administrators",
            query=AllJobsQuery,
            output=list_of(JobOutput),
        )
    }

    def get(self, request: Any) -> Response:
        if not any(self.query.get(name) for name in ("status", "kind", "source")):
            question = {**self.query, "path": self.request.path}
            return _answered(self, page_of_readable(_ALL, viewer=self.viewer, question=question))
        rows = Job.objects.visible_to(self.viewer)
        if source := self.query.get("source"):
            kind, _, source_id = source.partition(":")
            try:
                rows = rows.of_source(kind, UUID(source_id))
            except ValueError:
                raise BadRequest("A source is named kind:id, such as repository:<id>.", field="source") from None
        return job_page(self, rows)


class OneJobView(ApiView):
    """What is common to everything below one job."""

    job: Job

    def authorize(self, **names: Any) -> None:
        found = _ONE.first(self.viewer, names["job_id"])
        if found is None:
            raise NotFound
        self.job = found
        if self.door.right == "write":
            control.check_may_write(self.job, self.viewer)


class JobView(OneJobView):
    doors = {"GET": Door(right="read", summary="One job with its attempts and counts", output=WholeJobOutput)}

    def get(self, request: Any, job_id: UUID) -> Response:
        [line] = lines([self.job], self.viewer)
        return Response(present_whole(line))


class JobItemsView(OneJobView):
    doors = {
        "GET": Door(
            right="read", summary="What a job did with each file", query=ItemQuery, output=list_of(JobItemOutput)
        )
    }

    def get(self, request: Any, job_id: UUID) -> Response:
        question = {**self.query, "job": str(self.job.pk)}
        if not (self.query.get("state") or self.query.get("q")):
            # The job was looked up in the scope of the caller; its items are as readable as it is.
            told = (self.job.reporter_id, self.job.finished_at or timezone.now())
            page = page_of_readable(_ITEMS, *told, viewer=self.viewer, question=question)
            return Response(page.body(present_item))
        rows = self.job.items
        if state := self.query.get("state"):
            rows = rows.filter(state=state)
        if text := self.query.get("q"):
            rows = rows.filter(path__icontains=text)
        page = page_of_rows(rows, order=("path",), viewer=self.viewer, question=question)
        return Response(page.body(present_item))


class JobCancelView(OneJobView):
    doors = {
        "POST": Door(
            right="write",
            summary="End a job: a waiting one at once, a running one within ten seconds; what it stored stays",
            scope=TokenScope.WRITE,
            output=JobOutput,
            codes={409: ("conflict",)},
        )
    }

    def post(self, request: Any, job_id: UUID) -> Response:
        job = control.cancel(self.job, by=self.user)
        [line] = lines([job], self.viewer)
        return Response(present_line(line))


class JobRetryView(OneJobView):
    doors = {
        "POST": Door(
            right="write",
            summary="Do again what a job did not do; a live job of the same object is returned as it is",
            scope=TokenScope.WRITE,
            output=QueuedJobOutput,
            status=202,
            also=(200,),
            codes={409: ("conflict", "payload_expired"), 429: ("too_many_jobs",)},
            creates=True,
        )
    }

    def post(self, request: Any, job_id: UUID) -> Response:
        return retried(self, self.job)


def retried(view: ApiView, job: Job) -> Response:
    """Retry ``job`` for the caller: 202 with the new job, 200 with the live one."""
    return queued(view, control.retry(job, by=view.user))


def queued(view: ApiView, enqueued: Enqueued) -> Response:
    """What asking for a job answers: 202 with the new job, 200 with the live one that was joined."""
    [line] = lines([enqueued.job], view.viewer)
    body = {**present_line(line), "deduplicated": enqueued.deduplicated}
    if enqueued.deduplicated:
        return Response(body)
    return Response(body, status=202, headers={"Location": f"/api/jobs/{enqueued.job.pk}"})
