"""Sessions in the database that bring their account along: one statement says who is asking.

Nothing is cached between requests, so what ends a session, a right or an account holds from the next request on.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY, get_user
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.sessions.backends.db import SessionStore as DatabaseStore
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django.utils.functional import SimpleLazyObject

from apps.access.compiled import MARK_OF_NOW, MARK_OF_TEXT, Rows

if TYPE_CHECKING:
    from django.http import HttpRequest

    from apps.access.models import Session, User


class SessionStore(DatabaseStore):
    """``account`` is the user of the row as it was loaded; None for a session that nobody signed in to."""

    account: User | None = None

    @classmethod
    def get_model_class(cls) -> type[Session]:
        from apps.access.models import Session

        return Session

    def create_model_instance(self, data: Any) -> Session:
        row: Any = super().create_model_instance(data)
        row.user_id = data.get(SESSION_KEY)
        return row  # type: ignore[no-any-return]

    def load(self) -> dict[str, Any]:
        row = _session().first(self.session_key, timezone.now())
        if row is None:
            self._session_key = None
            return {}
        self.account = row.user
        return self.decode(row.session_data)


@functools.cache
def _session() -> Rows[Session]:
    model = SessionStore.get_model_class()
    return Rows(
        lambda key, now: model.objects.filter(session_key=key, expire_date__gt=now).select_related("user"),
        MARK_OF_TEXT,
        MARK_OF_NOW,
    )


class AccountMiddleware(AuthenticationMiddleware):
    def process_request(self, request: HttpRequest) -> None:
        super().process_request(request)
        request.user = SimpleLazyObject(lambda: account_of(request))  # type: ignore[assignment]


def account_of(request: HttpRequest) -> Any:
    """The account of the session that was just loaded, if everything about it holds; else what Django finds.

    SECURITY: the short way asks what Django's ``get_user`` asks (the user that the session names, a known backend, an
    active account, the hash over password and epoch). Whatever fails here is left to Django, which also ends sessions.
    """
    session: Any = request.session
    named = session.get(SESSION_KEY)
    account: User | None = getattr(session, "account", None)
    if (
        account is not None
        and str(account.pk) == named
        and account.is_active
        and session.get(BACKEND_SESSION_KEY) in settings.AUTHENTICATION_BACKENDS
        and constant_time_compare(session.get(HASH_SESSION_KEY, ""), account.get_session_auth_hash())
    ):
        return account
    return get_user(request)
