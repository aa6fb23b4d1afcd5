"""What stands beside the hits: pages near them in the graph, and approaches that were rejected. Frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import UUID

if TYPE_CHECKING:
    from apps.retrieval.values import SourceRef


@dataclass(frozen=True, slots=True)
class PagePlace:
    """A canonical page, by the passage of it that matches the question best."""

    source: SourceRef
    document_id: UUID
    uid: str
    node_type: str
    title: str
    status: str
    path: str
    version: str
    url: str
    """To the passage."""
    chunk_id: int = 0
    """0 for a page without text of its own."""
    heading_path: tuple[str, ...] = ()
    anchor: str = ""
    start_line: int = 1
    end_line: int = 1
    tokens: int = 0

    @property
    def location(self) -> str:
        """``path#anchor:start-end``, which every reading tool takes."""
        anchor = f"#{self.anchor}" if self.anchor else ""
        return f"{self.path}{anchor}:{self.start_line}-{self.end_line}"

    @property
    def trail(self) -> tuple[str, ...]:
        """The headings above the passage, without the title that stands before them."""
        return self.heading_path[1:] if self.heading_path[:1] == (self.title,) else self.heading_path


@dataclass(frozen=True, slots=True)
class NearPage:
    """A neighbour of the hits. ``why`` is the way to it in words, ``label`` what it replaces."""

    place: PagePlace
    score: float
    hops: int
    why: str
    label: str
    other_ways: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PageName:
    """A page that is only named."""

    uid: str
    title: str
    url: str


@dataclass(frozen=True, slots=True)
class RejectedApproach:
    """``cosine`` is None where there are no vectors to compare; ``successors`` have taken its place."""

    place: PagePlace
    cosine: float | None
    successors: tuple[PageName, ...] = ()


@dataclass(frozen=True, slots=True)
class GraphBlocks:
    neighbours: tuple[NearPage, ...] = ()
    already_rejected: tuple[RejectedApproach, ...] = ()
    replaced: Mapping[UUID, tuple[PageName, ...]] = field(default_factory=dict)
    """Documents among the hits -> the newest pages that have taken their place."""
