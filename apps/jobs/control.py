"""What people do to jobs: retry, cancel, release from quarantine; and what the deletion of a source does to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from django.db import transaction

from apps.access import audit, rules
from apps.access.audit import Act
from apps.access.errors import Conflict, NotFound, Refusal
from apps.access.rules import Right
from apps.access.sources import find_source
from apps.jobs import poison
from apps.jobs.finishing import settle
from apps.jobs.kinds import find_kind
from apps.jobs.models import Cause, ItemState, Job, Status, Suspect
from apps.jobs.queue import Enqueued, enqueue

if TYPE_CHECKING:
    from apps.access.models import User
    from apps.access.sources import Source
    from apps.access.viewers import Viewer


def check_may_write(job: Job, viewer: Viewer) -> None:
    """Raise NotFound when ``viewer`` may not see the job, Forbidden when he may not act on it."""
    if job.source_id is not None:
        find_source(job.source_kind, job.source_id, viewer, Right.WRITE)
    elif not rules.is_administrator(viewer):
        raise NotFound


def may_write(job: Job, viewer: Viewer) -> bool:
    """Whether the buttons of the job are shown."""
    try:
        check_may_write(job, viewer)
    except Refusal:
        return False
    return True


def can_be_retried(job: Job) -> bool:
    """Failed, cancelled, or finished with something to mend."""
    return job.status in (Status.ERROR, Status.CANCELLED) or (job.status == Status.SUCCESS and job.warnings > 0)


def retry(job: Job, *, by: User) -> Enqueued:
    """A new job that does again what ``job`` did not do, linked by ``retry_of``; what it quarantined is let go.

    While a job of the same object is live, that one is returned, ``deduplicated``. Raises NotFound, Forbidden, Conflict
    (``payload_expired`` when what it needs is gone; ``conflict`` when it succeeded), Throttled ``too_many_jobs``.
    """
    with transaction.atomic():
        # The row lock makes two presses at once one after the other.
        job = Job.objects.select_for_update().get(pk=job.pk)
        check_may_write(job, by)
        live = Job.objects.same_object(job).live().first()
        if live is not None:
            return Enqueued(live, deduplicated=True)
        kind = find_kind(job.kind, job.source_kind)
        if kind is None or not can_be_retried(job):
            raise Conflict("This job succeeded, there is nothing to retry.")
        if kind.payload_ready is not None and not kind.payload_ready(job):
            raise Conflict("What this job worked on is not kept any more. Upload it again.", code="payload_expired")
        if job.source_id is not None:
            quarantined = job.items.filter(state=ItemState.QUARANTINED).values_list("path", flat=True)
            poison.release(job.source_kind, job.source_id, list(quarantined))
        enqueued = enqueue(
            job.kind,
            source_key=job.source_key,
            key=job.key,
            params=job.params,
            by=by,
            cause=Cause.MANUAL,
            retry_of=job,
        )
        audit.record(Act.JOB_RETRIED, by=by, target=("job", str(job.pk), job.kind))
        return enqueued


def cancel(job: Job, *, by: User) -> Job:
    """End a job: a queued one at once, a running one between two batches. What it stored stays.

    Raises NotFound, Forbidden, Conflict when it has finished.
    """
    with transaction.atomic():
        job = Job.objects.select_for_update(no_key=True).get(pk=job.pk)
        check_may_write(job, by)
        if not job.is_live:
            raise Conflict("This job has already finished.")
        _end(job)
        audit.record(Act.JOB_CANCELLED, by=by, target=("job", str(job.pk), job.kind))
    return job


def source_deleted(source: Source, *, by: User | None = None) -> Job:
    """To be called in the transaction that sets ``deleted_at``: ends the source's live jobs and queues the purge of its
    rows. The purge is a job of the deployment, so that administrators still see it."""
    with transaction.atomic():
        for job in Job.objects.of_source(source.kind, source.pk).live().select_for_update(no_key=True):
            _end(job)
        return enqueue(
            "purge",
            key=f"{source.kind}:{source.pk}",
            params={"source_kind": source.kind, "source_id": str(source.pk)},
            by=by,
            cause=Cause.FOLLOW_UP,
        ).job


def release_quarantine(source: Source, *, by: User, paths: Sequence[str] | None = None) -> int:
    """Let quarantined files of a source (all, or ``paths``) be tried by the next sync. Returns how many.

    Raises NotFound or Forbidden.
    """
    find_source(source.kind, source.pk, by, Right.WRITE)
    return poison.release(source.kind, source.pk, paths)


def release_file(suspect: Suspect, *, by: User) -> None:
    """Let one quarantined version of a file be tried again. Raises NotFound or Forbidden."""
    find_source(suspect.source_kind, suspect.source_id, by, Right.WRITE)
    poison.release(suspect.source_kind, suspect.source_id, [suspect.path])


def _end(job: Job) -> None:
    if job.status == Status.QUEUED:
        settle(job, Status.CANCELLED)
    else:
        job.cancel_requested = True
        job.again = False
        job.save(update_fields=["cancel_requested", "again"])
