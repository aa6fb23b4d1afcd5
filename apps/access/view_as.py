"""View as: an administrator sees the portal with the eyes of a user, of a group's member, or of anonymous.

Reading only. It ends at sign-out, after 30 minutes, and when the administrator is one no longer.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.contrib.auth.models import AnonymousUser, Group
from django.db import transaction
from django.utils import timezone

from apps.access import audit, rules
from apps.access.errors import Forbidden, NotFound
from apps.access.models import User
from apps.access.querysets import first_or_absent
from apps.access.viewers import GroupViewer

if TYPE_CHECKING:
    from django.db import models
    from django.http import HttpRequest

    from apps.access.viewers import Viewer

LASTS = datetime.timedelta(minutes=30)
STOP_PATH = "/view-as/stop"
CLOSED_PREFIXES = ("/admin", "/account", "/connect", "/api/me", "/api/query-logs", "/api/audit")
"""Pages of the administrator himself, which tell nothing about what somebody else sees."""

READING = ("GET", "HEAD")
ANONYMOUS_CLOSED = "Anonymous is sent to sign in: public reading is off."

_KEY = "_view_as"
_counted: list[type[models.Model]] = []


@dataclass(frozen=True, slots=True)
class ViewedAs:
    """Whom an administrator is seeing the portal as. ``kind`` is ``user``, ``group`` or ``anonymous``."""

    kind: str
    name: str
    viewer: Viewer
    until: datetime.datetime
    administrator: User

    @property
    def sentence(self) -> str:
        """The banner, on every page."""
        who = {"user": self.name, "group": f"a member of {self.name}", "anonymous": "anonymous"}[self.kind]
        if self.is_closed_out:
            return f"You view the portal as {who}. {ANONYMOUS_CLOSED}"
        seen, whole = documents_in_sight(self.viewer), documents_in_sight(self.administrator)
        return f"You view the portal as {who}: they see {seen} of {whole} documents."

    @property
    def is_closed_out(self) -> bool:
        """Whether no page would open for this viewer."""
        return not rules.may_look_around(self.viewer)

    @property
    def stop_path(self) -> str:
        return STOP_PATH


def register_documents(model: type[models.Model]) -> None:
    """Count the rows of ``model`` in the banner; rooms register their documents in ``AppConfig.ready``."""
    if model not in _counted:
        _counted.append(model)


def documents_in_sight(viewer: Viewer) -> int:
    rows: list[Any] = [model._default_manager.all() for model in _counted]
    return sum(one.visible_to(viewer).count() for one in rows)


@transaction.atomic
def begin(request: HttpRequest, *, kind: str, name: str = "") -> ViewedAs:
    """Begin to see the portal as the user or group called ``name``, or as anonymous.

    Raises Forbidden for everyone but administrators, NotFound for a name that is nobody's.
    """
    by = _administrator(request)
    if by is None:
        raise Forbidden("Only administrators view the portal as somebody else.")
    if _KEY in request.session:
        end(request)
    until = timezone.now() + LASTS
    if kind == "user":
        target: User | Group | None = first_or_absent(User.objects.filter(is_active=True), username=name)
    elif kind == "group":
        target = first_or_absent(Group.objects.all(), name=name)
    elif kind == "anonymous":
        target = None
    else:
        raise NotFound
    request.session[_KEY] = {"kind": kind, "id": str(target.pk) if target else "", "until": until.timestamp()}
    begun = current(request)
    if begun is None:
        raise NotFound
    audit.record(audit.Act.VIEW_AS_BEGUN, by=by, target=target, after={"kind": kind, "name": begun.name})
    return begun


@transaction.atomic
def end(request: HttpRequest) -> None:
    """Stop it. Doing so twice is no error."""
    held = request.session.pop(_KEY, None)
    if held is None:
        return
    by = request.user if request.user.is_authenticated else None
    found = _resolved(held)
    audit.record(
        audit.Act.VIEW_AS_ENDED,
        by=by,
        target=("", held["id"], found[0] if found else ""),
        before={"kind": held["kind"], "name": found[0] if found else ""},
    )


def current(request: HttpRequest) -> ViewedAs | None:
    """Whom this request views the portal as. What has run out, or belongs to nobody any more, ends here."""
    held = request.session.get(_KEY)
    if held is None:
        return None
    by = _administrator(request)
    found = _resolved(held)
    until = datetime.datetime.fromtimestamp(held["until"], tz=datetime.UTC)
    if by is None or found is None or until <= timezone.now():
        end(request)
        return None
    name, viewer = found
    return ViewedAs(held["kind"], name, viewer, until, by)


def is_closed(path: str) -> bool:
    """Whether an address is shut meanwhile."""
    return path.startswith(CLOSED_PREFIXES)


def _administrator(request: HttpRequest) -> User | None:
    user = request.user
    return user if user.is_authenticated and rules.is_administrator(user) else None


def _resolved(held: dict[str, Any]) -> tuple[str, Viewer] | None:
    if held["kind"] == "anonymous":
        return "anonymous", AnonymousUser()
    if held["kind"] == "group":
        group = Group.objects.filter(pk=held["id"]).first()
        return (group.name, GroupViewer(group)) if group else None
    user = User.objects.filter(pk=held["id"], is_active=True).first()
    return (user.get_username(), user) if user else None
