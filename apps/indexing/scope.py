"""What one reader's search may touch. Streams take a ``Scope`` and nothing else, and a scope takes a viewer.

SECURITY: there is no way to make a scope without a viewer. ``visible`` asks each kind of source for the rows that the
viewer may read; narrowing only ever removes. A stream that had a default for its scope would be a door for everyone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from uuid import UUID

import orjson
from django.db import DatabaseError, connection
from django.db.models import Q, QuerySet

from apps.access.compiled import readable_ids
from apps.access.compiling import as_stored
from apps.access.sources import source_model
from apps.indexing.models import NAMES_SUFFIX as SUFFIX
from apps.indexing.models import SLOT_BITS, Chunk, EmbeddingProfile, ProfileState
from apps.indexing.statements import Fragment, beginning_with, fetch, fragment_of, union
from apps.indexing.stores import Block, ChunkStore, all_stores, get_store

if TYPE_CHECKING:
    from apps.access.viewers import Viewer

_MADE_BY_VISIBLE = object()


@dataclass(frozen=True, slots=True)
class ScopedSource:
    """One store of one readable source, with what the index knew of it when the scope was made."""

    number: int
    store: str
    kind: str
    id: UUID
    label: str
    language: str
    chunks: int
    version: int
    generation: int
    names: int = 0
    """Number of the index of its documents' names; 0 where it has none."""


@dataclass(frozen=True, slots=True)
class Riders:
    """SELECTs in the columns of ``REPLY`` that ride along with the query of a scope, on behalf of ``text``.

    SECURITY: they name no sources, but read the numbers of those in scope from ``SCOPED``.
    """

    text: str
    languages: tuple[str, ...]
    """Languages in which the text was asked: those of a scope are known too late."""
    fragments: tuple[Fragment, ...]
    named: tuple[Fragment, ...] = ()
    """Of the WITH clause, after ``SCOPED``."""
    rows: Sequence[tuple[Any, ...]] = ()

    def and_(self, named: Fragment, fragments: Sequence[Fragment]) -> Riders:
        """These and others."""
        return replace(self, fragments=(*self.fragments, *fragments), named=(*self.named, named))


@dataclass(frozen=True, slots=True)
class Scope:
    """Sources that one viewer may read, of one block, and conditions on their chunks by store.

    Sources are in the order of their labels: the order in which ties are broken.
    """

    block: Block
    sources: tuple[ScopedSource, ...]
    conditions: Mapping[str, Q] = field(default_factory=dict)
    profile: EmbeddingProfile | None = None
    """The profile that served when the scope was made."""
    riders: Riders | None = None
    """What was asked along with it, answered."""
    _token: object = None

    def __post_init__(self) -> None:
        if self._token is not _MADE_BY_VISIBLE:
            raise TypeError("a scope is made by visible(viewer, ...)")

    @property
    def numbers(self) -> list[int]:
        return [source.number for source in self.sources]

    @property
    def stores(self) -> tuple[ChunkStore, ...]:
        return tuple(get_store(name) for name in sorted({source.store for source in self.sources}))

    @property
    def languages(self) -> tuple[str, ...]:
        return tuple(sorted({source.language for source in self.sources}))

    def numbers_of(self, store: ChunkStore) -> list[int]:
        return [source.number for source in self.sources if source.store == store.name]

    def chunks_of(self, store: ChunkStore) -> QuerySet[Chunk]:
        """The chunks of one store in scope, conditions applied."""
        rows: QuerySet[Any] = store.model._default_manager.filter(in_numbers(self.numbers_of(store)))
        condition = self.conditions.get(store.name)
        return rows if condition is None else rows.filter(condition)


@dataclass(frozen=True, slots=True)
class Allowed:
    """The chunks that the conditions of a scope leave, looked for once for all streams of a statement: ``names`` are
    what its WITH clause ``fragment`` calls those of each store (columns ref and embed_hash)."""

    names: Mapping[str, str]
    fragments: tuple[Fragment, ...]

    @classmethod
    def of(cls, scope: Scope) -> Allowed | None:
        """None for a scope without conditions: there every chunk of its sources is allowed."""
        if not scope.conditions:
            return None
        names, fragments = {}, []
        for store in scope.stores:
            names[store.name] = f"allowed_{store.name}"
            inner = fragment_of(scope.chunks_of(store).values("ref", "embed_hash"))
            fragments.append(Fragment(f"{names[store.name]} AS MATERIALIZED ({inner.sql})", inner.params))
        return cls(names, tuple(fragments))


def in_numbers(numbers: Collection[int]) -> Q:
    """Chunks of the indexed sources ``numbers``; runs of numbers become one range of the index on ``ref``."""
    if not numbers:
        return Q(pk__in=())
    condition = Q()
    ordered = sorted(numbers)
    first = last = ordered[0]
    for number in [*ordered[1:], None]:
        if number == last + 1:
            last = number
            continue
        condition |= Q(ref__gte=first << SLOT_BITS, ref__lt=(last + 1) << SLOT_BITS)
        if number is not None:
            first = last = number
    return condition


def visible(
    viewer: Viewer,
    *,
    block: Block = "docs",
    kinds: Collection[str] | None = None,
    sources: Collection[tuple[str, UUID]] | None = None,
    conditions: Mapping[str, Q] | None = None,
) -> Scope:
    """The scope of ``viewer`` in one block, by one query.

    ``kinds`` and ``sources`` narrow it to kinds of source, or to single ones as (kind, id); ``conditions`` narrow the
    chunks of a store. Whatever they name, nothing outside the viewer's sources is ever in the scope.
    """
    (scope,) = visible_blocks(viewer, blocks={block: kinds}, sources=sources, conditions=conditions)
    return scope


def visible_blocks(
    viewer: Viewer,
    *,
    blocks: Mapping[Block, Collection[str] | None],
    sources: Collection[tuple[str, UUID]] | None = None,
    conditions: Mapping[str, Q] | None = None,
    evaluation: bool = False,
    riders: Riders | None = None,
) -> list[Scope]:
    """The same for several blocks at once, still by one query; ``blocks`` gives the kinds of source of each.

    ``evaluation``: the sources of evaluation sets that the viewer may read, and no others. ``riders`` are asked by the
    same query, inside the same sources.
    """
    parts = _of_models(viewer, blocks, sources, evaluation)
    scoped = union(parts) if parts else Fragment(f"SELECT {_COLUMNS} FROM indexing_indexedsource s WHERE false")  # noqa: S608
    asked = union([_PACKED, _PROFILE, *(riders.fragments if riders else ())])
    first = Fragment(f"{SCOPED} AS MATERIALIZED ({scoped.sql})", scoped.params)
    try:
        rows = fetch(beginning_with([first, *(riders.named if riders else ())], asked), prepare=True)
    except DatabaseError:
        if riders is None or connection.in_atomic_block:
            raise
        # Streams that brought nothing along ask by themselves, and fail alone.
        riders = None
        rows = fetch(beginning_with([first], union([_PACKED, _PROFILE])), prepare=True)
    members, profile = _read(rows)
    scopes = []
    for block in blocks:
        stores = {store.name for store in all_stores() if store.block == block}
        mine = sorted(
            (member for member in members if member.store in stores),
            key=lambda source: (source.label, source.kind, source.store, str(source.id)),
        )
        narrowed = {name: condition for name, condition in (conditions or {}).items() if name in stores}
        brought = replace(riders, rows=rows) if riders else None
        scopes.append(Scope(block, tuple(mine), narrowed, profile, brought, _MADE_BY_VISIBLE))
    return scopes


SCOPED = "scoped"
"""What riders read: number, store and language of the sources that the viewer may read."""
_COLUMNS = (
    "s.number, s.store, s.source_kind, s.source_id, s.language, s.chunks, s.version, s.generation, ''::text AS label"
)
_PACKED = Fragment(
    "SELECT 'o' AS kind, '' AS language, '' AS term, NULL::bytea AS head, "  # noqa: S608
    "convert_to(COALESCE(json_agg(json_build_array(number, store, source_kind, source_id, label, language, chunks, "
    "version, generation))::text, '[]'), 'UTF8') "
    f"AS data FROM {SCOPED}"
)
_OF_PROFILE = (
    "id", "fingerprint", "backend", "options", "label", "dimension", "weight", "min_cosine", "max_tokens", "state",
    "indexed_rows",
)  # fmt: skip
_PROFILE = Fragment(
    f"SELECT 'e', '', '', NULL::bytea, convert_to(json_build_array({', '.join(_OF_PROFILE)})::text, 'UTF8') "  # noqa: S608
    f"FROM indexing_embeddingprofile WHERE state = '{ProfileState.ACTIVE}'"
)


def _of_models(
    viewer: Viewer,
    blocks: Mapping[Block, Collection[str] | None],
    sources: Collection[tuple[str, UUID]] | None,
    evaluation: bool,
) -> list[Fragment]:
    """The indexed sources that the viewer may read, one SELECT for each kind of source."""
    wanted: dict[str, list[ChunkStore]] = {}
    for store in all_stores():
        if store.block in blocks:
            kinds = blocks[store.block]
            if kinds is None or store.source_kind in kinds:
                wanted.setdefault(store.source_kind, []).append(store)
    parts = []
    for kind, stores in wanted.items():
        model = source_model(kind)
        sql, params = readable_ids(model, viewer, evaluation=evaluation)
        names = [name for store in stores for name in (store.name, store.name + SUFFIX)]
        columns = _COLUMNS.replace("''::text", f"m.{connection.ops.quote_name(stores[0].label_field)}::text")
        narrowed = "" if sources is None else " AND m.id = ANY(%s::uuid[])"
        bound = () if sources is None else ([id_ for of, id_ in sources if of == kind],)
        parts.append(
            Fragment(
                f"SELECT {columns} FROM indexing_indexedsource s "  # noqa: S608
                f"JOIN {connection.ops.quote_name(model._meta.db_table)} m ON m.id = s.source_id "
                f"WHERE s.store = ANY(%s::text[]) AND m.id IN ({sql}){narrowed}",
                (names, *params, *bound),
            )
        )
    return parts


def _read(rows: list[tuple[Any, ...]]) -> tuple[list[ScopedSource], EmbeddingProfile | None]:
    found = next(orjson.loads(data) for kind, *_, data in rows if kind == "o")
    names = {(store, id_): number for number, store, _, id_, *_ in found if store.endswith(SUFFIX)}
    members = [
        ScopedSource(
            number, store, kind, UUID(id_), label, language, chunks, version, generation,
            names.get((store + SUFFIX, id_), 0),
        )
        for number, store, kind, id_, label, language, chunks, version, generation in found
        if not store.endswith(SUFFIX)
    ]  # fmt: skip
    values = [orjson.loads(data) for kind, *_, data in rows if kind == "e"]
    if not values:
        return members, None
    return members, as_stored(EmbeddingProfile, zip(_OF_PROFILE, values[0], strict=True))
