"""What a sign-in provider (OIDC) may decide: memberships of groups marked as its own, and nothing else by default.

The provider proves who somebody is; these functions say what follows from its claims. They are called by whatever
speaks the protocol.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import transaction

from apps.access import accounts, audit, rules, signing_in
from apps.access.errors import Invalid
from apps.access.models import ProviderIdentity, User

if TYPE_CHECKING:
    from django.http import HttpRequest

CLOSED = "This account is closed. Ask an administrator."
_NOT_IN_NAMES = re.compile(r"[^\w.@+-]+")
LONGEST_NAME = 150


def sign_in(request: HttpRequest, claims: Mapping[str, Any]) -> User:
    """Begin the session of whom the provider has proved. Raises Invalid for a closed account."""
    with transaction.atomic():
        user = _account(claims)
        if not user.is_active:
            audit.record(audit.Act.SIGN_IN_FAILED, by=None, target=user)
        else:
            apply_claims(user=user, claims=claims)
    if not user.is_active:
        raise Invalid(CLOSED)
    signing_in.begin_session(request, user)
    return user


def _account(claims: Mapping[str, Any]) -> User:
    """The account of this person at this provider: the one known, one that may be linked, or a new one."""
    identity = {"issuer": settings.COGRAPH.oidc.issuer, "subject": str(claims["sub"])}
    known = ProviderIdentity.objects.select_related("user").filter(**identity).first()
    if known is not None:
        return known.user
    user = account_for(claims) or _new_account(claims)
    ProviderIdentity.objects.create(user=user, **identity)
    return user


def _new_account(claims: Mapping[str, Any]) -> User:
    """An account without password and without rights.

    SECURITY: a name that is taken is not taken over, and an address that nobody verified is not kept: later it would
    link the account of whoever it really belongs to.
    """
    verified = claims.get("email_verified") is True and isinstance(claims.get("email"), str)
    address = str(claims["email"]) if verified else ""
    wanted = next((one for one in (claims.get("preferred_username"), address) if isinstance(one, str) and one), "")
    name = _NOT_IN_NAMES.sub("-", wanted)[: LONGEST_NAME - 8].strip("-") or "user"
    taken = set(User.objects.filter(username__istartswith=name).values_list("username", flat=True))
    held = {one.casefold() for one in taken}
    free = next(
        one for one in (name, *(f"{name}-{number}" for number in range(2, len(held) + 3))) if one.casefold() not in held
    )
    user = User(username=free, email=address[:254])
    user.set_unusable_password()
    user.save()
    audit.record(audit.Act.USER_CREATED, by=user, target=user, after=accounts.state_of(user))
    return user


def names_of(claims: Mapping[str, Any]) -> frozenset[str]:
    """The group names in the configured claim; anything that is no list of strings counts as none."""
    value = claims.get(settings.COGRAPH.oidc.groups_claim)
    if not isinstance(value, list | tuple):
        return frozenset()
    return frozenset(name for name in value if isinstance(name, str) and name)


@transaction.atomic
def apply_claims(*, user: User, claims: Mapping[str, Any]) -> None:
    """Replace the memberships of ``user`` among the groups that the provider manages, at each sign-in.

    SECURITY: a claim puts nobody into a local group, whatever its name, and makes an administrator only of the members
    of ``COGRAPH_OIDC__ADMIN_GROUP``; without that setting of none.
    """
    names = names_of(claims)
    before = sorted(user.groups.values_list("name", flat=True))
    managed = Group.objects.filter(profile__managed_by_provider=True)
    kept = list(user.groups.exclude(pk__in=managed.values("pk")))
    user.groups.set([*kept, *managed.filter(name__in=names)])
    accounts.note_membership(user=user, before=before, by=user)
    _apply_rank(user, names)


def account_for(claims: Mapping[str, Any]) -> User | None:
    """The existing account that a first sign-in by the provider may be linked to.

    SECURITY: only by a verified address, in a domain for which the provider is trusted, of exactly one account;
    otherwise whoever can name an address at some provider takes over the account behind it.
    """
    address = claims.get("email")
    if not isinstance(address, str) or claims.get("email_verified") is not True:
        return None
    domain = address.rpartition("@")[2].lower()
    trusted = {name.lower() for name in settings.COGRAPH.oidc.trusted_domains}
    if not domain or domain not in trusted:
        return None
    found = list(User.objects.filter(email__iexact=address)[:2])
    return found[0] if len(found) == 1 and found[0].is_active else None


def _apply_rank(user: User, names: frozenset[str]) -> None:
    group = settings.COGRAPH.oidc.admin_group
    wanted = bool(group) and group in names
    if wanted == user.administrator_by_provider or (wanted and rules.is_administrator(user)):
        return
    before = accounts.state_of(user)
    user.is_superuser = user.is_staff = user.administrator_by_provider = wanted
    user.save(update_fields=["is_superuser", "is_staff", "administrator_by_provider"])
    audit.record(audit.Act.USER_CHANGED, by=user, target=user, before=before, after=accounts.state_of(user))
