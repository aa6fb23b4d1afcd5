"""What REST tells of the source of anything."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.retrieval.values import SourceRef


class SourceRefOutput(serializers.Serializer[Any]):
    """A source. ``slug`` is the address of a repository, empty for collections."""

    kind = serializers.CharField()
    id = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]
    slug = serializers.CharField()
    url = serializers.CharField()


def present_source(source: SourceRef) -> dict[str, Any]:
    return {
        "kind": source.kind,
        "id": str(source.id),
        "label": source.label,
        "slug": source.label if source.kind == "repository" else "",
        "url": source.url,
    }
