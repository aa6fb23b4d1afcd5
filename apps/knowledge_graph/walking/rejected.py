"""The block "already rejected" of an answer (``knowledge-graph.md`` 9)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from apps.knowledge_graph.models import GraphSource
from apps.knowledge_graph.reader import SeenNode
from apps.knowledge_graph.walking.expansion import Expansion, Found, Seed
from apps.knowledge_graph.walking.steps import Met

LEAST_COSINE = 0.40
MOST = 3


@dataclass(frozen=True, slots=True)
class RejectedPage:
    """A rejected approach near the question. ``cosine`` is None where there are no vectors to compare."""

    source: GraphSource
    node: SeenNode
    document: UUID
    path: str
    cosine: float | None
    successors: tuple[Met, ...] = ()


def moved(found: Found) -> tuple[Seed, ...]:
    """The hits that leave the list for this block: the best three. Others stay where they are, so that none is lost."""
    return found.rejected[:MOST]


def already_rejected(found: Found, expansion: Expansion, cosines: Mapping[UUID, float]) -> tuple[RejectedPage, ...]:
    """Rejected hits that have moved here, then the nearest of the others, three in all, by similarity then slug.

    ``cosines``: document -> best cosine of its chunks with the question; empty without vectors of its dimension.
    """
    near = [seed for seed in found.near if round(cosines.get(_document(seed), 0.0), 6) >= LEAST_COSINE]
    near.sort(key=lambda seed: (-round(cosines[_document(seed)], 6), seed.met.node.uid))
    return tuple(
        RejectedPage(
            found.source_of(seed),
            seed.met.node,
            _document(seed),
            seed.met.path,
            cosines.get(_document(seed)),
            expansion.successors.get(_document(seed), ()),
        )
        for seed in (*moved(found), *near)[:MOST]
    )


def _document(seed: Seed) -> UUID:
    assert seed.met.document is not None  # noqa: S101 - pages that were found have one
    return seed.met.document
