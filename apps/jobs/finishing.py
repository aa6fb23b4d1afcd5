"""How a run ends: one transaction that settles the job, its report and what follows from it."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from apps.access.compiled import AFTER_ID, MARK_OF_ID, Rows
from apps.access.cursors import prepared_cursor
from apps.jobs import poison
from apps.jobs.errors import TransientFailure
from apps.jobs.items import shorten_older_reports
from apps.jobs.kinds import find_kind
from apps.jobs.models import Cause, Ending, Job, JobAttempt, Status, UnderWay
from apps.jobs.queue import enqueue, queue_followers, send_on_commit
from apps.jobs.running import JobRun

_SETTLE = """
WITH gone AS (DELETE FROM jobs_underway WHERE job_id = %(id)s::uuid),
ended AS (
    UPDATE jobs_jobattempt SET
        ending = %(status)s::text, error_code = %(code)s::text, error_message = %(message)s::text,
        finished_at = %(now)s::timestamptz
    WHERE job_id = %(id)s::uuid AND number = %(run)s AND finished_at IS NULL
),
items AS (
    SELECT count(*) AS every, count(*) FILTER (WHERE warning) AS warned FROM jobs_jobitem WHERE job_id = %(reporter)s
)
UPDATE jobs_job SET
    status = %(status)s::text, error_code = %(code)s::text, error_message = %(message)s::text,
    finished_at = %(now)s::timestamptz,
    lease_token = NULL, lease_expires = NULL, not_before = NULL, resend_at = NULL, waiting_reason = '',
    again = false, again_params = '{}', cancel_requested = false,
    warnings = CASE WHEN %(status)s::text = 'cancelled' THEN warnings ELSE %(notes)s::int + warned END
FROM items WHERE id = %(id)s::uuid RETURNING warnings, every
"""
_WAITING = """
SELECT id, cause FROM jobs_job
WHERE status = 'queued' AND not_before IS NULL AND waiting_reason <> '' ORDER BY created_at LIMIT 100
"""
FIRST_WAIT = 15.0
LONGEST_WAIT = 600.0


def finish(run: JobRun, status: Status, *, code: str = "", message: str = "") -> bool:
    """Settle the job as ``status``. False when the lease is not this run's any more; then nothing was written."""
    with transaction.atomic():
        job = _own(run)
        if job is None:
            return False
        run.job = job
        if status == Status.SUCCESS:
            run.write_last()
        run.flush()
        settle(job, status, code=code, message=message, changed=not run.changed_nothing)
    return True


def settle(job: Job, status: Status, *, code: str = "", message: str = "", changed: bool = True) -> None:
    """The finishing transaction, for the worker and for the sweep alike; the caller holds the row.

    After a success that ``changed`` nothing, of the kinds that follow only those are queued that owe something.
    """
    again, params = job.again and status != Status.CANCELLED, job.again_params
    items = _settle(job, status, code, message)
    if status != Status.CANCELLED and items:
        shorten_older_reports(job)
    if again:
        enqueue(
            job.kind,
            source_key=job.source_key,
            key=job.key,
            params=params,
            by=job.requested_by,
            cause=Cause.FOLLOW_UP,
        )
    if status == Status.SUCCESS:
        queue_followers(job, changed=changed)
    send_for_waiting()


def put_back(run: JobRun, failure: TransientFailure) -> bool:
    """Queue the job again after a transient failure, or settle it as failed when its attempts are used up."""
    with transaction.atomic():
        job = _own(run)
        if job is None:
            return False
        if _cancelled(run, job):
            return True
        kind = find_kind(job.kind, job.source_kind)
        given_back = failure.retry_after is not None
        if kind is None or (not given_back and job.attempts >= kind.attempts):
            run.job = job
            run.flush()
            settle(job, Status.ERROR, code=failure.code, message=failure.message)
            return True
        if failure.retry_after is not None:
            wait = max(0.0, failure.retry_after)
        elif kind.waits is not None:
            wait = kind.waits(job.attempts)
        else:
            wait = min(LONGEST_WAIT, FIRST_WAIT * 4 ** (job.attempts - 1)) * random.uniform(0.8, 1.2)  # noqa: S311
        due = timezone.now() + timedelta(seconds=wait)
        UnderWay.objects.filter(job=job).delete()
        requeue(
            job,
            due=due,
            give_back=given_back,
            reason=f"{failure.message} (waits until {due:%H:%M:%S} UTC)" if not given_back else _limited(failure, due),
        )
        _end_attempt(job, Ending.TRANSIENT, failure.code, failure.message)
        send_for_waiting()
    return True


def _cancelled(run: JobRun, job: Job) -> bool:
    """Settle a job whose run ended before it heard that it was cancelled: queued again, nobody could claim it."""
    if job.cancel_requested:
        run.job = job
        run.flush()
        settle(job, Status.CANCELLED)
        return True
    return False


def _limited(failure: TransientFailure, due: datetime) -> str:
    what = "rate limited" if failure.code == "rate_limited" else failure.message
    return f"{what} until {due:%H:%M:%S} UTC"


def interrupt(run: JobRun) -> bool:
    """The worker ends: queue the job again at once, as if this attempt had not been."""
    with transaction.atomic():
        job = _own(run)
        if job is None:
            return False
        if _cancelled(run, job):
            return True
        UnderWay.objects.filter(job=job).delete()
        requeue(job, due=None, give_back=True)
        _end_attempt(
            job, Ending.TRANSIENT, "worker_ended", "The worker was stopped; the job goes on with the next one."
        )
    return True


def requeue(job: Job, *, due: datetime | None, give_back: bool, reason: str = "") -> None:
    """``running`` to ``queued``; the caller holds the row."""
    job.status = Status.QUEUED
    job.lease_token = job.lease_expires = None
    job.not_before, job.resend_at, job.sends = due, due or timezone.now(), 0
    job.waiting_reason = reason[:200]
    if give_back:
        job.attempts = max(0, job.attempts - 1)
    job.save()
    if due is None:
        send_on_commit(job.pk)


def lose(job: Job) -> None:
    """The worker of a running job is gone: queue it again, or settle it. The caller holds the row."""
    kind = find_kind(job.kind, job.source_kind)
    alone = poison.blame(job)
    text = "The worker stopped before it had finished, and its lease ran out."
    if job.cancel_requested:
        settle(job, Status.CANCELLED)
    elif alone and poison.lone_losses(job) > poison.LONE_LOSSES:
        settle(
            job,
            Status.ERROR,
            code="too_many_bad_files",
            message=f"More than {poison.LONE_LOSSES} files stopped their worker. The report names them; remove or mend"
            " them, then retry.",
        )
    elif kind is None or (not alone and job.attempts >= kind.attempts):
        settle(job, Status.ERROR, code="worker_lost", message=f"{text} No attempt is left. Retry it when workers run.")
    else:
        _end_attempt(job, Ending.LOST, "worker_lost", text)
        requeue(job, due=None, give_back=alone)
        return
    JobAttempt.objects.filter(job=job, number=job.runs).exclude(ending=Ending.CANCELLED).update(ending=Ending.LOST)


def send_for_waiting(limit: int = 10) -> None:
    """Send messages for due jobs that found no place before, oldest first and scheduled ones last."""
    with connection.cursor() as cursor:
        cursor.execute(_WAITING)
        ids = cursor.fetchall()
    for pk, _ in sorted(ids, key=lambda row: row[1] == Cause.SCHEDULE)[:limit]:
        send_on_commit(pk)


_OWN: Rows[Job] = Rows(
    lambda key, token: Job.objects.filter(pk=key, lease_token=token, status=Status.RUNNING).select_for_update(),
    MARK_OF_ID,
    AFTER_ID,
)


def _own(run: JobRun) -> Job | None:
    """The job's row, locked, while it is this run's."""
    return _OWN.first(run.job.pk, run.token)


def _settle(job: Job, status: Status, code: str, message: str) -> int:
    """Settle the row, end the attempt and what was under way, by one statement. How many items the job has."""
    job.status, job.error_code, job.error_message, job.finished_at = status, code, message, timezone.now()
    job.lease_token = job.lease_expires = job.not_before = job.resend_at = None
    job.waiting_reason, job.again, job.again_params, job.cancel_requested = "", False, {}, False
    values: dict[str, Any] = {"id": job.pk, "reporter": job.reporter_id, "run": job.runs, "notes": len(job.notes)}
    values |= {"status": status.value, "code": code, "message": message, "now": job.finished_at}
    with prepared_cursor() as cursor:
        cursor.execute(_SETTLE, values)
        job.warnings, items = cursor.fetchone()
    return int(items)


def _end_attempt(job: Job, ending: Ending, code: str, message: str) -> None:
    JobAttempt.objects.filter(job=job, number=job.runs, finished_at__isnull=True).update(
        ending=ending, error_code=code, error_message=message, finished_at=timezone.now()
    )
