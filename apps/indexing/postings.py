"""Postings and statistics: written in the transaction of the chunks, merged later without changing any score.

One call writes one *segment*: a row for each term (and block of slots) that it adds or takes away. A row tells by how
much the number of live chunks with the term changes, so statistics are sums over rows and never need a second table.
Entries of chunks that left stay where they are; their slots are listed as dead on the source until a merge drops them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from apps.indexing import fields
from apps.indexing.analyzer import ANALYZER_VERSION, Lexicon, fresh_lexicon
from apps.indexing.copying import copy_packed
from apps.indexing.fields import ENTRY, Piece
from apps.indexing.models import BLOCK_BITS, SLOT_BITS, IndexedDocument

if TYPE_CHECKING:
    from apps.indexing.models import IndexedSource
    from apps.indexing.stores import Block, ChunkStore

__all__ = ["ANALYZER_VERSION", "Piece", "change", "dead_slots", "merge", "pieces_of", "rebuild", "slot_of"]

BATCH = 5000
"""Chunks that a rebuild holds in memory at once."""
TABLE = "indexing_posting (term, number, block, segment, chunks, in_heading, in_path, entries)"


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


def change(block: Block, entry: IndexedSource, *, entered: Sequence[Piece], left: Sequence[Piece]) -> None:
    """Writes one segment: postings of ``entered``, counts without ``left``, whose slots become dead.

    ``entry`` is locked and is saved by the caller.
    """
    lexicon = fresh_lexicon(entry.language)
    segment = entry.next_segment
    entry.next_segment += 1
    gains = losses = None
    if entered:
        added = fields.count(lexicon, block, entered)
        gains = _rows(added, np.array([piece.slot for piece in entered]), lost=False)
        entry.heading_length += int(added.lengths[fields.HEADING].sum())
        entry.body_length += int(added.lengths[fields.BODY].sum())
    if left:
        taken = fields.count(lexicon, block, left)
        gone = np.array([piece.slot for piece in left])
        losses = _rows(taken, gone, lost=True)
        entry.heading_length -= int(taken.lengths[fields.HEADING].sum())
        entry.body_length -= int(taken.lengths[fields.BODY].sum())
        entry.dead = bytes(entry.dead) + gone.astype("<u4").tobytes()
    entry.chunks += len(entered) - len(left)
    copy_packed(TABLE, _packed(lexicon, entry.number, segment, _joined(gains, losses)))


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of postings, one for each (term, block), as columns. Row i holds ``data[8 * first[i]:8 * end[i]]``."""

    term: NDArray[np.int64]
    block: NDArray[np.int64]
    first: NDArray[np.int64]
    end: NDArray[np.int64]
    counts: NDArray[np.int64]
    """Changes of the numbers of chunks: in all, with the term in the heading, in the path."""
    data: bytes


_NONE = np.zeros(0, np.int64)
_NOTHING = _Rows(_NONE, _NONE, _NONE, _NONE, np.zeros((3, 0), np.int64), b"")


def _rows(counted: fields.Counted, slots: NDArray[np.int64], *, lost: bool) -> _Rows:
    """Gains with their entries or, if ``lost``, losses without."""
    blocks = slots >> BLOCK_BITS
    span = int(blocks.max()) + 1
    group = counted.term * span + blocks[counted.piece]
    order: Any = np.argsort(group, kind="stable") if span > 1 else slice(None)
    group = group[order]
    firsts = np.flatnonzero(np.diff(group, prepend=-1))
    ends = np.append(firsts[1:], len(group))
    if not len(firsts):
        counts = np.zeros((3, 0), np.int64)
    else:
        holding = (counted.counts[field][order] > 0 for field in (fields.HEADING, fields.PATH))
        counts = np.stack([ends - firsts, *(np.add.reduceat(has, firsts, dtype=np.int64) for has in holding)])
    keys = group[firsts]
    if lost:
        nothing = np.zeros(len(firsts), np.int64)
        return _Rows(keys // span, keys % span, nothing, nothing, -counts, b"")
    return _Rows(keys // span, keys % span, firsts, ends, counts, fields.entries(counted, slots)[order].tobytes())


def _joined(gains: _Rows | None, losses: _Rows | None) -> _Rows:
    """Gains and losses of one (term, block) as one row; rows that say nothing are left out."""
    if gains is None or losses is None:
        return gains or losses or _NOTHING
    span = int(max(gains.block.max(initial=0), losses.block.max(initial=0))) + 1
    keys = np.concatenate([gains.term * span + gains.block, losses.term * span + losses.block])
    every, place = np.unique(keys, return_inverse=True)
    counts = np.zeros((3, len(every)), np.int64)
    first = np.zeros(len(every), np.int64)
    end = np.zeros(len(every), np.int64)
    for rows, where in ((gains, place[: len(gains.term)]), (losses, place[len(gains.term) :])):
        counts[:, where] += rows.counts
        if rows is gains:
            first[where], end[where] = rows.first, rows.end
    kept = (end > first) | counts.any(axis=0)
    every = every[kept]
    return _Rows(every // span, every % span, first[kept], end[kept], counts[:, kept], gains.data)


# Between term and entries every row has the same shape: each value after its length, big endian, as COPY takes it.
_MIDDLE = np.dtype(
    [
        (name, kind)
        for value, kind in (
            ("number", ">i4"),
            ("block", ">i2"),
            ("segment", ">i4"),
            ("chunks", ">i4"),
            ("in_heading", ">i4"),
            ("in_path", ">i4"),
        )
        for name, kind in ((f"length_of_{value}", ">i4"), (value, kind))
    ]
    + [("length_of_entries", ">i4")]
)


def _packed(lexicon: Lexicon, number: int, segment: int, rows: _Rows) -> list[bytes]:
    """The rows in COPY's binary form, in the order of their terms: neighbours in the index are written together."""
    middle = np.empty(len(rows.term), _MIDDLE)
    values = {"number": number, "block": rows.block, "segment": segment}
    values |= dict(zip(("chunks", "in_heading", "in_path"), rows.counts, strict=True))
    for name, value in values.items():
        middle[name] = value
        middle[f"length_of_{name}"] = middle.dtype[name].itemsize
    middle["length_of_entries"] = 8 * (rows.end - rows.first)
    fixed, width, data = middle.tobytes(), _MIDDLE.itemsize, rows.data
    terms, firsts, ends = rows.term.tolist(), (8 * rows.first).tolist(), (8 * rows.end).tolist()
    names, packed = lexicon.names, lexicon.packed
    parts: list[bytes] = []
    for row in sorted(range(len(terms)), key=lambda row: names[terms[row]]):
        parts += (
            b"\x00\x08",
            packed[terms[row]],
            fixed[width * row : width * (row + 1)],
            data[firsts[row] : ends[row]],
        )
    return parts


def forget(entry: IndexedSource, language: str) -> None:
    """Deletes all postings of a source and sets its counts back; the caller writes new ones."""
    entry.language, entry.analyzer_version = language, ANALYZER_VERSION
    entry.chunks = entry.heading_length = entry.body_length = entry.next_slot = 0
    entry.dead = b""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM indexing_posting WHERE number = %s", [entry.number])


def rebuild(store: ChunkStore, entry: IndexedSource, *, language: str) -> None:
    """Makes all postings of a source anew from its chunks, under new slots, inside the caller's transaction.

    Readers see the old postings until it commits. Used after a change of the language or of the analyzer, and when
    slots of chunks long gone take more room than those of the living.
    """
    forget(entry, language)
    table = connection.ops.quote_name(store.table)
    low = entry.number << SLOT_BITS
    with connection.cursor() as cursor:
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
        change(store.block, entry, entered=pieces_of(store, entry, refs), left=())
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
