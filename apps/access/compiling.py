"""A queryset as text with holes for the values of a call, and its rows as instances without the ORM's work for each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from django.core.exceptions import EmptyResultSet
from django.db import DEFAULT_DB_ALIAS, connection, models
from django.db.models.base import ModelState

from apps.access.cursors import prepared_cursor

M = TypeVar("M", bound=models.Model)


def as_stored(model: type[M], values: Iterable[tuple[str, Any]]) -> M:
    """A row by the attributes of its fields, as ``from_db`` leaves it, without the work of ``__init__`` for rows that a
    person made: half of a list's time."""
    one = model.__new__(model)
    one.__dict__.update(values)
    state = one._state = ModelState()
    state.adding, state.db = False, DEFAULT_DB_ALIAS
    return one


@dataclass(frozen=True, slots=True)
class Table:
    """How columns of a row, from ``first`` on, become an instance of one model."""

    model: type[models.Model]
    first: int
    names: tuple[str, ...]
    converted: tuple[tuple[int, Any], ...]
    joined: tuple[tuple[Any, Table], ...]
    """Foreign keys that are selected along, each with how its own instance is made."""

    def instance(self, row: Sequence[Any], made: dict[tuple[int, Any], Any]) -> Any:
        """``made`` keeps the joined instances of one answer, so that each is made once."""
        values = row[self.first : self.first + len(self.names)]
        if self.converted:
            values = list(values)
            for place, field in self.converted:
                values[place] = field.from_db_value(values[place], field.cached_col, connection)
        one: Any = as_stored(self.model, zip(self.names, values, strict=True))
        for field, table in self.joined:
            key = getattr(one, field.attname)
            other = None if key is None else made.get((table.first, key))
            if other is None and key is not None:
                other = made[table.first, key] = table.instance(row, made)
            field.set_cached_value(one, other)
        return one


@dataclass(frozen=True, slots=True)
class Compiled:
    """``holes`` are the places among ``params`` that take a value of the call, each with which one."""

    sql: str
    params: tuple[Any, ...]
    holes: tuple[tuple[int, int], ...]
    table: Table | None
    annotations: tuple[tuple[str, int], ...]

    def all(self, values: Sequence[Any], limit: int | None = None, offset: int = 0) -> list[Any]:
        """The instances, in the order of the queryset; ``offset`` of them left out when there is a limit."""
        if not self.sql:
            return []
        with prepared_cursor() as cursor:
            if limit is None:
                cursor.execute(self.sql, self.bound(values))
            else:
                cursor.execute(f"{self.sql} LIMIT %s OFFSET %s", [*self.bound(values), limit, offset])
            made: dict[tuple[int, Any], Any] = {}
            return [self._instance(row, made) for row in cursor.fetchall()]

    def tuples(self, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """The rows as the database has them, for querysets of values."""
        if not self.sql:
            return []
        with prepared_cursor() as cursor:
            cursor.execute(self.sql, self.bound(values))
            return list(cursor.fetchall())

    def count(self, values: Sequence[Any]) -> int:
        """How many rows there are, without making them."""
        if not self.sql:
            return 0
        with prepared_cursor() as cursor:
            cursor.execute(f"SELECT COUNT(*) FROM ({self.sql}) AS counted", self.bound(values))  # noqa: S608 - own SQL
            return int(cursor.fetchone()[0])

    def bound(self, values: Sequence[Any]) -> list[Any]:
        """The values of the statement, with those of a call in the places of the marks."""
        given = list(self.params)
        for place, number in self.holes:
            given[place] = values[number]
        return given

    def _instance(self, row: Sequence[Any], made: dict[tuple[int, Any], Any]) -> Any:
        assert self.table is not None, "a queryset of values makes no instances"  # noqa: S101
        found = self.table.instance(row, made)
        for name, place in self.annotations:
            setattr(found, name, row[place])
        return found


def compile_rows(rows: models.QuerySet[Any], needed: Sequence[Any], optional: Sequence[Any] = ()) -> Compiled:
    """``needed`` and ``optional`` are the marks, numbered through. Raises TypeError when a needed mark did not reach
    the statement: a value of a call would be lost."""
    marks = (*needed, *optional)
    compiler: Any = rows.query.get_compiler(DEFAULT_DB_ALIAS)
    try:
        sql, params = compiler.as_sql()
    except EmptyResultSet:
        return Compiled("", (), (), None, ())
    holes = tuple((place, marks.index(value)) for place, value in enumerate(params) if value in marks)
    if lost := set(range(len(needed))) - {number for _, number in holes}:
        raise TypeError(f"not in the statement: {[needed[number] for number in lost]}")
    table = _table(compiler.klass_info, compiler.select) if compiler.klass_info else None
    return Compiled(sql, tuple(params), holes, table, tuple(compiler.annotation_col_map.items()) if table else ())


def _table(info: Mapping[str, Any], select: Sequence[Any]) -> Table:
    """From what the compiler knows of the instances that its columns make."""
    fields = [select[place][0].target for place in info["select_fields"]]
    joined = []
    for other in info.get("related_klass_infos", ()):
        if other["reverse"]:
            raise TypeError(f"selected along against its direction: {other['field']}")
        joined.append((other["field"], _table(other, select)))
    converted = tuple((place, field) for place, field in enumerate(fields) if hasattr(field, "from_db_value"))
    names = tuple(field.attname for field in fields)
    return Table(info["model"], info["select_fields"][0], names, converted, tuple(joined))
