"""Statements with binary results, and the fragments that streams give to be joined into one statement."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson
from django.core.exceptions import EmptyResultSet
from django.db import connection

from apps.access.cursors import binary_cursor

if TYPE_CHECKING:
    from django.db.models import QuerySet


@dataclass(frozen=True, slots=True)
class Fragment:
    """A SELECT with its bound values. Joined by ``union`` when the columns of all parts agree."""

    sql: str
    params: tuple[Any, ...] = ()


def union(parts: Sequence[Fragment]) -> Fragment:
    return Fragment(
        " UNION ALL ".join(f"({part.sql})" for part in parts), tuple(value for part in parts for value in part.params)
    )


def beginning_with(named: Sequence[Fragment], statement: Fragment) -> Fragment:
    """``statement`` with a WITH clause of ``named``, each ``name AS (SELECT …)``; as it is without any."""
    if not named:
        return statement
    sql = f"WITH {', '.join(one.sql for one in named)} {statement.sql}"
    return Fragment(sql, (*(value for one in named for value in one.params), *statement.params))


def numbers_text(values: Iterable[float | str]) -> str:
    """Numbers, or the word NULL, as PostgreSQL writes an array of them: one text is bound many times faster than a list
    of numbers."""
    return "{" + ",".join(map(str, values)) + "}"


REPLY = "kind, language, term, head, data"
"""Columns that all streams answer with: texts, and two values of bytes that hold whole columns of numbers. A row of
the database costs more to hand over than what stands in it.
"""


def fragment_of(rows: QuerySet[Any, Any]) -> Fragment:
    """The SELECT of a queryset as a fragment, without the order that its model has by default: nobody sees it, and
    sorting a store by the names of its documents costs more than a search.
    """
    rows = rows if rows.query.is_sliced else rows.order_by()
    sql, params = rows.query.sql_with_params()
    return Fragment(sql, tuple(params))


def gathered(*lists: QuerySet[Any, Any] | Fragment) -> list[list[dict[str, Any]]]:
    """The rows of several querysets of values or SELECTs, each row by its names, by one statement.

    Values are as JSON has them: ids and times are texts, numbers of any kind are numbers.
    """
    parts: list[str] = []
    params: list[Any] = []
    for place, rows in enumerate(lists):
        with suppress(EmptyResultSet):
            sql, values = (rows.sql, rows.params) if isinstance(rows, Fragment) else rows.query.sql_with_params()
            parts.append(f"SELECT {place}, json_agg(row_to_json(q))::text FROM ({sql}) q")  # noqa: S608 - Django's SQL
            params += values
    found: list[list[dict[str, Any]]] = [[] for _ in lists]
    if parts:
        with connection.cursor() as cursor:
            cursor.execute(" UNION ALL ".join(parts), params)
            for place, told in cursor.fetchall():
                found[place] = orjson.loads(told) if told is not None else []
    return found


def fetch(statement: Fragment, *, prepare: bool = False) -> list[tuple[Any, ...]]:
    """``prepare``: for a statement of few texts whose best plan never depends on its values (never one over vectors:
    a plan for any value takes several times longer there)."""
    with binary_cursor(prepare=prepare) as cursor:
        cursor.execute(statement.sql, list(statement.params))
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows
