"""What is kept of chunks that their document no longer has: enough to say where a saved address leads now."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from django.db import connection
from django.utils import timezone

from apps.indexing.models import ChunkTombstone

if TYPE_CHECKING:
    from apps.indexing.stores import ChunkStore

KEPT = timedelta(days=90)
PRUNE_BATCH = 5000


def bury(store: ChunkStore, ids: Sequence[int]) -> None:
    """Remember chunks that are about to be deleted while their documents stay; one statement."""
    if not ids:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO indexing_chunktombstone "  # noqa: S608 - names of tables and columns
            "(chunk_id, source_kind, source_id, document_id, chunk_index, heading_path, removed_at) "
            f"SELECT c.id, %s, c.{store.source_column}, c.{store.document_column}, c.chunk_index, c.heading_path, %s "
            f"FROM {connection.ops.quote_name(store.table)} c WHERE c.id = ANY(%s) ON CONFLICT DO NOTHING",
            [store.source_kind, timezone.now(), list(ids)],
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
