"""SQL that is compiled once. Compiling a reading rule anew costs more than a whole search, and a look-up by key several
times what its row costs.

SECURITY: nothing is decided here. The SQL is that of the queryset, made for a stand-in of the same standing, and the
viewer's own key is bound in place of the stand-in's. This holds as long as a rule knows of its viewer no more than the
standing and the key, which a test compares for every persona.
"""

from __future__ import annotations

import datetime
import functools
import uuid
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AnonymousUser, Group
from django.core.exceptions import EmptyResultSet
from django.db import DEFAULT_DB_ALIAS, connection, models
from django.db.models import Q
from django.db.models.base import ModelState
from django.db.models.expressions import RawSQL

from apps.access import rules
from apps.access.registry import source_models
from apps.access.viewers import GroupViewer

if TYPE_CHECKING:
    from apps.access.sources import Source
    from apps.access.viewers import Viewer

M = TypeVar("M", bound=models.Model)
_Key: TypeAlias = tuple[str, tuple[type["Source"], ...]]
"""What a rule is made of besides the viewer's key: the standing, and which kinds of sources there are."""

_USER = uuid.UUID("5ca1ab1e-0000-4000-8000-000000000000")
_GROUP = -1_597_463_007
_STAND_INS = (_USER, _GROUP)
NONE = "SELECT NULL::uuid WHERE false"
MARK_OF_ID = uuid.UUID("5ca1ab1e-0000-4000-8000-000000000001")
AFTER_ID = uuid.UUID("5ca1ab1e-0000-4000-8000-000000000002")
AFTER_NUMBER = -1_597_463_011
AFTER_TEXT = "where the page begins"
AFTER_TIME = datetime.datetime(2000, 2, 3, 4, 5, 6, 7, tzinfo=datetime.UTC)
"""Stand in for the key of a row, and for the values at which a page begins."""
MARK_OF_TEXT = "a text of the call"
MARK_OF_NOW = datetime.datetime(2000, 1, 2, 3, 4, 5, 6, tzinfo=datetime.UTC)
"""Stands in for the moment of a call."""


def readable_ids(model: type[Source], viewer: Viewer, *, evaluation: bool = False) -> tuple[str, tuple[Any, ...]]:
    """A SELECT of the ids of the sources of one kind that ``viewer`` may read (of ``evaluation`` sets, those alone),
    and its values. Raises TypeError for what is no viewer.
    """
    compiled = _ids(model, _standing(viewer), evaluation)
    return compiled.sql or NONE, tuple(compiled.bound(_own_keys(viewer)))


@functools.lru_cache(maxsize=100)
def _ids(model: type[Source], standing: str, evaluation: bool) -> _Compiled:
    rows: Any = model.objects
    if not standing:
        return _compile(rows.none(), ())
    viewer = _stand_in(standing)
    rows = rows.of_evaluation(viewer) if evaluation else rows.visible_to(viewer)
    return _compile(rows.order_by().values("pk"), (), _STAND_INS)


class Rows(Generic[M]):
    """The instances of a queryset that is always asked with other values.

    ``make`` builds the queryset from ``marks``, which stand in for the values of a call: each must be of a value that
    occurs nowhere else in it, and must reach the statement unchanged (``key_among`` for a list). ``related`` names a
    foreign key that is loaded along. ``defer`` is heeded; ``only`` and ``values`` are not for these.
    """

    def __init__(self, make: Callable[..., Any], *marks: Any, related: str = "") -> None:
        self._make, self._marks, self._related = make, marks, related
        self._compiled: _Compiled | None = None

    def all(self, *values: Any) -> list[M]:
        """With ``values`` in place of the marks, in the order of the queryset."""
        if self._compiled is None:
            self._compiled = _compile(self._make(*self._marks), self._marks, related=self._related)
        return self._compiled.all(values)

    def first(self, *values: Any) -> M | None:
        """For querysets of at most one row."""
        return next(iter(self.all(*values)), None)


class ReadableRows(Generic[M]):
    """As ``Rows``, of what a viewer may read: ``make`` takes the viewer before the marks."""

    def __init__(self, make: Callable[..., Any], *marks: Any, related: str = "") -> None:
        self._make, self._marks, self._related = make, marks, related
        self._by_standing: dict[_Key, _Compiled] = {}

    def all(self, viewer: Viewer, *values: Any) -> list[M]:
        """With ``values`` in place of the marks. Raises TypeError for what is no viewer."""
        standing = _standing(viewer)
        if not standing:
            return []
        key = (standing, source_models())
        compiled = self._by_standing.get(key)
        if compiled is None:
            rows = self._make(_stand_in(standing), *self._marks)
            compiled = self._by_standing[key] = _compile(rows, self._marks, _STAND_INS, self._related)
        return compiled.all((*values, *_own_keys(viewer)))

    def first(self, viewer: Viewer, *values: Any) -> M | None:
        """For querysets of at most one row."""
        return next(iter(self.all(viewer, *values)), None)


class ReadablePages(Generic[M]):
    """Pages of what a viewer may read, in the order of fields that are never null, the last of which is unique.

    ``make`` takes the viewer and then the marks; ``after`` are marks for the values of ``order`` at which a page
    begins, of the fields' types.
    """

    def __init__(
        self, make: Callable[..., Any], *marks: Any, order: Sequence[str], after: Sequence[Any], related: str = ""
    ) -> None:
        self._make, self._marks, self._related = make, marks, related
        self.order, self._after = order, after
        self._by_standing: dict[_Key, tuple[_Compiled, _Compiled, _Compiled]] = {}

    def page(
        self, viewer: Viewer, *values: Any, after: Sequence[Any] | None, limit: int
    ) -> tuple[list[M], Callable[[], int]]:
        """At most ``limit`` rows behind the position ``after``, and what counts the whole list."""
        standing = _standing(viewer)
        if not standing:
            return [], lambda: 0
        key = (standing, source_models())
        if key not in self._by_standing:
            self._by_standing[key] = self._compile(_stand_in(standing))
        first, later, counting = self._by_standing[key]
        own = _own_keys(viewer)
        given = (*values, *own)
        rows = first.all(given, limit) if after is None else later.all((*values, *after, *own), limit)
        return rows, lambda: counting.count(given)

    def _compile(self, viewer: Viewer) -> tuple[_Compiled, _Compiled, _Compiled]:
        rows = self._make(viewer, *self._marks)
        ordered = rows.order_by(*self.order)
        later = ordered.filter(beyond(self.order, self._after))
        return (
            _compile(ordered, self._marks, _STAND_INS, self._related),
            _compile(later, (*self._marks, *self._after), _STAND_INS, self._related),
            _compile(rows.order_by().values("pk"), (), (*self._marks, *_STAND_INS)),
        )


def beyond(order: Sequence[str], after: Sequence[Any]) -> Q:
    """The rows behind the position ``after`` in the order of these fields."""
    condition = Q(pk__in=())
    same = Q()
    for name, value in zip(order, after, strict=True):
        field = name.lstrip("-")
        step = "lt" if name.startswith("-") else "gt"
        condition |= same & Q(**{f"{field}__{step}": value})
        same &= Q(**{field: value})
    return condition


def key_among(mark: Any) -> Q:
    """The rows whose UUID key is in the list that takes the place of ``mark``."""
    return Q(pk__in=RawSQL("SELECT unnest(%s::uuid[])", [mark]))


@dataclass(frozen=True, slots=True)
class _Table:
    """How the columns of one model become its instance."""

    model: type[models.Model]
    names: tuple[str, ...]
    converted: tuple[tuple[int, Any], ...]

    def instance(self, values: Sequence[Any]) -> Any:
        if self.converted:
            values = list(values)
            for place, field in self.converted:
                values[place] = field.from_db_value(values[place], field.cached_col, connection)
        # As ``from_db`` leaves it, without the work of ``__init__`` for rows that a person made: half of a list's time.
        made = self.model.__new__(self.model)
        made.__dict__.update(zip(self.names, values, strict=True))
        state = made._state = ModelState()
        state.adding, state.db = False, DEFAULT_DB_ALIAS
        return made


@dataclass(frozen=True, slots=True)
class _Compiled:
    """``holes`` are the places among ``params`` that take a value of the call, each with which one."""

    sql: str
    params: tuple[Any, ...]
    holes: tuple[tuple[int, int], ...]
    table: _Table
    annotations: tuple[str, ...]
    joined: tuple[models.Field[Any, Any], _Table] | None

    def all(self, values: Sequence[Any], limit: int | None = None) -> list[Any]:
        if not self.sql:
            return []
        with connection.cursor() as cursor:
            if limit is None:
                cursor.execute(self.sql, self.bound(values))
            else:
                cursor.execute(f"{self.sql} LIMIT %s", [*self.bound(values), limit])
            joined: dict[Any, Any] = {None: None}
            return [self._instance(row, joined) for row in cursor.fetchall()]

    def count(self, values: Sequence[Any]) -> int:
        """How many rows there are, without making them."""
        if not self.sql:
            return 0
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT COUNT(*) FROM ({self.sql}) AS counted", self.bound(values))  # noqa: S608 - own SQL
            return int(cursor.fetchone()[0])

    def bound(self, values: Sequence[Any]) -> list[Any]:
        """The values of the statement, with those of a call in the places of the marks."""
        given = list(self.params)
        for place, number in self.holes:
            given[place] = values[number]
        return given

    def _instance(self, row: Sequence[Any], joined: dict[Any, Any]) -> Any:
        width = len(self.table.names)
        found = self.table.instance(row[:width])
        for place, name in enumerate(self.annotations, width):
            setattr(found, name, row[place])
        if self.joined is not None:
            field: Any = self.joined[0]
            key = getattr(found, field.attname)
            if key not in joined:
                joined[key] = self.joined[1].instance(row[width + len(self.annotations) :])
            field.set_cached_value(found, joined[key])
        return found


def _compile(
    rows: models.QuerySet[Any], needed: Sequence[Any], optional: Sequence[Any] = (), related: str = ""
) -> _Compiled:
    """Raises TypeError when a needed mark did not reach the statement: a value of a call would be lost."""
    marks = (*needed, *optional)
    table = _table(rows.model, rows.query.deferred_loading[0])
    joined = None
    if related:
        key: Any = rows.model._meta.get_field(related)
        joined = (key, _table(key.related_model))
        rows = rows.select_related(related)
    annotations = tuple(rows.query.annotations)
    try:
        sql, params = rows.query.sql_with_params()
    except EmptyResultSet:
        return _Compiled("", (), (), table, (), None)
    holes = tuple((place, marks.index(value)) for place, value in enumerate(params) if value in marks)
    if lost := set(range(len(needed))) - {number for _, number in holes}:
        raise TypeError(f"not in the statement: {[needed[number] for number in lost]}")
    return _Compiled(sql, tuple(params), holes, table, annotations, joined)


def _table(model: type[models.Model], deferred: Collection[str] = ()) -> _Table:
    fields = [field for field in model._meta.concrete_fields if field.name not in deferred]
    converted = tuple((place, field) for place, field in enumerate(fields) if hasattr(field, "from_db_value"))
    return _Table(model, tuple(field.attname for field in fields), converted)


def _standing(viewer: Viewer) -> str:
    """All that a reading rule knows of a viewer besides the key. Raises TypeError for what is no viewer."""
    if isinstance(viewer, GroupViewer):
        return "group"
    if rules.is_administrator(viewer):
        return "administrator"
    if rules.is_signed_in(viewer):
        return "person"
    return "anybody" if rules.may_look_around(viewer) else ""


def _own_keys(viewer: Viewer) -> tuple[Any, Any]:
    """What takes the places of the two stand-ins."""
    return (None, viewer.group.pk) if isinstance(viewer, GroupViewer) else (viewer.pk, None)


def _stand_in(standing: str) -> Viewer:
    if standing == "group":
        return GroupViewer(Group(pk=_GROUP))
    if standing == "anybody":
        return AnonymousUser()
    user: Any = get_user_model()(pk=_USER, is_active=True, is_superuser=standing == "administrator")
    return user  # type: ignore[no-any-return]
