"""Requests a minute, counted per process: by token, else user, else address."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING

from django.conf import settings

from apps.access.errors import Throttled
from apps.access.models import ApiToken
from apps.access.origin import client_address
from apps.access.throttle import address_key

if TYPE_CHECKING:
    from django.http import HttpRequest

WINDOW = 60.0
_MOST_KEYS = 10_000

_lock = threading.Lock()
_counts: OrderedDict[tuple[str, str], tuple[float, int]] = OrderedDict()


def count(bucket: str, identity: str) -> None:
    """Count one request. ``bucket`` is a name of ``COGRAPH_THROTTLE__…``. Raises Throttled with the wait."""
    limit = int(getattr(settings.COGRAPH.throttle, bucket))
    now = time.monotonic()
    with _lock:
        began, used = _counts.pop((bucket, identity), (now, 0))
        if now - began >= WINDOW:
            began, used = now, 0
        _counts[(bucket, identity)] = (began, min(used + 1, limit + 1))
        while len(_counts) > _MOST_KEYS:
            _counts.popitem(last=False)
    if used >= limit:
        raise Throttled(retry_after=max(1, round(WINDOW - (now - began))))


def identity_of(request: HttpRequest, token: ApiToken | None = None) -> str:
    if token is not None:
        return f"token:{token.pk}"
    user = request.user
    if user.is_authenticated:
        return f"user:{user.pk}"
    return f"address:{address_key(client_address(request))}"


def reset() -> None:
    """Forget all counts, for tests."""
    with _lock:
        _counts.clear()
