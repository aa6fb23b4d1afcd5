"""What is kept of chunks that their document no longer has: enough to say where a saved address leads now."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from django.utils import timezone

from apps.indexing.models import ChunkTombstone
from apps.indexing.statements import Fragment

if TYPE_CHECKING:
    from apps.indexing.stores import ChunkStore

KEPT = timedelta(days=90)
PRUNE_BATCH = 5000


def burying(store: ChunkStore) -> Fragment:
    """Remembers the chunks that are the rows of ``gone``, deleted while their documents stay."""
    return Fragment(
        "INSERT INTO indexing_chunktombstone "  # noqa: S608 - names of tables and columns
        "(chunk_id, source_kind, source_id, document_id, chunk_index, heading_path, removed_at) "
        f"SELECT id, %s, {store.source_column}, {store.document_column}, chunk_index, heading_path, %s "
        "FROM gone ON CONFLICT DO NOTHING",
        (store.source_kind, timezone.now()),
    )


def forget(source_id: UUID, document_ids: Sequence[UUID] | None = None) -> None:
    """What belongs to removed documents, or to a whole source, is not told of any more."""
    rows = ChunkTombstone.objects.filter(source_id=source_id)
    if document_ids is not None:
        rows = rows.filter(document_id__in=document_ids)
    rows.delete()


def prune(now: datetime) -> int:
    """A part of ``retention``."""
    old = ChunkTombstone.objects.filter(removed_at__lt=now - KEPT)
    batch = list(old.values_list("pk", flat=True)[:PRUNE_BATCH])
    ChunkTombstone.objects.filter(pk__in=batch).delete()
    return len(batch)
