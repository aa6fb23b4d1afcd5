"""Running jobs: in a worker process, and in this process for commands and tests."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import nullcontext
from uuid import UUID

from django.conf import settings
from django.db import DatabaseError, InterfaceError, OperationalError, close_old_connections, connection
from django.db.models import Case, Value, When
from django.db.models.expressions import Combinable

from apps.jobs.claims import BEHIND_MANUAL, claim
from apps.jobs.errors import Cancelled, DeadlineOver, LastingFailure, LeaseLost, TransientFailure
from apps.jobs.finishing import finish, put_back
from apps.jobs.kinds import find_kind
from apps.jobs.lease import LeaseKeeper
from apps.jobs.models import Cause, Job, Status
from apps.jobs.queue import send
from apps.jobs.running import JobRun
from apps.jobs.sources import load_source

logger = logging.getLogger(__name__)

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
    job.refresh_from_db()
    return job


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
    keeper = nullcontext() if connection.in_atomic_block else LeaseKeeper(run, deadline=kind.deadline)
    with keeper:
        failure: TransientFailure
        try:
            if job.source_id is not None and load_source(job.source_kind, job.source_id) is None:
                raise Cancelled
            kind.run(run)
            run.check()
            _settle(run, Status.SUCCESS)
            return
        except LeaseLost:
            logger.warning("job %s: lease lost, nothing more is written", job.pk)
            return
        except Cancelled:
            _settle(run, Status.CANCELLED)
            return
        except DeadlineOver:
            hours = kind.deadline.total_seconds() / 3600
            failure = TransientFailure("deadline_over", f"It did not finish within {hours:g} hours.")
        except LastingFailure as error:
            _settle(run, Status.ERROR, code=error.code, message=error.message)
            return
        except TransientFailure as error:
            failure = error
        except (DatabaseError, InterfaceError, ConnectionError, TimeoutError, MemoryError) as error:
            if run.stop_reason is Cancelled:
                _settle(run, Status.CANCELLED)
                return
            if not passes_by_itself(error):
                _fault(run, error)
                return
            logger.warning("job %s: %s", job.pk, type(error).__name__)
            failure = TransientFailure("interrupted", f"It was interrupted ({type(error).__name__}).")
        except Exception as error:
            if run.stop_reason is Cancelled:  # a killed child process shows as any error
                _settle(run, Status.CANCELLED)
            else:
                _fault(run, error)
            return
        _put_back(run, failure)


def passes_by_itself(error: BaseException) -> bool:
    """Whether a fault of the database, the network or memory is worth another attempt."""
    if isinstance(error, (ConnectionError, TimeoutError, MemoryError, InterfaceError)):
        return True
    state = getattr(error.__cause__, "sqlstate", None)
    return state in _PASSING_STATES if state else isinstance(error, OperationalError)


def _fault(run: JobRun, error: Exception) -> None:
    logger.exception("job %s (%s) failed", run.job.pk, run.job.kind, exc_info=error)
    _settle(
        run,
        Status.ERROR,
        code="internal",
        message=f"An unexpected fault ({type(error).__name__}) ended the job. The workers' log names job {run.job.pk}.",
    )


def _settle(run: JobRun, status: Status, *, code: str = "", message: str = "") -> None:
    _reach_database(run, lambda: finish(run, status, code=code, message=message))


def _put_back(run: JobRun, failure: TransientFailure) -> None:
    _reach_database(run, lambda: put_back(run, failure))


def _reach_database(run: JobRun, act: Callable[[], object]) -> None:
    """Do ``act`` although the database may just be restarting; after a lease without it the sweep takes over."""
    if connection.in_atomic_block:
        act()
        return
    give_up = time.monotonic() + settings.COGRAPH.jobs.lease_seconds
    while True:
        try:
            act()
            return
        except (OperationalError, InterfaceError):
            connection.close()
            if time.monotonic() > give_up:
                logger.warning("job %s: the database is out of reach", run.job.pk)
                return
            time.sleep(0.5)
        except LeaseLost:
            return
