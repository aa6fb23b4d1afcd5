"""Registry of finders: what is wrong in a source, gathered from every room for the lint pages and endpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from uuid import UUID

from apps.indexing.statements import gathered

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from apps.access.sources import Source
    from apps.access.viewers import Viewer
    from apps.indexing.statements import Fragment

    Lists: TypeAlias = Sequence[QuerySet[Any, Any] | Fragment]
Rows: TypeAlias = Sequence[Sequence[Mapping[str, Any]]]

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


def _no_lists(viewer: Viewer, source: Source) -> Lists:
    return ()


@dataclass(frozen=True, slots=True)
class Finder:
    """``find`` gives what ``viewer`` may see of the findings of ``source``; ``rules`` are all rule ids it may give.

    ``lists`` are querysets of values and SELECTs whose rows ``find`` is given, in their order: one statement asks those
    of all finders. ``kinds`` are the kinds of source that it knows, empty for all; finders of different kinds may share
    rules.
    """

    name: str
    rules: tuple[str, ...]
    find: Callable[[Viewer, Source, Rows], Iterable[Finding]]
    kinds: frozenset[str] = frozenset()
    lists: Callable[[Viewer, Source], Lists] = _no_lists

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
    chosen = [
        finder
        for _, finder in sorted(_finders.items())
        if not finder.kinds or source.kind in finder.kinds
        if not rules or set(rules).intersection(finder.rules)
    ]
    lists = [finder.lists(viewer, source) for finder in chosen]
    told = iter(gathered(*(one for of_finder in lists for one in of_finder)))
    return [
        row
        for finder, of_finder in zip(chosen, lists, strict=True)
        for row in finder.find(viewer, source, [next(told) for _ in of_finder])
        if (not rules or row.rule in rules) and (severity is None or row.severity == severity)
    ]
