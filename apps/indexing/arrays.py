"""Many rows in one statement, by arrays of their columns.

The values go to the server as they are: they need no table of the transaction, which costs more than many rows, and are
not spelled out, which costs more than storing them.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from typing import Any

import orjson
from django.db import connection

from apps.access.cursors import binary_cursor
from apps.indexing.statements import numbers_text

SEPARATOR = "\x1f"
_NUMBERS = frozenset({"int2", "int4", "int8"})


def spelled(value: object) -> bytes:
    """As JSON."""
    try:
        return orjson.dumps(value)
    except TypeError:  # a whole number beyond 64 bits
        return json.dumps(value).encode()


_BOUND: dict[str, tuple[str, Callable[[Any], str]]] = {
    "jsonb": ("{}::jsonb", lambda value: spelled(value).decode()),
    "text[]": (
        "ARRAY(SELECT jsonb_array_elements_text({}::jsonb))",
        lambda value: spelled(list(value)).decode(),
    ),
    "int4[]": ("{}::int4[]", numbers_text),
    "flags": (f"string_to_array({{}}, '{SEPARATOR}')", SEPARATOR.join),
}
"""Types that are bound as texts, because ``unnest`` would take arrays of arrays apart: what makes the value of the
text, and the text of the value. ``flags`` are texts without control characters."""


def update_values(
    table: str, columns: Sequence[tuple[str, str]], rows: Sequence[tuple[Any, ...]], *, condition: str = "true"
) -> int:
    """One UPDATE of the rows that the first column names; ``condition`` knows them as ``old`` and the new ones as
    ``v``. Returns how many there were.

    ``columns`` are names with their PostgreSQL types, in the order of the values of a row.
    """
    return _write_arrays(_update_of(table, tuple(columns), condition), columns, rows)


def upsert_values(
    table: str, columns: Sequence[tuple[str, str]], rows: Sequence[tuple[Any, ...]], *, keeps: frozenset[str]
) -> None:
    """As ``update_values``, but rows that are not there are inserted; the columns ``keeps`` of the others stay."""
    _write_arrays(_upsert_of(table, tuple(columns), keeps), columns, rows)


def _write_arrays(statement: str, columns: Sequence[tuple[str, str]], rows: Sequence[tuple[Any, ...]]) -> int:
    if not rows:
        return 0
    values: list[Any] = []
    for (_, kind), column in zip(columns, zip(*rows, strict=True), strict=True):
        if kind in _NUMBERS:  # as a text, whose type does not depend on how large the numbers are: prepared once
            values.append(numbers_text("NULL" if value is None else value for value in column))
        elif kind in _BOUND:
            make = _BOUND[kind][1]
            values.append([None if value is None else make(value) for value in column])
        else:
            values.append(list(column))
    with binary_cursor(prepare=True) as cursor:
        cursor.execute(statement, values)
        return int(cursor.rowcount)


@functools.cache
def _update_of(table: str, columns: tuple[tuple[str, str], ...], condition: str) -> str:
    key, *changes = [f"{name} = {value}" for name, value in _assigned(columns)]
    return (
        f"UPDATE {connection.ops.quote_name(table)} old SET {', '.join(changes)} FROM {_arrays(columns)} "  # noqa: S608
        f"WHERE old.{key} AND {condition}"
    )


@functools.cache
def _upsert_of(table: str, columns: tuple[tuple[str, str], ...], keeps: frozenset[str]) -> str:
    names, values = zip(*_assigned(columns), strict=True)
    changes = [
        f"{name} = EXCLUDED.{name}" for name, (plain, _) in zip(names, columns, strict=True) if plain not in keeps
    ]
    return (
        f"INSERT INTO {connection.ops.quote_name(table)} ({', '.join(names)}) "  # noqa: S608 - our own names
        f"SELECT {', '.join(values)} FROM {_arrays(columns)} "
        f"ON CONFLICT ({names[0]}) DO UPDATE SET {', '.join(changes)}"
    )


def _assigned(columns: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Quoted name of each column, and its value in a row of ``v``."""
    quoted = [(connection.ops.quote_name(name), kind) for name, kind in columns]
    return [(name, _BOUND[kind][0].format(f"v.{name}") if kind in _BOUND else f"v.{name}") for name, kind in quoted]


def _arrays(columns: Sequence[tuple[str, str]]) -> str:
    """The arrays as rows ``v``; in binary, but for those that a text spells."""
    given = [
        f"%s::{kind}[]" if kind in _NUMBERS else f"%b::{'text' if kind in _BOUND else kind}[]" for _, kind in columns
    ]
    return f"unnest({', '.join(given)}) AS v({', '.join(connection.ops.quote_name(name) for name, _ in columns)})"
