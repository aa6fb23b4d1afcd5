"""Who is looking: the values that every scoped read takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, cast

from django.contrib.auth.models import AnonymousUser, Group

if TYPE_CHECKING:
    from django.http import HttpRequest

    from apps.access.models import User


@dataclass(frozen=True, slots=True)
class GroupViewer:
    """A signed-in member of one group who is nothing else: no owner, no personal grant, no flag."""

    group: Group


Viewer: TypeAlias = "User | AnonymousUser | GroupViewer"


def viewer_of(request: HttpRequest) -> Viewer:
    """The viewer whose eyes a page must use: the signed-in user, or whom an administrator views the portal as."""
    viewer = getattr(request, "viewer", None)
    if viewer is not None:
        return cast("Viewer", viewer)
    return cast("Viewer", request.user)
