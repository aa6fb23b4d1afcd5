"""Granting and ending grants by the settings page of a source, of whatever kind it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from apps.access import grants
from apps.access.errors import Invalid
from apps.access.rules import Level

if TYPE_CHECKING:
    from django.contrib.auth.models import Group

    from apps.access.models import User
    from apps.access.sources import Source

GRANT_ACTS = ("grant", "revoke")


def change_grants(source: Source, act: str, post: Any, *, by: User) -> str:
    """Do what the form asks for, one of ``GRANT_ACTS``, and say it as a sentence.

    Raises Invalid, and what ``grants.grant`` and ``grants.revoke`` raise.
    """
    to = _grantee(post)
    if act == "grant":
        value = grants.grant(source=source, to=to, level=_level(post), by=by)
        return f"{value.name} may now {value.level.label.lower()}."
    grants.revoke(source=source, to=to, by=by)
    return f"The grant to {to} has ended."


def _level(post: Any) -> str:
    level = str(post.get("level", ""))
    if level not in Level.values:
        raise Invalid("Choose read or write.", field="level")
    return level


def _grantee(post: Any) -> User | Group:
    """The user or group that was named. Raises Invalid: whoever manages a source may know who has an account."""
    kind = "group" if post.get("kind") == "group" else "user"
    found = grants.find_grantee(kind, str(post.get("name", "")).strip())
    if found is None:
        raise Invalid(f"There is no {kind} of this name.", field="name")
    return found
