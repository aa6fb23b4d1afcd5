"""Statements that change rows of the graph, each for many rows at once."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import connection
from psycopg.types.json import Jsonb

from apps.access.cursors import prepared_cursor
from apps.knowledge_graph.storing.rows import REFERENCE_COLUMNS

_AT_ONCE = 1000
_FEW = 50
_EVIDENCE = {
    "provenance": "text", "mode": "text", "target": "text", "stated_type": "text", "field": "text", "raw": "text",
    "label": "text", "anchor": "text", "embed": "boolean", "line": "int", "column": "int", "heading_path": "text[]",
    "weight": "numeric", "problem": "text", "outcome": "text", "rivals": "text[]", "fallback_uid": "text",
    "edge_uid": "text", "wanted": "text[]", "version_hash": "text", "ordinal": "int",
}  # fmt: skip
_TYPES: Mapping[str, Mapping[str, str]] = {
    "kb_nodes": {
        "source_id": "bigint", "node_uid": "text",
        "page_id": "bigint", "node_type": "text", "label": "text", "status": "text", "priority": "int",
        "payload": "jsonb", "valid_from": "int",
    },
    "kb_edges": {
        "source_id": "bigint", "from_uid": "text", "to_uid": "text", "edge_type": "text",
        "page_id": "bigint", "weight": "numeric", "provenance": "text", "type_source": "text", "payload": "jsonb",
        "valid_from": "int",
    },
    "kb_evidence": {"source_id": "bigint", "page_id": "bigint", **_EVIDENCE, "valid_from": "int"},
    "kb_cross_source_references": {
        "source_id": "bigint", "page_id": "bigint", "line": "int", "raw": "text", "wanted_kind": "text",
        "wanted_source": "text", "wanted_slug": "text", "stated_type": "text", "label": "text", "field": "text",
    },
    "kb_pages": {
        "repository_document_id": "uuid", "document_id": "uuid", "path": "text", "uid": "text", "node_type": "text",
        "label": "text", "status": "text", "header": "jsonb", "header_state": "text", "bears": "boolean",
        "names": "text[]", "problems": "jsonb", "version_hash": "text", "header_hash": "text", "projector": "int",
    },
}  # fmt: skip
_TWINS = {
    "kb_nodes": "node_uid, node_type, label, status, priority, payload",
    "kb_edges": "from_uid, to_uid, edge_type, weight, provenance, type_source, payload, edge_uid",
    "kb_evidence": ", ".join(f'"{name}"' for name in _EVIDENCE),
}


def add_rows(table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Insert rows whose ids nobody asks for. Many by COPY, which a statement of thousands of values cannot match; few
    by a statement that is planned once, which costs a third of a COPY."""
    if not rows:
        return
    if len(rows) <= _FEW:
        _execute(
            f"INSERT INTO {table} ({_quoted(columns)}) SELECT {_quoted(columns)} FROM {_recordset(table, columns)}",  # noqa: S608
            rows=_json(columns, rows),
        )
        return
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY {table} ({_quoted(columns)}) FROM STDIN") as copy,
    ):
        for row in rows:
            copy.write_row([Jsonb(value) if isinstance(value, dict) else value for value in row])


def insert_rows(
    table: str, source: int, columns: Sequence[str], rows: Sequence[Sequence[Any]], returning: str
) -> Iterator[tuple[Any, ...]]:
    """Insert rows of a source; gives (id, ``returning``) of each."""
    for part in _parts(rows):
        yield from _execute(
            f"INSERT INTO {table} (source_id, {_quoted(columns)}) SELECT %(source)s, {_quoted(columns)}"  # noqa: S608
            f" FROM {_recordset(table, columns)} RETURNING id, {returning}",
            source=source,
            rows=_json(columns, part),
        )


def update_rows(
    table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], *, closing: int | None = None
) -> None:
    """Give rows new values; each begins with the id, the values of ``columns`` follow. ``closing``: the revision that
    they change in; what they were is kept."""
    sets = ", ".join(f'"{name}" = given."{name}"' for name in columns)
    for part in _parts(rows):
        _execute(
            f"WITH given AS (SELECT * FROM {_recordset(table, columns, 'id bigint, ')})"  # noqa: S608 - constants
            f"{_closing(table, 'SELECT id FROM given') if closing is not None else ''}"
            f" UPDATE {table} SET {sets} FROM given WHERE {table}.id = given.id",
            rows=_json(("id", *columns), part),
            revision=closing,
        )


def delete_rows(table: str, ids: Sequence[int], *, closing: int) -> None:
    """Delete rows in revision ``closing``; what they were is kept."""
    if ids:
        _execute(
            f"WITH doomed AS (SELECT unnest(%(ids)s::bigint[]) AS id){_closing(table, 'SELECT id FROM doomed')}"  # noqa: S608
            f" DELETE FROM {table} WHERE id = ANY(%(ids)s::bigint[])",
            ids=list(ids),
            revision=closing,
        )


def _closing(table: str, ids: str) -> str:
    """Keep rows as they are, before the same statement changes them; nobody has seen those of this revision."""
    columns = _TWINS[table]
    return (
        f", closed AS (INSERT INTO {table}_past (source_id, page_id, row, valid_from, valid_to, {columns})"  # noqa: S608
        f" SELECT source_id, page_id, id, valid_from, %(revision)s, {columns} FROM {table}"
        f" WHERE id IN ({ids}) AND valid_from < %(revision)s)"
    )


def let_go(pages: Sequence[int]) -> None:
    """These pages bear their slugs no more."""
    if pages:
        _execute("UPDATE kb_pages SET bears = false WHERE id = ANY(%(ids)s)", ids=list(pages))


def take_up(pages: Sequence[int]) -> None:
    """These pages bear their slugs, which are free."""
    if pages:
        _execute("UPDATE kb_pages SET bears = true WHERE id = ANY(%(ids)s)", ids=list(pages))


def make_former(pages: Sequence[int]) -> None:
    """These documents are no pages any more."""
    if pages:
        _execute(
            "UPDATE kb_pages SET bears = false, header_state = 'former', names = '{}', problems = '[]'"
            " WHERE id = ANY(%(ids)s) AND header_state <> 'former'",
            ids=list(pages),
        )


def references_of(pages: Sequence[int]) -> list[tuple[Any, ...]]:
    if not pages:
        return []
    columns = ", ".join(REFERENCE_COLUMNS)
    return _execute(
        f"SELECT {columns} FROM kb_cross_source_references WHERE page_id = ANY(%(ids)s)",  # noqa: S608 - constants
        ids=list(pages),
    )


def drop_references(pages: Sequence[int]) -> None:
    if pages:
        _execute("DELETE FROM kb_cross_source_references WHERE page_id = ANY(%(ids)s)", ids=list(pages))


def next_revision(source: int, *, cause: str, change: str) -> int:
    """The number that what is written now bears: a new one, unless the last one is of the same ``change``."""
    (row,) = _execute(
        "WITH now AS (UPDATE kb_sources s SET changed_at = clock_timestamp(), revision = revision + CASE"
        " WHEN %(change)s <> '' AND EXISTS (SELECT FROM kb_revisions r WHERE r.source_id = s.id"
        " AND r.number = s.revision AND r.change = %(change)s) THEN 0 ELSE 1 END WHERE s.id = %(source)s"
        " RETURNING revision), made AS (INSERT INTO kb_revisions (source_id, number, change, cause, created_at)"
        " SELECT %(source)s, revision, %(change)s, %(cause)s, clock_timestamp() FROM now"
        " ON CONFLICT (source_id, number) DO NOTHING) SELECT revision FROM now",
        source=source,
        change=change,
        cause=cause,
    )
    return int(row[0])


def drop_guesses(source: int, revision: int, *, dangling: Sequence[str], written: Sequence[tuple[str, str]]) -> None:
    """Guesses end where one of their ends dangles, and where a person has written an edge between the two."""
    if not dangling and not written:
        return
    both = {*written, *((to, from_) for from_, to in written)}
    doomed = [
        row[0]
        for row in _execute(
            "SELECT e.id FROM kb_edges e JOIN unnest(%(from)s::text[], %(to)s::text[]) AS w (from_uid, to_uid)"
            " ON e.from_uid = w.from_uid AND e.to_uid = w.to_uid"
            " WHERE e.source_id = %(source)s AND e.provenance = 'inferred' UNION"
            " SELECT e.id FROM kb_edges e WHERE e.source_id = %(source)s AND e.provenance = 'inferred'"
            " AND (e.from_uid = ANY(%(dangling)s) OR e.to_uid = ANY(%(dangling)s))",
            source=source,
            dangling=list(dangling),
            **{"from": [pair[0] for pair in both], "to": [pair[1] for pair in both]},
        )
    ]
    delete_rows("kb_edges", doomed, closing=revision)


def _execute(statement: str, **params: Any) -> list[tuple[Any, ...]]:
    with prepared_cursor() as cursor:
        cursor.execute(statement, params)
        found: list[tuple[Any, ...]] = cursor.fetchall() if cursor.description else []
        return found


def _parts(rows: Sequence[Sequence[Any]]) -> Iterator[Sequence[Sequence[Any]]]:
    for start in range(0, len(rows), _AT_ONCE):
        yield rows[start : start + _AT_ONCE]


def _quoted(columns: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in columns)


def _recordset(table: str, columns: Sequence[str], first: str = "") -> str:
    types = _TYPES[table]
    named = ", ".join(f'"{name}" {types[name]}' for name in columns)
    return f"jsonb_to_recordset(%(rows)s::jsonb) AS given ({first}{named})"


def _json(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    return json.dumps([dict(zip(columns, row, strict=True)) for row in rows], ensure_ascii=False, default=_plain)


def _plain(value: Any) -> str:
    if isinstance(value, Decimal | UUID):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no place in a row")
