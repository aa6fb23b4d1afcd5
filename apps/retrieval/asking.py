"""The query string of the search page as a question."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast
from uuid import UUID

from django.http import QueryDict

from apps.access.errors import Invalid
from apps.access.sources import source_model
from apps.retrieval.filters import KINDS
from apps.retrieval.values import MAX_QUERY_CHARS, Filters, Mode, Question

if TYPE_CHECKING:
    from apps.access.viewers import Viewer

PAGE_ROWS = 25
LONGEST_FILTER = 1000
MODES = ("mixed", "docs", "code")


def question_of(params: QueryDict, viewer: Viewer) -> Question:
    """Raises Invalid, in words for the reader, for values that cannot be used."""
    query = params.get("q", "").strip()
    if len(query) > MAX_QUERY_CHARS:
        raise Invalid(f"A query has at most {MAX_QUERY_CHARS:,} characters; this one has {len(query):,}.", field="q")
    mode = params.get("mode", "mixed")
    return Question(
        query=query,
        mode=cast("Mode", mode) if mode in MODES else "mixed",
        sources=named_sources(params.getlist("source"), viewer),
        filters=Filters(
            path=_text(params, "path"),
            kinds=frozenset(kind for kind in params.getlist("kind") if kind in KINDS),
            language=_text(params, "language"),
            tag=_text(params, "tag"),
            type=_text(params, "type"),
            status=_text(params, "status"),
            since=_day(params, "since"),
            until=_day(params, "until"),
        ),
        limit=PAGE_ROWS,
        cursor=params.get("cursor") or None,
    )


def named_sources(values: Sequence[str], viewer: Viewer) -> tuple[tuple[str, UUID], ...]:
    """``kind:id`` of sources that the viewer may read. Raises Invalid alike for hidden and for absent ones."""
    wanted: dict[str, set[UUID]] = {}
    try:
        for value in filter(None, values):
            kind, _, number = value.partition(":")
            source_model(kind)
            wanted.setdefault(kind, set()).add(UUID(number))
    except (KeyError, ValueError):
        raise _no_source() from None
    found = []
    for kind, ids in sorted(wanted.items()):
        seen = set(source_model(kind).objects.visible_to(viewer).filter(pk__in=ids).values_list("pk", flat=True))
        if seen != ids:
            raise _no_source()
        found += [(kind, id_) for id_ in sorted(seen)]
    return tuple(found)


def _no_source() -> Invalid:
    return Invalid("There is no such source among those that you can read. Search without this filter.", field="source")


def _text(params: QueryDict, name: str) -> str:
    value = params.get(name, "").strip()
    if len(value) > LONGEST_FILTER:
        raise Invalid(f"The filter “{name}” has at most {LONGEST_FILTER:,} characters.", field=name)
    return value


def _day(params: QueryDict, name: str) -> datetime.date | None:
    value = params.get(name, "").strip()
    if not value:
        return None
    try:
        return datetime.date.fromisoformat(value)
    except ValueError:
        raise Invalid(f"“{name}” is a day such as 2026-05-03.", field=name) from None
