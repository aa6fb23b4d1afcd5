"""This room's part of the retention job."""

from __future__ import annotations

import datetime

from apps.access import throttle
from apps.access.models import Session
from apps.access.rest import idempotency


def prune(now: datetime.datetime) -> int:
    """Remove failed sign-ins and kept answers that count no more, and sessions that ran out. Returns how many rows."""
    sessions, _ = Session.objects.filter(expire_date__lt=now).delete()
    return sessions + throttle.prune(now=now) + idempotency.prune(now=now)
