"""What an application of a difference has changed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

EXAMPLES = 5


@dataclass(slots=True)
class Change:
    """How many rows of one table were added, removed and changed, with a few by name."""

    added: int = 0
    removed: int = 0
    changed: int = 0
    examples: list[str] = field(default_factory=list)

    def note(self, act: str, name: str) -> None:
        setattr(self, act, getattr(self, act) + 1)
        if len(self.examples) < EXAMPLES:
            self.examples.append(f"{act} {name}")

    @property
    def total(self) -> int:
        return self.added + self.removed + self.changed


@dataclass(slots=True)
class Report:
    """What an application changed. ``revision`` is None when nothing did."""

    nodes: Change = field(default_factory=Change)
    edges: Change = field(default_factory=Change)
    evidence: Change = field(default_factory=Change)
    revision: int | None = None
    withheld: set[UUID] = field(default_factory=set)
    """Documents that others keep from their slugs."""

    @property
    def total(self) -> int:
        return self.nodes.total + self.edges.total + self.evidence.total

    def as_json(self) -> dict[str, Any]:
        named = {"nodes": self.nodes, "edges": self.edges, "evidence": self.evidence}
        return {
            "revision": self.revision,
            **{
                name: {
                    "added": one.added,
                    "removed": one.removed,
                    "changed": one.changed,
                    "examples": one.examples,
                }
                for name, one in named.items()
            },
        }
