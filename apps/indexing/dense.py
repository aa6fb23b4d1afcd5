"""The dense stream: nearest vectors of a scope (``retrieval.md`` 4).

How to look is chosen here from counts, never by the planner: it takes the graph where a scan of the few allowed rows
is many times cheaper, and the graph with an access filter gives too few rows unless it is told to go on.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import connection, transaction

from apps.indexing.models import SLOT_BITS
from apps.indexing.serving import embedder_of
from apps.indexing.statements import Fragment, fetch, fragment_of, union

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from apps.indexing.models import EmbeddingProfile
    from apps.indexing.scope import Scope
    from apps.indexing.stores import ChunkStore

EXACT_LIMIT = 20_000
"""Allowed vectors up to which every one of them is compared."""
MIN_EF_SEARCH = 200
DECIMALS = 6


@dataclass(frozen=True, slots=True)
class DenseHit:
    ref: int
    cosine: float


@dataclass(frozen=True, slots=True)
class Look:
    """How to look: ``exact``, or by the graph with ``ef_search``."""

    exact: bool
    ef_search: int = 0

    def prepare(self) -> None:
        """Sets what the graph needs for the running transaction."""
        if not self.exact:
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT set_config('hnsw.ef_search', %s, true), "
                    "set_config('hnsw.iterative_scan', 'relaxed_order', true), "
                    "set_config('hnsw.max_scan_tuples', '200000', true), set_config('enable_sort', 'off', true)",
                    [str(self.ef_search)],
                )


def embed_query(profile: EmbeddingProfile, text: str) -> NDArray[np.float32]:
    """The vector of a query. Raises EmbedderUnavailable."""
    return embedder_of(profile).query(text)


def choose(scope: Scope, profile: EmbeddingProfile, limit: int) -> Look:
    """Exact for few allowed vectors, or without an index, or when the operator says so; else by the graph.

    Costs a counting statement only when conditions narrow a large scope.
    """
    chunks = sum(source.chunks for source in scope.sources)
    if chunks <= EXACT_LIMIT or not profile.indexed_rows or settings.COGRAPH.retrieval.dense_exact == "always":
        return Look(exact=True)
    if scope.conditions:
        allowed = 0
        for store in scope.stores:
            allowed += scope.chunks_of(store).values("pk")[: EXACT_LIMIT + 1 - allowed].count()
            if allowed > EXACT_LIMIT:
                break
        if allowed <= EXACT_LIMIT:
            return Look(exact=True)
    return Look(exact=False, ef_search=min(1000, max(MIN_EF_SEARCH, 2 * limit)))


def statement(scope: Scope, profile: EmbeddingProfile, vector: NDArray[np.float32], limit: int, look: Look) -> Fragment:
    """One SELECT with the columns of the lexical stream's: kind ``d``, the ref in the fourth, the cosine as bytes."""
    asked = "[" + ",".join(f"{value:.6g}" for value in vector.tolist()) + "]"
    parts = [
        (_exact if look.exact else _by_graph)(scope, store, profile, asked, limit)
        for store in scope.stores
        if scope.numbers_of(store)
    ]
    return union(parts) if parts else Fragment(f"SELECT {_COLUMNS.format(ref='0', cosine='0')} WHERE false")


_COLUMNS = "'d', 0, 0, {ref}::bigint, 0::bigint, 0::bigint, '', float8send({cosine})"


def _exact(scope: Scope, store: ChunkStore, profile: EmbeddingProfile, asked: str, limit: int) -> Fragment:
    chunks = _chunks(scope, store)
    numbers, generations = _generations(scope, store)
    columns = _COLUMNS.format(ref="n.ref", cosine="1 - n.distance")
    return Fragment(
        f"SELECT {columns} FROM (SELECT c.ref, v.embedding <=> %s::halfvec AS distance "  # noqa: S608
        "FROM unnest(%s::int[], %s::smallint[]) AS s(number, generation) "
        "JOIN indexing_vector v ON v.profile_id = %s AND v.number = s.number AND v.generation = s.generation "
        f"JOIN ({chunks.sql}) c ON c.embed_hash = v.hash AND c.ref >= (s.number::bigint << {SLOT_BITS}) "
        f"AND c.ref < ((s.number + 1)::bigint << {SLOT_BITS}) ORDER BY distance LIMIT %s) n",
        (asked, numbers, generations, profile.pk, *chunks.params, limit),
    )


def _by_graph(scope: Scope, store: ChunkStore, profile: EmbeddingProfile, asked: str, limit: int) -> Fragment:
    """The graph gives vectors in about their order; each is tested for access, life and conditions as it comes."""
    chunks = _chunks(scope, store)
    numbers, generations = _generations(scope, store)
    kind = f"halfvec({int(profile.dimension)})"
    columns = _COLUMNS.format(ref="c.ref", cosine="1 - n.distance")
    owned = (
        f"c.embed_hash = {{v}}.hash AND c.ref >= ({{v}}.number::bigint << {SLOT_BITS}) "
        f"AND c.ref < (({{v}}.number + 1)::bigint << {SLOT_BITS})"
    )
    generation = (
        "AND v.generation = %s "
        if len(set(generations)) == 1
        else "AND (v.number, v.generation) IN (SELECT * FROM unnest(%s::int[], %s::smallint[])) "
    )
    bound: tuple[Any, ...] = (generations[0],) if len(set(generations)) == 1 else (numbers, generations)
    return Fragment(
        f"SELECT {columns} FROM (SELECT v.hash, v.number, v.embedding::{kind} <=> %s::{kind} AS distance "  # noqa: S608
        f"FROM indexing_vector v WHERE v.profile_id = {int(profile.pk)} AND v.number = ANY(%s::int[]) {generation}"
        f"AND EXISTS (SELECT 1 FROM ({chunks.sql}) c WHERE {owned.format(v='v')}) "
        f"ORDER BY v.embedding::{kind} <=> %s::{kind} LIMIT %s) n JOIN ({chunks.sql}) c ON {owned.format(v='n')}",
        (asked, numbers, *bound, *chunks.params, asked, limit, *chunks.params),
    )


def _chunks(scope: Scope, store: ChunkStore) -> Fragment:
    """Chunks that conditions leave. Access is on the vector's own source number, so the index of a store is enough."""
    rows: Any = store.model._default_manager.all()
    condition = scope.conditions.get(store.name)
    if condition is not None:
        rows = rows.filter(condition)
    return fragment_of(rows.values("ref", "embed_hash"))


def _generations(scope: Scope, store: ChunkStore) -> tuple[list[int], list[int]]:
    pairs = [(source.number, source.generation) for source in scope.sources if source.store == store.name]
    return [number for number, _ in pairs], [generation for _, generation in pairs]


def rank(profile: EmbeddingProfile, rows: Sequence[tuple[Any, ...]], limit: int) -> tuple[list[DenseHit], int]:
    """Hits best first, equal ones in no promised order, those under the profile's least cosine left out; and how many
    rows came back before that.
    """
    found = {row[3]: round(struct.unpack(">d", row[7])[0], DECIMALS) for row in rows if row[0] == "d"}
    ordered = sorted(found.items(), key=lambda item: (-item[1], item[0]))[:limit]
    return [DenseHit(ref, cosine) for ref, cosine in ordered if cosine >= profile.min_cosine], len(ordered)


def search(
    scope: Scope, profile: EmbeddingProfile, vector: NDArray[np.float32], limit: int | None = None
) -> list[DenseHit]:
    """The stream alone. Always min(limit, allowed) rows are compared with the least cosine."""
    limit = limit or settings.COGRAPH.retrieval.candidates
    look = choose(scope, profile, limit)
    with transaction.atomic():
        look.prepare()
        hits, came = rank(profile, fetch(statement(scope, profile, vector, limit, look)), limit)
    if came < limit and not look.exact:
        hits, _ = rank(profile, fetch(statement(scope, profile, vector, limit, Look(exact=True))), limit)
    return hits


def best_cosine(
    scope: Scope, store: ChunkStore, profile: EmbeddingProfile, vector: NDArray[np.float32], refs: Sequence[int]
) -> float | None:
    """Of the chunks ``refs`` of one store in scope, the nearest one's cosine; None when none has a vector."""
    asked = "[" + ",".join(f"{value:.6g}" for value in vector.tolist()) + "]"
    found = fetch(_of_refs(scope, store, profile, refs, "max(1 - (v.embedding <=> %s::halfvec))", (asked,)))
    return float(found[0][0]) if found and found[0][0] is not None else None


def with_vectors(scope: Scope, profile: EmbeddingProfile, refs: Sequence[int]) -> set[int]:
    """Those of ``refs`` in scope whose text has a vector."""
    parts = [_of_refs(scope, store, profile, refs, "c.ref", ()) for store in scope.stores]
    return {row[0] for row in fetch(union(parts))} if parts and refs else set()


def _of_refs(
    scope: Scope, store: ChunkStore, profile: EmbeddingProfile, refs: Sequence[int], column: str, bound: tuple[Any, ...]
) -> Fragment:
    numbers, generations = _generations(scope, store)
    return Fragment(
        f"SELECT {column} FROM unnest(%s::int[], %s::smallint[]) AS s(number, generation) "  # noqa: S608
        f"JOIN {store.table} c ON c.ref = ANY(%s::bigint[]) AND c.ref >> {SLOT_BITS} = s.number "
        "JOIN indexing_vector v ON v.profile_id = %s AND v.number = s.number AND v.generation = s.generation "
        "AND v.hash = c.embed_hash",
        (*bound, numbers, generations, list(refs), profile.pk),
    )
