"""``Idempotency-Key``: the answer of a creating POST is kept for 24 hours and given again to the same request."""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.http import HttpResponse, QueryDict
from django.utils import timezone

from apps.access.errors import BadRequest, Conflict, Invalid
from apps.access.models import KeptAnswer
from apps.access.rest.rendering import PlainJsonRenderer

if TYPE_CHECKING:
    from django.http.response import HttpResponseBase
    from rest_framework.request import Request
    from rest_framework.response import Response

    from apps.access.models import User

KEPT_FOR = datetime.timedelta(hours=24)
ABANDONED_AFTER = datetime.timedelta(minutes=5)
LONGEST_KEY = 200
_KEPT_HEADERS = ("Location", "ETag")


def key_of(request: Request) -> str | None:
    """The key of a request. Raises BadRequest when it is empty, too long or not printable."""
    key = request.headers.get("Idempotency-Key")
    if key is None:
        return None
    if not 1 <= len(key) <= LONGEST_KEY or not key.isprintable():
        raise BadRequest(f"An Idempotency-Key has 1 to {LONGEST_KEY} printable characters.", field="Idempotency-Key")
    return key


def once(
    request: Request,
    user: User,
    key: str,
    act: Callable[[], Response],
    *,
    kept: Callable[[Any], Any] = lambda data: data,
) -> HttpResponseBase:
    """Run ``act`` once for (user, method, path, key), or give its kept answer again.

    The act and the keeping of its answer are one transaction. A refused act keeps nothing. ``kept`` takes out of the
    body what may not be stored. Raises Invalid ``idempotency_mismatch`` and Conflict ``idempotency_in_progress``.
    """
    digest = _digest(request)
    place = {"user": user, "method": str(request.method), "path": request.path[:500], "key": key}
    row, mine = _claim(place, digest)
    if not mine:
        return _again(row, digest)
    try:
        with transaction.atomic():
            response = act()
            if response.status_code < 300:
                row.status = response.status_code
                row.headers = {name: response[name] for name in _KEPT_HEADERS if response.has_header(name)}
                row.body = PlainJsonRenderer().render(kept(response.data)) if response.data is not None else b""
                row.save(update_fields=["status", "headers", "body"])
    finally:
        KeptAnswer.objects.filter(pk=row.pk, status__isnull=True).delete()
    return response


def prune(*, now: datetime.datetime | None = None) -> int:
    """Remove the answers that are no longer given again. Returns how many."""
    return KeptAnswer.objects.filter(created_at__lt=(now or timezone.now()) - KEPT_FOR).delete()[0]


def _claim(place: dict[str, Any], digest: str) -> tuple[KeptAnswer, bool]:
    now = timezone.now()
    KeptAnswer.objects.filter(**place, created_at__lt=now - KEPT_FOR).delete()
    KeptAnswer.objects.filter(**place, status__isnull=True, created_at__lt=now - ABANDONED_AFTER).delete()
    return KeptAnswer.objects.get_or_create(**place, defaults={"body_digest": digest, "created_at": now})


def _again(row: KeptAnswer, digest: str) -> HttpResponse:
    if row.body_digest != digest:
        raise Invalid(
            "This Idempotency-Key was used with another body. Use a new key for a new request.",
            code="idempotency_mismatch",
            field="Idempotency-Key",
        )
    if row.status is None:
        raise Conflict("The first request with this Idempotency-Key is still running.", code="idempotency_in_progress")
    headers = {**row.headers, "Idempotent-Replayed": "true"}
    return HttpResponse(bytes(row.body), status=row.status, content_type="application/json", headers=headers)


def _digest(request: Request) -> str:
    """A digest of what the body says, so that another boundary or spacing of the same body is the same body."""
    data = request.data
    digest = hashlib.sha256()
    if isinstance(data, QueryDict):
        for name in sorted(data):
            for value in data.getlist(name):
                digest.update(f"{name}\0".encode())
                if isinstance(value, UploadedFile):
                    digest.update(f"{value.name}\0".encode())
                    for chunk in value.chunks():
                        digest.update(chunk)
                    value.seek(0)
                else:
                    digest.update(f"{value}\0".encode())
    else:
        digest.update(json.dumps(data, sort_keys=True, default=str).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
