"""Whether chunks have their vectors, for those who show chunks; a fixed number of queries for any number of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from apps.indexing.models import Chunk, EmbeddingFailure, IndexedSource, Vector
from apps.indexing.serving import active_profile

State = Literal["embedded", "pending", "failed", "none"]


@dataclass(frozen=True, slots=True)
class VectorState:
    """``none``: no embedder serves. ``truncated``: the vector sees only the beginning of the text."""

    state: State
    profile: str = ""
    truncated: bool = False
    tokens: int | None = None
    """As the embedder counted them; None without a vector."""


def vector_states(chunks: Sequence[Chunk]) -> dict[int, VectorState]:
    """The state of each chunk's vector in the serving profile, by chunk id."""
    profile = active_profile() if chunks else None
    if profile is None:
        return {chunk.pk: VectorState("none") for chunk in chunks}
    numbers = {chunk.number for chunk in chunks}
    hashes = {bytes(chunk.embed_hash) for chunk in chunks}
    generations = dict(list(IndexedSource.objects.filter(number__in=numbers).values_list("number", "generation")))
    made = {
        (number, bytes(digest), generation): (tokens, truncated)
        for number, digest, generation, tokens, truncated in Vector.objects.filter(
            profile_id=profile.pk, number__in=numbers, hash__in=hashes
        ).values_list("number", "hash", "generation", "tokens", "truncated")
    }
    failed = {
        (number, bytes(digest), generation)
        for number, digest, generation in EmbeddingFailure.objects.filter(
            profile_id=profile.pk, number__in=numbers, hash__in=hashes
        ).values_list("number", "hash", "generation")
    }
    found = {}
    for chunk in chunks:
        key = (chunk.number, bytes(chunk.embed_hash), generations.get(chunk.number, 0))
        if key in made:
            tokens, truncated = made[key]
            found[chunk.pk] = VectorState("embedded", profile.label, truncated, tokens)
        else:
            found[chunk.pk] = VectorState("failed" if key in failed else "pending", profile.label)
    return found
