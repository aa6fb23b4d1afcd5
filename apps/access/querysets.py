"""Reading verbs: every read of a source, and of anything below one, begins with ``visible_to(viewer)``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, cast

from django.core.exceptions import ObjectDoesNotExist, ValidationError
from django.db import models
from django.db.models import Exists, OuterRef, Q

from apps.access import rules
from apps.access.errors import Forbidden, NotFound
from apps.access.rules import Right

if TYPE_CHECKING:
    from apps.access.sources import Source
    from apps.access.viewers import Viewer

M = TypeVar("M", bound=models.Model)
S = TypeVar("S", bound="Source")


class SourceQuerySet(models.QuerySet[S]):
    """Sources, narrowed to what a viewer has a right over. Passing ``None`` as viewer raises TypeError."""

    @classmethod
    def as_manager(cls) -> Any:
        """Untyped: the stubs cannot say that a subclass narrows the manager it inherits."""
        return super().as_manager()

    def visible_to(self, viewer: Viewer) -> Self:
        return self.filter(rules.readable(self.model, viewer))

    def of_evaluation(self, viewer: Viewer) -> Self:
        """Sources that belong to evaluation sets; none, unless a room has such."""
        return self.visible_to(viewer).none()

    def writable_by(self, viewer: Viewer) -> Self:
        return self.filter(rules.writable(self.model, viewer))

    def manageable_by(self, viewer: Viewer) -> Self:
        return self.filter(rules.manageable(self.model, viewer))

    def administrable_by(self, viewer: Viewer) -> Self:
        return self.filter(rules.administrable(self.model, viewer))

    def having(self, right: Right | str, viewer: Viewer) -> Self:
        """By the verb of that right, so that a room that narrows one of them narrows it for all that lies below too."""
        verbs = {
            Right.READ: self.visible_to,
            Right.WRITE: self.writable_by,
            Right.MANAGE: self.manageable_by,
            Right.ADMINISTER: self.administrable_by,
        }
        return verbs[Right(right)](viewer)

    def with_rights(self, viewer: Viewer) -> Self:
        """Adds ``may_write``, ``may_manage`` and ``may_administer``, in the same query."""

        sources: Any = self.model._default_manager

        def held(right: Right) -> Exists:
            return Exists(sources.having(right, viewer).filter(pk=OuterRef("pk")))

        return self.annotate(
            may_write=held(Right.WRITE), may_manage=held(Right.MANAGE), may_administer=held(Right.ADMINISTER)
        )

    def get_for(self, viewer: Viewer, right: Right | str = Right.READ, **lookup: Any) -> S:
        """One source by one scoped query, with its right tested in the same query.

        Raises NotFound when it is absent or hidden, Forbidden when the viewer reads it and has not ``right``.
        """
        rows: models.QuerySet[Any] = self.visible_to(viewer)
        if Right(right) != Right.READ:
            held = self.model._default_manager.filter(pk=OuterRef("pk")).filter(rules.having(right, self.model, viewer))
            rows = rows.annotate(viewer_has_right=Exists(held))
        found: S = first_or_absent(rows, **lookup)
        if not getattr(found, "viewer_has_right", True):
            raise Forbidden
        return found


class ScopedQuerySet(models.QuerySet[M]):
    """Rows below a source. ``scope`` holds the field paths to their sources.

    A row is visible when *every* path leads to a visible source. An inner tuple names alternatives of which a row
    has exactly one (two nullable foreign keys, one per kind of source).
    """

    scope: ClassVar[tuple[str | tuple[str, ...], ...]] = ()

    def visible_to(self, viewer: Viewer) -> Self:
        return self.having(Right.READ, viewer)

    def writable_by(self, viewer: Viewer) -> Self:
        return self.having(Right.WRITE, viewer)

    def manageable_by(self, viewer: Viewer) -> Self:
        return self.having(Right.MANAGE, viewer)

    def having(self, right: Right | str, viewer: Viewer) -> Self:
        if not self.scope:
            raise TypeError(f"{type(self).__name__} names no scope")
        rows = self
        for step in self.scope:
            condition = Q(pk__in=())
            for path in (step,) if isinstance(step, str) else step:
                model = source_at(self.model, path)
                sources = model.objects.having(right, viewer).values("pk")
                condition |= Q(**{f"{path}__in": sources})
            rows = rows.filter(condition)
        return rows

    def get_for(self, viewer: Viewer, right: Right | str = Right.READ, **lookup: Any) -> M:
        """One row by one scoped query. Raises NotFound, or Forbidden when it is readable and ``right`` is missing."""
        rows: models.QuerySet[Any] = self.visible_to(viewer)
        if Right(right) != Right.READ:
            held = self.having(right, viewer).filter(pk=OuterRef("pk"))
            rows = rows.annotate(viewer_has_right=Exists(held.order_by()))
        found: M = first_or_absent(rows, **lookup)
        if not getattr(found, "viewer_has_right", True):
            raise Forbidden
        return found


class SourceKeyQuerySet(models.QuerySet[M]):
    """Rows that know their sources as (kind, id) columns, without foreign key. All keys must be visible.

    An empty kind marks a row of the deployment itself; administrators see those when ``deployment_rows`` is true.
    """

    keys: ClassVar[tuple[tuple[str, str], ...]] = (("source_kind", "source_id"),)
    deployment_rows: ClassVar[bool] = True

    def visible_to(self, viewer: Viewer) -> Self:
        rows = self
        for kind_field, id_field in self.keys:
            rows = rows.filter(rules.readable_keys(viewer, kind_field, id_field, deployment_rows=self.deployment_rows))
        return rows

    def get_for(self, viewer: Viewer, **lookup: Any) -> M:
        return first_or_absent(self.visible_to(viewer), **lookup)


def source_at(model: type[models.Model], path: str) -> type[Source]:
    """The source model at the end of a field path such as ``document__collection``."""
    current: Any = model
    for name in path.split("__"):
        current = current._meta.get_field(name).related_model
    return cast("type[Source]", current)


def first_or_absent(rows: models.QuerySet[M], **lookup: Any) -> M:
    """The one row of ``rows`` that ``lookup`` names. A malformed id is as absent as a hidden one: NotFound."""
    try:
        return rows.get(**lookup)
    except (ObjectDoesNotExist, ValidationError, ValueError):
        raise NotFound from None
