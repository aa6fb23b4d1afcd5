"""Grants: who may read or write a source besides its owner, one row for each source and grantee."""

from __future__ import annotations

import datetime
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, Permission
from django.contrib.contenttypes.models import ContentType
from django.db import models, transaction
from django.utils import timezone
from guardian.models.models import GroupObjectPermissionBase, UserObjectPermissionBase

from apps.access import audit, rules
from apps.access.errors import Invalid, NotFound
from apps.access.rules import Level, Right

if TYPE_CHECKING:
    from apps.access.models import User
    from apps.access.sources import Source


class GrantColumns(models.Model):
    """Who granted, when, and whether as administrator; the last is frozen at the time of the grant."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    granted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+", editable=False
    )
    granted_as_admin = models.BooleanField(default=False, editable=False)
    granted_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        abstract = True


class UserGrant(GrantColumns, UserObjectPermissionBase):
    """A grant to a person. Subclasses add ``content_object``, the foreign key to their source."""

    class Meta(UserObjectPermissionBase.Meta):
        abstract = True


class GroupGrant(GrantColumns, GroupObjectPermissionBase):
    """A grant to a group. Subclasses add ``content_object``, the foreign key to their source."""

    class Meta(GroupObjectPermissionBase.Meta):
        abstract = True


@dataclass(frozen=True, slots=True)
class GrantValue:
    """A grant as people read it. ``kind`` is ``user`` or ``group``."""

    kind: str
    name: str
    level: Level
    granted_by: str
    granted_as_admin: bool
    granted_at: datetime.datetime


@transaction.atomic
def grant(*, source: Source, to: User | Group, level: Level | str, by: User) -> GrantValue:
    """Give ``to`` the level on ``source``, in place of what they had.

    Raises NotFound or Forbidden when ``by`` may not manage the source, and Invalid ``grant_not_allowed`` on an
    admin_only source for anything but an administrator's grant to a group.
    """
    held = _locked(source, by)
    level = Level(level)
    to_group = isinstance(to, Group)
    as_admin = rules.is_administrator(by)
    if rules.needs_only_administrator_grants(held.visibility) and not (to_group and as_admin):
        raise Invalid(
            f"{held.label} is open to administrators only: it can be granted to groups, by administrators.",
            code="grant_not_allowed",
            field="user" if not to_group else None,
        )
    rows = rules.group_grant_rows(held) if to_group else rules.user_grant_rows(held)
    grantee = {"group" if to_group else "user": to}
    before = [row.permission.codename for row in rows.filter(**grantee).select_related("permission")]
    rows.filter(**grantee).delete()
    permission = Permission.objects.get(
        content_type=ContentType.objects.get_for_model(type(held)), codename=level.value
    )
    row = rows.create(permission=permission, content_object=held, granted_by=by, granted_as_admin=as_admin, **grantee)
    value = _value(row, "group" if to_group else "user", level)
    audit.record(
        audit.Act.GRANT_MADE,
        by=by,
        target=held,
        before={"grantee": f"{value.kind} {value.name}", "levels": sorted(before)} if before else None,
        after={"grantee": f"{value.kind} {value.name}", "level": level.value, "as_admin": as_admin},
    )
    return value


@transaction.atomic
def revoke(*, source: Source, to: User | Group, by: User) -> None:
    """End what was granted to ``to``. Raises NotFound when there is no such grant, and as ``grant`` does."""
    held = _locked(source, by)
    to_group = isinstance(to, Group)
    rows = rules.group_grant_rows(held) if to_group else rules.user_grant_rows(held)
    kind = "group" if to_group else "user"
    found = list(rows.filter(**{kind: to}).select_related("permission", kind))
    if not found:
        raise NotFound("There is no such grant.")
    rows.filter(pk__in=[row.pk for row in found]).delete()
    audit.record(
        audit.Act.GRANT_ENDED,
        by=by,
        target=held,
        before={
            "grantee": f"{kind} {_name(to)}",
            "levels": sorted(row.permission.codename for row in found),
        },
    )


def grants_of(source: Source) -> list[GrantValue]:
    """The grants on a source, groups first, by name. The caller has made sure that they may be shown."""
    found = [
        _value(row, kind, Level(row.permission.codename))
        for kind, rows in (("group", rules.group_grant_rows(source)), ("user", rules.user_grant_rows(source)))
        for row in rows.select_related(kind, "permission", "granted_by")
    ]
    return sorted(found, key=lambda value: (value.kind, value.name))


def drop_ordinary_grants(source: Source) -> list[dict[str, Any]]:
    """Delete every grant that may not stand on an admin_only source, and return what was deleted for the audit row."""
    dropped: list[dict[str, Any]] = []
    for kind, rows in (
        ("user", rules.user_grant_rows(source)),
        ("group", rules.group_grant_rows(source).filter(granted_as_admin=False)),
    ):
        found = list(rows.select_related(kind, "permission"))
        dropped += [
            {"grantee": f"{kind} {_name(getattr(row, kind))}", "level": row.permission.codename} for row in found
        ]
        rows.filter(pk__in=[row.pk for row in found]).delete()
    return dropped


def drop_all_grants(source: Source) -> None:
    """Delete every grant on a source whose rows are being removed for good."""
    rules.user_grant_rows(source).delete()
    rules.group_grant_rows(source).delete()


def _locked(source: Source, by: User) -> Source:
    """The row of the source, locked, so that a grant and a change of visibility cannot cross."""
    model = type(source)
    model.objects.select_for_update().filter(pk=source.pk).order_by().values_list("pk").first()
    held: Source = model.objects.get_for(by, Right.MANAGE, pk=source.pk)
    return held


def find_grantee(kind: str, name: str) -> User | Group | None:
    """The user or group of this name; None when there is none, or when ``kind`` is neither."""
    found: User | Group | None = None
    if kind == "user":
        found = get_user_model().objects.filter(username=name).first()
    elif kind == "group":
        found = Group.objects.filter(name=name).first()
    return found


def _name(grantee: User | Group) -> str:
    return grantee.name if isinstance(grantee, Group) else grantee.get_username()


def _value(row: Any, kind: str, level: Level) -> GrantValue:
    return GrantValue(
        kind=kind,
        name=_name(getattr(row, kind)),
        level=level,
        granted_by=row.granted_by.get_username() if row.granted_by else "",
        granted_as_admin=row.granted_as_admin,
        granted_at=row.granted_at,
    )
