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
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, cast

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AnonymousUser, Group
from django.db import connection, models
from django.db.models import BooleanField, F, Func, Q
from django.db.models.expressions import RawSQL

from apps.access import rules
from apps.access.compiling import Compiled, Table, compile_rows
from apps.access.registry import source_models
from apps.access.viewers import GroupViewer

if TYPE_CHECKING:
    from apps.access.sources import Source
    from apps.access.viewers import Viewer

M = TypeVar("M", bound=models.Model)
T = TypeVar("T")
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
def _ids(model: type[Source], standing: str, evaluation: bool) -> Compiled:
    rows: Any = model.objects
    if not standing:
        return compile_rows(rows.none(), ())
    viewer = _stand_in(standing)
    rows = rows.of_evaluation(viewer) if evaluation else rows.visible_to(viewer)
    return compile_rows(rows.order_by().values("pk"), (), _STAND_INS)


class Rows(Generic[M]):
    """The instances of a queryset that is always asked with other values.

    ``make`` builds the queryset from ``marks``, which stand in for the values of a call: each must be of a value that
    occurs nowhere else in it, and must reach the statement unchanged (``among`` for a list of keys). Foreign keys that
    the queryset selects along, ``defer`` and ``only`` are heeded; ``values`` is not for these.
    """

    def __init__(self, make: Callable[..., Any], *marks: Any) -> None:
        self._make, self._marks = make, marks
        self._compiled: Compiled | None = None

    def all(self, *values: Any) -> list[M]:
        """With ``values`` in place of the marks, in the order of the queryset."""
        if self._compiled is None:
            self._compiled = compile_rows(self._make(*self._marks), self._marks)
        return self._compiled.all(values)

    def first(self, *values: Any) -> M | None:
        """For querysets of at most one row."""
        return next(iter(self.all(*values)), None)


class Returned(Generic[M]):
    """The instances of what a statement of one's own returns, which is all columns of one table."""

    def __init__(self, model: type[M]) -> None:
        self._model = model

    @functools.cached_property
    def _table(self) -> Table:
        table = compile_rows(self._model._default_manager.order_by(), ()).table
        assert table is not None, "no queryset of values"  # noqa: S101
        return table

    @functools.cached_property
    def columns(self) -> str:
        """What the statement returns."""
        fields: list[Any] = [self._model._meta.get_field(name) for name in self._table.names]
        return ", ".join(connection.ops.quote_name(field.column) for field in fields)

    def one(self, row: Sequence[Any] | None) -> M | None:
        """None for no row."""
        return None if row is None else cast("M", self._table.instance(row, {}))


class _ByStanding(Generic[T]):
    """What is compiled for each standing and set of kinds of sources, when it is asked for first."""

    def __init__(self, make: Callable[[Viewer], T]) -> None:
        self._make = make
        self._made: dict[_Key, T] = {}

    def of(self, viewer: Viewer) -> T | None:
        """None for who may see nothing at all. Raises TypeError for what is no viewer."""
        standing = _standing(viewer)
        if not standing:
            return None
        key = (standing, source_models())
        if key not in self._made:
            self._made[key] = self._make(_stand_in(standing))
        return self._made[key]


class ReadableRows(Generic[M]):
    """As ``Rows``, of what a viewer may read: ``make`` takes the viewer before the marks."""

    def __init__(self, make: Callable[..., Any], *marks: Any) -> None:
        self._compiled = _ByStanding(lambda viewer: compile_rows(make(viewer, *marks), marks, _STAND_INS))

    def all(self, viewer: Viewer, *values: Any) -> list[M]:
        """With ``values`` in place of the marks. Raises TypeError for what is no viewer."""
        compiled = self._compiled.of(viewer)
        return compiled.all((*values, *_own_keys(viewer))) if compiled is not None else []

    def first(self, viewer: Viewer, *values: Any) -> M | None:
        """For querysets of at most one row."""
        return next(iter(self.all(viewer, *values)), None)


class ReadableValues:
    """As ``ReadableRows``, for querysets of values that the driver already gives as they are wanted: numbers, texts."""

    def __init__(self, make: Callable[..., Any], *marks: Any) -> None:
        self._compiled = _ByStanding(lambda viewer: compile_rows(make(viewer, *marks), marks, _STAND_INS))

    def all(self, viewer: Viewer, *values: Any) -> list[tuple[Any, ...]]:
        """With ``values`` in place of the marks. Raises TypeError for what is no viewer."""
        compiled = self._compiled.of(viewer)
        return compiled.tuples((*values, *_own_keys(viewer))) if compiled is not None else []


class ReadableList(Generic[M]):
    """A whole ordered list of what a viewer may read, for numbered pages: it is cut and counted like a queryset.

    ``make`` takes the viewer and then the marks.
    """

    def __init__(self, make: Callable[..., Any], *marks: Any) -> None:
        self._make, self._marks = make, marks
        self._compiled = _ByStanding(self._compile)

    def of(self, viewer: Viewer, *values: Any) -> CutList[M]:
        """With ``values`` in place of the marks. Raises TypeError for what is no viewer."""
        return CutList(self._compiled.of(viewer), (*values, *_own_keys(viewer)))

    def _compile(self, viewer: Viewer) -> tuple[Compiled, Compiled]:
        rows = self._make(viewer, *self._marks)
        return (
            compile_rows(rows, self._marks, _STAND_INS),
            compile_rows(rows.order_by().values("pk"), (), (*self._marks, *_STAND_INS)),
        )


class CutList(Generic[M]):
    """What a paginator asks for."""

    def __init__(self, compiled: tuple[Compiled, Compiled] | None, values: Sequence[Any]) -> None:
        self._compiled, self._values = compiled, values

    def __getitem__(self, cut: slice) -> list[M]:
        start = cut.start or 0
        return self._compiled[0].all(self._values, cut.stop - start, start) if self._compiled is not None else []

    def count(self) -> int:
        return self._compiled[1].count(self._values) if self._compiled is not None else 0

    def __len__(self) -> int:
        return self.count()


class ReadablePages(Generic[M]):
    """Pages of what a viewer may read, in the order of fields that are never null, the last of which is unique.

    ``make`` takes the viewer and then the marks; ``after`` are marks for the values of ``order`` at which a page
    begins, of the fields' types.
    """

    def __init__(self, make: Callable[..., Any], *marks: Any, order: Sequence[str], after: Sequence[Any]) -> None:
        self._make, self._marks = make, marks
        self.order, self._after = order, after
        self._compiled = _ByStanding(self._compile)

    def page(
        self, viewer: Viewer, *values: Any, after: Sequence[Any] | None, limit: int
    ) -> tuple[list[M], Callable[[], int]]:
        """At most ``limit`` rows behind the position ``after``, and what counts the whole list."""
        compiled = self._compiled.of(viewer)
        if compiled is None:
            return [], lambda: 0
        first, later, counting = compiled
        own = _own_keys(viewer)
        given = (*values, *own)
        rows = first.all(given, limit) if after is None else later.all((*values, *after, *own), limit)
        return rows, lambda: counting.count(given)

    def _compile(self, viewer: Viewer) -> tuple[Compiled, Compiled, Compiled]:
        rows = self._make(viewer, *self._marks)
        ordered = rows.order_by(*self.order)
        later = ordered.filter(beyond(self.order, self._after))
        return (
            compile_rows(ordered, self._marks, _STAND_INS),
            compile_rows(later, (*self._marks, *self._after), _STAND_INS),
            compile_rows(rows.order_by().values("pk"), (), (*self._marks, *_STAND_INS)),
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


def among(field: str, mark: Any) -> Q:
    """The rows whose UUID ``field`` is in the list that takes the place of ``mark``. One value, however long the list
    is, and an index finds each: a sub-select beside an OR would be compared with every row."""
    listed = RawSQL("%s::uuid[]", [mark])
    return Q(Func(F(field), listed, template="(%(expressions)s))", arg_joiner=" = ANY(", output_field=BooleanField()))


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
