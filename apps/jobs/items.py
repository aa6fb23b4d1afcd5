"""The per-file report: writing it, counting it, keeping it small."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.db.models import Count, Q

from apps.jobs.models import ItemState, Job, Status

_STORED = ("created", "replaced", "moved")

_UPSERT = """
INSERT INTO jobs_jobitem AS item
    (job_id, path, state, reason, message, line, "column", size, milliseconds, chunks, warning, details)
SELECT %s, path, state, reason, message, line, "column", size, milliseconds, chunks, warning, details
FROM json_to_recordset(%s::json) AS given (
    path text, state text, reason text, message text, line int, "column" int, size bigint, milliseconds int, chunks int,
    warning boolean, details jsonb)
ON CONFLICT (job_id, path) DO UPDATE SET
    (state, reason, message, line, "column", size, milliseconds, chunks, warning, details) =
    (excluded.state, excluded.reason, excluded.message, excluded.line, excluded."column", excluded.size,
     excluded.milliseconds, excluded.chunks, excluded.warning, excluded.details)
WHERE NOT (excluded.state = 'unchanged' AND item.state IN ('created', 'replaced', 'moved'))
"""
_COUNTS = "SELECT state, count(*), count(*) FILTER (WHERE warning) FROM jobs_jobitem WHERE job_id = %s GROUP BY state"
_SHORTEN = """
WITH placed AS (
    SELECT coalesce(same_as_id, id) AS id, row_number() OVER (ORDER BY finished_at DESC, created_at DESC) AS place
    FROM jobs_job WHERE kind = %s AND source_kind = %s AND (source_id = %s OR %s IS NULL AND source_id IS NULL)
    AND key = %s AND finished_at IS NOT NULL AND id <> %s
), older AS (SELECT id, min(place) AS place FROM placed WHERE id <> %s GROUP BY id)
DELETE FROM jobs_jobitem AS item USING older
WHERE item.job_id = older.id AND (older.place > %s OR item.state = 'unchanged')
"""


@dataclass(frozen=True, slots=True)
class Item:
    path: str
    state: ItemState
    reason: str
    message: str
    line: int | None
    column: int | None
    size: int | None
    milliseconds: int | None
    chunks: int | None
    warning: bool
    details: dict[str, Any]


def write_items(job: Job, items: Sequence[Item]) -> None:
    """Store the items of ``job``, the last one of a path winning.

    A file that an earlier attempt stored is met again as unchanged; for the job as a whole it keeps its first state.
    The same holds across retries of a job that never succeeded.
    """
    latest = {item.path: item for item in items}
    for path, earlier in _earlier_states(job, [p for p, i in latest.items() if i.state == "unchanged"]).items():
        latest[path] = replace(latest[path], state=ItemState(earlier))
    rows = [
        {
            "path": _text(item.path),
            "state": item.state.value,
            "reason": item.reason,
            "message": _text(item.message),
            "line": item.line,
            "column": item.column,
            "size": item.size,
            "milliseconds": item.milliseconds,
            "chunks": item.chunks,
            "warning": item.warning,
            "details": item.details,
        }
        for item in latest.values()
    ]
    with connection.cursor() as cursor:
        cursor.execute(_UPSERT, [job.pk, json.dumps(rows)])


_ADD_DETAILS = """
UPDATE jobs_jobitem SET details = jobs_jobitem.details || given.details
FROM json_to_recordset(%s::json) AS given (path text, details jsonb)
WHERE jobs_jobitem.job_id = %s AND jobs_jobitem.path = given.path
"""


def add_details(job_id: UUID, details: Mapping[str, Mapping[str, Any]]) -> None:
    """Add to the report of a job, finished or not, what its follow-up work found out about files, by path. Paths
    without an item are passed over."""
    rows = [{"path": _text(path), "details": dict(found)} for path, found in details.items()]
    with connection.cursor() as cursor:
        cursor.execute(_ADD_DETAILS, [json.dumps(rows), job_id])


REPORT = "report"
"""The parameter of a follow-up job that names the job whose report it belongs to."""


def follow_up_counters(job: Job) -> dict[str, int]:
    """What the follow-up jobs of ``job`` counted, added up by name."""
    found: Counter[str] = Counter()
    followers = Job.objects.filter(
        source_kind=job.source_kind, source_id=job.source_id, created_at__gte=job.created_at,
        **{f"params__{REPORT}": str(job.pk)},
    )  # fmt: skip
    for counters in followers.values_list("counters", flat=True):
        found.update({name: value for name, value in counters.items() if isinstance(value, int)})
    return dict(found)


def _text(text: str) -> str:
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")


def _earlier_states(job: Job, paths: list[str]) -> dict[str, str]:
    states: dict[str, str] = {}
    before = job.retry_of if paths else None
    while before is not None and before.status in (Status.ERROR, Status.CANCELLED):
        stored = before.items.filter(path__in=paths, state__in=_STORED).values_list("path", "state")
        states = dict(stored) | states
        before = before.retry_of
    return states


def item_counts(job: Job) -> dict[str, int]:
    """Items by state, and ``warnings``."""
    with connection.cursor() as cursor:
        cursor.execute(_COUNTS, [job.reporter_id])
        rows = cursor.fetchall()
    counts, warned = {}, 0
    for state, every, warnings in rows:
        counts[state] = every
        warned += warnings
    return {**counts, "warnings": warned}


def clean_words(job: Job) -> str:
    """``1 of 3 clean``: files without a warning, of all that were looked at; empty without items."""
    numbers = job.items.aggregate(every=Count("pk"), warned=Count("pk", filter=Q(warning=True)))
    return f"{numbers['every'] - numbers['warned']} of {numbers['every']} clean" if numbers["every"] else ""


def shorten_older_reports(job: Job) -> None:
    """``job`` has finished: only it keeps ``unchanged`` items, a number of older ones the rest, older ones none."""
    with connection.cursor() as cursor:
        cursor.execute(
            _SHORTEN,
            [
                job.kind,
                job.source_kind,
                job.source_id,
                job.source_id,
                job.key,
                job.pk,
                job.reporter_id,
                settings.COGRAPH.retention.reports,
            ],
        )
