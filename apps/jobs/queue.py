"""Putting jobs into the queue: the row first, the message when the transaction commits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from apps.access.compiled import MARK_OF_ID, Rows
from apps.access.errors import Throttled
from apps.jobs.kinds import SourceKey, followers, get_kind
from apps.jobs.models import ONE_LIVE_JOB, Cause, Job, JsonObject, Status

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from apps.access.models import User

MAX_RESEND_WAIT = timedelta(minutes=15)
_NEWEST = """
SELECT DISTINCT ON (kind) kind, status FROM jobs_job
WHERE kind = ANY(%s) AND source_kind = %s AND (source_id = %s OR %s IS NULL AND source_id IS NULL) AND key = ''
ORDER BY kind, created_at DESC
"""
_COUNTED = """
SELECT count(*), count(*) FILTER (WHERE requested_by_id = %s) FROM jobs_job
WHERE status IN ('queued', 'running') AND cause <> 'follow_up'
"""


def _live(kind: str, source_kind: str, source_id: UUID | None, key: str) -> QuerySet[Job]:
    # Spelled out, for a statement planned for any values cannot know that the index of live jobs holds them.
    rows = Job.objects.extra(where=["jobs_job.status IN ('queued', 'running')"])
    found = rows.filter(kind=kind, source_kind=source_kind, source_id=source_id, key=key)
    return found.order_by().select_for_update(no_key=True)


_LIVE: Rows[Job] = Rows(_live, "its kind", "its kind of source", MARK_OF_ID, "its key")


@dataclass(frozen=True, slots=True)
class Enqueued:
    """The live job of the object; ``deduplicated`` when it was there before."""

    job: Job
    deduplicated: bool


def enqueue(
    kind: str,
    *,
    source: Any = None,
    source_key: SourceKey | None = None,
    key: str = "",
    params: Mapping[str, Any] | None = None,
    by: User | None = None,
    cause: Cause | str = Cause.MANUAL,
    delay: float = 0,
    retry_of: Job | None = None,
) -> Enqueued:
    """Ask for one job; at most one per (kind, source, key) is live, and a further request returns that one.

    A request that meets a queued job adds its true-valued ``params`` to it; one that meets a running job makes it run
    once more afterwards, with these params. ``source`` is a Source, ``source_key`` its (kind, id); neither means the
    deployment. ``delay`` is in seconds. The message is sent when the surrounding transaction commits.

    Raises LookupError for an unknown kind, Throttled ``too_many_jobs`` above the limits (follow-ups are not counted).
    """
    if source is not None:
        source_key = (source.kind, source.pk)
    source_kind, source_id = source_key or ("", None)
    job_kind = get_kind(kind, source_kind)
    wanted: JsonObject = dict(params or {})
    while True:
        with transaction.atomic():
            if source_id is not None:
                live = _LIVE.first(kind, source_kind, source_id, key)
            else:
                live = _live(kind, source_kind, None, key).first()
            if live is not None:
                return Enqueued(_join(live, wanted, cause=Cause(cause), by=by), deduplicated=True)
        check_limits(by=by, cause=Cause(cause))
        now = timezone.now()
        due = now + timedelta(seconds=delay)
        job = Job(
            kind=kind,
            source_kind=source_kind,
            source_id=source_id,
            key=key,
            params=wanted,
            cause=cause,
            requested_by=by,
            retry_of=retry_of,
            created_at=now,
            not_before=due if delay else None,
            resend_at=due + timedelta(seconds=0 if delay else settings.COGRAPH.jobs.sweep_seconds),
        )
        slot = job_kind.slot(job) if job_kind.slot else None
        job.slot = slot.name if slot else ""
        try:
            with transaction.atomic():
                job.save(force_insert=True)
        except IntegrityError as error:
            if ONE_LIVE_JOB not in str(error):
                raise
            continue  # another request was faster: join its job
        if not delay:
            send_on_commit(job.pk)
        return Enqueued(job, deduplicated=False)


def check_limits(*, by: User | None, cause: Cause) -> None:
    """Raise Throttled ``too_many_jobs`` when one more job would be too many.

    Follow-ups are neither counted nor refused; scheduled work, which nobody could ask for again, is counted only.
    """
    if cause in (Cause.FOLLOW_UP, Cause.SCHEDULE):
        return
    limits = settings.COGRAPH.jobs
    if by is not None:
        with transaction.atomic(), connection.cursor() as cursor:
            # Two requests of one user must not both see the last free place. Held to the end of the transaction.
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended('jobs.user:' || %s, 0))", [str(by.pk)])
    with connection.cursor() as cursor:
        cursor.execute(_COUNTED, [by.pk if by is not None else None])
        everybody, own = cursor.fetchone()
    if by is not None and own >= limits.live_per_user:
        raise Throttled(
            f"You have {limits.live_per_user} jobs that wait or run. Wait until one has finished, or cancel one.",
            code="too_many_jobs",
            retry_after=30,
        )
    if everybody >= limits.live_total:
        raise Throttled(
            f"{limits.live_total} jobs wait or run here already. Try again when some have finished.",
            code="too_many_jobs",
            retry_after=60,
        )


def _join(live: Job, wanted: JsonObject, *, cause: Cause, by: User | None) -> Job:
    fields = []
    if live.status == Status.RUNNING:
        live.again, live.again_params = True, _merged(live.again_params, wanted)
        fields = ["again", "again_params"]
    else:
        if (params := _merged(live.params, wanted)) != live.params:
            live.params = params
            fields.append("params")
        if live.cause == Cause.SCHEDULE and cause != Cause.SCHEDULE:
            live.cause, live.requested_by = cause, by
            fields += ["cause", "requested_by"]
    if fields:
        live.save(update_fields=fields)
    return live


def _merged(old: JsonObject, new: JsonObject) -> JsonObject:
    """``force`` asked for once stays asked for."""
    return {**new, **old, **{name: value for name, value in new.items() if value}}


def queue_followers(job: Job, *, changed: bool = True) -> list[Job]:
    """The jobs that the success of ``job`` asks for, by ``after`` of the registered kinds.

    When it ``changed`` nothing, only kinds whose last job has not succeeded: those still owe what they were asked for.
    """
    names = [kind.name for kind in followers(job.kind, job.source_kind)]
    if names and not changed:
        settled = (Status.SUCCESS, Status.QUEUED, Status.RUNNING)
        with connection.cursor() as cursor:
            cursor.execute(_NEWEST, [names, job.source_kind, job.source_id, job.source_id])
            done = {name for name, status in cursor.fetchall() if status in settled}
        names = [name for name in names if name not in done]
    return [enqueue(name, source_key=job.source_key, cause=Cause.FOLLOW_UP, by=job.requested_by).job for name in names]


def send_on_commit(job_id: UUID) -> None:
    # robust: a message that could not be sent is sent again by the sweep and must not fail the request
    transaction.on_commit(partial(send, job_id), robust=True)


def send(job_id: UUID) -> None:
    """Put a message that carries the id into the queue. Harmless at any time and number."""
    from django_q.tasks import async_task

    from apps.jobs.broker import sender

    # SECURITY: messages are signed pickles; whoever can write them runs code, so they carry an id and nothing else.
    async_task("apps.jobs.tasks.perform", str(job_id), task_name=str(job_id), save=False, broker=sender())
