"""Mending the queue, outside of it: lost workers, lost messages, due schedules.

The loop belongs to no queue, so that it runs while every worker is busy, and may run on any number of machines: an
advisory lock lets one at a time act.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import DatabaseError, InterfaceError, OperationalError, connection, transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from apps.jobs.finishing import lose
from apps.jobs.kinds import Due, JobKind, all_kinds
from apps.jobs.models import Cause, Clock, Job, Status
from apps.jobs.queue import enqueue, send_on_commit

logger = logging.getLogger(__name__)

SWEEP_CLOCK = "sweep"
LATE_SECONDS = 300
TICK_SECONDS = 1.0
RESEND_DOUBLINGS = 4
"""A message is sent again after 1 sweep, then after 2, 4, 8 and 15 more each (of 60 s: 2, 4, 8, 15 min)."""
FIRST_PERIOD = timedelta(hours=1)

_LOCK = "hashtextextended('jobs.sweep', 0)"


@dataclass(frozen=True, slots=True)
class Swept:
    lost: int
    sent: int
    scheduled: int


def sweep() -> Swept:
    """One sweep: (a) running jobs whose lease ran out, (b) due jobs that nobody claims, (c) due schedules."""
    swept = Swept(lost=_take_from_lost_workers(), sent=_send_again(Q()), scheduled=_queue_due())
    Clock.objects.update_or_create(name=SWEEP_CLOCK, defaults={"at": timezone.now()})
    return swept


def last_sweep() -> datetime | None:
    return Clock.objects.filter(name=SWEEP_CLOCK).values_list("at", flat=True).first()


def sweep_is_late() -> bool:
    """True when no sweep ran for five minutes (or five of its periods, if these are longer)."""
    last = last_sweep()
    late = max(LATE_SECONDS, 5 * settings.COGRAPH.jobs.sweep_seconds)
    return last is None or timezone.now() - last > timedelta(seconds=late)


def run_forever(stop: threading.Event) -> None:
    """Sweep until ``stop`` is set, while this process holds the lock. Between sweeps jobs whose wait is over are sent
    for each second. A database that is away is waited for."""
    locked_on: object = None
    answers = True
    next_sweep = 0.0
    while not stop.is_set():
        try:
            connection.ensure_connection()
            if locked_on is not connection.connection:
                locked_on = connection.connection if _take_lock() else None
            if locked_on is not None:
                if time.monotonic() >= next_sweep:
                    next_sweep = time.monotonic() + settings.COGRAPH.jobs.sweep_seconds
                    sweep()
                else:
                    _send_again(Q(not_before__isnull=False))
            answers = True
        except (OperationalError, InterfaceError) as error:
            if answers:
                logger.warning("sweep: the database does not answer (%s)", type(error).__name__)
            answers = False
            connection.close()
        except Exception:  # whatever one sweep trips over, the next one is due all the same
            logger.exception("a sweep failed")
            connection.close()
        stop.wait(min(TICK_SECONDS, settings.COGRAPH.jobs.sweep_seconds))
    connection.close()


def _take_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT pg_try_advisory_lock({_LOCK})")
        return bool(cursor.fetchone()[0])


def _take_from_lost_workers() -> int:
    lost = list(Job.objects.filter(status=Status.RUNNING, lease_expires__lt=Now()).values_list("pk", flat=True))
    return sum(_take(pk) for pk in lost)


def _take(pk: UUID) -> bool:
    try:
        with transaction.atomic():
            # A batch that is still open holds the row; the server ends it when it idles for a lease (JobRun.batch).
            expired = Job.objects.filter(pk=pk, status=Status.RUNNING, lease_expires__lt=Now())
            job = expired.select_for_update(skip_locked=True).first()
            if job is None:
                return False
            logger.warning("job %s (%s): worker lost in attempt %s", job.pk, job.kind, job.attempts)
            lose(job)
            return True
    except (OperationalError, InterfaceError):
        raise
    except Exception:  # one job that cannot be settled must not hold up the others
        logger.exception("job %s could not be taken from its lost worker", pk)
        return False


def _send_again(which: Q) -> int:
    base = settings.COGRAPH.jobs.sweep_seconds
    with transaction.atomic():
        due = Job.objects.filter(which, status=Status.QUEUED, resend_at__lte=Now()).filter(
            Q(not_before__isnull=True) | Q(not_before__lte=Now())
        )
        jobs = list(due.order_by("resend_at").select_for_update(skip_locked=True)[:500])
        for job in jobs:
            job.sends = min(job.sends + 1, RESEND_DOUBLINGS)
            wait = min(base * 2**job.sends, base * 15)
            job.not_before, job.resend_at = None, timezone.now() + timedelta(seconds=wait)
            send_on_commit(job.pk)
        Job.objects.bulk_update(jobs, ["sends", "resend_at", "not_before"])
    return len(jobs)


def _queue_due() -> int:
    count = 0
    for kind in all_kinds():
        if kind.every is None:
            continue
        try:
            for due in _due(kind, timezone.now()):
                enqueued = enqueue(
                    kind.name, source_key=due.source, key=due.key, params=due.params, cause=Cause.SCHEDULE
                )
                count += not enqueued.deduplicated
        except (DatabaseError, InterfaceError):
            raise
        except Exception:  # one room's broken schedule must not stop the mending of the queue
            logger.exception("the schedule of %s failed", kind.name)
    return count


def _due(kind: JobKind, now: datetime) -> Iterable[Due]:
    if not isinstance(kind.every, timedelta):
        return kind.every(now) if kind.every else ()
    with transaction.atomic():
        first = now + min(kind.every, FIRST_PERIOD)
        clock, made = Clock.objects.select_for_update().get_or_create(name=f"kind:{kind.name}", defaults={"at": first})
        if made or clock.at > now:
            return ()
        clock.at = now + kind.every
        clock.save()
    return (Due(),)
