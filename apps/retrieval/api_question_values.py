"""What REST tells of routes, packs and explanations."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.retrieval.api_beside_values import RejectedOutput, present_rejected
from apps.retrieval.api_source_values import SourceRefOutput, present_source
from apps.retrieval.api_values import StreamOutput, present_place
from apps.retrieval.explaining import ExplainedRow, Explanation
from apps.retrieval.packing import Pack
from apps.retrieval.routing import Route, Routes


class RouteReasonOutput(serializers.Serializer[Any]):
    """A field that holds words of the question."""

    field = serializers.CharField()
    words = serializers.ListField(child=serializers.CharField())


class RouteOutput(serializers.Serializer[Any]):
    """A source with its score, 0 to 1; ``weak`` ones only fill the list."""

    kind = serializers.CharField()
    id = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]
    description = serializers.CharField()
    url = serializers.CharField()
    score = serializers.FloatField()
    weak = serializers.BooleanField()
    why = RouteReasonOutput(many=True)


class RoutesOutput(serializers.Serializer[Any]):
    """The best of each pool. ``only_common_words`` says why both are empty."""

    repositories = RouteOutput(many=True)
    collections = RouteOutput(many=True)
    only_common_words = serializers.BooleanField()


class PartOutput(serializers.Serializer[Any]):
    """A section of the pack; ``next_handle`` is where to read on when it was cut."""

    tier = serializers.CharField()
    title = serializers.CharField()
    location = serializers.CharField()
    heading_path = serializers.ListField(child=serializers.CharField())
    document_id = serializers.CharField()
    version = serializers.CharField()
    belongs_to = SourceRefOutput()
    url = serializers.CharField()
    why = serializers.CharField()
    tokens = serializers.IntegerField()
    aliases = serializers.ListField(child=serializers.CharField())
    next_handle = serializers.CharField()
    checked_time = serializers.DateTimeField(allow_null=True)
    stale_since = serializers.DateTimeField(allow_null=True)


class PointerOutput(serializers.Serializer[Any]):
    """A section that is only named; without ``location`` a count of further ones."""

    tier = serializers.CharField()
    title = serializers.CharField()
    location = serializers.CharField()
    url = serializers.CharField()
    tokens = serializers.IntegerField()
    why = serializers.CharField()


class UncutOutput(serializers.Serializer[Any]):
    """A section that did not fit, and how many more tokens it needs."""

    location = serializers.CharField()
    tokens = serializers.IntegerField()


class PackOutput(serializers.Serializer[Any]):
    """``text`` is the whole pack in Markdown, bodies included; the lists say what is in it."""

    text = serializers.CharField()
    tokens = serializers.IntegerField()
    max_tokens = serializers.IntegerField()
    parts = PartOutput(many=True)
    pointers = PointerOutput(many=True)
    cut = UncutOutput(many=True)
    stale = serializers.ListField(child=serializers.CharField())
    already_rejected = RejectedOutput(many=True)
    reason = serializers.CharField()


class ExplainedRowOutput(serializers.Serializer[Any]):
    """A row with all that its place is made of."""

    rank = serializers.IntegerField()
    title = serializers.CharField()
    path = serializers.CharField()
    source = serializers.CharField()  # type: ignore[assignment]
    heading_path = serializers.ListField(child=serializers.CharField())
    start_line = serializers.IntegerField()
    chunk_id = serializers.CharField()
    streams = serializers.DictField(child=StreamOutput())
    name_class = serializers.CharField()
    evidence = serializers.FloatField()
    fused = serializers.FloatField()
    page = serializers.FloatField()
    factor = serializers.FloatField()
    final = serializers.FloatField()


class RowAboveOutput(serializers.Serializer[Any]):
    """A row above, and by how much each stream adds more to it than to the document's."""

    row = ExplainedRowOutput()
    differences = serializers.DictField(child=serializers.FloatField())


class WhyNotOutput(serializers.Serializer[Any]):
    """The first reason why the document took no part."""

    reason = serializers.CharField()
    message = serializers.CharField()
    words = serializers.ListField(child=serializers.CharField())
    filter = serializers.CharField()
    place = serializers.CharField()


class ExplanationOutput(serializers.Serializer[Any]):
    """Either ``row`` or ``why_not``."""

    document_id = serializers.CharField()
    title = serializers.CharField()
    path = serializers.CharField()
    source = serializers.CharField()  # type: ignore[assignment]
    url = serializers.CharField()
    total = serializers.IntegerField()
    row = ExplainedRowOutput(allow_null=True)
    above = RowAboveOutput(many=True)
    why_not = WhyNotOutput(allow_null=True)
    degraded = serializers.ListField(child=serializers.CharField())


def present_routes(routes: Routes) -> dict[str, Any]:
    return {
        "repositories": [_route(one) for one in routes.repositories],
        "collections": [_route(one) for one in routes.collections],
        "only_common_words": routes.only_common_words,
    }


def _route(one: Route) -> dict[str, Any]:
    return {
        "kind": one.kind,
        "id": str(one.id),
        "label": one.label,
        "description": one.description,
        "url": one.url,
        "score": one.score,
        "weak": one.weak,
        "why": [{"field": name, "words": list(words)} for name, words in one.why],
    }


def present_pack(pack: Pack) -> dict[str, Any]:
    return {
        "text": pack.text,
        "tokens": pack.tokens,
        "max_tokens": pack.max_tokens,
        "parts": [
            {
                "tier": part.tier,
                "title": part.title,
                "location": part.location,
                "heading_path": list(part.heading_path),
                "document_id": str(part.document_id),
                "version": part.version,
                "belongs_to": present_source(part.source),
                "url": part.url,
                "why": part.why,
                "tokens": part.tokens,
                "aliases": list(part.aliases),
                "next_handle": part.next_handle,
                "checked_time": part.checked_time,
                "stale_since": part.stale_since,
            }
            for part in pack.parts
        ],
        "pointers": [
            {
                "tier": one.tier,
                "title": one.title,
                "location": one.location,
                "url": one.url,
                "tokens": one.tokens,
                "why": one.why,
            }
            for one in pack.pointers
        ],
        "cut": [{"location": one.location, "tokens": one.tokens} for one in pack.cut],
        "stale": list(pack.stale),
        "already_rejected": [present_rejected(one) for one in pack.rejected],
        "reason": pack.reason,
    }


def present_explanation(found: Explanation) -> dict[str, Any]:
    why_not = found.why_not
    return {
        "document_id": str(found.document_id),
        "title": found.title,
        "path": found.path,
        "source": found.source,
        "url": found.url,
        "total": found.total,
        "row": _row(found.row) if found.row else None,
        "above": [{"row": _row(one.row), "differences": dict(one.differences)} for one in found.above],
        "why_not": {
            "reason": why_not.reason,
            "message": why_not.message,
            "words": list(why_not.words),
            "filter": why_not.filter,
            "place": why_not.place,
        }
        if why_not
        else None,
        "degraded": list(found.degraded),
    }


def _row(row: ExplainedRow) -> dict[str, Any]:
    return {
        "rank": row.rank,
        "title": row.title,
        "path": row.path,
        "source": row.source,
        "heading_path": list(row.heading_path),
        "start_line": row.start_line,
        "chunk_id": str(row.chunk_id) if row.chunk_id else "",
        "streams": {name: present_place(found) for name, found in row.streams.items()},
        "name_class": row.name_class,
        "evidence": row.evidence,
        "fused": row.fused,
        "page": row.page,
        "factor": row.factor,
        "final": row.final,
    }
