"""Errors as ``application/problem+json``. Bodies repeat nothing that would tell hidden from absent."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from django.core.exceptions import BadRequest as DjangoBadRequest
from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.core.signals import got_request_exception
from django.db import OperationalError
from django.http import Http404, HttpResponse
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import set_rollback

from apps.access import errors
from apps.access.errors import Problem, Refusal
from apps.access.rest.rendering import PlainJsonRenderer

MEDIA_TYPE = "application/problem+json"

logger = logging.getLogger("cograph.rest")

_OF_STATUS: Mapping[int, tuple[str, str]] = {
    400: ("invalid", "The request cannot be read."),
    401: ("unauthenticated", errors.Unauthenticated.default_message),
    403: ("forbidden", errors.Forbidden.default_message),
    404: ("not_found", errors.NotFound.default_message),
    405: ("method_not_allowed", "This address does not answer that method."),
    413: ("payload_too_large", "The body is larger than this address takes."),
    415: ("unsupported_type", "This media type is not taken here."),
    429: ("throttled", errors.Throttled.default_message),
    500: (
        "internal",
        "Something failed on the server. The operator finds the cause by the X-Request-ID of this answer.",
    ),
    503: ("unavailable", errors.Unavailable.default_message),
}

_RANGE_CODES = frozenset({"max_length", "min_length", "max_value", "min_value", "max_digits", "out_of_range"})
_KEPT_CODES = frozenset({"unknown_field", "required"})


def body(
    status: int, code: str, message: str, field: str | None = None, problems: Sequence[Problem] = ()
) -> dict[str, Any]:
    return {
        "status": status,
        "code": code,
        "message": message,
        "field": field,
        "errors": [{"code": one.code, "message": one.message, "field": one.field} for one in problems],
    }


def body_of_status(status: int) -> dict[str, Any]:
    """The body for a status that no refusal explains."""
    code, message = _OF_STATUS.get(status, _OF_STATUS[500] if status >= 500 else _OF_STATUS[400])
    return body(status, code, message)


def body_of(refusal: Refusal) -> dict[str, Any]:
    return body(refusal.status, refusal.code, refusal.message, refusal.field, refusal.errors)


def headers_of(refusal: Refusal) -> dict[str, str]:
    headers = {}
    if refusal.retry_after is not None:
        headers["Retry-After"] = str(refusal.retry_after)
    if refusal.status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="cograph"'
    return headers


def plain_response(data: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> HttpResponse:
    """A problem outside a REST view: from middleware, or for an address that leads nowhere."""
    rendered = PlainJsonRenderer().render(data)
    return HttpResponse(rendered, status=data["status"], content_type=MEDIA_TYPE, headers=dict(headers or {}))


def exception_handler(exc: Exception, context: Mapping[str, Any]) -> Response:
    """Render whatever a REST view raised. Unknown exceptions become a 500 without detail and are logged."""
    set_rollback()
    refusal = _as_refusal(exc)
    if refusal is not None:
        return _response(body_of(refusal), headers_of(refusal))
    status = _status_of(exc)
    if status is None:
        request = context.get("request")
        got_request_exception.send(sender=None, request=getattr(request, "_request", request))
        logger.error("a REST view failed", exc_info=exc)
        return _response(body_of_status(500))
    headers = {}
    if status == 405 and context.get("view") is not None:
        headers["Allow"] = ", ".join(context["view"].allowed_methods)
    return _response(body_of_status(status), headers)


def problems_of(detail: Any, path: str = "") -> list[Problem]:
    """The errors of a serializer as flat problems, each with the path of its field."""
    if isinstance(detail, Mapping):
        found = []
        for key, value in detail.items():
            if key == "non_field_errors":
                inner = path
            elif isinstance(key, int):
                inner = f"{path}[{key}]"
            else:
                inner = f"{path}.{key}" if path else str(key)
            found += problems_of(value, inner)
        return found
    if isinstance(detail, list | tuple):
        found = []
        for index, value in enumerate(detail):
            nested = isinstance(value, Mapping | list | tuple)
            found += problems_of(value, f"{path}[{index}]" if nested else path)
        return found
    code = getattr(detail, "code", "invalid")
    if code in _RANGE_CODES:
        code = "out_of_range"
    elif code not in _KEPT_CODES:
        code = "invalid"
    return [Problem(code, str(detail), path or None)]


def refusal_of(detail: Any, kind: type[Refusal]) -> Refusal:
    """A serializer's errors as one refusal; the first is told, the others are listed when there are several."""
    found = problems_of(detail)
    first = found[0]
    return kind(first.message, code=first.code, field=first.field, errors=found if len(found) > 1 else ())


def _as_refusal(exc: Exception) -> Refusal | None:
    if isinstance(exc, Refusal):
        return exc
    if isinstance(exc, exceptions.ValidationError):
        return refusal_of(exc.detail, errors.Invalid)
    if isinstance(exc, exceptions.NotAuthenticated | exceptions.AuthenticationFailed):
        return errors.Unauthenticated()
    if isinstance(exc, exceptions.Throttled):
        return errors.Throttled(retry_after=max(1, int(getattr(exc, "wait", None) or 1)))
    if isinstance(exc, exceptions.ParseError):
        return errors.BadRequest("The body is not what its media type says: it cannot be read.")
    return None


def _status_of(exc: Exception) -> int | None:
    if isinstance(exc, Http404):
        return 404
    if isinstance(exc, PermissionDenied):
        return 403
    if isinstance(exc, RequestDataTooBig):
        return 413
    if isinstance(exc, SuspiciousOperation | DjangoBadRequest):
        return 400
    if isinstance(exc, OperationalError):
        logger.warning("the database did not answer in time", exc_info=exc)
        return 503
    if isinstance(exc, exceptions.APIException):
        return exc.status_code
    return None


def _response(data: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Response:
    return Response(data, status=data["status"], headers=dict(headers or {}), content_type=MEDIA_TYPE)
