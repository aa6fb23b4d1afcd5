"""Changes to who a source belongs to and who may find it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import IntegrityError, transaction

from apps.access import audit, grants, rules
from apps.access.errors import Conflict, Invalid
from apps.access.rules import Right, Visibility

if TYPE_CHECKING:
    from apps.access.models import User
    from apps.access.sources import Source


@transaction.atomic
def set_visibility(*, source: Source, visibility: Visibility | str, by: User) -> Source:
    """Give ``source`` a visibility and return the fresh row.

    Towards admin_only its user grants and its ordinary group grants end for good and are listed in the audit row.
    Raises NotFound, Forbidden, or Invalid for an unknown visibility.
    """
    if visibility not in Visibility.values:
        raise Invalid(f"A visibility is one of {', '.join(Visibility.values)}.", field="visibility")
    model = type(source)
    model.objects.select_for_update(no_key=True).filter(pk=source.pk).order_by().values_list("pk").first()
    seen = model.objects.get_for(by, pk=source.pk)
    held: Source = model.objects.get_for(by, rules.visibility_right(seen, visibility), pk=source.pk)
    before = held.visibility
    if before == visibility:
        return held
    ended = grants.drop_ordinary_grants(held) if rules.needs_only_administrator_grants(visibility) else []
    held.visibility = visibility
    held.save(update_fields=["visibility"])
    audit.record(
        audit.Act.VISIBILITY_CHANGED,
        by=by,
        target=held,
        before={"visibility": str(before), "grants_ended": ended},
        after={"visibility": str(visibility)},
    )
    return held


@transaction.atomic
def set_owner(*, source: Source, owner: User | None, by: User) -> Source:
    """Hand ``source`` to another owner, or to none; for administrators.

    Raises NotFound, Forbidden, and Conflict when the new owner has one of the same name.
    """
    held: Source = type(source).objects.select_for_update(of=("self",)).get_for(by, Right.ADMINISTER, pk=source.pk)
    before = held.owner.get_username() if held.owner else None
    held.owner = owner
    try:
        with transaction.atomic():
            held.save(update_fields=["owner"])
    except IntegrityError:
        raise Conflict(f"{owner} has another “{held.label}” already. Rename one of them first.") from None
    audit.record(
        audit.Act.OWNER_CHANGED,
        by=by,
        target=held,
        before={"owner": before},
        after={"owner": owner.get_username() if owner else None},
    )
    return held
