"""Accounts and groups, changed by administrators; every change is audited."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from django.contrib.auth.models import Group
from django.db import transaction

from apps.access import audit, rules, signing_in
from apps.access.errors import Conflict, Forbidden
from apps.access.models import GroupProfile, User

if TYPE_CHECKING:
    from collections.abc import Mapping

WATCHED = ("username", "email", "first_name", "last_name", "is_active", "is_staff", "is_superuser")


def state_of(user: User) -> dict[str, Any]:
    """The columns of an account that the audit trail tells apart."""
    return {name: getattr(user, name) for name in WATCHED}


@transaction.atomic
def store_user(*, user: User, by: User) -> None:
    """Write a new or changed account. Raises Forbidden, and Conflict when nobody would be administrator any more."""
    _administrators_only(by)
    stored = User.objects.select_for_update().filter(pk=user.pk).first()
    before = state_of(stored) if stored is not None else None
    user.save()
    if before is None:
        audit.record(audit.Act.USER_CREATED, by=by, target=user, after=state_of(user))
        return
    _keep_one_administrator()
    if before["is_active"] and not user.is_active:
        signing_in.end_sessions(user=user)
    old, new = _difference(before, state_of(user))
    if new:
        audit.record(audit.Act.USER_CHANGED, by=by, target=user, before=old, after=new)


@transaction.atomic
def delete_user(*, user: User, by: User) -> None:
    """Delete an account with its tokens and grants. What it owned stays, without owner."""
    _administrators_only(by)
    ended = rules.grants_to(user)
    audit.record(audit.Act.USER_DELETED, by=by, target=user, before={**state_of(user), "grants_ended": ended})
    user.delete()
    _keep_one_administrator()


@transaction.atomic
def set_groups(*, user: User, groups: Iterable[Group], by: User) -> None:
    """Make ``user`` a member of exactly these groups."""
    _administrators_only(by)
    before = sorted(user.groups.values_list("name", flat=True))
    user.groups.set(groups)
    note_membership(user=user, before=before, by=by)


def note_membership(*, user: User, before: list[str], by: User | None) -> None:
    """Audit what became of the memberships of ``user``, if anything did."""
    after = sorted(user.groups.values_list("name", flat=True))
    if before != after:
        audit.record(
            audit.Act.MEMBERSHIP_CHANGED, by=by, target=user, before={"groups": before}, after={"groups": after}
        )


@transaction.atomic
def store_group(*, group: Group, managed_by_provider: bool, by: User) -> None:
    """Write a new or changed group."""
    _administrators_only(by)
    stored = Group.objects.filter(pk=group.pk).select_related("profile").first()
    before = _group_state(stored) if stored is not None else None
    group.save()
    GroupProfile.objects.update_or_create(group=group, defaults={"managed_by_provider": managed_by_provider})
    after = {"name": group.name, "managed_by_provider": managed_by_provider}
    if before is None:
        audit.record(audit.Act.GROUP_CREATED, by=by, target=group, after=after)
    elif before != after:
        audit.record(audit.Act.GROUP_CHANGED, by=by, target=group, before=before, after=after)


@transaction.atomic
def delete_group(*, group: Group, by: User) -> None:
    """Delete a group; what was granted to it ends and is listed in the audit row."""
    _administrators_only(by)
    members = sorted(User.objects.filter(groups=group).values_list("username", flat=True))
    before = {**_group_state(group), "members": members, "grants_ended": rules.grants_to(group)}
    audit.record(audit.Act.GROUP_DELETED, by=by, target=group, before=before)
    group.delete()


def _group_state(group: Group) -> dict[str, Any]:
    profile = GroupProfile.objects.filter(group=group).first()
    return {"name": group.name, "managed_by_provider": bool(profile and profile.managed_by_provider)}


def _administrators_only(by: User) -> None:
    if not rules.is_administrator(by):
        raise Forbidden("Accounts and groups are kept by administrators.")


def _keep_one_administrator() -> None:
    if not User.objects.filter(is_active=True, is_superuser=True).exists():
        raise Conflict("This is the last active administrator: make another one first.")


def _difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    changed = [name for name in before if before[name] != after[name]]
    return {name: before[name] for name in changed}, {name: after[name] for name in changed}
