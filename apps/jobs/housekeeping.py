"""The room's own kinds: ``purge`` of a deleted source, and ``retention``."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db.models import F, Window
from django.db.models.functions import RowNumber

from apps.access import audit, retention
from apps.jobs.errors import TransientFailure
from apps.jobs.kinds import JobKind, pruners, purgers, register_kind, register_prune
from apps.jobs.models import Job, Status, Suspect
from apps.jobs.running import JobRun

BATCH = 500
BUSY_SECONDS = 5


def register() -> None:
    register_kind(JobKind("purge", _purge, attempts=5))
    register_kind(JobKind("retention", _retention, every=timedelta(days=1)))
    register_prune(_prune_audit)
    register_prune(retention.prune)
    register_prune(_prune_jobs)
    register_prune(_prune_queue)


def _purge(run: JobRun) -> None:
    """Remove every row of a deleted source, room by room from the top down, then its jobs."""
    source = (str(run.params["source_kind"]), UUID(run.params["source_id"]))
    jobs = Job.objects.of_source(*source)
    if jobs.filter(status=Status.RUNNING).exists():
        # It was told to end; until it has, or its lease has run out, it could still write.
        raise TransientFailure("source_busy", "A job of the source is still ending", retry_after=BUSY_SECONDS)
    run.progress("removing rows")
    for remove in purgers(source[0]):
        run.check()
        remove(run, source)
    run.progress("removing job reports")
    while True:
        with run.batch():
            batch = list(jobs.values_list("pk", flat=True)[:BATCH])
            Job.objects.filter(pk__in=batch).delete()
            if not batch:
                Suspect.objects.filter(source_kind=source[0], source_id=source[1]).delete()
                break
    run.note("All rows of the deleted source are removed.")


def _retention(run: JobRun) -> None:
    """Delete what is older than its keep: each room's part in batches until nothing is left to do."""
    now = run.job.created_at
    removed = 0
    for prune in pruners():
        while True:
            with run.batch():
                count = prune(now)
                removed += count
                run.counters["removed_rows"] = removed
            if not count:
                break
    run.note(f"{removed} rows past their keep are removed.")


def _prune_audit(now: datetime) -> int:
    return audit.prune(before=now - timedelta(days=settings.COGRAPH.retention.audit_days))


def _prune_queue(now: datetime) -> int:
    """What the queue itself keeps of calls that failed before a job was claimed."""
    from django_q.models import Task

    old = Task.objects.filter(stopped__lt=now - timedelta(days=settings.COGRAPH.retention.payload_days))
    batch = list(old.values_list("pk", flat=True)[:BATCH])
    Task.objects.filter(pk__in=batch).delete()
    return len(batch)


def _prune_jobs(now: datetime) -> int:
    """Finished jobs beyond the newest of each kind and source, once nothing can be retried from them."""
    keep = settings.COGRAPH.retention
    ranked = (
        Job.objects.finished()
        .annotate(
            rank=Window(
                RowNumber(),
                partition_by=[F("kind"), F("source_kind"), F("source_id")],
                order_by=[F("finished_at").desc(), F("pk")],
            )
        )
        .filter(rank__gt=keep.reports + 1)
    )
    # By a subquery: conditions beside the rank would be applied before it is counted.
    gone = (
        Job.objects.filter(pk__in=ranked.values("pk"))
        .filter(finished_at__lt=now - timedelta(days=keep.payload_days))
        .exclude(status=Status.ERROR, finished_at__gte=now - timedelta(days=keep.payload_error_days))
        .exclude(pk__in=Job.objects.filter(same_as__isnull=False).values("same_as"))  # newer jobs report as these did
    )
    batch = list(gone.values_list("pk", flat=True)[:BATCH])
    Job.objects.filter(pk__in=batch).delete()
    return len(batch)
