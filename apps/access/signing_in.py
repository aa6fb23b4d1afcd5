"""Signing in and out, passwords and sessions. Pages call these; the admin has no sign-in form of its own."""

from __future__ import annotations

import datetime

from django.conf import settings
from django.contrib.auth import authenticate, login, logout, password_validation, update_session_auth_hash
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import F
from django.http import HttpRequest
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme

from apps.access import audit, throttle, view_as
from apps.access.errors import Forbidden, Invalid, Problem
from apps.access.models import User
from apps.access.origin import client_address

WRONG = "The name or the password is wrong."
LONGEST_PASSWORD = 4096


def sign_in(request: HttpRequest, *, username: str, password: str, remember: bool = False) -> User:
    """Begin a session. Raises Invalid for wrong names, wrong passwords and inactive accounts alike, and Throttled.

    Work and text are the same whether the account exists: the hasher runs for unknown names too.
    """
    attempt = throttle.begin_attempt(username=username, address=client_address(request))
    # NUL never reaches the database, and hashing a megabyte is work for the attacker's sake.
    usable = "\0" not in username and len(username) <= 150 and len(password) <= LONGEST_PASSWORD
    found = authenticate(request, username=username if usable else "", password=password[:LONGEST_PASSWORD])
    if found is None or not usable:
        known = User.objects.filter(username=username if usable else "").first()
        with transaction.atomic():
            target = ("user", str(known.pk), known.get_username()) if known else ("user", "", "unknown account")
            audit.record(audit.Act.SIGN_IN_FAILED, by=None, target=target)
        raise Invalid(WRONG, code="invalid")
    user = found
    with transaction.atomic():
        throttle.attempt_succeeded(attempt)
        begin_session(request, user, remember=remember)
    return user


@transaction.atomic
def begin_session(request: HttpRequest, user: User, *, remember: bool = False) -> None:
    """For somebody who has proved who they are, by whatever means."""
    login(request, user, backend=settings.AUTHENTICATION_BACKENDS[0])
    request.session.set_expiry(
        settings.COGRAPH.session.remember_days * 86400 if remember else settings.COGRAPH.session.hours * 3600
    )
    slide(request)
    audit.record(audit.Act.SIGNED_IN, by=user, target=user)


def sign_out(request: HttpRequest) -> None:
    """End this session."""
    user = request.user
    if user.is_authenticated:
        with transaction.atomic():
            view_as.end(request)
            audit.record(audit.Act.SIGNED_OUT, by=user, target=user)
    logout(request)


def change_password(request: HttpRequest, *, old: str, new: str) -> None:
    """Change the password of the signed-in user; every other session of theirs ends. Raises Invalid, Throttled."""
    user = _own_account(request)
    attempt = throttle.begin_attempt(username=user.get_username(), address=client_address(request))
    if not user.check_password(old[:LONGEST_PASSWORD]):
        raise Invalid("The present password is wrong.", field="old")
    throttle.attempt_succeeded(attempt)
    set_password(user=user, password=new, by=user)
    update_session_auth_hash(request, user)


@transaction.atomic
def set_password(*, user: User, password: str, by: User | None) -> None:
    """Give ``user`` a password; all their sessions end. Raises Invalid listing what is wrong with it."""
    if len(password) > LONGEST_PASSWORD:
        raise Invalid(f"A password has at most {LONGEST_PASSWORD} characters.", field="new")
    try:
        password_validation.validate_password(password, user)
    except ValidationError as failure:
        problems = [Problem("invalid", message, "new") for message in failure.messages]
        raise Invalid(" ".join(failure.messages), field="new", errors=problems) from None
    user.set_password(password)
    user.save(update_fields=["password"])
    audit.record(audit.Act.PASSWORD_CHANGED, by=by, target=user)


@transaction.atomic
def end_other_sessions(request: HttpRequest) -> None:
    """End every session of the signed-in user but this one."""
    user = _own_account(request)
    end_sessions(user=user)
    user.refresh_from_db(fields=["session_epoch"])
    update_session_auth_hash(request, user)
    audit.record(audit.Act.USER_CHANGED, by=user, target=user, after={"sessions": "ended elsewhere"})


def end_sessions(*, user: User) -> None:
    User.objects.filter(pk=user.pk).update(session_epoch=F("session_epoch") + 1)


@transaction.atomic
def deactivate(*, user: User, by: User) -> None:
    """Close every door for ``user`` at once: sessions, tokens, grants. Grants stay written but count for nothing."""
    user.is_active = False
    user.save(update_fields=["is_active"])
    end_sessions(user=user)
    audit.record(audit.Act.USER_CHANGED, by=by, target=user, before={"is_active": True}, after={"is_active": False})


def next_page(request: HttpRequest, wanted: str, *, default: str = "/") -> str:
    """Where to go after signing in. SECURITY: another host would make the login page an open redirect."""
    safe = url_has_allowed_host_and_scheme(
        wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return wanted if safe else default


def slide(request: HttpRequest, *, now: datetime.datetime | None = None) -> None:
    """Let the session end its full time after this request. It is written at most every five minutes."""
    if "_auth_user_id" not in request.session:
        return
    moment = int((now or timezone.now()).timestamp())
    if moment - int(request.session.get("_slid_at", 0)) >= 300:
        request.session["_slid_at"] = moment


def _own_account(request: HttpRequest) -> User:
    if not request.user.is_authenticated:
        raise Forbidden("Sign in first.")
    return request.user
