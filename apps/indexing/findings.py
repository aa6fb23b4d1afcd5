"""Registry of finders: what is wrong in a source, gathered from every room for the lint pages and endpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal
from uuid import UUID

if TYPE_CHECKING:
    from apps.access.sources import Source
    from apps.access.viewers import Viewer

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")


@dataclass(frozen=True, slots=True)
class Patch:
    """The line of a finding as it stands, and as it would be repaired."""

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to repair. Lines and columns count from 1; None where the finding is about the whole file."""

    rule: str
    severity: Severity
    message: str
    path: str = ""
    line: int | None = None
    column: int | None = None
    hint: str = ""
    document_id: UUID | None = None
    fingerprint: str = ""
    patch: Patch | None = None
    since: datetime | None = None
    """When the server met it first; None until it has looked."""
    first_commit: str = ""
    """The commit that was synced then; empty where a source has none."""


@dataclass(frozen=True, slots=True)
class Finder:
    """``find`` gives what ``viewer`` may see of the findings of ``source``; ``rules`` are all rule ids it may give.

    ``kinds`` are the kinds of source that it knows, empty for all; finders of different kinds may share rules.
    """

    name: str
    rules: tuple[str, ...]
    find: Callable[[Viewer, Source], Iterable[Finding]]
    kinds: frozenset[str] = frozenset()

    def meets(self, other: Finder) -> bool:
        return not self.kinds or not other.kinds or bool(self.kinds & other.kinds)


_finders: dict[str, Finder] = {}


def register_finder(finder: Finder) -> None:
    taken = {
        rule for other in _finders.values() if other.name != finder.name and other.meets(finder) for rule in other.rules
    }
    if taken.intersection(finder.rules):
        raise ValueError(f"the finder {finder.name!r} has rules of another: {sorted(taken.intersection(finder.rules))}")
    _finders[finder.name] = finder


def known_rules() -> tuple[str, ...]:
    return tuple(sorted({rule for finder in _finders.values() for rule in finder.rules}))


def findings(
    viewer: Viewer, source: Source, *, rules: Sequence[str] = (), severity: Severity | None = None
) -> list[Finding]:
    """All findings of ``source`` with the time since when, worst first, then by path, line and rule; the source itself
    is already scoped."""
    from apps.indexing.sightings import with_sightings

    rows = with_sightings(source, found_in(viewer, source, rules=rules, severity=severity))
    rows.sort(key=lambda row: (SEVERITIES.index(row.severity), row.path, row.line or 0, row.column or 0, row.rule))
    return rows


def found_in(
    viewer: Viewer, source: Source, *, rules: Sequence[str] = (), severity: Severity | None = None
) -> list[Finding]:
    """What the finders of every room give for ``source``, finder by finder."""
    return [
        row
        for name in sorted(_finders)
        if not _finders[name].kinds or source.kind in _finders[name].kinds
        if not rules or set(rules).intersection(_finders[name].rules)
        for row in _finders[name].find(viewer, source)
        if (not rules or row.rule in rules) and (severity is None or row.severity == severity)
    ]
