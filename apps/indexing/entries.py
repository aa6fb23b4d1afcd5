"""The index entry of a source: its row lock orders all writers of the source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from apps.indexing.analyzer import ANALYZER_VERSION, DEFAULT_LANGUAGE
from apps.indexing.arrays import update_values
from apps.indexing.models import IndexedSource
from apps.indexing.statements import Fragment, fetch

_FIELDS = [field.attname for field in IndexedSource._meta.concrete_fields]
_LOCK = (
    f"SELECT {', '.join(_FIELDS)} FROM indexing_indexedsource"  # noqa: S608 - names of our own columns
    " WHERE source_id = %s AND store = ANY(%s::text[]) ORDER BY store FOR UPDATE"
)
_CHANGING = (
    ("number", "int4"),
    ("language", "text"),
    ("analyzer_version", "int4"),
    ("chunks", "int4"),
    ("heading_length", "int8"),
    ("body_length", "int8"),
    ("next_slot", "int8"),
    ("next_segment", "int4"),
    ("dead", "bytea"),
    ("version", "int8"),
    ("changed_at", "timestamptz"),
)


def lock_entry(store: str, source_kind: str, source_id: UUID, *, language: str = DEFAULT_LANGUAGE) -> IndexedSource:
    """The entry of a source in a store, made at first use (with ``language``), locked until the transaction ends."""
    return lock_entries((store,), source_kind, source_id, language=language)[0]


def lock_entries(
    stores: Sequence[str], source_kind: str, source_id: UUID, *, language: str = DEFAULT_LANGUAGE
) -> list[IndexedSource]:
    """As ``lock_entry``, of several stores; locked in the order of their names, given in that of ``stores``."""
    found = _locked(stores, source_id)
    missing = [store for store in stores if store not in found]
    for store in missing:
        IndexedSource.objects.get_or_create(
            store=store,
            source_id=source_id,
            defaults={"source_kind": source_kind, "analyzer_version": ANALYZER_VERSION, "language": language},
        )
    if missing:
        found = _locked(stores, source_id)
    return [found[store] for store in stores]


def _locked(stores: Sequence[str], source_id: UUID) -> dict[str, IndexedSource]:
    rows: list[tuple[Any, ...]] = fetch(Fragment(_LOCK, (source_id, list(stores))), prepare=True)
    entries = [IndexedSource.from_db("default", _FIELDS, row) for row in rows]
    return {entry.store: entry for entry in entries}


def save_entries(entries: Sequence[IndexedSource]) -> None:
    """Store what writing postings changes in locked entries; one statement."""
    update_values(
        "indexing_indexedsource",
        _CHANGING,
        [tuple(getattr(entry, name) for name, _ in _CHANGING) for entry in entries],
    )
