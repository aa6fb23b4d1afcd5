"""Bounds of one request: the size of its body and the time of each of its statements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from django.conf import settings
from django.db import connection
from psycopg.pq import TransactionStatus

from apps.access.errors import TooLarge

if TYPE_CHECKING:
    from django.http import HttpRequest

COMMON_BODY = 1024 * 1024

V = TypeVar("V", bound=Callable[..., Any])


def takes_body(limit: Callable[[], int]) -> Callable[[V], V]:
    """Decorator of a page view that takes larger bodies; ``limit`` gives bytes when the request comes."""

    def mark(view: V) -> V:
        view.body_limit = limit  # type: ignore[attr-defined]
        return view

    return mark


def check_body(request: HttpRequest, view: Callable[..., Any]) -> None:
    """Refuse a body by its announced length, before anything of it is read. Raises TooLarge."""
    allowed = _limit_of(request, view)
    try:
        announced = int(request.META.get("CONTENT_LENGTH") or 0)
    except ValueError:
        announced = 0
    if announced > allowed:
        raise TooLarge(f"The body is larger than the {allowed} bytes that this address takes.")


@contextmanager
def statements_in_time() -> Iterator[None]:
    """Statements on this thread's connection end after ``COGRAPH_STATEMENT_SECONDS``.

    Set with the first statement, not before: a request without a query touches no database.
    """
    milliseconds = settings.COGRAPH.statement_seconds * 1000

    def guard(execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: dict[str, Any]) -> Any:
        raw = context["connection"].connection
        # A failed transaction takes nothing but its rollback, which must not be lost to the setting.
        failed = raw is not None and raw.info.transaction_status == TransactionStatus.INERROR
        if raw is not None and not failed and getattr(raw, "cograph_statement_timeout", None) != milliseconds:
            with raw.cursor() as cursor:
                cursor.execute(f"SET statement_timeout = {int(milliseconds)}")
            # Inside a transaction the setting falls with a rollback, so there it is set again the next time.
            if not context["connection"].in_atomic_block:
                raw.cograph_statement_timeout = milliseconds
        return execute(sql, params, many, context)

    with connection.execute_wrapper(guard):
        yield


def _limit_of(request: HttpRequest, view: Callable[..., Any]) -> int:
    doors = getattr(getattr(view, "cls", None), "doors", {})
    door = doors.get(request.method)
    limit = getattr(door, "body_limit", None) or getattr(view, "body_limit", None)
    if limit is None:
        limit = getattr(getattr(view, "view_class", None), "body_limit", None)
    if limit is None:
        return COMMON_BODY
    return int(limit())
