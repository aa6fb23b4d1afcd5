"""Running jobs: in a worker process, and in this process for commands and tests."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from uuid import UUID

from django.conf import settings
from django.db import InterfaceError, OperationalError, close_old_connections, connection
from django.db.models import Case, Value, When
from django.db.models.expressions import Combinable

from apps.access.redact import redact
from apps.jobs import heartbeat
from apps.jobs.claims import BEHIND_MANUAL, as_stored, claim
from apps.jobs.errors import (
    DeadlineOver,
    LastingFailure,
    LeaseLost,
    Stopped,
    TransientFailure,
    WorkerEnds,
)
from apps.jobs.finishing import finish, interrupt, put_back
from apps.jobs.kinds import JobKind, find_kind
from apps.jobs.lease import LeaseKeeper
from apps.jobs.models import Cause, Job, Status
from apps.jobs.queue import send
from apps.jobs.running import JobRun

logger = logging.getLogger(__name__)

RECONNECT_SECONDS = 0.5

_PASSING_STATES = frozenset(
    {
        "40001",
        "40P01",
        "55P03",
        "57014",
        "57P01",
        "57P02",
        "57P03",
        "25P03",
        "53300",
        "53200",
        "08000",
        "08003",
        "08006",
    }
)


def perform(job_id: UUID) -> None:
    """What a message does: run the job it names if that can be claimed.

    A scheduled job that must wait behind other work is sent again, and the worker does the other work in its stead.
    """
    with heartbeat.working():
        if heartbeat.must_end():
            return  # the row stays queued, and the sweep sends for it
        close_old_connections()  # also makes the next query check the connection: PostgreSQL may have restarted
        job = claim(job_id)
        if job is None:
            job = _instead_of(job_id)
            if job is not None:
                send(job_id)
        if job is not None:
            _execute(job)
        close_old_connections()


def run_job(job_id: UUID) -> Job | None:
    """Claim and run one job in this process. None when it could not be claimed. For commands and tests."""
    job = claim(job_id)
    if job is None:
        return None
    _execute(job)
    return as_stored(job)


def drain(*, limit: int = 1000) -> list[Job]:
    """Run everything that is queued and due, follow-ups too, in this process. Returns the jobs in the order they ran,
    as they ended. Jobs that wait for a later time stay queued. Raises RuntimeError after ``limit`` jobs."""
    done: list[Job] = []
    passed: set[UUID] = set()
    while True:
        queue = Job.objects.filter(status=Status.QUEUED, not_before__isnull=True).exclude(pk__in=passed)
        pk = queue.order_by(*_first_come()).values_list("pk", flat=True).first()
        if pk is None:
            return done
        job = run_job(pk)
        if job is None:
            passed.add(pk)
            continue
        done.append(job)
        if len(done) >= limit:
            raise RuntimeError(f"{limit} jobs ran and more are queued")


def _first_come() -> tuple[Combinable | str, ...]:
    return (Case(When(cause=Cause.SCHEDULE, then=Value(1)), default=Value(0)), "created_at", "pk")


def _instead_of(job_id: UUID) -> Job | None:
    if not Job.objects.filter(pk=job_id, status=Status.QUEUED, waiting_reason=BEHIND_MANUAL).exists():
        return None
    others = Job.objects.filter(status=Status.QUEUED, not_before__isnull=True).exclude(cause=Cause.SCHEDULE)
    for pk in others.order_by("created_at").values_list("pk", flat=True)[:20]:
        if (job := claim(pk)) is not None:
            return job
    return claim(job_id)


def _execute(job: Job) -> None:
    run = JobRun(job)
    kind = find_kind(job.kind, job.source_kind)
    if kind is None:
        finish(run, Status.ERROR, code="unknown_kind", message=f"This version knows no jobs of kind {job.kind}.")
        return
    # Inside a transaction (tests) no other connection sees the row, and none needs to.
    with nullcontext() if connection.in_atomic_block else LeaseKeeper(run, deadline=kind.deadline):
        try:
            act = _work(run, kind)
        except (KeyboardInterrupt, SystemExit):
            _reach_database(run, partial(interrupt, run))
            raise
        _reach_database(run, act)


def _work(run: JobRun, kind: JobKind) -> Callable[[], object]:
    """Call the kind's function; what is returned settles the job."""
    try:
        run.begin()
        kind.run(run)
        run.check()
    except Exception as error:
        # A run that was stopped may end with any error: its child was killed, its socket closed.
        reason = run.stop_reason or (type(error) if isinstance(error, Stopped) else None)
        return _after_failure(run, error) if reason is None else _after_stop(run, kind, reason)
    return partial(finish, run, Status.SUCCESS)


def _after_stop(run: JobRun, kind: JobKind, reason: type[Stopped]) -> Callable[[], object]:
    if reason is LeaseLost:
        logger.warning("job %s: lease lost, nothing more is written", run.job.pk)
        return lambda: None
    if reason is DeadlineOver:
        text = f"It did not finish within {kind.deadline} (hours, minutes, seconds)"
        return partial(put_back, run, TransientFailure("deadline_over", text))
    if reason is WorkerEnds:
        return partial(interrupt, run)
    return partial(finish, run, Status.CANCELLED)


def _after_failure(run: JobRun, error: Exception) -> Callable[[], object]:
    if isinstance(error, LastingFailure):
        return partial(finish, run, Status.ERROR, code=error.code, message=redact(error.message))
    if isinstance(error, TransientFailure):
        error.message = redact(error.message)
        return partial(put_back, run, error)
    name = type(error).__name__
    if passes_by_itself(error):
        logger.warning("job %s: %s", run.job.pk, name)
        return partial(put_back, run, TransientFailure("interrupted", f"It was interrupted ({name})"))
    logger.exception("job %s (%s) failed", run.job.pk, run.job.kind, exc_info=error)
    text = f"An unexpected fault ({name}) ended the job. The log of the workers names it under {run.job.pk}."
    return partial(finish, run, Status.ERROR, code="internal", message=text)


def passes_by_itself(error: BaseException) -> bool:
    """Whether a fault of the database, the network or memory is worth another attempt."""
    if isinstance(error, ConnectionError | TimeoutError | MemoryError | InterfaceError):
        return True
    state = getattr(error.__cause__, "sqlstate", None)
    return state in _PASSING_STATES if state else isinstance(error, OperationalError)


def _reach_database(run: JobRun, act: Callable[[], object]) -> None:
    """Do ``act`` although the database may just be restarting; after a lease without it the sweep takes over."""
    give_up = time.monotonic() + settings.COGRAPH.jobs.lease_seconds
    while True:
        try:
            act()
            return
        except LeaseLost:
            return
        except (OperationalError, InterfaceError):
            if connection.in_atomic_block:
                raise
            connection.close()
            if time.monotonic() > give_up:
                logger.warning("job %s: the database is out of reach", run.job.pk)
                return
            time.sleep(RECONNECT_SECONDS)
