"""What one reader's search may touch. Streams take a ``Scope`` and nothing else, and a scope takes a viewer.

SECURITY: there is no way to make a scope without a viewer. ``visible`` asks each kind of source for the rows that the
viewer may read; narrowing only ever removes. A stream that had a default for its scope would be a door for everyone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db.models import CharField, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Cast

from apps.access.sources import source_model
from apps.indexing.models import NAMES_SUFFIX as SUFFIX
from apps.indexing.models import SLOT_BITS, Chunk, IndexedSource
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
class Scope:
    """Sources that one viewer may read, of one block, and conditions on their chunks by store.

    Sources are in the order of their labels: the order in which ties are broken.
    """

    block: Block
    sources: tuple[ScopedSource, ...]
    conditions: Mapping[str, Q] = field(default_factory=dict)
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
) -> list[Scope]:
    """The same for several blocks at once, still by one query; ``blocks`` gives the kinds of source of each.

    ``evaluation``: the sources of evaluation sets that the viewer may read, and no others.
    """
    readable = Q(pk__in=())
    labels: dict[type[Any], Subquery] = {}
    for store in all_stores():
        if store.block not in blocks:
            continue
        kinds = blocks[store.block]
        if kinds is not None and store.source_kind not in kinds:
            continue
        model = source_model(store.source_kind)
        rows_of: Any = model.objects
        allowed = rows_of.of_evaluation(viewer) if evaluation else rows_of.visible_to(viewer)
        if sources is not None:
            allowed = allowed.filter(pk__in=[id_ for kind, id_ in sources if kind == store.source_kind])
        readable |= Q(store__in=(store.name, store.name + SUFFIX), source_id__in=allowed.values("pk"))
        labels.setdefault(model, _label(model, store))
    rows = _with_labels(IndexedSource.objects.filter(readable), list(labels.values()))
    names = {(row.store, row.source_id): row.number for row, _ in rows if row.store.endswith(SUFFIX)}
    found: dict[Block, list[ScopedSource]] = {block: [] for block in blocks}
    for row, row_labels in rows:
        if row.store.endswith(SUFFIX):
            continue
        found[get_store(row.store).block].append(
            ScopedSource(
                row.number,
                row.store,
                row.source_kind,
                row.source_id,
                next((label for label in row_labels if label is not None), ""),
                row.language,
                row.chunks,
                row.version,
                row.generation,
                names.get((row.store + SUFFIX, row.source_id), 0),
            )
        )
    scopes = []
    for block, members in found.items():
        members.sort(key=lambda source: (source.label, source.kind, source.store, str(source.id)))
        stores = {store.name for store in all_stores() if store.block == block}
        mine = {name: condition for name, condition in (conditions or {}).items() if name in stores}
        scopes.append(Scope(block, tuple(members), mine, _MADE_BY_VISIBLE))
    return scopes


def _label(model: Any, store: ChunkStore) -> Subquery:
    row = model.objects.filter(pk=OuterRef("source_id")).values(text=Cast(F(store.label_field), CharField()))[:1]
    return Subquery(row)


def _with_labels(
    rows: QuerySet[IndexedSource], labels: list[Subquery]
) -> list[tuple[IndexedSource, tuple[str | None, ...]]]:
    names = [f"label_{place}" for place in range(len(labels))]
    annotated = rows.annotate(**dict(zip(names, labels, strict=True))).defer("dead")
    return [(row, tuple(getattr(row, name) for name in names)) for row in annotated]
