"""What stands and what should, put side by side."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from apps.knowledge_graph.storing.report import Change
from apps.knowledge_graph.storing.rows import EVIDENCE_COLUMNS, EVIDENCE_IDENTITY, EvidenceRow, Form


@dataclass(slots=True)
class Plan:
    """What is to be written to one table. ``added``: (document, key, form); ``changed``: (row, document, new form)."""

    counts: Change
    added: list[tuple[UUID | None, tuple[str, ...], Form]] = field(default_factory=list)
    changed: list[tuple[Any, UUID | None, Form]] = field(default_factory=list)
    removed: list[Any] = field(default_factory=list)

    def add(self, name: str, document: UUID | None, key: tuple[str, ...], form: Form) -> None:
        self.counts.note("added", name)
        self.added.append((document, key, form))

    def change(self, name: str, row: Any, document: UUID | None, form: Form) -> None:
        self.counts.note("changed", name)
        self.changed.append((row, document, form))

    def remove(self, name: str, row: Any) -> None:
        self.counts.note("removed", name)
        self.removed.append(row)


_RAW, _LINE = EVIDENCE_COLUMNS.index("raw"), EVIDENCE_COLUMNS.index("line")
_WORDED = len(EVIDENCE_IDENTITY)
_PLACED = _WORDED + 2
"""Line and column follow the identity of an occurrence."""


def place_of(form: Form) -> str:
    return f"{form[_RAW]} (line {form[_LINE]})"


def matched(
    old: Sequence[EvidenceRow], new: Sequence[Form]
) -> Iterable[tuple[EvidenceRow, Form] | tuple[None, Form] | tuple[EvidenceRow, None]]:
    """Pairs of what stands and what should: the same place first, then the same words in the same order."""
    left: Sequence[EvidenceRow] = old
    missing: Sequence[Form] = new
    for size in (_PLACED, _WORDED):
        pairs, left, missing = _pair(left, missing, lambda form, size=size: form[:size])  # type: ignore[misc]
        yield from pairs
    for form in missing:
        yield None, form
    for row in left:
        yield row, None


def _pair(
    old: Sequence[EvidenceRow], new: Sequence[Form], key: Callable[[Form], Form]
) -> tuple[list[tuple[EvidenceRow, Form]], list[EvidenceRow], list[Form]]:
    if not old or not new:
        return [], list(old), list(new)
    waiting: defaultdict[Form, deque[EvidenceRow]] = defaultdict(deque)
    for row in old:
        waiting[key(row.form)].append(row)
    pairs: list[tuple[EvidenceRow, Form]] = []
    missing: list[Form] = []
    taken: set[int] = set()
    for form in new:
        candidates = waiting.get(key(form))
        if candidates:
            before = candidates.popleft()
            taken.add(before.id)
            pairs.append((before, form))
        else:
            missing.append(form)
    return pairs, [row for row in old if row.id not in taken], missing
