"""How the current act came in: by a session, a token, a command, a provider or the system itself."""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from django.conf import settings

if TYPE_CHECKING:
    from django.http import HttpRequest


@dataclass(frozen=True, slots=True)
class Origin:
    """``how`` is session, token, command, provider or system; ``token_id`` is set for tokens."""

    how: str = "system"
    request_id: str = ""
    address: str = ""
    token_id: str = ""


_current: ContextVar[Origin] = ContextVar("cograph_origin", default=Origin())  # noqa: B039


def current_origin() -> Origin:
    return _current.get()


@contextmanager
def acting(origin: Origin) -> Iterator[Origin]:
    """Everything inside is recorded as coming from ``origin``."""
    token = _current.set(origin)
    try:
        yield origin
    finally:
        _current.reset(token)


def by_token(token_id: str) -> None:
    """The rest of this request acts through an API token."""
    _current.set(replace(_current.get(), how="token", token_id=token_id))


def new_request_id() -> str:
    """An id for one request. Never taken from the client, so that log lines cannot be forged."""
    return secrets.token_hex(16)


def client_address(request: HttpRequest) -> str:
    """The address of the client, past as many proxies as the operator trusts.

    SECURITY: without trusted proxies ``X-Forwarded-For`` is ignored, or anyone could choose a new address for each
    guess at a password.
    """
    remote = str(request.META.get("REMOTE_ADDR", ""))
    hops = settings.COGRAPH.trusted_proxies
    if not hops:
        return remote
    chain = [part.strip() for part in request.META.get("HTTP_X_FORWARDED_FOR", "").split(",") if part.strip()]
    named = chain[-hops] if len(chain) >= hops else (chain[0] if chain else remote)
    try:
        return str(ipaddress.ip_address(named))
    except ValueError:
        return remote
