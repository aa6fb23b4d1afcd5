"""The query log: one row for each search, retrieve, route and context call, whichever door it came by.

A door wraps its call::

    with query_log.noting(by=user, door=Door.REST, tool="search", query=query, named=sources) as note:
        answer = search(...)
        note.answered((hit.source.kind, hit.source.id) for hit in answer.hits)

The row is written when the answer is complete. A log that cannot be written never costs anyone an answer.
"""

from __future__ import annotations

import contextlib
import datetime
import logging
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.db import Error as DatabaseFailure
from django.db import ProgrammingError, connection, transaction
from django.db.models import QuerySet
from django.utils import timezone
from psycopg.errors import InvalidSqlStatementName

from apps.access.errors import Refusal
from apps.access.origin import current_origin
from apps.access.sources import source_model
from apps.collections.models import Collection
from apps.repos.models import Repository
from apps.retrieval.models import QUERY_BYTES, AnonymousQueries, Door, Outcome, QueryLogEntry

if TYPE_CHECKING:
    from apps.access.models import User
    from apps.access.viewers import Viewer

logger = logging.getLogger(__name__)

SourceKey: TypeAlias = tuple[str, UUID]

LOCK_MILLISECONDS = 200
"""An answer waits no longer for a log table that somebody holds."""
_BOUNDED = f"SET LOCAL lock_timeout = {LOCK_MILLISECONDS}"
_ROW_VALUES = {
    "id": "uuid",
    "at": "timestamptz",
    "user": "uuid",
    "token": "uuid",
    "door": "text",
    "tool": "text",
    "query": "text",
    "named": "text[]",
    "found": "text[]",
    "repositories": "uuid[]",
    "collections": "uuid[]",
    "outcome": "text",
    "code": "text",
    "tokens": "integer",
    "milliseconds": "integer",
}
_ROW = """
WITH silent AS (
    SELECT 'repository:' || id AS key FROM repositories
    WHERE id = ANY({repositories}) AND NOT logs_queries
    UNION ALL
    SELECT 'collection:' || id FROM md_collections
    WHERE id = ANY({collections}) AND query_log_opt_out
), kept AS (
    SELECT key, place FROM unnest({found}) WITH ORDINALITY AS found (key, place)
    WHERE key NOT IN (SELECT key FROM silent)
)
INSERT INTO query_log
    (id, at, user_id, token_id, door, tool, query, named, found, outcome, code, results, tokens, milliseconds)
SELECT {id}, {at}, {user}, {token}, {door}, {tool}, {query}, {named},
    ARRAY(SELECT key FROM kept GROUP BY key ORDER BY min(place)),
    COALESCE(NULLIF({outcome}, ''), CASE WHEN EXISTS (SELECT FROM kept) THEN 'ok' ELSE 'empty' END),
    {code}, (SELECT count(*) FROM kept),
    CASE WHEN (SELECT count(*) FROM kept) = cardinality({found}) THEN {tokens} ELSE 0 END,
    {milliseconds}
WHERE NOT EXISTS (SELECT FROM silent WHERE key = ANY({named}))
"""
"""A source that opted out, as its row says right now, leaves no trace: no row where the question names it, and its
hits are as if they had not been."""
_PREPARE = f"PREPARE cograph_query_log_row ({', '.join(_ROW_VALUES.values())}) AS " + _ROW.format(
    **{name: f"${place}" for place, name in enumerate(_ROW_VALUES, start=1)}
)
_EXECUTE = f"EXECUTE cograph_query_log_row ({', '.join(f'%({name})s::{kind}' for name, kind in _ROW_VALUES.items())})"
"""Planned once for each connection. By name, because the driver prepares no two statements of one message."""
_COUNT = """
INSERT INTO query_log_anonymous AS counted (day, door, tool, queries) VALUES (%(day)s, %(door)s, %(tool)s, 1)
ON CONFLICT (day, door, tool) DO UPDATE SET queries = counted.queries + 1
"""
PRUNED_AT_ONCE = 5000
SLOWEST = 20


@dataclass(slots=True)
class Note:
    """What a call found, filled in by the door while it answers."""

    named: Sequence[SourceKey] = ()
    found: list[SourceKey] = field(default_factory=list)
    tokens: int = 0
    outcome: Outcome | None = None
    code: str = ""

    def answered(self, found: Iterable[SourceKey], *, tokens: int = 0) -> None:
        """The source of each result row, in order; ``tokens`` that the answer costs its reader."""
        self.found = list(found)
        self.tokens = tokens

    def refused(self, code: str) -> None:
        """The call ended in an error that its door tells by itself."""
        self.outcome, self.code = Outcome.ERROR, code


@contextlib.contextmanager
def noting(*, by: Viewer, door: Door, tool: str, query: str, named: Sequence[SourceKey] = ()) -> Iterator[Note]:
    """Log the call inside. ``by`` is the account that asks (while an administrator views as somebody, his own);
    ``named`` are the sources that the question names, which the caller may read.

    Refusals and failures pass through, logged as errors.
    """
    note = Note(named=tuple(named))
    begun = time.perf_counter()
    try:
        yield note
    except Refusal as refusal:
        note.refused(refusal.code)
        raise
    except Exception:
        note.refused("failed")
        raise
    finally:
        _write(note, by, door, tool, query, round((time.perf_counter() - begun) * 1000))


def _write(note: Note, by: Viewer, door: Door, tool: str, query: str, milliseconds: int) -> None:
    try:
        if isinstance(by, AbstractUser):
            _add(_values(note, by, door, tool, query, milliseconds))
        else:
            _run(_COUNT, {"day": timezone.now().date(), "door": str(door), "tool": tool})
    except DatabaseFailure as failure:
        logger.warning("the query log could not be written: %s", type(failure).__name__)


def _add(values: Mapping[str, Any]) -> None:
    connection.ensure_connection()
    raw: Any = connection.connection
    if getattr(raw, "cograph_query_log_is_prepared", False):
        try:
            _run(_EXECUTE, values)
        except ProgrammingError as failure:
            # The driver forgets all that is prepared behind a transaction that was rolled back.
            if not isinstance(failure.__cause__, InvalidSqlStatementName):
                raise
        else:
            return
    _run(_PREPARE, None)
    raw.cograph_query_log_is_prepared = True
    _run(_EXECUTE, values)


def _run(statement: str, values: Mapping[str, Any] | None) -> None:
    if connection.in_atomic_block:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"{_BOUNDED}; {statement}; SET LOCAL lock_timeout = 0", values)
    else:
        with connection.cursor() as cursor:
            # One message, which PostgreSQL runs as one transaction: the bound ends with it.
            cursor.execute(f"{_BOUNDED}; {statement}", values)


def _values(note: Note, by: Any, door: Door, tool: str, query: str, milliseconds: int) -> dict[str, Any]:
    keys = {*note.named, *note.found}
    return {
        "id": uuid.uuid4(),
        "at": timezone.now(),
        "user": by.pk,
        "token": current_origin().token_id or None,
        "door": str(door),
        "tool": tool,
        "query": cut(query),
        "named": [_packed(key) for key in dict.fromkeys(note.named)],
        "found": [_packed(key) for key in note.found],
        "repositories": [id_ for kind, id_ in keys if kind == Repository.kind],
        "collections": [id_ for kind, id_ in keys if kind == Collection.kind],
        "outcome": str(note.outcome or ""),
        "code": note.code[:40],
        "tokens": note.tokens,
        "milliseconds": milliseconds,
    }


def cut(query: str) -> str:
    """At most 200 bytes of the query, ended at a character border."""
    clean = query.replace("\0", " ").encode("utf-8", "ignore")
    return clean[:QUERY_BYTES].decode("utf-8", "ignore")


def own_rows(user: User) -> QuerySet[QueryLogEntry]:
    """The rows of one person, newest first."""
    return QueryLogEntry.objects.filter(user=user).select_related("token")


def all_rows() -> QuerySet[QueryLogEntry]:
    """Every row, for administrators; the caller has made sure of that."""
    return QueryLogEntry.objects.select_related("user", "token")


def erase(user: User) -> int:
    """Delete all rows of one person. Returns how many there were."""
    count, _ = QueryLogEntry.objects.filter(user=user).delete()
    return count


def labels(rows: Iterable[QueryLogEntry], viewer: Viewer) -> dict[str, str]:
    """``kind:id`` → name, of the sources in ``rows`` that ``viewer`` may read now."""
    wanted: dict[str, set[UUID]] = {}
    for row in rows:
        for key in (*row.named, *row.found):
            kind, _, id_ = key.partition(":")
            wanted.setdefault(kind, set()).add(UUID(id_))
    return {
        _packed((kind, source.pk)): source.label
        for kind, ids in sorted(wanted.items())
        for source in source_model(kind).objects.visible_to(viewer).filter(pk__in=ids)
    }


@dataclass(frozen=True, slots=True)
class Statistics:
    """Of the last ``days``: for administrators. Times in milliseconds; None without rows."""

    days: int
    queries: int
    anonymous: int
    outcomes: dict[str, int]
    p50: float | None
    p95: float | None
    zero_hit: list[tuple[str, int]]
    slowest: list[tuple[str, int]]
    sources: list[tuple[str, int]]


def statistics(*, days: int = 7, now: datetime.datetime | None = None) -> Statistics:
    """Zero-hit and slow queries, percentiles and the sources found most often."""
    now = now or timezone.now()
    since = now - datetime.timedelta(days=days)
    rows = list(
        QueryLogEntry.objects.filter(at__gte=since).values_list("query", "outcome", "milliseconds", "found").order_by()
    )
    times = sorted(milliseconds for _, _, milliseconds, _ in rows)
    without = Counter(query for query, outcome, _, _ in rows if outcome == Outcome.EMPTY)
    slow: dict[str, int] = {}
    for query, _, milliseconds, _ in rows:
        slow[query] = max(slow.get(query, 0), milliseconds)
    anonymous = AnonymousQueries.objects.filter(day__gte=since.date()).values_list("queries", flat=True)
    return Statistics(
        days=days,
        queries=len(rows),
        anonymous=sum(anonymous),
        outcomes=dict(Counter(outcome for _, outcome, _, _ in rows)),
        p50=_percentile(times, 0.5),
        p95=_percentile(times, 0.95),
        zero_hit=sorted(without.items(), key=lambda pair: (-pair[1], pair[0]))[:SLOWEST],
        slowest=sorted(slow.items(), key=lambda pair: (-pair[1], pair[0]))[:SLOWEST],
        sources=Counter(key for _, _, _, found in rows for key in found).most_common(SLOWEST),
    )


def _percentile(ordered: Sequence[int], share: float) -> float | None:
    """By nearest rank."""
    if not ordered:
        return None
    return float(ordered[max(0, -(-int(len(ordered) * share * 1000) // 1000) - 1)])


def kept_days() -> int:
    """Days that a row is kept."""
    return int(settings.COGRAPH.retention.query_log_days)


def calls_of_tokens(user: User, limit: int) -> QuerySet[QueryLogEntry]:
    """What the tokens of one person asked last."""
    return own_rows(user).filter(token__isnull=False)[:limit]


def prune(now: datetime.datetime) -> int:
    """This room's part of ``retention``: one batch of rows past their keep."""
    before = now - datetime.timedelta(days=settings.COGRAPH.retention.query_log_days)
    batch = list(QueryLogEntry.objects.filter(at__lt=before).values_list("pk", flat=True)[:PRUNED_AT_ONCE])
    rows, _ = QueryLogEntry.objects.filter(pk__in=batch).delete()
    counts, _ = AnonymousQueries.objects.filter(day__lt=before.date()).delete()
    return rows + counts


def _packed(key: SourceKey) -> str:
    return f"{key[0]}:{key[1]}"
