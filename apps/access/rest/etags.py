"""Strong entity tags. The scope is checked first; only then may an answer be 304 or 412."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from django.http import HttpResponse
from django.utils.http import parse_etags

from apps.access.errors import PreconditionFailed

if TYPE_CHECKING:
    from rest_framework.request import Request
    from rest_framework.response import Response

REPRESENTATION = "1"
"""Raised when the shape of answers changes, so that no stored answer of an older shape counts as fresh."""


def etag_of(*parts: object) -> str:
    """The tag of a representation made from ``parts`` (content hash, state that is shown with it)."""
    text = "\0".join([REPRESENTATION, *(str(part) for part in parts)])
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'


def not_modified(request: Request, etag: str) -> HttpResponse | None:
    """A 304 when the caller holds this very representation, else None."""
    wanted = parse_etags(request.headers.get("If-None-Match", ""))
    if etag not in wanted and wanted != ["*"]:
        return None
    return HttpResponse(status=304, headers={"ETag": etag, "Cache-Control": "private, no-cache"})


def tagged(response: Response, etag: str) -> Response:
    response["ETag"] = etag
    response["Cache-Control"] = "private, no-cache"
    return response


def check_if_match(request: Request, etag: str) -> None:
    """Raise PreconditionFailed when the caller changes another state than the present one."""
    header = request.headers.get("If-Match")
    if header is None:
        return
    wanted = parse_etags(header)
    if wanted != ["*"] and etag not in wanted:
        raise PreconditionFailed
