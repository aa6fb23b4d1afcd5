"""Refusals: what a workflow raises when it will not do what was asked, and every face renders in its own way.

A refusal carries a stable ``code`` (a word that programs compare), a ``message`` for people that says what happened and
what to do, the ``field`` it is about (a JSON path or None) and the HTTP ``status`` of the REST and page faces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Problem:
    """One of several things that are wrong with one request."""

    code: str
    message: str
    field: str | None = None


class Refusal(Exception):
    """Base of all refusals; raise one of the subclasses, each of which has its status."""

    status: ClassVar[int] = 400
    default_code: ClassVar[str] = "invalid"
    default_message: ClassVar[str] = "This cannot be done."

    def __init__(
        self,
        message: str = "",
        *,
        code: str = "",
        field: str | None = None,
        errors: Sequence[Problem] = (),
        retry_after: int | None = None,
    ) -> None:
        self.code = code or self.default_code
        self.message = message or self.default_message
        self.field = field
        self.errors = tuple(errors)
        self.retry_after = retry_after
        super().__init__(self.message)


class MethodRefused(Refusal):
    """An address that takes forms, opened as a page (405)."""

    status = 405
    default_code = "method_not_allowed"
    default_message = "This address only takes a form that a page of the portal sends."


class BadRequest(Refusal):
    """A query string or a body that cannot be read (400)."""


class Unauthenticated(Refusal):
    status = 401
    default_code = "unauthenticated"
    default_message = "Sign in, or send a valid API token."


class Forbidden(Refusal):
    """The caller may know that the object exists, and may not do this to it (403)."""

    status = 403
    default_code = "forbidden"
    default_message = "You may read this, but your rights do not cover this act. Ask the owner or an administrator."


class NotFound(Refusal):
    """Absent or hidden: the text repeats nothing of the request, so that both are alike (404)."""

    status = 404
    default_code = "not_found"
    default_message = "There is nothing here, or nothing that you may see."


class Conflict(Refusal):
    status = 409
    default_code = "conflict"


class Gone(Refusal):
    status = 410
    default_code = "gone"


class PreconditionFailed(Refusal):
    status = 412
    default_code = "conflict"
    default_message = "The object has changed since you read it. Read it again, then repeat the change."


class TooLarge(Refusal):
    status = 413
    default_code = "payload_too_large"


class UnsupportedType(Refusal):
    status = 415
    default_code = "unsupported_type"


class Invalid(Refusal):
    """Readable input whose content is refused (422)."""

    status = 422


class Throttled(Refusal):
    """Too much at once (429); ``retry_after`` is in seconds."""

    status = 429
    default_code = "throttled"
    default_message = "Too many requests. Wait, then try again."


class Unavailable(Refusal):
    status = 503
    default_code = "unavailable"
    default_message = "A part that is needed for this does not answer. Try again in a moment."
