"""The ``profile_switch`` job: builds the next embedding profile while the old one serves, then switches once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from django.db import connection
from django.db.models import F
from django.utils import timezone

from apps.indexing import vectors
from apps.indexing.embedding import backends
from apps.indexing.embedding.backends import CHECK_TEXT, Embedder, EmbedderUnavailable
from apps.indexing.embedding.jobs import SWITCH, ensure_index, failure_of, fill
from apps.indexing.models import EmbeddingProfile, IndexedSource, ProfileState
from apps.indexing.profiles import run_gates
from apps.indexing.serving import configured_profile
from apps.indexing.stores import all_stores, get_store
from apps.jobs.errors import LastingFailure, TransientFailure

if TYPE_CHECKING:
    from apps.jobs.running import JobRun

__all__ = ["SWITCH", "switch_profile"]

LEAST_CHECK_COSINE = 0.999
"""Under this an embedder that should be the same has changed behind its address (``retrieval.md`` 4.3)."""
DELETED_AT_ONCE = 5000


def switch_profile(run: JobRun) -> None:
    """Compares the embedder with its profile; builds and switches to the set one if another serves.

    ``accept_failures`` and ``override_gates`` in the params are an administrator's yes.
    """
    try:
        embedder = backends.embedder()
        if embedder is None:
            return
        profile = configured_profile(embedder)
        _compare(run, profile, embedder)
        if profile.state == ProfileState.NEXT:
            for entry in _entries():
                fill(run, get_store(entry.store), entry, profile, embedder)
            ensure_index(profile)
            _switch(run, profile)
    except EmbedderUnavailable as problem:
        raise failure_of(problem) from problem
    _drop_retired(run)


def _entries() -> list[IndexedSource]:
    names = [store.name for store in all_stores()]
    return list(IndexedSource.objects.filter(store__in=names).defer("dead").order_by("number"))


def _compare(run: JobRun, profile: EmbeddingProfile, embedder: Embedder) -> None:
    """Sends the check text and raises the alarm when its vector is not the one of the profile's first day."""
    vector = embedder.query(CHECK_TEXT)
    if not profile.check_vector:
        profile.check_vector = [float(value) for value in vector]
        profile.save(update_fields=["check_vector"])
        return
    cosine = float(np.dot(np.array(profile.check_vector, np.float32), vector))
    if cosine < LEAST_CHECK_COSINE:
        run.warn(
            "embedder_changed",
            f"{profile.label} answers the check text differently (cosine {cosine:.4f}): re-embed, or set it back.",
        )
        if profile.drifted_at is None:
            profile.drifted_at = timezone.now()
            profile.save(update_fields=["drifted_at"])
    elif profile.drifted_at is not None:
        profile.drifted_at = None
        profile.save(update_fields=["drifted_at"])


def _switch(run: JobRun, profile: EmbeddingProfile) -> None:
    pending = failed = 0
    for entry in _entries():
        have, bad, _ = vectors.coverage(get_store(entry.store), entry, profile, entry.generation)
        pending, failed = pending + entry.chunks - have - bad, failed + bad
    if pending:
        raise TransientFailure("not_complete", f"{pending} chunks arrived meanwhile and have no new vector yet.")
    if failed and not run.params.get("accept_failures"):
        raise LastingFailure(
            "failed_texts",
            f"{failed} texts have no vector in {profile.label}. An administrator may switch all the same.",
        )
    results = [] if run.params.get("override_gates") else run_gates(profile)
    if not all(result.passed for result in results):
        numbers = "; ".join(f"{result.name}: {result.numbers}" for result in results if not result.passed)
        raise LastingFailure("gate_failed", f"{profile.label} does not pass: {numbers}")
    with run.batch():
        EmbeddingProfile.objects.filter(state=ProfileState.ACTIVE).update(state=ProfileState.RETIRED)
        profile.state, profile.served_from = ProfileState.ACTIVE, timezone.now()
        profile.save(update_fields=["state", "served_from"])
        IndexedSource.objects.update(version=F("version") + 1)
    run.note(f"{profile.label} serves now.")


def _drop_retired(run: JobRun) -> None:
    """Vectors of profiles that no longer serve go in batches: the graph index makes each deletion dear."""
    for profile in EmbeddingProfile.objects.filter(state=ProfileState.RETIRED):
        if not connection.in_atomic_block:
            with connection.cursor() as cursor:
                cursor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS indexing_vector_hnsw_{profile.pk}")
        while True:
            with run.batch(), connection.cursor() as cursor:
                cursor.execute(
                    "DELETE FROM indexing_vector WHERE ctid = ANY(ARRAY("
                    "SELECT ctid FROM indexing_vector WHERE profile_id = %s LIMIT %s))",
                    [profile.pk, DELETED_AT_ONCE],
                )
                if cursor.rowcount < DELETED_AT_ONCE:
                    break
        profile.indexed_rows = 0
        profile.save(update_fields=["indexed_rows"])
