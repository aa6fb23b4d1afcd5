"""The block "already rejected" of an answer (``knowledge-graph.md`` 9)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from django.db.models import Q

from apps.knowledge_graph.models import CanonicalPage
from apps.knowledge_graph.reader import SeenNode
from apps.knowledge_graph.vocabulary import REJECTED
from apps.knowledge_graph.walking.expansion import Expansion

if TYPE_CHECKING:
    from apps.access.viewers import Viewer

LEAST_COSINE = 0.40
MOST = 3
IN_FORCE = ("accepted", "review")


@dataclass(frozen=True, slots=True)
class RejectedPage:
    """A rejected approach near the question. ``cosine`` is None for one that was a hit and has moved here."""

    document: UUID
    uid: str
    label: str
    path: str
    cosine: float | None
    successors: tuple[SeenNode, ...] = ()


def rejected_documents(viewer: Viewer, sources: Collection[UUID] | None = None) -> dict[UUID, CanonicalPage]:
    """Readable pages of rejected approaches that are in force, by document: those whose best cosine with the question
    the caller has to find. One query."""
    rows = CanonicalPage.objects.visible_to(viewer).kept().live().with_key()
    rows = rows.filter(bears=True, node_type=REJECTED, status__in=IN_FORCE)
    if sources is not None:
        rows = rows.filter(Q(source__repository__in=sources) | Q(source__collection__in=sources))
    return {row.key: row for row in rows}


def already_rejected(
    expansion: Expansion, known: Mapping[UUID, CanonicalPage], cosines: Mapping[UUID, float]
) -> tuple[RejectedPage, ...]:
    """Rejected hits that have moved here, then the nearest of the others, three in all, by similarity then slug.

    ``cosines``: document -> best cosine of its chunks with the question; empty without vectors of its dimension.
    """
    moved = [
        RejectedPage(
            seed.met.document,
            seed.met.node.uid,
            seed.met.node.label,
            seed.met.path,
            cosines.get(seed.met.document),
            expansion.successors.get(seed.met.document, ()),
        )
        for seed in sorted(expansion.rejected, key=lambda seed: (-seed.score, seed.met.node.uid))
        if seed.met.document is not None
    ]
    there = {page.document for page in moved}
    near = [
        RejectedPage(document, page.uid, page.label, page.path, round(cosines[document], 6))
        for document, page in known.items()
        if document not in there and cosines.get(document, 0.0) >= LEAST_COSINE
    ]
    near.sort(key=lambda page: (-(page.cosine or 0.0), page.uid))
    return (*moved, *near)[:MOST]
