"""Registry of chunk stores: one concrete chunk model a store, filled by the rooms above."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from apps.indexing.models import Chunk

Block = Literal["docs", "code"]


@dataclass(frozen=True, slots=True)
class ChunkStore:
    """Where the chunks of one kind of text stand.

    ``source_field`` and ``document_field`` are the foreign keys of the model; ``path_field`` leads from the chunk to
    the path that people know; ``label_field`` is the column of the source model that holds its label.
    """

    name: str
    model: type[Chunk]
    source_kind: str
    source_field: str
    document_field: str = "document"
    block: Block = "docs"
    path_field: str = "document__path"
    label_field: str = "slug"

    @property
    def table(self) -> str:
        return self.model._meta.db_table

    @property
    def document_column(self) -> str:
        return _column(self.model, self.document_field)

    @property
    def source_column(self) -> str:
        return _column(self.model, self.source_field)

    @property
    def dependants(self) -> tuple[tuple[str, str], ...]:
        """Tables and columns of rows that are about a chunk and go with it."""
        relations: Any = self.model._meta.related_objects
        return tuple((each.related_model._meta.db_table, each.field.column) for each in relations)


def _column(model: type[Chunk], name: str) -> str:
    field: Any = model._meta.get_field(name)
    column: str = field.column
    return column


_stores: dict[str, ChunkStore] = {}


def register_store(store: ChunkStore) -> None:
    """Adds a store; called once by its room's ``AppConfig.ready``. Raises ValueError for a name taken twice."""
    known = _stores.get(store.name)
    if known is not None and known != store:
        raise ValueError(f"the store {store.name!r} is registered twice")
    _stores[store.name] = store


def get_store(name: str) -> ChunkStore:
    """Raises KeyError for a name that no room has registered."""
    return _stores[name]


def all_stores() -> tuple[ChunkStore, ...]:
    return tuple(_stores[name] for name in sorted(_stores))


def stores_of(source_kind: str) -> tuple[ChunkStore, ...]:
    return tuple(store for store in all_stores() if store.source_kind == source_kind)
