"""Postings and statistics: written in the transaction of the chunks, merged later without changing any score.

One call writes one *segment*: a row for each term (and block of slots) that it adds or takes away. A row tells by how
much the number of live chunks with the term changes, so statistics are sums over rows and never need a second table.
Entries of chunks that left stay where they are; their slots are listed as dead on the source until a merge drops them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from apps.indexing import fields
from apps.indexing.analyzer import ANALYZER_VERSION, fresh_lexicon
from apps.indexing.copying import copy_binary
from apps.indexing.fields import ENTRY, Piece
from apps.indexing.models import BLOCK_BITS, SLOT_BITS, IndexedDocument

if TYPE_CHECKING:
    from apps.indexing.models import IndexedSource
    from apps.indexing.stores import ChunkStore

__all__ = ["ANALYZER_VERSION", "Piece", "change", "dead_slots", "merge", "pieces_of", "rebuild", "slot_of"]

BATCH = 5000
"""Chunks that a rebuild holds in memory at once."""
TABLE = "indexing_posting (term, number, block, segment, chunks, in_heading, in_path, entries)"
TYPES = ("text", "int4", "int2", "int4", "int4", "int4", "int4", "bytea")


def slot_of(ref: int) -> int:
    return ref & ((1 << SLOT_BITS) - 1)


def dead_slots(entry: IndexedSource) -> NDArray[np.uint32]:
    return np.frombuffer(bytes(entry.dead), "<u4")


def pieces_of(store: ChunkStore, entry: IndexedSource, refs: Sequence[int]) -> list[Piece]:
    """What the postings of the chunks ``refs`` were made of, read from the rows before they change."""
    if not refs:
        return []
    rows = store.model._default_manager.filter(ref__in=refs).values_list(
        "ref", store.document_column, "heading_path", "source", "text"
    )
    found = list(rows)
    known = {
        document.document_id: document
        for document in IndexedDocument.objects.filter(
            number=entry.number, document_id__in={document_id for _, document_id, *_ in found}
        )
    }
    return [
        Piece(
            slot_of(ref),
            known[document_id].title,
            known[document_id].path,
            known[document_id].side,
            heading_path,
            source if text is None else text,
        )
        for ref, document_id, heading_path, source, text in found
    ]


def change(store: ChunkStore, entry: IndexedSource, *, entered: Sequence[Piece], left: Sequence[Piece]) -> None:
    """Writes one segment: postings of ``entered``, counts without ``left``, whose slots become dead.

    ``entry`` is locked and is saved by the caller.
    """
    lexicon = fresh_lexicon(entry.language)
    added = fields.count(lexicon, store.block, entered) if entered else None
    taken = fields.count(lexicon, store.block, left) if left else None
    segment = entry.next_segment
    entry.next_segment += 1
    rows: list[tuple[Any, ...]] = []
    if added is not None:
        slots = np.array([piece.slot for piece in entered])
        rows = _rows(lexicon.names, entry.number, segment, added, slots, lost=False)
        entry.heading_length += int(added.lengths[fields.HEADING].sum())
        entry.body_length += int(added.lengths[fields.BODY].sum())
    if taken is not None:
        gone = np.array([piece.slot for piece in left])
        rows = _less(rows, _rows(lexicon.names, entry.number, segment, taken, gone, lost=True))
        entry.heading_length -= int(taken.lengths[fields.HEADING].sum())
        entry.body_length -= int(taken.lengths[fields.BODY].sum())
        entry.dead = bytes(entry.dead) + gone.astype("<u4").tobytes()
    entry.chunks += len(entered) - len(left)
    rows.sort()
    copy_binary(TABLE, TYPES, rows)


def _rows(
    names: Sequence[str], number: int, segment: int, counted: fields.Counted, slots: NDArray[np.int64], *, lost: bool
) -> list[tuple[Any, ...]]:
    """One row for each (term, block): gains with their entries or, if ``lost``, losses without."""
    blocks = slots >> BLOCK_BITS
    span = int(blocks.max()) + 1
    group = counted.term * span + blocks[counted.piece]
    order: Any = np.argsort(group, kind="stable") if span > 1 else slice(None)
    group = group[order]
    firsts = np.flatnonzero(np.diff(group, prepend=-1))
    ends = np.append(firsts[1:], len(group))
    sign = -1 if lost else 1
    holding = [
        (sign * np.add.reduceat(counted.counts[field][order] > 0, firsts, dtype=np.int64)).tolist()
        for field in (fields.HEADING, fields.PATH)
    ]
    data = b"" if lost else fields.entries(counted, slots)[order].tobytes()
    return [
        (
            names[key // span],
            number,
            key % span,
            segment,
            sign * (end - first),
            heading,
            path,
            data[8 * first : 8 * end],
        )
        for key, first, end, heading, path in zip(
            group[firsts].tolist(), firsts.tolist(), ends.tolist(), *holding, strict=True
        )
    ]


def _less(rows: list[tuple[Any, ...]], losses: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Gains and losses of one key as one row."""
    joined = {row[:4]: row for row in rows}
    for loss in losses:
        gain = joined.get(loss[:4])
        if gain is not None:
            loss = (*loss[:4], *(a + b for a, b in zip(gain[4:7], loss[4:7], strict=True)), gain[7])
        joined[loss[:4]] = loss
    return [row for row in joined.values() if row[7] or any(row[4:7])]


def rebuild(store: ChunkStore, entry: IndexedSource, *, language: str) -> None:
    """Makes all postings of a source anew from its chunks, under new slots, inside the caller's transaction.

    Readers see the old postings until it commits. Used after a change of the language or of the analyzer, and when
    slots of chunks long gone take more room than those of the living.
    """
    entry.language, entry.analyzer_version = language, ANALYZER_VERSION
    entry.chunks = entry.heading_length = entry.body_length = entry.next_slot = 0
    entry.dead = b""
    table = connection.ops.quote_name(store.table)
    low = entry.number << SLOT_BITS
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM indexing_posting WHERE number = %s", [entry.number])
        # New slots go above all old ones first, because the constraint is checked row by row.
        cursor.execute(
            f"SELECT c.id FROM {table} c JOIN indexing_indexeddocument d "  # noqa: S608
            f"ON d.number = %s AND d.document_id = c.{store.document_column} "
            "WHERE c.ref >= %s AND c.ref < %s ORDER BY d.path, c.chunk_index",
            [entry.number, low, low + (1 << SLOT_BITS)],
        )
        ids = [row[0] for row in cursor.fetchall()]
        for offset in (1 << (SLOT_BITS - 1), 0):
            cursor.execute(
                f"UPDATE {table} c SET ref = %s + v.place - 1 "  # noqa: S608
                "FROM unnest(%s::bigint[]) WITH ORDINALITY AS v(id, place) WHERE c.id = v.id",
                [low + offset, ids],
            )
    for start in range(0, len(ids), BATCH):
        refs = range(low + start, low + min(start + BATCH, len(ids)))
        change(store, entry, entered=pieces_of(store, entry, refs), left=())
    entry.next_slot = len(ids)
    entry.version += 1
    entry.save()


def merge(entry: IndexedSource) -> None:
    """Joins the segments of a source to one and drops dead entries. No count and no score moves.

    ``entry`` is locked. One transaction: a reader's statement sees the rows before or the rows after.
    """
    segment = entry.next_segment
    entry.next_segment += 1
    dead = dead_slots(entry)
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO indexing_posting (term, number, block, segment, chunks, in_heading, in_path, entries) "
            "SELECT term, number, block, %s, sum(chunks), sum(in_heading), sum(in_path), "
            "string_agg(entries, ''::bytea ORDER BY segment) "
            "FROM indexing_posting WHERE number = %s GROUP BY term, number, block",
            [segment, entry.number],
        )
        cursor.execute("DELETE FROM indexing_posting WHERE number = %s AND segment < %s", [entry.number, segment])
    if len(dead):
        _drop_dead(entry, segment, dead)
    entry.dead = b""
    entry.save(update_fields=["dead", "next_segment"])


def _drop_dead(entry: IndexedSource, segment: int, dead: NDArray[np.uint32]) -> None:
    """Rewrites the rows of ``segment`` that hold entries of dead slots; a row of nothing goes."""
    gone = np.zeros(entry.next_slot + 1, bool)
    gone[dead] = True
    changed: list[tuple[str, int, bytes]] = []
    with connection.chunked_cursor() as cursor:
        cursor.execute(
            "SELECT term, block, entries FROM indexing_posting WHERE number = %s AND segment = %s",
            [entry.number, segment],
        )
        for term, block, data in cursor:
            held = np.frombuffer(bytes(data), ENTRY)
            keep = ~gone[(int(block) << BLOCK_BITS) + held["slot"].astype(np.int64)]
            if not keep.all():
                changed.append((term, block, held[keep].tobytes()))
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE indexing_posting p SET entries = v.entries "
            "FROM unnest(%s::text[], %s::smallint[], %s::bytea[]) AS v(term, block, entries) "
            "WHERE p.number = %s AND p.segment = %s AND p.term = v.term AND p.block = v.block",
            [*(list(column) for column in zip(*changed, strict=True)), entry.number, segment]
            if changed
            else [[], [], [], entry.number, segment],
        )
        cursor.execute(
            "DELETE FROM indexing_posting WHERE number = %s AND segment = %s AND entries = ''::bytea "
            "AND chunks = 0 AND in_heading = 0 AND in_path = 0",
            [entry.number, segment],
        )
