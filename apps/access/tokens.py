"""API tokens: made and revoked in a session, shown once, kept as a digest."""

from __future__ import annotations

import datetime
import hashlib
import re
import secrets
from collections.abc import Collection
from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from apps.access import audit
from apps.access.compiled import MARK_OF_NOW, MARK_OF_TEXT, Rows
from apps.access.errors import Forbidden, Invalid, NotFound
from apps.access.models import ApiToken, TokenScope
from apps.access.origin import current_origin

if TYPE_CHECKING:
    from apps.access.models import User

PREFIX = "cgr_"
DEFAULT_DAYS = 90
LONGEST_DAYS = 3650
NAME_LENGTH = 100
USE_IS_WRITTEN_EVERY = datetime.timedelta(minutes=1)
_FORM = re.compile(r"cgr_[A-Za-z0-9_-]{43}")


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@transaction.atomic
def create_token(
    *, user: User, name: str, scopes: Collection[str], expires_in_days: int | None = DEFAULT_DAYS
) -> tuple[ApiToken, str]:
    """A new token of ``user`` and its text, which is nowhere else. ``None`` days: it never expires.

    Raises Invalid naming the field, and Forbidden when the act itself comes in by a token.
    """
    _only_in_a_session()
    name = name.strip()
    if not 1 <= len(name) <= NAME_LENGTH or "\0" in name:
        raise Invalid(f"A token has a name of 1 to {NAME_LENGTH} characters.", field="name")
    chosen = [scope for scope in TokenScope.values if scope in set(scopes)]
    if not chosen or set(scopes) - set(TokenScope.values):
        raise Invalid(f"Choose at least one of the scopes {', '.join(TokenScope.values)}.", field="scopes")
    if expires_in_days is not None and not 1 <= expires_in_days <= LONGEST_DAYS:
        raise Invalid(
            f"Days until expiry are 1 to {LONGEST_DAYS}, or null for never.",
            code="out_of_range",
            field="expires_in_days",
        )
    text = PREFIX + secrets.token_urlsafe(32)
    now = timezone.now()
    token = ApiToken.objects.create(
        user=user,
        name=name,
        prefix=text[:8],
        digest=digest_of(text),
        scopes=chosen,
        created_at=now,
        expires_at=now + datetime.timedelta(days=expires_in_days) if expires_in_days is not None else None,
    )
    audit.record(
        audit.Act.TOKEN_MADE,
        by=user,
        target=("token", str(token.pk), name),
        after={"scopes": chosen, "expires_at": token.expires_at.isoformat() if token.expires_at else None},
    )
    return token, text


_LIVE: Rows[ApiToken] = Rows(
    lambda digest, now: ApiToken.objects.live(now).filter(digest=digest, user__is_active=True).select_related("user"),
    MARK_OF_TEXT,
    MARK_OF_NOW,
)


def authenticate(text: str) -> ApiToken | None:
    """The live token with its active user, or None: unknown, expired, revoked and inactive are one answer."""
    if not _FORM.fullmatch(text):
        return None
    token = _LIVE.first(digest_of(text), timezone.now())
    if token is not None:
        _note_use(token)
    return token


def allows(token: ApiToken, scope: str) -> bool:
    """Whether the token opens a door of ``scope``; write includes read, mcp stands alone."""
    if scope == TokenScope.READ:
        return TokenScope.READ in token.scopes or TokenScope.WRITE in token.scopes
    return scope in token.scopes


def tokens_of(user: User) -> list[ApiToken]:
    """The tokens of a user that were not revoked, newest first, expired ones included."""
    return list(ApiToken.objects.filter(user=user, revoked_at__isnull=True))


@transaction.atomic
def revoke_token(*, token_id: object, by: User) -> None:
    """End a token of ``by``; an administrator ends anyone's through the admin. Raises NotFound, Forbidden."""
    _only_in_a_session()
    _revoke(Q(user=by), token_id, by)


@transaction.atomic
def revoke_any_token(*, token_id: object, by: User) -> None:
    """End a token of anyone, for administrators; others have only their own."""
    from apps.access import rules

    _only_in_a_session()
    _revoke(Q() if rules.is_administrator(by) else Q(user=by), token_id, by)


def _revoke(whose: Q, token_id: object, by: User) -> None:
    from apps.access.querysets import first_or_absent

    rows = ApiToken.objects.select_for_update().filter(whose, revoked_at__isnull=True)
    token = first_or_absent(rows, pk=token_id)
    token.revoked_at = timezone.now()
    token.save(update_fields=["revoked_at"])
    audit.record(audit.Act.TOKEN_REVOKED, by=by, target=("token", str(token.pk), token.name))


def _only_in_a_session() -> None:
    """SECURITY: a stolen token must not make itself a successor, nor read or end the others."""
    if current_origin().how == "token":
        raise Forbidden("Tokens are made, listed and ended in a signed-in session only.")


def _note_use(token: ApiToken) -> None:
    now = timezone.now()
    if token.last_used_at is not None and now - token.last_used_at < USE_IS_WRITTEN_EVERY:
        return
    stale = Q(last_used_at__isnull=True) | Q(last_used_at__lt=now - USE_IS_WRITTEN_EVERY)
    ApiToken.objects.filter(stale, pk=token.pk).update(last_used_at=now)


__all__ = [
    "NotFound",
    "allows",
    "authenticate",
    "create_token",
    "digest_of",
    "revoke_any_token",
    "revoke_token",
    "tokens_of",
]
