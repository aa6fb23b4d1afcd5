"""Bulk writes of chunk rows: binary COPY for new ones, one UPDATE over arrays for those that moved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django.db import connection

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
    ("flags", "text"),
    ("profile", "text"),
    ("source", "text"),
    ("text", "text"),
    ("index_hash", "bytea"),
    ("embed_hash", "bytea"),
)
_SEPARATOR = "\x1f"


def copy_rows(store: ChunkStore, rows: Sequence[tuple[Any, ...]]) -> None:
    names = [*(name for name, _ in _COLUMNS), store.document_column, store.source_column]
    types = [*(kind for _, kind in _COLUMNS), "uuid", "uuid"]
    columns = ", ".join(connection.ops.quote_name(name) for name in names)
    copy_binary(f"{connection.ops.quote_name(store.table)} ({columns})", types, rows)


def copy_binary(target: str, types: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
    """``target`` is a table with its columns, never anything from outside."""
    with connection.cursor() as cursor, cursor.copy(f"COPY {target} FROM STDIN (FORMAT BINARY)") as copy:
        copy.set_types(types)
        for row in rows:
            copy.write_row(row)


def update_rows(store: ChunkStore, moved: Sequence[tuple[Any, ...]]) -> None:
    columns: list[list[Any]] = [list(column) for column in zip(*moved, strict=True)]
    flags = [name for name, _ in _MOVED].index("flags")
    columns[flags] = [_SEPARATOR.join(value) for value in columns[flags]]
    table = connection.ops.quote_name(store.table)
    sets = ", ".join(f"{name} = v.{name}" for name, _ in _MOVED[1:] if name not in _KEPT)
    kept = ", ".join(f"{name} = COALESCE(v.{name}, c.{name})" for name in ("source", "index_hash", "embed_hash"))
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {table} c SET {sets}, {kept}, "  # noqa: S608 - names of our own columns
            f"flags = string_to_array(v.flags, '{_SEPARATOR}'), "
            "text = CASE WHEN v.source IS NULL THEN c.text ELSE v.text END "
            f"FROM unnest({', '.join(f'%s::{kind}[]' for _, kind in _MOVED)}) "
            f"AS v({', '.join(name for name, _ in _MOVED)}) WHERE c.id = v.id",
            columns,
        )


_KEPT = frozenset({"source", "text", "index_hash", "embed_hash", "flags"})


def replace_indexed_documents(number: int, documents: Sequence[DocumentText]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO indexing_indexeddocument (number, document_id, title, path, side) "
            "SELECT %s, * FROM unnest(%s::uuid[], %s::text[], %s::text[], %s::boolean[]) "
            "ON CONFLICT (number, document_id) DO UPDATE "
            "SET title = EXCLUDED.title, path = EXCLUDED.path, side = EXCLUDED.side "
            "WHERE (indexing_indexeddocument.title, indexing_indexeddocument.path, indexing_indexeddocument.side) "
            "IS DISTINCT FROM (EXCLUDED.title, EXCLUDED.path, EXCLUDED.side)",
            [
                number,
                [document.document_id for document in documents],
                [document.title for document in documents],
                [document.path for document in documents],
                [document.side for document in documents],
            ],
        )
