"""Files that kill their worker: recorded while under way, tried alone after a loss, quarantined after three."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db import connection, transaction
from django.db.models import F, Q
from django.utils import timezone

from apps.jobs.models import QUARANTINE_LOSSES, Job, Suspect, UnderWay
from apps.jobs.querysets import SuspectQuerySet

LONE_LOSSES = 20


def record(job: Job, files: Sequence[tuple[str, str]]) -> None:
    """Write what is under way before it can kill the process."""
    with transaction.atomic():
        UnderWay.objects.filter(job=job).delete()
        UnderWay.objects.bulk_create(
            [UnderWay(job=job, path=path, content_id=content) for path, content in dict(files).items()]
        )


def clear(job: Job) -> None:
    """The batch is stored: what was under way did no harm, and is no suspect any more."""
    with connection.cursor() as cursor:
        cursor.execute(
            "WITH file AS (DELETE FROM jobs_underway WHERE job_id = %s RETURNING path, content_id)"
            " DELETE FROM jobs_suspect AS suspect USING file"
            " WHERE suspect.source_kind = %s AND suspect.source_id = %s AND suspect.quarantined_at IS NULL"
            " AND suspect.path = file.path AND suspect.content_id = file.content_id",
            [job.pk, job.source_kind, job.source_id],
        )


def losses(job: Job) -> dict[tuple[str, str], int]:
    """(path, content id) -> losses, for the source of ``job``."""
    rows = _of_source(job)
    return {(path, content): count for path, content, count in rows.values_list("path", "content_id", "losses")}


def blame(job: Job) -> bool:
    """A lease of ``job`` was lost: count it against what was under way. True when that was one file alone, which then
    pays for the loss instead of the job's attempts."""
    files = list(UnderWay.objects.filter(job=job).values_list("path", "content_id")) if job.source_id else []
    alone = len(files) == 1
    for path, content in files:
        Suspect.objects.update_or_create(
            source_kind=job.source_kind,
            source_id=job.source_id or "",
            path=path,
            content_id=content,
            defaults={"losses": F("losses") + 1, "job": job, **({"alone": True} if alone else {})},
            create_defaults={"losses": 1, "job": job, "alone": alone},
        )
    _of_source(job).filter(losses__gte=QUARANTINE_LOSSES, quarantined_at__isnull=True).update(
        quarantined_at=timezone.now()
    )
    UnderWay.objects.filter(job=job).delete()
    return alone


def _of_source(job: Job) -> SuspectQuerySet:
    if job.source_id is None:
        return Suspect.objects.none()
    return Suspect.objects.filter(source_kind=job.source_kind, source_id=job.source_id)


def lone_losses(job: Job) -> int:
    """Files that have cost ``job`` a worker each while under way alone."""
    return Suspect.objects.filter(job=job, alone=True).count()


def release(source_kind: str, source_id: UUID, paths: Sequence[str] | None = None) -> int:
    """Let quarantined files (all, or those of ``paths``) be tried again. Returns how many."""
    chosen = Q(source_kind=source_kind, source_id=source_id)
    if paths is not None:
        chosen &= Q(path__in=paths)
    return Suspect.objects.filter(chosen).delete()[0]
