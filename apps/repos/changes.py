"""Several changes of one repository as one act, for faces where a request holds them together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django.db import transaction

from apps.repos.models import Repository
from apps.repos.registration import NewCredential, change_repository, change_visibility, set_credential

if TYPE_CHECKING:
    from apps.access.models import User


@transaction.atomic
def apply_changes(*, repository: Repository, by: User, changes: Mapping[str, Any]) -> None:
    """All of ``changes`` or none: settings, ``visibility``, and ``credential`` (None forgets it).

    Raises NotFound, Forbidden, or Invalid naming the field, as the acts on their own do.
    """
    settings = {name: value for name, value in changes.items() if name not in ("visibility", "credential")}
    if settings:
        change_repository(repository=repository, by=by, **settings)
    if "visibility" in changes:
        change_visibility(repository=repository, visibility=changes["visibility"], by=by)
    if "credential" in changes:
        given = changes["credential"]
        set_credential(repository=repository, credential=NewCredential(**given) if given else None, by=by)
