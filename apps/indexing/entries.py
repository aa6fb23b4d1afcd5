"""The index entry of a source: its row lock orders all writers of the source."""

from __future__ import annotations

from uuid import UUID

from apps.indexing.analyzer import ANALYZER_VERSION, DEFAULT_LANGUAGE
from apps.indexing.models import IndexedSource


def lock_entry(store: str, source_kind: str, source_id: UUID, *, language: str = DEFAULT_LANGUAGE) -> IndexedSource:
    """The entry of a source in a store, made at first use (with ``language``), locked until the transaction ends."""
    locked = IndexedSource.objects.select_for_update().filter(store=store, source_id=source_id)
    entry = locked.first()
    if entry is not None:
        return entry
    IndexedSource.objects.get_or_create(
        store=store,
        source_id=source_id,
        defaults={"source_kind": source_kind, "analyzer_version": ANALYZER_VERSION, "language": language},
    )
    return locked.get()
