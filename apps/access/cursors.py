"""Cursors whose values are bound by the server, with statements that are parsed and planned once for each connection.

Django spells the values into the text of each statement, so that every one is parsed and planned anew. That is right
where the best plan depends on the values, and most of the cost where it does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import psycopg
from django.db import connection
from django.db.backends.postgresql.base import ServerBindingCursor


class _Prepared(cast("Any", ServerBindingCursor)):  # type: ignore[misc]
    """Parsed and planned once for each connection."""

    def execute(self, query: Any, params: Any = None) -> Any:
        # Django turns preparing off for the whole connection, and the driver then never prepares.
        self.connection.prepare_threshold, before = 0, self.connection.prepare_threshold
        try:
            return super().execute(query, params, prepare=True)
        finally:
            self.connection.prepare_threshold = before

    def _convert_query(self, query: Any, params: Any = None) -> Any:
        # The driver forgets the text of what it prepares, and Django's log of queries asks for it.
        self._query = super()._convert_query(query, params)
        return self._query


@contextmanager
def binary_cursor(*, prepare: bool = False) -> Iterator[Any]:
    """A cursor with values bound by the server and results in binary: arrays and bytes arrive without being spelled
    out. It takes Django's own wrapper, so that its statements are logged and counted like all others.
    """
    with _bound_cursor(prepare, psycopg.pq.Format.BINARY) as cursor:
        yield cursor


@contextmanager
def prepared_cursor() -> Iterator[Any]:
    """A cursor for statements of few texts whose best plan never depends on their values; results as Django reads
    them."""
    with _bound_cursor(True, psycopg.pq.Format.TEXT) as cursor:
        yield cursor


@contextmanager
def _bound_cursor(prepare: bool, results: psycopg.pq.Format) -> Iterator[Any]:
    connection.ensure_connection()
    raw: Any = (_Prepared if prepare else cast("Any", ServerBindingCursor))(connection.connection)
    raw.format = results
    wrapped = connection.make_debug_cursor(raw) if connection.queries_logged else connection.make_cursor(raw)
    with wrapped as cursor:
        yield cursor
