"""Taking a queued job: one conditional UPDATE decides among any number of workers and messages."""

from __future__ import annotations

import os
import socket
import uuid
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from apps.access.compiled import MARK_OF_ID, Returned, Rows
from apps.access.cursors import prepared_cursor
from apps.jobs.kinds import Slot, find_kind
from apps.jobs.models import Job

BEHIND_MANUAL = "other work comes first"

_CLAIM = """
UPDATE jobs_job AS job SET
    status = 'running', lease_token = %(token)s,
    lease_expires = statement_timestamp() + %(lease)s * interval '1 second',
    attempts = attempts + 1, runs = runs + 1,
    started_at = coalesce(started_at, statement_timestamp()), attempt_started_at = statement_timestamp(),
    stage = '', done = NULL, total = NULL, counting_from = NULL, counting_base = 0, progress_at = NULL,
    waiting_reason = '', not_before = NULL, resend_at = NULL, sends = 0
WHERE id = %(id)s AND status = 'queued' AND NOT cancel_requested
  AND (not_before IS NULL OR not_before <= statement_timestamp())
  AND (%(limit)s::int IS NULL
       OR (SELECT count(*) FROM jobs_job AS other WHERE other.status = 'running' AND other.slot = %(slot)s::text)
           < %(limit)s::int)
  AND (cause <> 'schedule' OR NOT EXISTS (
       SELECT FROM jobs_job AS other
       WHERE other.status = 'queued' AND other.cause <> 'schedule' AND other.slot IN ('', %(slot)s::text)
         AND (other.not_before IS NULL OR other.not_before <= statement_timestamp())))
RETURNING {columns}
"""
_ATTEMPT = """
INSERT INTO jobs_jobattempt (job_id, number, worker, started_at, ending, error_code, error_message, stages)
VALUES (%s, %s, %s, %s, '', '', '', '[]')
"""


_ONE: Rows[Job] = Rows(lambda key: Job.objects.filter(pk=key), MARK_OF_ID)

_CLAIMED = Returned(Job)


def worker_name() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


def claim(job_id: UUID) -> Job | None:
    """The job, now running under a fresh lease of this worker; None when it is not to be had (and then it says why)."""
    job = _ONE.first(job_id)
    if job is None or job.status != "queued":
        return None
    kind = find_kind(job.kind, job.source_kind)
    slot = kind.slot(job) if kind is not None and kind.slot else None
    token = uuid.uuid4()
    with transaction.atomic(), prepared_cursor() as cursor:
        if slot is not None:
            # Two claims of one slot must not both count the same free place.
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended('jobs.slot:' || %s, 0))", [slot.name])
            if slot.name != job.slot:
                Job.objects.filter(pk=job.pk, status="queued").update(slot=slot.name)
        cursor.execute(
            _CLAIM.format(columns=_CLAIMED.columns),
            {
                "id": job_id,
                "token": token,
                "lease": settings.COGRAPH.jobs.lease_seconds,
                "slot": slot.name if slot else "",
                "limit": slot.limit if slot else None,
            },
        )
        claimed = _CLAIMED.one(cursor.fetchone())
        if claimed is None:
            _say_why(job_id, slot)
            return None
        begun = claimed.attempt_started_at or timezone.now()
        cursor.execute(_ATTEMPT, [claimed.pk, claimed.runs, worker_name(), begun])
    return claimed


def as_stored(job: Job) -> Job:
    """The job as it stands now."""
    return _ONE.first(job.pk) or job


def _say_why(job_id: UUID, slot: Slot | None) -> None:
    """Mark a due job that found no place, so that a finishing job sends for it."""
    reason = BEHIND_MANUAL
    if slot is not None:
        running = Job.objects.filter(status="running", slot=slot.name).count()
        if running >= slot.limit:
            reason = slot.waiting.format(running=running)
    Job.objects.filter(pk=job_id, status="queued", not_before__isnull=True).update(waiting_reason=reason[:200])
