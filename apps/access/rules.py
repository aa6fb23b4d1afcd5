"""Who may see and do what. This is the only file that compares a visibility, reads a grant table or tests the flags
of a user for data; a test looks for offenders.

============  =========================================================================================
public        every signed-in user; anonymous too while ``COGRAPH_PUBLIC_READ`` is on
private       the owner, users and groups with a grant, administrators
admin_only    administrators, and groups to which an administrator granted it; the owner has no standing
============  =========================================================================================

Model-wide permissions open no row, an inactive user has no rights at all, and a deleted source is nobody's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractUser, AnonymousUser, Group
from django.db import models
from django.db.models import Q

from apps.access.registry import entry_of, source_entries
from apps.access.viewers import GroupViewer

if TYPE_CHECKING:
    from apps.access.models import User
    from apps.access.sources import Source
    from apps.access.viewers import Viewer


class Visibility(models.TextChoices):
    PUBLIC = "public", "Public"
    PRIVATE = "private", "Private"
    ADMIN_ONLY = "admin_only", "Administrators only"


class Level(models.TextChoices):
    """What a grant gives; write includes read."""

    READ = "read", "Read"
    WRITE = "write", "Write"


class Right(models.TextChoices):
    """Steps of power over one source, each of which includes the ones before it."""

    READ = "read", "Read"
    WRITE = "write", "Write"
    MANAGE = "manage", "Manage"
    ADMINISTER = "administer", "Administer"


NOBODY = Q(pk__in=())
LIVE = Q(deleted_at__isnull=True)


def is_administrator(viewer: Viewer) -> bool:
    """True for an active superuser. A group viewer never is one."""
    return isinstance(viewer, AbstractUser) and viewer.is_active and viewer.is_superuser


def system_viewer() -> User:
    """The server itself, who reads every live source: for work whose result no reader is shown but through his own
    scope. SECURITY: never the viewer of an answer."""
    return get_user_model()(is_active=True, is_superuser=True)


def is_staff(viewer: Viewer) -> bool:
    """True for those who may open the admin, which gives them no row."""
    return isinstance(viewer, AbstractUser) and viewer.is_active and viewer.is_staff


def is_signed_in(viewer: Viewer) -> bool:
    """True for an active user and for a group viewer; raises TypeError for what is no viewer."""
    if isinstance(viewer, GroupViewer):
        return True
    return isinstance(_checked(viewer), AbstractUser) and viewer.is_active


def may_look_around(viewer: Viewer) -> bool:
    """Whether any page opens for this viewer: signed in, or anonymous where public reading is allowed."""
    return is_signed_in(viewer) or (isinstance(viewer, AnonymousUser) and settings.COGRAPH.public_read)


def readable(model: type[Source], viewer: Viewer) -> Q:
    """The rows of a source model that ``viewer`` may read. ``None`` as viewer raises: there is no open door."""
    if not is_signed_in(viewer):
        return LIVE & Q(visibility=Visibility.PUBLIC) if may_look_around(viewer) else NOBODY
    if is_administrator(viewer):
        return LIVE
    public = Q(visibility=Visibility.PUBLIC)
    return LIVE & (public | _by_standing(viewer) | _by_grant(model, viewer, (Level.READ, Level.WRITE)))


def writable(model: type[Source], viewer: Viewer) -> Q:
    """The rows that ``viewer`` may change the content of."""
    if not is_signed_in(viewer):
        return NOBODY
    if is_administrator(viewer):
        return LIVE
    return LIVE & (_by_standing(viewer, public_too=True) | _by_grant(model, viewer, (Level.WRITE,)))


def manageable(model: type[Source], viewer: Viewer) -> Q:
    """The rows whose grants and name are in ``viewer``'s hands: the owner's unless admin_only, and administrators'."""
    if not is_signed_in(viewer):
        return NOBODY
    if is_administrator(viewer):
        return LIVE
    return LIVE & _by_standing(viewer, public_too=True)


def administrable(model: type[Source], viewer: Viewer) -> Q:
    return LIVE if is_administrator(viewer) else NOBODY


def having(right: Right | str, model: type[Source], viewer: Viewer) -> Q:
    """The rows of ``model`` over which ``viewer`` has ``right``."""
    _checked(viewer)
    return {
        Right.READ: readable,
        Right.WRITE: writable,
        Right.MANAGE: manageable,
        Right.ADMINISTER: administrable,
    }[Right(right)](model, viewer)


def readable_keys(viewer: Viewer, kind_field: str, id_field: str, *, deployment_rows: bool) -> Q:
    """The same rule for rows that know their source as (kind, id) columns.

    Rows without a source belong to the deployment; with ``deployment_rows`` administrators see them.
    """
    found = NOBODY
    for entry in source_entries():
        visible = entry.model.objects.visible_to(viewer).values("pk")
        found |= Q(**{kind_field: entry.model.kind, f"{id_field}__in": visible})
    if deployment_rows and is_administrator(viewer):
        found |= Q(**{kind_field: ""})
    return found


def visibility_right(source: Source, new: str) -> Right:
    """What it takes to give ``source`` the visibility ``new``; to and from admin_only only administrators go."""
    if Visibility.ADMIN_ONLY in (source.visibility, new):
        return Right.ADMINISTER
    return source.visibility_right


def needs_only_administrator_grants(visibility: str) -> bool:
    """Whether only grants to groups, made by administrators, may stand on a source of this visibility."""
    return visibility == Visibility.ADMIN_ONLY


def is_public(source: Source) -> bool:
    return source.visibility == Visibility.PUBLIC


def group_grant_rows(source: Source) -> models.QuerySet[Any]:
    """The group grants of one source, for ``grants.py``."""
    return _rows(entry_of(type(source)).group_grants).filter(content_object=source.pk)


def user_grant_rows(source: Source) -> models.QuerySet[Any]:
    """The grants to persons on one source, for ``grants.py``."""
    return _rows(entry_of(type(source)).user_grants).filter(content_object=source.pk)


def grants_to(grantee: AbstractUser | Group) -> list[dict[str, str]]:
    """Every grant to one person or group, as the audit trail lists what ends with them."""
    found = []
    for entry in source_entries():
        to_group = isinstance(grantee, Group)
        rows = _rows(entry.group_grants if to_group else entry.user_grants)
        rows = rows.filter(**{"group" if to_group else "user": grantee.pk})
        found += [
            {"source": f"{entry.model.kind} {row.content_object.label}", "level": row.permission.codename}
            for row in rows.select_related("content_object", "permission")
        ]
    return found


def _checked(viewer: Viewer) -> Viewer:
    if not isinstance(viewer, AbstractUser | AnonymousUser | GroupViewer):
        raise TypeError(f"a read needs a viewer, not {viewer!r}")
    return viewer


def _by_standing(viewer: Viewer, *, public_too: bool = False) -> Q:
    """What belongs to the viewer; an owner has no standing on an admin_only source."""
    if not isinstance(viewer, AbstractUser):
        return NOBODY
    visibilities = [Visibility.PRIVATE, Visibility.PUBLIC] if public_too else [Visibility.PRIVATE]
    return Q(owner=viewer.pk, visibility__in=visibilities)


def _by_grant(model: type[Source], viewer: Viewer, levels: tuple[Level, ...]) -> Q:
    """What was granted, in person or to a group. On admin_only sources only administrators' grants to groups count."""
    entry = entry_of(model)
    to_groups = _rows(entry.group_grants).filter(permission__codename__in=levels)
    if isinstance(viewer, GroupViewer):
        to_groups = to_groups.filter(group=viewer.group.pk)
        to_user = NOBODY
    else:
        to_groups = to_groups.filter(group__user=cast("Any", viewer).pk)
        granted = _rows(entry.user_grants).filter(permission__codename__in=levels, user=cast("Any", viewer).pk)
        to_user = Q(pk__in=granted.values("content_object"))
    open_to_grants = Q(visibility__in=[Visibility.PRIVATE, Visibility.PUBLIC])
    by_administrator = to_groups.filter(granted_as_admin=True)
    return (open_to_grants & (to_user | Q(pk__in=to_groups.values("content_object")))) | (
        Q(visibility=Visibility.ADMIN_ONLY) & Q(pk__in=by_administrator.values("content_object"))
    )


def _rows(model: type[models.Model]) -> models.QuerySet[Any]:
    return model._default_manager.all()
