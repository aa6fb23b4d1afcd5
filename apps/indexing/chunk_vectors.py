"""The state of the vectors of chunks in each profile that serves or is being built: one statement for any number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from apps.indexing.models import Chunk
from apps.indexing.statements import Fragment, fetch


@dataclass(frozen=True, slots=True)
class ChunkVector:
    """``tokens`` as the model's tokenizer counted them; None without a vector. ``truncated``: some were cut off."""

    profile: str
    serves: bool
    state: Literal["embedded", "pending", "failed"]
    tokens: int | None = None
    truncated: bool = False
    reason: str = ""


def chunk_vectors(chunks: Sequence[Chunk]) -> Mapping[int, Sequence[ChunkVector]]:
    """By chunk id, the serving profile first; no entry where no embedder was ever used."""
    if not chunks:
        return {}
    rows = fetch(
        Fragment(
            "SELECT c.id, p.label, p.state = 'active', v.hash IS NOT NULL, v.tokens, v.truncated, f.reason"
            " FROM unnest(%s::bigint[], %s::int[], %s::bytea[]) AS c (id, number, hash)"
            " JOIN indexing_indexedsource s ON s.number = c.number"
            " CROSS JOIN indexing_embeddingprofile p"
            " LEFT JOIN indexing_vector v ON v.profile_id = p.id AND v.number = c.number AND v.hash = c.hash"
            " AND v.generation = s.generation"
            " LEFT JOIN indexing_embeddingfailure f ON f.profile_id = p.id AND f.number = c.number AND f.hash = c.hash"
            " AND f.generation = s.generation"
            " WHERE p.state IN ('active', 'next') ORDER BY p.state",
            (
                [chunk.pk for chunk in chunks],
                [chunk.number for chunk in chunks],
                [bytes(chunk.embed_hash) for chunk in chunks],
            ),
        )
    )
    found: dict[int, list[ChunkVector]] = {}
    for id_, label, serves, made, tokens, truncated, reason in rows:
        state: Literal["embedded", "pending", "failed"] = "embedded" if made else "failed" if reason else "pending"
        found.setdefault(id_, []).append(
            ChunkVector(label, serves, state, tokens if made else None, bool(truncated), reason or "")
        )
    return found
