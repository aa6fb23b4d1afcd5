"""Upkeep in the background: the ``merge_postings`` job, what is removed with a source, what grows stale."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.db.models import Q

from apps.indexing import postings, sightings, tombstones
from apps.indexing.analyzer import ANALYZER_VERSION
from apps.indexing.chunks import reindex, remove_source
from apps.indexing.embedding import backends, jobs, switching
from apps.indexing.embedding.backends import EmbedderUnavailable
from apps.indexing.models import NAMES_SUFFIX, SLOT_BITS, IndexedSource
from apps.indexing.stores import get_store, stores_of
from apps.jobs.kinds import LONGEST_DEADLINE, Due, JobKind, Slot, register_kind, register_prune, register_purge

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apps.jobs.models import Job
    from apps.jobs.running import JobRun

SOURCE_KINDS = frozenset({"repository", "collection"})
MERGE = "merge_postings"
SEGMENTS = 12
"""Segments of a source from which they are joined: each one is a row more to read for each term."""
SPARE_ORPHANS = 1000
DELETED_AT_ONCE = 5000


def register(source_kinds: frozenset[str] = SOURCE_KINDS) -> None:
    register_kind(
        JobKind(
            jobs.KIND,
            jobs.embed,
            sources=source_kinds,
            attempts=5,
            deadline=LONGEST_DEADLINE,
            after=("sync", "upload"),
            slot=_model,
        )
    )
    register_kind(JobKind(MERGE, merge, sources=source_kinds, after=("sync", "upload"), every=_outdated))
    register_kind(
        JobKind(
            jobs.SWITCH,
            switching.switch_profile,
            attempts=5,
            deadline=LONGEST_DEADLINE,
            every=timedelta(days=1),
            slot=_endpoint,
        )
    )
    register_purge(_purge, sources=source_kinds)
    sightings.register(source_kinds)
    register_prune(_prune_orphans)
    register_prune(tombstones.prune)


def _model(job: Job) -> Slot | None:
    """One job at a time for each endpoint. The built-in model leaves one worker free: vectors of a large source take
    hours, and nobody's upload or sync may wait for them."""
    return _endpoint(job) or Slot("embed", max(1, settings.COGRAPH.jobs.workers - 1), "{running} embedding")


def _endpoint(job: Job) -> Slot | None:
    """One job at a time for each endpoint; the built-in model is bounded by the number of workers."""
    del job
    try:
        embedder = backends.embedder()
    except EmbedderUnavailable:
        return None
    if embedder is None or not embedder.address:
        return None
    limit = settings.COGRAPH.jobs.embeds_per_endpoint
    return Slot(f"embed {embedder.address}", limit, "{running} embedding at " + embedder.address)


def merge(run: JobRun) -> None:
    """Joins the segments of a source where there are many, and re-indexes what an older analyzer made."""
    kind, id_ = run.source_key
    for store in stores_of(kind):
        with run.batch():
            entry = IndexedSource.objects.select_for_update().filter(store=store.name, source_id=id_).first()
            if entry is None:
                continue
            if entry.analyzer_version != ANALYZER_VERSION or _sparse(entry):
                reindex(store, entry, language=entry.language)
            stores = (store.name, store.name + NAMES_SUFFIX)
            for part in IndexedSource.objects.select_for_update().filter(store__in=stores, source_id=id_):
                if _segments(part) >= SEGMENTS or len(part.dead) // 4 > part.chunks // 5:
                    postings.merge(part)


def _sparse(entry: IndexedSource) -> bool:
    """Whether slots of chunks long gone take more room than those of the living."""
    return entry.next_slot > 4 * entry.chunks + (1 << 16)


def _segments(entry: IndexedSource) -> int:
    with connection.cursor() as cursor:
        # A loose scan by steps would be cheaper on paper; a source has few segments and this runs once a job.
        cursor.execute("SELECT count(DISTINCT segment) FROM indexing_posting WHERE number = %s", [entry.number])
        return int(cursor.fetchone()[0])


def _outdated(now: datetime) -> Iterator[Due]:
    """Sources whose postings an older analyzer made."""
    del now
    for kind, id_ in (
        IndexedSource.objects.filter(~Q(analyzer_version=ANALYZER_VERSION), chunks__gt=0, source_kind__in=SOURCE_KINDS)
        .values_list("source_kind", "source_id")
        .distinct()[:100]
    ):
        yield Due((kind, id_))


def _purge(run: JobRun, source: tuple[str, UUID]) -> None:
    kind, id_ = source
    for store in stores_of(kind):
        number = IndexedSource.objects.filter(store=store.name, source_id=id_).values_list("number", flat=True).first()
        if number is None:
            continue
        for table in ("indexing_vector", "indexing_posting"):
            while _delete_some(run, table, number) == DELETED_AT_ONCE:
                run.check()
        with run.batch():
            remove_source(store, source_id=id_)


def _delete_some(run: JobRun, table: str, number: int) -> int:
    with run.batch(), connection.cursor() as cursor:
        cursor.execute(
            f"DELETE FROM {table} WHERE ctid = ANY(ARRAY("  # noqa: S608 - one of two names
            f"SELECT ctid FROM {table} WHERE number = %s LIMIT %s))",
            [number, DELETED_AT_ONCE],
        )
        return int(cursor.rowcount)


def _prune_orphans(now: datetime) -> int:
    """Vectors of texts that no chunk has any more are kept for what comes back, until they outnumber the living."""
    del now
    for entry in IndexedSource.objects.defer("dead").order_by("number"):
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM indexing_vector WHERE number = %s", [entry.number])
            if int(cursor.fetchone()[0]) <= 2 * entry.chunks + SPARE_ORPHANS:
                continue
            removed = _delete_orphans(cursor, entry)
            if removed:
                return removed
    return 0


def _delete_orphans(cursor: Any, entry: IndexedSource) -> int:
    try:
        store = get_store(entry.store)
    except KeyError:
        return 0
    low = entry.number << SLOT_BITS
    cursor.execute(
        "DELETE FROM indexing_vector v WHERE v.ctid = ANY(ARRAY(SELECT o.ctid FROM indexing_vector o "  # noqa: S608
        f"WHERE o.number = %s AND NOT EXISTS (SELECT 1 FROM {connection.ops.quote_name(store.table)} c "
        "WHERE c.embed_hash = o.hash AND c.ref >= %s AND c.ref < %s) LIMIT %s))",
        [entry.number, low, low + (1 << SLOT_BITS), DELETED_AT_ONCE],
    )
    return int(cursor.rowcount)
