"""Who calls: a bearer token, which wins, or a session with CSRF protection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rest_framework.authentication import BaseAuthentication, SessionAuthentication, get_authorization_header
from rest_framework.exceptions import PermissionDenied

from apps.access import origin, tokens
from apps.access.errors import Forbidden, Unauthenticated

if TYPE_CHECKING:
    from rest_framework.request import Request

    from apps.access.models import ApiToken, User


def bearer_of(header: bytes) -> str | None:
    """The text after ``Bearer`` in an authorization header; None when there is another scheme or none."""
    scheme, _, text = header.strip().partition(b" ")
    if scheme.lower() != b"bearer":
        return None
    return text.strip().decode("latin-1")


class TokenAuthentication(BaseAuthentication):
    """``Authorization: Bearer cgr_…``.

    SECURITY: a bad token is refused even where a session or public reading would do, so that a revoked token is
    noticed and no caller acts as somebody else than he believes.
    """

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        text = bearer_of(get_authorization_header(request))
        if text is None:
            return None
        token = tokens.authenticate(text)
        if token is None:
            raise Unauthenticated
        origin.by_token(str(token.pk))
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="cograph"'


class CsrfSessionAuthentication(SessionAuthentication):
    """The portal's session; unsafe methods need the CSRF token."""

    def enforce_csrf(self, request: Request) -> None:
        try:
            super().enforce_csrf(request)
        except PermissionDenied:
            raise Forbidden(
                "The CSRF token is missing or wrong: send the X-CSRFToken header, or use an API token instead."
            ) from None
