"""Base classes of every admin page: the scope is the portal's, whatever model permissions a staff user holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast

from django.contrib import admin, messages
from django.contrib.admin.filters import RelatedFieldListFilter, RelatedOnlyFieldListFilter
from django.core.exceptions import FieldDoesNotExist
from django.db.models.constants import LOOKUP_SEP
from django.http import Http404

from apps.access import rules
from apps.access.errors import Refusal
from apps.access.rules import Right
from apps.access.viewers import viewer_of

if TYPE_CHECKING:
    from django.db import models
    from django.forms import ModelChoiceField
    from django.http import HttpRequest, HttpResponse

    Base = admin.ModelAdmin[Any]
else:
    Base = admin.ModelAdmin

PLAIN_LOOKUPS = frozenset({"exact", "in", "gt", "gte", "lt", "lte", "isnull", "year", "month", "day", "date"})


class TrailAdmin(Base):
    """What all pages share: no log of Django's own, no bulk deletion, no look into columns that are not offered."""

    actions_on_top = True
    list_per_page = 50
    show_full_result_count = True

    def get_actions(self, request: HttpRequest) -> Any:
        found = super().get_actions(request)
        found.pop("delete_selected", None)
        return found

    def get_ordering(self, request: HttpRequest) -> Any:
        """The order of the model, said aloud: queries that count related rows drop it, and pages of autocomplete then
        repeat and omit rows."""
        return tuple(super().get_ordering(request) or ()) or tuple(self.opts.ordering or ("-pk",))

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Nothing: the audit trail replaces Django's log."""

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Nothing: the audit trail replaces Django's log."""

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        """Nothing: the audit trail replaces Django's log."""

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        raise Http404

    def get_list_filter(self, request: HttpRequest) -> Any:
        """Relations offer what stands in rows that the viewer sees, never the whole related table."""
        return [self._narrow_filter(one) for one in super().get_list_filter(request)]

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        """SECURITY: Django lets anyone filter by any column of the model, so ``?credential__startswith=`` would read
        a column letter by letter that no page shows."""
        offered = {self.date_hierarchy} if self.date_hierarchy else set()
        filters = self.get_list_filter(request) if request is not None else self.list_filter
        for one in filters:
            if isinstance(one, tuple | list):
                offered.add(str(one[0]))
            elif isinstance(one, str):
                offered.add(one)
            elif hasattr(one, "parameter_name"):
                offered.add(str(one.parameter_name))
        path, _, last = lookup.rpartition(LOOKUP_SEP)
        candidates = {lookup} | ({path} if last in PLAIN_LOOKUPS else set())
        candidates |= {one.removesuffix("__id").removesuffix("__pk") for one in set(candidates)}
        return bool(candidates & offered)

    def get_deleted_objects(
        self, objs: Any, request: HttpRequest
    ) -> tuple[list[Any], dict[str, int], set[str], list[str]]:
        """Only what was named: what lies below goes with it, by a job, and may not be listed here."""
        return [str(one) for one in objs], {}, set(), []

    def _narrow_filter(self, one: Any) -> Any:
        name, kind = (one[0], one[1]) if isinstance(one, tuple | list) else (one, None)
        if not isinstance(name, str):
            return one
        if kind is None:
            return (name, RelatedOnlyFieldListFilter) if self._is_relation(name) else one
        if issubclass(kind, RelatedFieldListFilter) and not issubclass(kind, RelatedOnlyFieldListFilter):
            return (name, RelatedOnlyFieldListFilter)
        return one

    def _is_relation(self, path: str) -> bool:
        model: Any = self.model
        field: Any = None
        for name in path.split(LOOKUP_SEP):
            try:
                field = model._meta.get_field(name)
            except FieldDoesNotExist:
                return False
            model = field.related_model or model
        return bool(field is not None and field.is_relation)


class ScopedAdmin(TrailAdmin):
    """A model below sources, or a source itself. Staff see what they may read and change what their rights allow.

    ``change_right`` and ``delete_right`` are over the row's source; None closes the act. ``add_right`` is
    ``administer`` or ``self`` (anyone who may open the admin); None closes it. Deleting calls ``delete_row``.
    """

    add_right: ClassVar[str | None] = None
    change_right: ClassVar[Right | None] = None
    delete_right: ClassVar[Right | None] = None

    def get_queryset(self, request: HttpRequest) -> Any:
        return cast("Any", super().get_queryset(request)).visible_to(viewer_of(request))

    def has_module_permission(self, request: HttpRequest) -> bool:
        return rules.is_staff(viewer_of(request))

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return rules.is_staff(viewer_of(request)) and (obj is None or self._has(request, Right.READ, obj))

    def has_add_permission(self, request: HttpRequest) -> bool:
        if self.add_right is None or not rules.is_staff(viewer_of(request)):
            return False
        return self.add_right == "self" or rules.is_administrator(viewer_of(request))

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._has(request, self.change_right, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._has(request, self.delete_right, obj)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        self.delete_row(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        raise NotImplementedError("rows are deleted one by one, by the function of the page")

    def delete_row(self, request: HttpRequest, obj: Any) -> None:
        """Delete by the same workflow as the portal's page. Overridden where ``delete_right`` is set."""
        raise NotImplementedError

    def formfield_for_foreignkey(
        self, db_field: models.ForeignKey[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> ModelChoiceField[Any] | None:
        kwargs["queryset"] = scoped_choices(db_field, request, kwargs.get("queryset"))
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        kwargs["queryset"] = scoped_choices(db_field, request, kwargs.get("queryset"))
        return super().formfield_for_manytomany(db_field, request, **kwargs)

    def _has(self, request: HttpRequest, right: Right | None, obj: Any) -> bool:
        viewer = viewer_of(request)
        if right is None or not rules.is_staff(viewer):
            return False
        if obj is None or rules.is_administrator(viewer):
            return True
        rows = cast("Any", self.model._default_manager.all())
        if right == Right.READ or not hasattr(rows, "having"):
            return bool(rows.visible_to(viewer).filter(pk=obj.pk).exists())
        return bool(rows.having(right, viewer).filter(pk=obj.pk).exists())


class _NeverEdited:
    """Rows that nobody adds, changes or deletes by hand."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class ReadOnlyAdmin(_NeverEdited, ScopedAdmin):
    """Derived rows, looked at."""


class AdministratorAdmin(TrailAdmin):
    """Pages for administrators alone.

    SECURITY: Django's model permissions do not open them. With them, ``change_user`` would be a way to become
    superuser, and ``change_group`` a way into every private source.
    """

    def has_module_permission(self, request: HttpRequest) -> bool:
        return rules.is_administrator(viewer_of(request))

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return rules.is_administrator(viewer_of(request))

    def has_add_permission(self, request: HttpRequest) -> bool:
        return rules.is_administrator(viewer_of(request))

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return rules.is_administrator(viewer_of(request))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return rules.is_administrator(viewer_of(request))


class AdministratorReadOnlyAdmin(_NeverEdited, AdministratorAdmin):
    """Rows that administrators look at and nobody edits."""


class GrantAdmin(AdministratorReadOnlyAdmin):
    """A grant table of one kind of source; grants are made and ended by the functions of ``grants``."""

    list_display = ("content_object", "grantee", "permission_name", "granted_by", "granted_as_admin", "granted_at")
    list_select_related = ("content_object", "permission", "granted_by")
    list_filter = ("granted_as_admin", "content_object")
    date_hierarchy = "granted_at"

    def get_search_fields(self, request: HttpRequest) -> tuple[str, ...]:
        source = self.model._meta.get_field("content_object").related_model
        return (
            "user__username" if hasattr(self.model, "user") else "group__name",
            f"content_object__{source.label_field}",
        )

    @admin.display(description="granted to")
    def grantee(self, row: Any) -> str:
        return str(getattr(row, "user", None) or row.group)

    @admin.display(description="level")
    def permission_name(self, row: Any) -> str:
        return str(row.permission.codename)

    def get_queryset(self, request: HttpRequest) -> Any:
        kind = "user" if hasattr(self.model, "user") else "group"
        return super().get_queryset(request).select_related(kind)


def scoped_choices(db_field: Any, request: HttpRequest, given: Any = None) -> Any:
    """What a related field may offer: visible rows; of tables without a scope (accounts) all to administrators only."""
    rows = given if given is not None else db_field.remote_field.model._default_manager.all()
    viewer = viewer_of(request)
    if hasattr(rows, "visible_to"):
        return rows.visible_to(viewer)
    return rows if rules.is_administrator(viewer) else rows.none()


def act_on_rows(
    request: HttpRequest, rows: Sequence[Any] | Any, act: Callable[[Any], Any], *, done: str
) -> tuple[int, int]:
    """Run ``act`` on each row and tell the user what came of it; refusals are told row by row, by name.

    ``done`` is the sentence for success, with ``{n}`` and, for the plural, ``{s}``.
    Returns how many were done and refused.
    """
    count = refused = 0
    for row in rows:
        try:
            act(row)
        except Refusal as refusal:
            refused += 1
            messages.error(request, f"{row}: {refusal.message}")
        else:
            count += 1
    if count:
        messages.success(request, done.format(n=count, s="" if count == 1 else "s"))
    return count, refused


__all__ = [
    "AdministratorAdmin",
    "AdministratorReadOnlyAdmin",
    "GrantAdmin",
    "ReadOnlyAdmin",
    "ScopedAdmin",
    "TrailAdmin",
    "act_on_rows",
    "scoped_choices",
]
