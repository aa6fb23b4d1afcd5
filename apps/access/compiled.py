"""The rule of reading as SQL that is compiled once. Compiling it anew costs more than a whole search.

SECURITY: nothing is decided here. The SQL is that of ``visible_to``, made for a stand-in of the same standing, and the
viewer's own key is bound in place of the stand-in's. This holds as long as a rule knows of its viewer no more than the
standing and the key, which a test compares for every persona.
"""

from __future__ import annotations

import functools
import uuid
from typing import TYPE_CHECKING, Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AnonymousUser, Group
from django.core.exceptions import EmptyResultSet

from apps.access import rules
from apps.access.viewers import GroupViewer

if TYPE_CHECKING:
    from apps.access.sources import Source
    from apps.access.viewers import Viewer

_USER = uuid.UUID("5ca1ab1e-0000-4000-8000-000000000000")
_GROUP = -1_597_463_007
NONE = "SELECT NULL::uuid WHERE false"


def readable_ids(model: type[Source], viewer: Viewer, *, evaluation: bool = False) -> tuple[str, tuple[Any, ...]]:
    """A SELECT of the ids of the sources of one kind that ``viewer`` may read (of ``evaluation`` sets, those alone),
    and its values. Raises TypeError for what is no viewer.
    """
    if isinstance(viewer, GroupViewer):
        sql, params = _template(model, "group", evaluation)
        return sql, tuple(viewer.group.pk if value == _GROUP else value for value in params)
    standing = (
        "administrator"
        if rules.is_administrator(viewer)
        else "person"
        if rules.is_signed_in(viewer)
        else "anybody"
        if rules.may_look_around(viewer)
        else ""
    )
    sql, params = _template(model, standing, evaluation)
    return sql, tuple(viewer.pk if value == _USER else value for value in params)


@functools.lru_cache(maxsize=100)
def _template(model: type[Source], standing: str, evaluation: bool) -> tuple[str, tuple[Any, ...]]:
    if not standing:
        return NONE, ()
    rows: Any = model.objects
    viewer = _stand_in(standing)
    rows = rows.of_evaluation(viewer) if evaluation else rows.visible_to(viewer)
    try:
        sql, params = rows.order_by().values("pk").query.sql_with_params()
    except EmptyResultSet:
        return NONE, ()
    return sql, tuple(params)


def _stand_in(standing: str) -> Viewer:
    if standing == "group":
        return GroupViewer(Group(pk=_GROUP))
    if standing == "anybody":
        return AnonymousUser()
    user: Any = get_user_model()(pk=_USER, is_active=True, is_superuser=standing == "administrator")
    return user  # type: ignore[no-any-return]
