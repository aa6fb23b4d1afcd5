"""The sign-in throttle, counted in the database so that every process agrees."""

from __future__ import annotations

import datetime
import ipaddress
import math

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone
from django.utils.crypto import salted_hmac

from apps.access.errors import Throttled
from apps.access.models import LoginFailure

MESSAGE = "Too many failed sign-ins. Wait, then try again."


def account_key(username: str) -> str:
    """A keyed digest of a name. The typed text itself is not kept: people type passwords into the wrong field."""
    return salted_hmac("apps.access.throttle", username.strip().casefold(), algorithm="sha256").hexdigest()


def address_key(address: str) -> str:
    """The address, or for IPv6 its /64 network: one customer has that many addresses to himself."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address[:64]
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped:
            return str(ip.ipv4_mapped)
        return str(ipaddress.ip_network((ip, 64), strict=False))
    return str(ip)


@transaction.atomic
def begin_attempt(*, username: str, address: str) -> int:
    """Take a place for one attempt and return its id; raise Throttled when there is none.

    The place counts as a failure until ``attempt_succeeded`` gives it back, so that many attempts at one moment
    cannot all slip below the limit.
    """
    account, place = account_key(username), address_key(address)
    limits = settings.COGRAPH.login
    now = timezone.now()
    since = now - datetime.timedelta(minutes=limits.window_minutes)
    with connection.cursor() as cursor:
        for key in (f"account:{account}", f"address:{place}"):
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"cograph-login:{key}"])
    waits = []
    for field, key, limit in (
        ("account", account, limits.failures_per_account),
        ("address", place, limits.failures_per_address),
    ):
        rows = LoginFailure.objects.filter(**{field: key}, at__gt=since).order_by("-at")
        newest = list(rows.values_list("at", flat=True)[:limit])
        if len(newest) >= limit:
            waits.append(newest[-1] + datetime.timedelta(minutes=limits.window_minutes) - now if newest else None)
    if waits:
        longest = max(wait.total_seconds() if wait else limits.window_minutes * 60 for wait in waits)
        raise Throttled(MESSAGE, retry_after=max(1, math.ceil(longest)))
    return LoginFailure.objects.create(account=account, address=place, at=now).pk


def attempt_succeeded(attempt: int) -> None:
    LoginFailure.objects.filter(pk=attempt).delete()


def prune(*, now: datetime.datetime | None = None) -> int:
    """Remove the failures that no longer count. Returns how many."""
    since = (now or timezone.now()) - datetime.timedelta(minutes=settings.COGRAPH.login.window_minutes)
    return LoginFailure.objects.filter(at__lt=since).delete()[0]
