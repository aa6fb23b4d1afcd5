"""How far the vectors of a collection are, chunks that were cut by an older chunking profile included."""

from __future__ import annotations

import dataclasses

from apps.collections.models import Collection, DocumentChunk
from apps.indexing.chunk_vectors import chunk_vectors
from apps.indexing.vectors import EmbedStatus, embed_status

LOOKED_AT = 2000


def coverage_of(collection: Collection) -> EmbedStatus:
    """The counts of :func:`embed_status`, with chunks of an older profile as pending (``collections.md`` 5.3)."""
    status = embed_status(collection)
    if not status.embedded:
        return status
    older = DocumentChunk.objects.filter(collection=collection).exclude(profile=collection.profile_id)
    if not older.exists():
        return status
    embedded = 0
    after = 0
    while rows := list(older.filter(pk__gt=after).only("id", "ref", "embed_hash").order_by("pk")[:LOOKED_AT]):
        states = chunk_vectors(rows)
        embedded += sum(any(one.serves and one.state == "embedded" for one in states.get(row.pk, ())) for row in rows)
        after = rows[-1].pk
    return dataclasses.replace(status, embedded=status.embedded - embedded, pending=status.pending + embedded)
