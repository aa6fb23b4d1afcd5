"""The ``embed`` job: gives a source the vectors it lacks, or all anew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import connection
from django.db.models import F

from apps.indexing import vectors
from apps.indexing.embedding import backends
from apps.indexing.embedding.backends import CHECK_TEXT, Embedder, EmbedderUnavailable
from apps.indexing.models import EmbeddingFailure, EmbeddingProfile, IndexedSource, ProfileState
from apps.indexing.serving import active_profile, configured_profile, embedder_of
from apps.indexing.stores import ChunkStore, get_store, stores_of
from apps.jobs.errors import LastingFailure, TransientFailure
from apps.jobs.models import Cause
from apps.jobs.queue import enqueue

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from apps.access.models import User
    from apps.access.sources import Source
    from apps.jobs.queue import Enqueued
    from apps.jobs.running import JobRun

KIND = "embed"
SWITCH = "profile_switch"
INDEX_FROM = 50_000
"""Vectors of a profile from which a graph index pays."""


def embed(run: JobRun) -> None:
    """Fills in the missing vectors of one source, for the serving profile and for the next one while it is built.

    ``again`` in the params begins a new generation of the source, which answers when it is complete.
    """
    try:
        embedder = backends.embedder()
        if embedder is None:
            run.note("Search is by words alone.")
            return
        embedder.query(CHECK_TEXT)  # the probe: nothing is copied before the embedder has answered
        configured = configured_profile(embedder)
        served = active_profile()
        for store, entry in _entries(run):
            if run.params.get("again"):
                _begin_again(run, entry)
            fill(run, store, entry, configured, embedder)
            if served is not None and served.pk != configured.pk:
                _fill_old(run, store, entry, served)
    except EmbedderUnavailable as problem:
        raise failure_of(problem) from problem
    ensure_index(configured)
    if configured.state == ProfileState.NEXT:
        enqueue(SWITCH, cause=Cause.SCHEDULE)


def request(source: Source, *, again: bool = False, by: User | None = None) -> Enqueued:
    """Asks for the vectors of a source; ``again`` makes all of them anew. Failed texts are tried once more."""
    return enqueue(KIND, source=source, params={"again": True} if again else {"retry": True}, by=by)


def fill(run: JobRun, store: ChunkStore, entry: IndexedSource, profile: EmbeddingProfile, embedder: Embedder) -> None:
    """Makes vectors in batches until none is missing; what was made stays when the run ends early."""
    generation = entry.generation if entry.building is None else entry.building
    total = entry.chunks
    with run.batch():
        if run.params.get("retry") or run.params.get("again"):
            _tried(profile, entry, generation).delete()
        if generation == entry.generation and vectors.copy_known(store, entry, profile):
            _tell_cursors(entry, profile, generation)
    done = vectors.coverage(store, entry, profile, generation)[0]
    run.progress("embedding", done, total)
    after = 0
    is_told = True
    while True:
        run.check()
        texts, after = vectors.missing(
            store, entry, profile, generation, after=after, limit=settings.COGRAPH.embedding.batch_size
        )
        if texts:
            failed = _embed_batch(run, entry, profile, generation, embedder, texts, is_last=not after)
            is_told = not after
            run.counters["embedded"] = int(str(run.counters.get("embedded", 0))) + len(texts) - failed
            done += len(texts)
            run.progress("embedding", min(done, total), total)
        if not after:
            break
    if not is_told:
        with run.batch():
            _tell_cursors(entry, profile, generation)
    if entry.building is not None:
        _switch_generation(run, store, entry, profile)


def _embed_batch(
    run: JobRun,
    entry: IndexedSource,
    profile: EmbeddingProfile,
    generation: int,
    embedder: Embedder,
    texts: Sequence[vectors.Missing],
    *,
    is_last: bool,
) -> int:
    """Embeds outside of any transaction, then stores. Gives how many texts failed."""
    made = embedder.documents([text.piece for text in texts])
    good: list[vectors.NewVector] = []
    bad: list[tuple[bytes, str]] = []
    for text, answer in zip(texts, made, strict=True):
        if answer.vector is None:
            bad.append((text.hash, answer.error))
        else:
            good.append(vectors.NewVector(text.hash, answer.vector, answer.tokens, answer.truncated))
    with run.batch():
        vectors.write(profile, entry.number, generation, good)
        vectors.note_failures(profile, entry.number, generation, bad)
        if is_last:
            _tell_cursors(entry, profile, generation)
    for _, reason in bad[:1]:
        run.warn("texts_failed", f"{len(bad)} of {len(texts)} texts have no vector: {reason}")
    return len(bad)


def _tell_cursors(entry: IndexedSource, profile: EmbeddingProfile, generation: int) -> None:
    """Answers that vectors have changed are not paged on: a row could come twice, or never. Told at the end of a run:
    who reads a large source while it is embedded for hours could not go beyond the first page otherwise."""
    if profile.state == ProfileState.ACTIVE and generation == entry.generation:
        IndexedSource.objects.filter(pk=entry.pk).update(version=F("version") + 1)


def _fill_old(run: JobRun, store: ChunkStore, entry: IndexedSource, profile: EmbeddingProfile) -> None:
    """What changed while the next profile is built gets a vector of the serving one too, if its embedder answers."""
    try:
        embedder = embedder_of(profile)
        embedder.query(CHECK_TEXT)
        fill(run, store, entry, profile, embedder)
    except EmbedderUnavailable as problem:
        run.warn("old_embedder", f"{profile.label}, which still serves, got no new vectors: {problem}")


def _begin_again(run: JobRun, entry: IndexedSource) -> None:
    if entry.building is None:
        entry.building = entry.generation + 1
        with run.batch():
            IndexedSource.objects.filter(pk=entry.pk).update(building=entry.building)


def _switch_generation(run: JobRun, store: ChunkStore, entry: IndexedSource, profile: EmbeddingProfile) -> None:
    """The new generation answers and the old one goes, in one transaction, unless texts are still missing."""
    with run.batch():
        locked = IndexedSource.objects.select_for_update().get(pk=entry.pk)
        building = locked.building
        if building is None:
            return
        have, failed, _ = vectors.coverage(store, locked, profile, building)
        if have + failed < locked.chunks or failed:
            run.warn(
                "incomplete", f"The earlier vectors keep answering: {locked.chunks - have} chunks have no new one."
            )
            return
        locked.generation, locked.building = building, None
        locked.save(update_fields=["generation", "building"])
        with connection.cursor() as cursor:
            cursor.execute(
                "DELETE FROM indexing_vector WHERE number = %s AND generation < %s", [entry.number, building]
            )
    entry.generation, entry.building = building, None


def ensure_index(profile: EmbeddingProfile) -> None:
    """Builds the graph index of a profile when it is large enough and has none. Readers are not held up."""
    if profile.indexed_rows or connection.in_atomic_block:
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM indexing_vector WHERE profile_id = %s", [profile.pk])
        rows = int(cursor.fetchone()[0])
        if rows < INDEX_FROM:
            return
        name = f"indexing_vector_hnsw_{profile.pk}"
        # Measured: with 64 MB of maintenance memory the build is four times slower.
        cursor.execute("SET maintenance_work_mem = '1GB'")
        try:
            cursor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
            cursor.execute(
                f"CREATE INDEX CONCURRENTLY {name} ON indexing_vector "
                f"USING hnsw ((embedding::halfvec({int(profile.dimension)})) halfvec_cosine_ops) "
                f"WHERE profile_id = {int(profile.pk)}"
            )
        finally:
            cursor.execute("RESET maintenance_work_mem")
    profile.indexed_rows = rows
    profile.save(update_fields=["indexed_rows"])


def _tried(profile: EmbeddingProfile, entry: IndexedSource, generation: int) -> QuerySet[EmbeddingFailure]:
    return EmbeddingFailure.objects.filter(profile=profile, number=entry.number, generation=generation)


def _entries(run: JobRun) -> list[tuple[ChunkStore, IndexedSource]]:
    kind, id_ = run.source_key
    names = [store.name for store in stores_of(kind)]
    rows = IndexedSource.objects.filter(store__in=names, source_id=id_).defer("dead").order_by("store")
    return [(get_store(row.store), row) for row in rows]


def failure_of(problem: EmbedderUnavailable) -> TransientFailure | LastingFailure:
    if problem.lasting:
        return LastingFailure("embedder_refused", str(problem))
    return TransientFailure("embedder_unavailable", str(problem), problem.retry_after)
