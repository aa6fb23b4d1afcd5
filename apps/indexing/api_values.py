"""Chunks and vectors as REST shows them, the same for every store."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.access.rest.strict import Boolean, StrictSerializer
from apps.indexing.chunk_states import VectorState
from apps.indexing.models import Chunk


class EmbedInput(StrictSerializer):
    """How to embed."""

    force = Boolean(default=False, help_text="Make all vectors anew, not only the missing ones.")


class VectorOutput(serializers.Serializer[Any]):
    """``state`` is embedded, pending, failed, or none (no embedder serves)."""

    state = serializers.CharField()
    profile = serializers.CharField()
    truncated = serializers.BooleanField()
    tokens = serializers.IntegerField(allow_null=True)


class ChunkOutput(serializers.Serializer[Any]):
    """A chunk: the exact source, and the searched text where it differs."""

    id = serializers.CharField()
    index = serializers.IntegerField()
    heading_path = serializers.ListField(child=serializers.CharField())
    anchor = serializers.CharField()
    start_line = serializers.IntegerField()
    end_line = serializers.IntegerField()
    start_byte = serializers.IntegerField()
    end_byte = serializers.IntegerField()
    part = serializers.IntegerField()
    parts = serializers.IntegerField()
    flags = serializers.ListField(child=serializers.CharField())
    source = serializers.CharField()  # type: ignore[assignment]
    text = serializers.CharField(allow_null=True)
    vector = VectorOutput()


def present_chunk(chunk: Chunk, vector: VectorState) -> dict[str, Any]:
    return {
        "id": str(chunk.pk),
        "index": chunk.chunk_index,
        "heading_path": chunk.heading_path,
        "anchor": chunk.section_anchor,
        "start_line": chunk.start_line,
        "end_line": chunk.end_line,
        "start_byte": chunk.start_byte,
        "end_byte": chunk.end_byte,
        "part": chunk.part,
        "parts": chunk.parts,
        "flags": chunk.flags,
        "source": chunk.source,
        "text": chunk.text,
        "vector": {
            "state": vector.state,
            "profile": vector.profile,
            "truncated": vector.truncated,
            "tokens": vector.tokens,
        },
    }
