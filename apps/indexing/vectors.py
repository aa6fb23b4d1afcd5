"""The table of vectors: what is missing, what other sources have already, writing, counting."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from django.db import connection, transaction
from numpy.typing import NDArray

from apps.access.compiled import MARK_OF_ID, Rows
from apps.indexing.composition import Embedded, embedded
from apps.indexing.copying import COPY_HEADER, COPY_TRAILER
from apps.indexing.models import SLOT_BITS, EmbeddingFailure, IndexedSource
from apps.indexing.serving import used_profiles
from apps.indexing.statements import Fragment, fetch
from apps.indexing.stores import ChunkStore, get_store, stores_of

if TYPE_CHECKING:
    from uuid import UUID

    from apps.indexing.models import EmbeddingProfile


@dataclass(frozen=True, slots=True)
class Missing:
    """A text without a vector. ``ref`` is one of the chunks that have it."""

    ref: int
    hash: bytes
    piece: Embedded


@dataclass(frozen=True, slots=True)
class NewVector:
    hash: bytes
    vector: NDArray[np.float32]
    tokens: int
    truncated: bool


@dataclass(frozen=True, slots=True)
class EmbedStatus:
    """Counts of chunks of one source in the profile that serves."""

    total: int
    embedded: int
    pending: int
    failed: int
    truncated: int
    profile: str
    next_profile: str
    next_embedded: int = 0

    @property
    def is_ready(self) -> bool:
        return self.total > 0 and self.embedded == self.total


def missing(
    store: ChunkStore, entry: IndexedSource, profile: EmbeddingProfile, generation: int, *, after: int, limit: int
) -> tuple[list[Missing], int]:
    """The next texts of a source without vector and without recorded failure, and the ref to go on after; the ref is
    0 when all chunks were looked at.
    """
    low = entry.number << SLOT_BITS
    # The vector of each chunk is looked up by itself (OFFSET 0 forbids anything else): a plan that gathers those of the
    # whole source first does so again for every batch, which took half a second of each at 200,000 chunks.
    rows = fetch(
        Fragment(
            "SELECT c.ref, c.embed_hash, COALESCE(d.title, ''), c.heading_path, c.said FROM ("  # noqa: S608
            "SELECT c.ref, c.embed_hash, c.heading_path, COALESCE(c.text, c.source) AS said, "
            f"c.{store.document_column} AS document_id FROM {connection.ops.quote_name(store.table)} c "
            "LEFT JOIN LATERAL (SELECT true AS there FROM indexing_vector v WHERE v.profile_id = %s AND v.number = %s "
            "AND v.hash = c.embed_hash AND v.generation = %s OFFSET 0) v ON true "
            "LEFT JOIN LATERAL (SELECT true AS there FROM indexing_embeddingfailure f WHERE f.profile_id = %s "
            "AND f.number = %s AND f.hash = c.embed_hash AND f.generation = %s OFFSET 0) f ON true "
            "WHERE c.ref > %s AND c.ref < %s AND v.there IS NULL AND f.there IS NULL ORDER BY c.ref LIMIT %s) c "
            "LEFT JOIN indexing_indexeddocument d ON d.number = %s AND d.document_id = c.document_id ORDER BY c.ref",
            (
                *(profile.pk, entry.number, generation) * 2,
                max(after, low - 1),
                low + (1 << SLOT_BITS),
                limit,
                entry.number,
            ),
        )
    )
    found: dict[bytes, Missing] = {}
    for ref, digest, title, heading_path, text in rows:
        key = bytes(digest)
        found.setdefault(key, Missing(ref, key, embedded(store.block, title, heading_path, text)))
    return list(found.values()), rows[-1][0] if len(rows) == limit else 0


def copy_known(store: ChunkStore, entry: IndexedSource, profile: EmbeddingProfile) -> int:
    """Copies vectors that any source has for texts of this one. Gives how many rows were made.

    SECURITY: only the embed job may call this, after its embedder has answered. Copied when a text arrives, vectors
    would tell its author that the same text stands in a source hidden from him.
    """
    low = entry.number << SLOT_BITS
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO indexing_vector (profile_id, number, hash, generation, embedding, tokens, truncated) "  # noqa: S608
            "SELECT DISTINCT ON (o.hash) o.profile_id, %s, o.hash, %s, o.embedding, o.tokens, o.truncated "
            f"FROM {connection.ops.quote_name(store.table)} c "
            "JOIN indexing_vector o ON o.hash = c.embed_hash AND o.profile_id = %s AND o.number <> %s "
            "WHERE c.ref >= %s AND c.ref < %s "
            "AND NOT EXISTS (SELECT 1 FROM indexing_vector v WHERE v.profile_id = %s AND v.number = %s "
            "AND v.hash = c.embed_hash AND v.generation = %s) "
            "ORDER BY o.hash, o.generation DESC, o.number ON CONFLICT DO NOTHING",
            [
                entry.number,
                entry.generation,
                profile.pk,
                entry.number,
                low,
                low + (1 << SLOT_BITS),
                profile.pk,
                entry.number,
                entry.generation,
            ],
        )
        return int(cursor.rowcount)


def write(profile: EmbeddingProfile, number: int, generation: int, rows: Sequence[NewVector]) -> None:
    """Stores vectors by binary COPY; one that is there already stays."""
    if not rows:
        return
    halves = np.stack([row.vector for row in rows]).astype(">f2")
    width = halves.shape[1]
    size = 4 + 2 * width
    head = struct.pack(">h", 7) + struct.pack(">iiii", 4, profile.pk, 4, number)
    data = [COPY_HEADER]
    for row, half in zip(rows, halves, strict=True):
        data.append(
            head
            + struct.pack(">i", len(row.hash))
            + row.hash
            + struct.pack(">ihihh", 2, generation, size, width, 0)
            + half.tobytes()
            + struct.pack(">iii?", 4, row.tokens, 1, row.truncated)
        )
    data.append(COPY_TRAILER)
    columns = "profile_id, number, hash, generation, embedding, tokens, truncated"
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("CREATE TEMP TABLE IF NOT EXISTS arriving (LIKE indexing_vector) ON COMMIT DELETE ROWS")
        with cursor.copy(f"COPY arriving ({columns}) FROM STDIN (FORMAT BINARY)") as copy:
            copy.write(b"".join(data))
        cursor.execute(
            f"INSERT INTO indexing_vector ({columns}) SELECT {columns} FROM arriving ON CONFLICT DO NOTHING"  # noqa: S608
        )
        cursor.execute("DELETE FROM arriving")


def note_failures(profile: EmbeddingProfile, number: int, generation: int, failed: Iterable[tuple[bytes, str]]) -> None:
    """Records texts that have no vector and why; they are not tried again until asked for."""
    EmbeddingFailure.objects.bulk_create(
        [
            EmbeddingFailure(profile=profile, number=number, generation=generation, hash=digest, reason=reason[:300])
            for digest, reason in failed
        ],
        ignore_conflicts=True,
    )


def coverage(
    store: ChunkStore, entry: IndexedSource, profile: EmbeddingProfile, generation: int
) -> tuple[int, int, int]:
    """Chunks of a source that have a vector, failed texts, and vectors that see only the beginning of their text."""
    low = entry.number << SLOT_BITS
    rows = fetch(
        Fragment(
            "SELECT count(v.hash), count(f.hash), count(*) FILTER (WHERE v.truncated) "  # noqa: S608
            f"FROM {connection.ops.quote_name(store.table)} c "
            "LEFT JOIN indexing_vector v ON v.profile_id = %s AND v.number = %s AND v.hash = c.embed_hash "
            "AND v.generation = %s "
            "LEFT JOIN indexing_embeddingfailure f ON f.profile_id = %s AND f.number = %s AND f.hash = c.embed_hash "
            "AND f.generation = %s AND v.hash IS NULL WHERE c.ref >= %s AND c.ref < %s",
            (*(profile.pk, entry.number, generation) * 2, low, low + (1 << SLOT_BITS)),
        )
    )
    embedded_, failed, truncated = rows[0]
    return embedded_, failed, truncated


_OF_SOURCE: Rows[IndexedSource] = Rows(
    lambda id: IndexedSource.objects.filter(source_id=id).defer("dead").order_by("number"), MARK_OF_ID
)


def embed_status(source: Any) -> EmbedStatus:
    """The state of the vectors of one source, all its stores together. ``source`` is already scoped."""
    return status_of(source.kind, source.pk)


def status_of(source_kind: str, source_id: UUID) -> EmbedStatus:
    active, coming = used_profiles()
    total = embedded_ = failed = truncated = next_embedded = 0
    names = {store.name for store in stores_of(source_kind)}
    for entry in _OF_SOURCE.all(source_id):
        if entry.store not in names:
            continue
        store = get_store(entry.store)
        total += entry.chunks
        if active is not None:
            have, bad, cut = coverage(store, entry, active, entry.generation)
            embedded_, failed, truncated = embedded_ + have, failed + bad, truncated + cut
        if coming is not None:
            next_embedded += coverage(store, entry, coming, entry.generation)[0]
    return EmbedStatus(
        total,
        embedded_,
        total - embedded_ - failed,
        failed,
        truncated,
        active.label if active else "",
        coming.label if coming else "",
        next_embedded,
    )
