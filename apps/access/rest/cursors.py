"""Lists in pages: a total order, an exact total inside the caller's scope, a cursor that is good for one question."""

from __future__ import annotations

import datetime
import hashlib
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.contrib.auth.models import AbstractUser
from django.core import signing
from django.db import models

from apps.access.compiled import ReadablePages, beyond
from apps.access.errors import BadRequest
from apps.access.viewers import GroupViewer, Viewer

T = TypeVar("T")

_SALT = "cograph.cursor"
_PLAIN = (str, int, float, bool, type(None))


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of a list. ``total`` counts the whole list in the scope of the caller."""

    items: list[T]
    total: int
    next_cursor: str | None

    def body(self, present: Callable[[T], Any]) -> dict[str, Any]:
        return {"items": [present(item) for item in self.items], "total": self.total, "next_cursor": self.next_cursor}


def fingerprint(viewer: Viewer, question: Mapping[str, Any]) -> str:
    """What a cursor is bound to: who asks and what was asked, page size and cursor aside."""
    asked = {name: value for name, value in question.items() if name not in ("cursor", "limit")}
    text = json.dumps([identity(viewer), asked], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def identity(viewer: Viewer) -> str:
    if isinstance(viewer, GroupViewer):
        return f"group:{viewer.group.pk}"
    return f"user:{viewer.pk}" if isinstance(viewer, AbstractUser) else "anonymous"


def write_cursor(position: Sequence[Any], *, viewer: Viewer, question: Mapping[str, Any]) -> str:
    return signing.dumps(
        [fingerprint(viewer, question), [_packed(value) for value in position]], salt=_SALT, compress=True
    )


def read_cursor(cursor: str, *, viewer: Viewer, question: Mapping[str, Any]) -> list[Any] | None:
    """The position in ``cursor``; None for the empty cursor.

    Raises BadRequest ``stale_cursor`` for a forged one, another user's, and one of another question.
    """
    if not cursor:
        return None
    try:
        bound, position = signing.loads(cursor, salt=_SALT)
    except (signing.BadSignature, ValueError, TypeError):
        bound, position = "", []
    if bound != fingerprint(viewer, question):
        raise BadRequest(
            "This cursor belongs to another question. Begin again without one.", code="stale_cursor", field="cursor"
        )
    return [_unpacked(value) for value in position]


def page_of_rows(
    rows: models.QuerySet[Any], *, order: Sequence[str], viewer: Viewer, question: Mapping[str, Any]
) -> Page[Any]:
    """One page of ``rows`` in the order of fields that are never null, the last of which is unique.

    ``question`` is the checked query with ``limit`` and ``cursor``, plus whatever else decides what is listed.
    """
    after = read_cursor(str(question.get("cursor", "")), viewer=viewer, question=question)
    wanted = rows.order_by(*order)
    if after is not None:
        wanted = wanted.filter(beyond(order, after))
    found = list(wanted[: int(question["limit"]) + 1])
    return _page(found, rows.count, order, viewer, question, is_first=after is None)


def page_of_readable(pages: ReadablePages[Any], *values: Any, viewer: Viewer, question: Mapping[str, Any]) -> Page[Any]:
    """As ``page_of_rows``, of a list whose statements are compiled once; ``values`` for its marks."""
    after = read_cursor(str(question.get("cursor", "")), viewer=viewer, question=question)
    found, count = pages.page(viewer, *values, after=after, limit=int(question["limit"]) + 1)
    return _page(found, count, pages.order, viewer, question, is_first=after is None)


def _page(
    found: list[Any],
    count: Callable[[], int],
    order: Sequence[str],
    viewer: Viewer,
    question: Mapping[str, Any],
    *,
    is_first: bool,
) -> Page[Any]:
    """``found`` holds a row more than the page when there is another one."""
    limit = int(question["limit"])
    if len(found) <= limit:
        # A list that ends on its first page has been counted.
        return Page(found, len(found) if is_first else count(), None)
    found = found[:limit]
    position = [_value_of(found[-1], name.lstrip("-")) for name in order]
    return Page(found, count(), write_cursor(position, viewer=viewer, question=question))


def page_of_list(items: Sequence[T], *, viewer: Viewer, question: Mapping[str, Any]) -> Page[T]:
    """One page of a list that is ranked already."""
    limit = int(question["limit"])
    after = read_cursor(str(question.get("cursor", "")), viewer=viewer, question=question)
    start = int(after[0]) if after else 0
    end = start + limit
    cursor = write_cursor([end], viewer=viewer, question=question) if end < len(items) else None
    return Page(list(items[start:end]), len(items), cursor)


def _value_of(row: Any, path: str) -> Any:
    for name in path.split("__"):
        row = getattr(row, name)
    return row


def _packed(value: Any) -> Any:
    if isinstance(value, datetime.datetime):
        return {"t": value.isoformat()}
    if isinstance(value, uuid.UUID):
        return {"u": str(value)}
    if isinstance(value, _PLAIN):
        return value
    raise TypeError(f"a cursor cannot hold {type(value).__name__}")


def _unpacked(value: Any) -> Any:
    if isinstance(value, dict):
        return datetime.datetime.fromisoformat(value["t"]) if "t" in value else uuid.UUID(value["u"])
    return value
