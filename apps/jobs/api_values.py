"""What REST says of jobs."""

from __future__ import annotations

from typing import Any

from django.db.models import Count
from rest_framework import serializers

from apps.jobs.items import clean_words
from apps.jobs.models import JobAttempt, JobItem
from apps.jobs.presentation import JobLine


class JobSourceOutput(serializers.Serializer[Any]):
    """The source that a job is about."""

    kind = serializers.CharField()
    id = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]
    url = serializers.CharField()


class JobErrorOutput(serializers.Serializer[Any]):
    """Why it failed."""

    code = serializers.CharField()
    message = serializers.CharField()


class JobOutput(serializers.Serializer[Any]):
    """A job. ``state`` is the word that every face uses; ``total`` is null while unknown, ``rate`` is a second."""

    id = serializers.CharField()
    kind = serializers.CharField()
    status = serializers.CharField()
    state = serializers.CharField()
    source = JobSourceOutput(allow_null=True)  # type: ignore[assignment]
    stage = serializers.CharField()
    done = serializers.IntegerField(allow_null=True)
    total = serializers.IntegerField(allow_null=True)
    percentage = serializers.IntegerField(allow_null=True)
    rate = serializers.FloatField(allow_null=True)
    remaining_seconds = serializers.IntegerField(allow_null=True)
    warnings = serializers.IntegerField()
    counters = serializers.DictField()
    outcome = serializers.CharField()
    error = JobErrorOutput(allow_null=True)
    waiting_reason = serializers.CharField()
    attempts = serializers.IntegerField()
    cause = serializers.CharField()
    requested_by = serializers.CharField(allow_null=True)
    retry_of = serializers.CharField(allow_null=True)
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)


class QueuedJobOutput(JobOutput):
    """The new job, or the live one of the same object."""

    deduplicated = serializers.BooleanField()


class JobAttemptOutput(serializers.Serializer[Any]):
    """One run by one worker."""

    number = serializers.IntegerField()
    ending = serializers.CharField()
    error = JobErrorOutput(allow_null=True)
    started_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)


class WholeJobOutput(JobOutput):
    """A job with its attempts, its warnings and its files counted by state."""

    notes = serializers.ListField(child=serializers.DictField())
    attempt_list = JobAttemptOutput(many=True)
    items = serializers.DictField(child=serializers.IntegerField())
    clean = serializers.CharField()


class JobItemOutput(serializers.Serializer[Any]):
    """What a job did with one file."""

    path = serializers.CharField()
    state = serializers.CharField()
    reason = serializers.CharField()
    message = serializers.CharField()
    line = serializers.IntegerField(allow_null=True)
    column = serializers.IntegerField(allow_null=True)
    bytes = serializers.IntegerField(allow_null=True)
    milliseconds = serializers.IntegerField(allow_null=True)
    chunks = serializers.IntegerField(allow_null=True)
    warning = serializers.BooleanField()
    details = serializers.DictField()


def present_line(line: JobLine) -> dict[str, Any]:
    job, source = line.job, line.source
    return {
        "id": str(job.pk),
        "kind": job.kind,
        "status": job.status,
        "state": job.state_words,
        "source": {
            "kind": source.kind,
            "id": str(source.pk),
            "label": source.label,
            "url": source.get_absolute_url(),
        }
        if source is not None
        else None,
        "stage": job.stage,
        "done": job.done,
        "total": job.total,
        "percentage": job.percentage,
        "rate": round(job.rate, 3) if job.rate is not None else None,
        "remaining_seconds": round(job.remaining.total_seconds()) if job.remaining is not None else None,
        "warnings": job.warnings,
        "counters": job.counters,
        "outcome": job.outcome,
        "error": _error(job.error_code, job.error_message),
        "waiting_reason": job.waiting_reason,
        "attempts": job.attempts,
        "cause": job.cause,
        "requested_by": job.requested_by.get_username() if job.requested_by is not None else None,
        "retry_of": str(job.retry_of_id) if job.retry_of_id is not None else None,
        "created_at": job.created_at,
        "started_at": job.started_at,
        "finished_at": job.finished_at,
    }


def present_whole(line: JobLine) -> dict[str, Any]:
    job = line.job
    counts = job.items.order_by().values_list("state").annotate(Count("pk"))
    return {
        **present_line(line),
        "notes": job.notes,
        "attempt_list": [_attempt(attempt) for attempt in job.attempt_rows.all()],
        "items": dict(sorted(counts)),
        "clean": clean_words(job),
    }


def present_item(item: JobItem) -> dict[str, Any]:
    return {
        "path": item.path,
        "state": item.state,
        "reason": item.reason,
        "message": item.message,
        "line": item.line,
        "column": item.column,
        "bytes": item.size,
        "milliseconds": item.milliseconds,
        "chunks": item.chunks,
        "warning": item.warning,
        "details": item.details,
    }


def _attempt(attempt: JobAttempt) -> dict[str, Any]:
    return {
        "number": attempt.number,
        "ending": attempt.ending,
        "error": _error(attempt.error_code, attempt.error_message),
        "started_at": attempt.started_at,
        "finished_at": attempt.finished_at,
    }


def _error(code: str, message: str) -> dict[str, str] | None:
    return {"code": code, "message": message} if code else None
