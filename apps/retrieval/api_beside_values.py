"""What REST tells of what stands beside the hits."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rest_framework import serializers

from apps.retrieval.api_source_values import SourceRefOutput, present_source
from apps.retrieval.beside_values import NearPage, PagePlace, RejectedApproach


class PagePlaceOutput(serializers.Serializer[Any]):
    """A canonical page, by its passage that matches best; ``chunk_id`` is empty for a page without text."""

    source = SourceRefOutput()  # type: ignore[assignment]
    document_id = serializers.CharField()
    uid = serializers.CharField()
    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.CharField()
    path = serializers.CharField()
    version = serializers.CharField()
    location = serializers.CharField()
    heading_path = serializers.ListField(child=serializers.CharField())
    anchor = serializers.CharField()
    start_line = serializers.IntegerField()
    end_line = serializers.IntegerField()
    chunk_id = serializers.CharField()
    tokens = serializers.IntegerField()
    url = serializers.CharField()


class NearPageOutput(serializers.Serializer[Any]):
    """A neighbour of the hits in the graph, no hit itself. ``why`` is the way to it, ``note`` says what it
    replaces."""

    page = PagePlaceOutput()
    score = serializers.FloatField()
    hops = serializers.IntegerField()
    why = serializers.CharField()
    note = serializers.CharField()
    other_ways = serializers.ListField(child=serializers.CharField())


class PageNameOutput(serializers.Serializer[Any]):
    """A page by name."""

    uid = serializers.CharField()
    title = serializers.CharField()
    url = serializers.CharField()


class RejectedOutput(serializers.Serializer[Any]):
    """An approach that was rejected, near the question; ``cosine`` is null without vectors."""

    page = PagePlaceOutput()
    cosine = serializers.FloatField(allow_null=True)
    successors = PageNameOutput(many=True)


def present_near(one: NearPage) -> dict[str, Any]:
    return {
        "page": present_page(one.place),
        "score": one.score,
        "hops": one.hops,
        "why": one.why,
        "note": one.label,
        "other_ways": list(one.other_ways),
    }


def present_rejected(one: RejectedApproach) -> dict[str, Any]:
    return {
        "page": present_page(one.place),
        "cosine": one.cosine,
        "successors": [asdict(each) for each in one.successors],
    }


def present_page(place: PagePlace) -> dict[str, Any]:
    return {
        "source": present_source(place.source),
        "document_id": str(place.document_id),
        "uid": place.uid,
        "type": place.node_type,
        "title": place.title,
        "status": place.status,
        "path": place.path,
        "version": place.version,
        "location": place.location,
        "heading_path": list(place.heading_path),
        "anchor": place.anchor,
        "start_line": place.start_line,
        "end_line": place.end_line,
        "chunk_id": str(place.chunk_id) if place.chunk_id else "",
        "tokens": place.tokens,
        "url": place.url,
    }
