"""The dense stream: nearest vectors of a scope (``retrieval.md`` 4).

How to look is chosen here from counts, never by the planner: it takes the graph where a scan of the few allowed rows
is many times cheaper, and the graph with an access filter gives too few rows unless it is told to go on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload
from weakref import WeakKeyDictionary

import numpy as np
import orjson
from django.conf import settings
from django.db import connection
from numpy.typing import NDArray

from apps.indexing.embedding.backends import EmbedderUnavailable
from apps.indexing.models import SLOT_BITS
from apps.indexing.scope import Allowed
from apps.indexing.serving import embedder_of
from apps.indexing.statements import Fragment, beginning_with, fetch, fragment_of, union

if TYPE_CHECKING:
    from apps.indexing.models import EmbeddingProfile
    from apps.indexing.scope import Scope
    from apps.indexing.stores import ChunkStore

EXACT_LIMIT = 20_000
"""Allowed vectors up to which every one of them is compared."""
MIN_EF_SEARCH = 200
WIDE_FROM = 200_000
"""Chunks in scope from which the graph is looked through twice as widely: of the ten nearest of 1,000,000 around real
texts it then finds .95, without .83; of 100,000 it finds .99 either way (1.0 and .99), in two thirds of the time.
"""
SPARE = 2
"""Vectors that are looked up for each row that is wanted."""
DECIMALS = 6
EXACT = "exact"
"""Marks what was found by comparing every allowed vector."""


@dataclass(frozen=True, slots=True)
class DenseHit:
    ref: int
    cosine: float


@dataclass(frozen=True, slots=True)
class Look:
    """How to look: ``exact``, or by the graph with ``ef_search``."""

    exact: bool
    ef_search: int = 0
    nearest_first: bool = False
    """Of an exact look: vectors are compared before their chunks are looked up."""
    unless_few: bool = False
    """Of a look by the graph: exact after all where conditions leave few chunks. The statement itself counts them."""

    def prepare(self) -> None:
        """Sets what the graph needs: once for each connection, but inside a transaction for that one, whose end might
        take it back unseen."""
        if self.exact:
            return
        connection.ensure_connection()
        if _prepared.get(connection.connection) == self.ef_search:
            return
        local = connection.in_atomic_block
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT set_config('hnsw.ef_search', %s, %s), set_config('hnsw.iterative_scan', 'relaxed_order', %s), "
                "set_config('hnsw.max_scan_tuples', '200000', %s)",
                [str(self.ef_search), local, local, local],
            )
        if not local:
            _prepared[connection.connection] = self.ef_search


_prepared: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
"""``ef_search`` of the connections that are ready for the graph."""


def vector_text(vector: NDArray[np.float32]) -> str:
    """A vector as PostgreSQL reads it."""
    return orjson.dumps(np.ascontiguousarray(vector, np.float32), option=orjson.OPT_SERIALIZE_NUMPY).decode()


def embed_query(profile: EmbeddingProfile, text: str) -> NDArray[np.float32]:
    """The vector of a query. Raises EmbedderUnavailable, also for one that cannot be compared with the profile's."""
    vector = embedder_of(profile).query(text)
    if len(vector) != profile.dimension:
        raise EmbedderUnavailable(f"the vector has {len(vector)} dimensions, not {profile.dimension}")
    return vector


def choose(scope: Scope, profile: EmbeddingProfile, limit: int) -> Look:
    """Exact for few allowed vectors, or without an index, or when the operator says so; else by the graph."""
    chunks = sum(source.chunks for source in scope.sources)
    if chunks <= EXACT_LIMIT or not profile.indexed_rows or settings.COGRAPH.retrieval.dense_exact == "always":
        return Look(exact=True, nearest_first=chunks > 2 * SPARE * limit)
    wide = limit if chunks < WIDE_FROM else 2 * limit
    return Look(exact=False, ef_search=min(1000, max(MIN_EF_SEARCH, wide)), unless_few=bool(scope.conditions))


def with_clause(look: Look | None, allowed: Allowed | None) -> tuple[Fragment, ...]:
    """What a statement with ``look`` begins with: ``allowed``, and for some looks whether these are few."""
    if allowed is None:
        return ()
    if look is None or not look.unless_few:
        return allowed.fragments
    stores = " UNION ALL ".join(f"SELECT FROM {name}" for name in allowed.names.values())
    return (
        *allowed.fragments,
        Fragment(
            f"{_few(allowed)} AS MATERIALIZED (SELECT count(*) <= {EXACT_LIMIT} AS few "  # noqa: S608
            f"FROM (SELECT FROM ({stores}) a LIMIT {EXACT_LIMIT + 1}) n)"
        ),
    )


def _few(allowed: Allowed) -> str:
    return f"few_{'_'.join(allowed.names)}"


def statement(
    scope: Scope,
    profile: EmbeddingProfile,
    vector: NDArray[np.float32],
    limit: int,
    look: Look,
    allowed: Allowed | None = None,
) -> Fragment:
    """One SELECT in the columns of ``REPLY``, kind ``d``: how was looked, refs and their cosines; one row a store and
    way of looking, that of a way not taken without its name. ``allowed``: the statement that it becomes part of begins
    with ``with_clause`` of these."""
    asked = vector_text(vector)
    parts = []
    for store in scope.stores:
        if look.unless_few and allowed is not None:
            few = f"(SELECT few FROM {_few(allowed)})"  # noqa: S608
            ways = {
                f"CASE WHEN {few} THEN '{EXACT}' ELSE '' END": _exact(
                    scope, store, profile, asked, limit, allowed, f"WHERE {few}"
                ),
                f"CASE WHEN {few} THEN '' ELSE 'graph' END": _by_graph(
                    scope, store, profile, asked, limit, f"AND NOT {few}"
                ),
            }
        elif not look.exact:
            ways = {"'graph'": _by_graph(scope, store, profile, asked, limit)}
        elif look.nearest_first and store.name not in scope.conditions:
            ways = {"'near'": _nearest_first(scope, store, profile, asked, limit)}
        else:
            ways = {f"'{EXACT}'": _exact(scope, store, profile, asked, limit, allowed)}
        parts += [
            Fragment(
                f"SELECT 'd', {way}, '', string_agg(int8send(n.ref), ''::bytea), "  # noqa: S608
                f"string_agg(float8send(1 - n.distance), ''::bytea) FROM ({found.sql}) n",
                found.params,
            )
            for way, found in ways.items()
        ]
    return union(parts) if parts else Fragment("SELECT 'd', '', '', NULL::bytea, NULL::bytea WHERE false")


def _exact(
    scope: Scope,
    store: ChunkStore,
    profile: EmbeddingProfile,
    asked: str,
    limit: int,
    allowed: Allowed | None,
    when: str = "",
) -> Fragment:
    """Every allowed vector, by way of its chunk. Of vectors that are equally far the same ones are taken however the
    rows are read: those of the first hashes of text."""
    if allowed is not None:
        chunks = Fragment(f"SELECT ref, embed_hash FROM {allowed.names[store.name]}")  # noqa: S608
    else:
        chunks = _chunks(scope, store)
    numbers, generations = _generations(scope, store)
    return Fragment(
        "SELECT c.ref, v.embedding <=> %s::halfvec AS distance "  # noqa: S608
        "FROM unnest(%s::int[], %s::smallint[]) AS s(number, generation) "
        "JOIN indexing_vector v ON v.profile_id = %s AND v.number = s.number AND v.generation = s.generation "
        f"JOIN ({chunks.sql}) c ON {_OWNED.format(v='v')} {when} ORDER BY distance, v.hash, c.ref LIMIT %s",
        (asked, numbers, generations, profile.pk, *chunks.params, limit),
    )


def _nearest_first(scope: Scope, store: ChunkStore, profile: EmbeddingProfile, asked: str, limit: int) -> Fragment:
    """Every vector of the sources, and the chunks of the nearest ones only: to look up those of all takes several times
    longer than to compare them. Some vectors have lost their chunks, so there are spare ones.
    """
    generation, bound = _of_generations(scope, store)
    return Fragment(
        "SELECT c.ref, v.distance FROM (SELECT v.hash, v.number, v.embedding <=> %s::halfvec AS distance "  # noqa: S608
        f"FROM indexing_vector v WHERE v.profile_id = %s AND v.number = ANY(%s::int[]) {generation} "
        f"ORDER BY distance, v.hash LIMIT %s) v CROSS JOIN LATERAL (SELECT c.ref FROM {store.table} c "
        f"WHERE {_OWNED.format(v='v')} OFFSET 0) c ORDER BY v.distance, v.hash, c.ref LIMIT %s",
        (asked, profile.pk, scope.numbers_of(store), *bound, SPARE * limit, limit),
    )


def _by_graph(
    scope: Scope, store: ChunkStore, profile: EmbeddingProfile, asked: str, limit: int, when: str = ""
) -> Fragment:
    """The graph gives vectors in about their order; each is tested for access, life and conditions as it comes.

    CASE hides the test for access from the planner: where it knows little of a new source, it would gather that
    source's vectors and sort them all.
    """
    chunks = _chunks(scope, store)
    kind = f"halfvec({int(profile.dimension)})"
    generation, bound = _of_generations(scope, store)
    return Fragment(
        f"SELECT c.ref, v.embedding::{kind} <=> %s::{kind} AS distance FROM indexing_vector v "  # noqa: S608
        f"CROSS JOIN LATERAL (SELECT c.ref FROM ({chunks.sql}) c WHERE {_OWNED.format(v='v')} OFFSET 0) c "
        f"WHERE v.profile_id = {int(profile.pk)} "
        f"AND CASE WHEN v.number = ANY(%s::int[]) {generation} THEN true ELSE false END {when} "
        f"ORDER BY v.embedding::{kind} <=> %s::{kind} LIMIT %s",
        (asked, *chunks.params, scope.numbers_of(store), *bound, asked, limit),
    )


_OWNED = (
    f"c.embed_hash = {{v}}.hash AND c.ref >= ({{v}}.number::bigint << {SLOT_BITS}) "
    f"AND c.ref < (({{v}}.number + 1)::bigint << {SLOT_BITS})"
)


def _chunks(scope: Scope, store: ChunkStore) -> Fragment:
    """Chunks that conditions leave. Access is on the vector's own source number, so the index of a store is enough."""
    condition = scope.conditions.get(store.name)
    if condition is None:
        return Fragment(f"SELECT ref, embed_hash FROM {store.table}")  # noqa: S608
    rows: Any = store.model._default_manager.filter(condition)
    return fragment_of(rows.values("ref", "embed_hash"))


def _of_generations(scope: Scope, store: ChunkStore) -> tuple[str, tuple[Any, ...]]:
    """The condition on the generation of a vector ``v``, with its values."""
    numbers, generations = _generations(scope, store)
    if len(set(generations)) == 1:
        return "AND v.generation = %s", (generations[0],)
    return "AND (v.number, v.generation) IN (SELECT * FROM unnest(%s::int[], %s::smallint[]))", (numbers, generations)


def _generations(scope: Scope, store: ChunkStore) -> tuple[list[int], list[int]]:
    pairs = [(source.number, source.generation) for source in scope.sources if source.store == store.name]
    return [number for number, _ in pairs], [generation for _, generation in pairs]


class DenseHits(Sequence[DenseHit]):
    """Hits best first, kept as columns; ``came`` tells how many there were before the least cosine cut them, and
    ``exact`` that no way of looking could have found more."""

    def __init__(
        self, refs: NDArray[np.int64], cosines: NDArray[np.float64], came: int = 0, *, exact: bool = False
    ) -> None:
        self.refs, self.cosines, self.came, self.exact = refs, cosines, came, exact

    def __len__(self) -> int:
        return len(self.refs)

    @overload
    def __getitem__(self, at: int) -> DenseHit: ...

    @overload
    def __getitem__(self, at: slice) -> DenseHits: ...

    def __getitem__(self, at: int | slice) -> DenseHit | DenseHits:
        if isinstance(at, slice):
            return DenseHits(self.refs[at], self.cosines[at])
        return DenseHit(int(self.refs[at]), float(self.cosines[at]))


NO_HITS = DenseHits(np.zeros(0, np.int64), np.zeros(0, np.float64))


def rank(profile: EmbeddingProfile, rows: Sequence[tuple[Any, ...]], limit: int) -> DenseHits:
    """Hits best first, equal ones in no promised order, those under the profile's least cosine left out."""
    found = [(head, data) for kind, _, _, head, data in rows if kind == "d" and head]
    refs = np.frombuffer(b"".join(head for head, _ in found), ">i8").astype(np.int64)
    cosines: NDArray[np.float64] = np.frombuffer(b"".join(data for _, data in found), ">f8").astype(np.float64)
    cosines = np.round(cosines, DECIMALS)
    order = np.lexsort((refs, -cosines))[:limit]
    kept = order[cosines[order] >= profile.min_cosine]
    exact = all(way == EXACT for kind, way, *_ in rows if kind == "d" and way)
    return DenseHits(refs[kept], cosines[kept], len(order), exact=exact)


def search(scope: Scope, profile: EmbeddingProfile, vector: NDArray[np.float32], limit: int | None = None) -> DenseHits:
    """The stream alone. Always min(limit, allowed) rows are compared with the least cosine."""
    limit = limit or settings.COGRAPH.retrieval.candidates
    look = choose(scope, profile, limit)
    allowed = Allowed.of(scope) if look.unless_few else None
    asked = beginning_with(with_clause(look, allowed), statement(scope, profile, vector, limit, look, allowed))
    look.prepare()
    hits = rank(profile, fetch(asked), limit)
    return completed(hits, scope, profile, vector, limit)


def completed(
    hits: DenseHits, scope: Scope, profile: EmbeddingProfile, vector: NDArray[np.float32], limit: int
) -> DenseHits:
    """``hits``, or where a short way of looking gave too few of them, those of the way that misses none."""
    if hits.came >= limit or hits.exact:
        return hits
    return rank(profile, fetch(statement(scope, profile, vector, limit, Look(exact=True))), limit)


def best_cosine(
    scope: Scope, store: ChunkStore, profile: EmbeddingProfile, vector: NDArray[np.float32], refs: Sequence[int]
) -> float | None:
    """Of the chunks ``refs`` of one store in scope, the nearest one's cosine; None when none has a vector."""
    asked = vector_text(vector)
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
