"""Bulk writes of chunk rows: binary COPY for new ones, one UPDATE over arrays for those that moved."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain, repeat
from operator import is_
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import connection

from apps.access.cursors import binary_cursor
from apps.indexing.arrays import spelled, update_values

if TYPE_CHECKING:
    from apps.indexing.chunks import DocumentText
    from apps.indexing.stores import ChunkStore

# In the order of the rows that `chunks` makes: column, PostgreSQL type.
_COLUMNS = (
    ("id", "int8"),
    ("ref", "int8"),
    ("chunk_index", "int4"),
    ("heading_level", "int2"),
    ("section_anchor", "text"),
    ("start_line", "int4"),
    ("end_line", "int4"),
    ("start_byte", "int4"),
    ("end_byte", "int4"),
    ("heading_path", "text[]"),
    ("source", "text"),
    ("text", "text"),
    ("part", "int4"),
    ("parts", "int4"),
    ("flags", "text[]"),
    ("profile", "text"),
    ("content_hash", "bytea"),
    ("embed_hash", "bytea"),
    ("index_hash", "bytea"),
    ("copy_hash", "bytea"),
)
# In the order of `moved` rows; the last four are null where only the place changed.
_MOVED = (
    ("id", "int8"),
    ("ref", "int8"),
    ("chunk_index", "int4"),
    ("heading_level", "int2"),
    ("section_anchor", "text"),
    ("start_line", "int4"),
    ("end_line", "int4"),
    ("start_byte", "int4"),
    ("end_byte", "int4"),
    ("part", "int4"),
    ("parts", "int4"),
    ("flags", "flags"),
    ("profile", "text"),
    ("source", "text"),
    ("text", "text"),
    ("index_hash", "bytea"),
    ("embed_hash", "bytea"),
)


def copy_rows(store: ChunkStore, rows: Sequence[tuple[Any, ...]]) -> None:
    owners = ((store.document_column, "uuid"), (store.source_column, "uuid"))
    copy_values(store.table, (*_COLUMNS, *owners), rows)


def copy_values(table: str, columns: Sequence[tuple[str, str]], rows: Sequence[tuple[Any, ...]]) -> None:
    """Binary COPY of rows whose values stand in the order of ``columns``, each with its PostgreSQL type."""
    if not rows:
        return
    names = ", ".join(connection.ops.quote_name(name) for name, _ in columns)
    parts = _pack([kind for _, kind in columns], rows)
    copy_packed(f"{connection.ops.quote_name(table)} ({names})", list(chain.from_iterable(parts)))


def _pack(kinds: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> Iterator[tuple[bytes, ...]]:
    """The rows in COPY's binary form. Packed column by column: the loops over values are then the interpreter's own,
    which halves the time."""
    size = len(rows)
    parts: list[Iterable[bytes]] = [repeat(struct.pack(">h", len(kinds)), size)]
    for kind, column in zip(kinds, zip(*rows, strict=True), strict=True):
        pack = _PACKERS[kind]
        if all(map(is_, column, repeat(column[0]))):  # one source, one state, no value at all
            parts.append(repeat(_NULL if column[0] is None else pack(column[0]), size))
        elif kind == "uuid":
            parts.append(_uuids(column))
        elif None in column:
            parts.append([_NULL if value is None else pack(value) for value in column])
        elif kind in _FIXED:
            form = _FIXED[kind]
            parts.append(map(form.pack, repeat(form.size - 4), column))
        elif kind == "text":
            texts = [value.encode() for value in column]
            parts += [map(_length.pack, map(len, texts)), texts]
        else:
            parts.append(map(pack, column))
    return zip(*parts, strict=True)


def copy_packed(target: str, parts: Sequence[bytes]) -> None:
    """Binary COPY of rows that are packed already. Twice as fast as letting the driver adapt each value.

    ``target`` is a table with its columns, never anything from outside.
    """
    with connection.cursor() as cursor, cursor.copy(f"COPY {target} FROM STDIN (FORMAT BINARY)") as copy:
        copy.write(b"".join([COPY_HEADER, *parts, COPY_TRAILER]))


COPY_HEADER = b"PGCOPY\n\xff\r\n\x00" + struct.pack(">ii", 0, 0)
COPY_TRAILER = struct.pack(">h", -1)
_NULL = struct.pack(">i", -1)
_TEXT_OID = 25
_INT4_OID = 23
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_int2 = struct.Struct(">ih")
_int4 = struct.Struct(">ii")
_int8 = struct.Struct(">iq")
_length = struct.Struct(">i")
_array = struct.Struct(">iiiiii")
_one_number = struct.Struct(">iiiiiiii")
_empty_numbers = struct.pack(">iiii", 12, 0, 0, _INT4_OID)
_empty_array = struct.pack(">iiii", 12, 0, 0, _TEXT_OID)


def _bytes(value: bytes) -> bytes:
    return _length.pack(len(value)) + value


def _text(value: str) -> bytes:
    return _bytes(value.encode())


def _texts(values: Sequence[str]) -> bytes:
    if not values:
        return _empty_array
    encoded = [value.encode() for value in values]
    items = b"".join([part for item in encoded for part in (_length.pack(len(item)), item)])
    return _array.pack(20 + len(items), 1, 0, _TEXT_OID, len(values), 1) + items


def _numbers(values: Sequence[int]) -> bytes:
    if not values:
        return _empty_numbers
    if len(values) == 1:
        return _one_number.pack(28, 1, 0, _INT4_OID, 1, 1, 4, values[0])
    items = b"".join([_int4.pack(4, value) for value in values])
    return _array.pack(20 + len(items), 1, 0, _INT4_OID, len(values), 1) + items


def _json(value: object) -> bytes:
    return _bytes(b"\x01" + spelled(value))


def _moment(value: datetime) -> bytes:
    return _int8.pack(8, (value - _EPOCH) // _MICROSECOND)


def _uuid(value: UUID) -> bytes:
    return b"\x00\x00\x00\x10" + value.bytes


def _uuids(values: Sequence[UUID | None]) -> Iterator[bytes]:
    """Rows of one document stand together: its id is packed once."""
    last, packed = None, _NULL
    for value in values:
        if value is not last:
            last, packed = value, _NULL if value is None else _uuid(value)
        yield packed


_PACKERS: dict[str, Callable[[Any], bytes]] = {
    "int2": lambda value: _int2.pack(2, value),
    "int4": lambda value: _int4.pack(4, value),
    "int8": lambda value: _int8.pack(8, value),
    "text": _text,
    "text[]": _texts,
    "bytea": _bytes,
    "uuid": _uuid,
    "bool": lambda value: b"\x00\x00\x00\x01\x01" if value else b"\x00\x00\x00\x01\x00",
    "int4[]": _numbers,
    "jsonb": _json,
    "timestamptz": _moment,
}
_FIXED = {"int2": _int2, "int4": _int4, "int8": _int8}


def update_rows(store: ChunkStore, moved: Sequence[tuple[Any, ...]]) -> None:
    """Chunks that stay: those whose place alone has changed apart from those that are indexed anew, which are wide."""
    update_values(store.table, _PLACE, [(row[0], *row[2:_SOURCE]) for row in moved if row[_SOURCE] is None])
    update_values(store.table, _MOVED, [row for row in moved if row[_SOURCE] is not None])


_SOURCE = [name for name, _ in _MOVED].index("source")
_PLACE = (_MOVED[0], *_MOVED[2:_SOURCE])


def replace_indexed_documents(number: int, documents: Sequence[DocumentText]) -> None:
    """What the postings of ``documents`` are made of, in place of what they were made of."""
    if not documents:
        return
    with binary_cursor(prepare=True) as cursor:
        cursor.execute(
            "INSERT INTO indexing_indexeddocument (number, document_id, title, path, side) "
            "SELECT %s::int4, * FROM unnest(%b::uuid[], %b::text[], %b::text[], %b::boolean[]) "
            "ON CONFLICT (number, document_id) DO UPDATE "
            "SET title = EXCLUDED.title, path = EXCLUDED.path, side = EXCLUDED.side",
            [
                number,
                [document.document_id for document in documents],
                [document.title for document in documents],
                [document.path for document in documents],
                [document.side for document in documents],
            ],
        )
