"""Repositories as a person reads them: the header of every page, freshness in words, languages, pictures."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.urls import NoReverseMatch, reverse

from apps.access.shares import Share as Share
from apps.access.shares import shares as shares
from apps.jobs.models import Job
from apps.repos.models import Repository

LANGUAGES = {
    extension: name
    for name, extensions in (
        ("C", "c h"),
        ("C++", "cc cpp hpp"),
        ("C#", "cs"),
        ("CSS", "css scss"),
        ("Go", "go"),
        ("HTML", "html"),
        ("Java", "java"),
        ("JavaScript", "js mjs jsx"),
        ("JSON", "json"),
        ("Kotlin", "kt"),
        ("Markdown", "md mdx"),
        ("PHP", "php"),
        ("Python", "py"),
        ("reStructuredText", "rst"),
        ("Ruby", "rb"),
        ("Rust", "rs"),
        ("Shell", "sh bash"),
        ("SQL", "sql"),
        ("Swift", "swift"),
        ("TOML", "toml"),
        ("TypeScript", "ts tsx"),
        ("Vue", "vue"),
        ("YAML", "yml yaml"),
    )
    for extension in extensions.split()
}
SHOWN_LANGUAGES = 5
TABS = (
    ("repos:overview", "Overview"),
    ("repos:docs", "Documents"),
    ("repos:code", "Code"),
    ("repos:files", "Files"),
    ("repos:report", "Sync report"),
)
TABS_OF_HIGHER_ROOMS = (("repository-lint", "Findings"), ("graph-repository", "Graph"))
"""Shown when the room is joined to the site."""


@dataclass(frozen=True, slots=True)
class Tab:
    name: str
    words: str


@dataclass(frozen=True, slots=True)
class SourceHeader:
    """What stands above every page of a source. ``tabs`` are URL names that take the slug."""

    repository: Repository
    current: str
    state: str
    may_write: bool
    may_manage: bool
    may_administer: bool
    tabs: Sequence[Tab]
    heading: bool = False
    """Whether the name of the source is the heading of the page."""

    @property
    def is_stale(self) -> bool:
        return bool(getattr(self.repository, "is_stale", False))

    @property
    def is_syncing(self) -> bool:
        return bool(getattr(self.repository, "is_syncing", False))

    @property
    def checked(self) -> datetime | None:
        return self.repository.last_checked_at

    @property
    def commit_behind(self) -> bool:
        """Whether the last runs failed, so that upstream may be ahead of what is shown."""
        return bool(getattr(self.repository, "failed_runs", 0))


def state_of(repository: Repository) -> str:
    """The state that a badge shows; staleness is shown beside it."""
    return str(repository.get_state_display())


def header(repository: Repository, current: str, *, heading: bool = False) -> SourceHeader:
    tabs = [Tab(name, words) for name, words in TABS]
    for name, words in TABS_OF_HIGHER_ROOMS:
        with contextlib.suppress(NoReverseMatch):
            reverse(name, args=[repository.slug])
            tabs.append(Tab(name, words))
    may_manage = bool(getattr(repository, "may_manage", False))
    if may_manage:
        tabs.append(Tab("repos:settings", "Settings"))
    return SourceHeader(
        repository=repository,
        current=current,
        state=state_of(repository),
        may_write=bool(getattr(repository, "may_write", False)),
        may_manage=may_manage,
        may_administer=bool(getattr(repository, "may_administer", False)),
        tabs=tuple(tabs),
        heading=heading,
    )


def languages(sizes: Mapping[str, int]) -> list[Share]:
    """Bytes by extension → the largest languages and "other"."""
    by_name: dict[str, int] = {}
    for extension, size in sizes.items():
        if name := LANGUAGES.get(extension.lower()):
            by_name[name] = by_name.get(name, 0) + size
    ranked = sorted(by_name.items(), key=lambda pair: (-pair[1], pair[0]))
    rows = [(name, size, f"fill-{at}") for at, (name, size) in enumerate(ranked[:SHOWN_LANGUAGES], start=1)]
    if rest := sum(size for _, size in ranked[SHOWN_LANGUAGES:]):
        rows.append(("other", rest, "fill-6"))
    return shares(rows)


STATE_FILLS = (
    ("created", "fill-ok"),
    ("replaced", "fill-1"),
    ("moved", "fill-3"),
    ("unchanged", "fill-6"),
    ("removed", "fill-5"),
    ("held", "fill-2"),
    ("skipped", "fill-warn"),
    ("error", "fill-bad"),
    ("quarantined", "fill-bad"),
)


def state_bar(counts: Mapping[str, int]) -> list[Share]:
    """Items by state, in the fixed order of the states."""
    return shares((state, counts.get(state, 0), style) for state, style in STATE_FILLS)


@dataclass(frozen=True, slots=True)
class SyncColumn:
    """A past sync as a column of the picture: ``x`` and ``width`` in its units, ``height`` upwards from the axis."""

    x: int
    height: float
    style: str
    title: str

    @property
    def top(self) -> float:
        """Where the column begins, counted from the upper edge of the picture."""
        return round(PICTURE_HEIGHT + 3 - self.height, 1)


PICTURE_HEIGHT = 60
COLUMN = 20


def history(runs: Sequence[tuple[str, float, str]]) -> list[SyncColumn]:
    """(style, value, title) of each run, oldest first → columns scaled to the largest value."""
    largest = max((value for _, value, _ in runs), default=0) or 1
    return [
        SyncColumn(at * COLUMN + 2, round(max(3.0, PICTURE_HEIGHT * value / largest), 1), style, title)
        for at, (style, value, title) in enumerate(runs)
    ]


def sync_history(jobs: Sequence[Job]) -> list[SyncColumn]:
    """Finished syncs, oldest first, as columns: height = duration, colour = how it ended."""
    return history(
        [
            (
                {"success": "fill-warn" if job.warnings else "fill-ok", "error": "fill-bad"}.get(job.status, "fill-6"),
                job.duration.total_seconds() if job.duration else 0.0,
                f"{job.finished_at:%Y-%m-%d %H:%M} UTC: {job.state_words}"
                + (f", {job.duration.total_seconds():.0f} s" if job.duration else ""),
            )
            for job in jobs
        ]
    )


@dataclass(frozen=True, slots=True)
class NotTaken:
    """A reason why paths were left out, with their number and some of them."""

    reason: str
    count: int
    samples: Sequence[str]


def reasons(not_taken: Mapping[str, object]) -> list[NotTaken]:
    """``{reason: {"count": n, "paths": [...]}}`` of a report, the most frequent first."""
    found = []
    for reason, value in not_taken.items():
        if isinstance(value, Mapping):
            samples = value.get("paths") or value.get("samples") or ()
            found.append(
                NotTaken(reason.replace("_", " "), int(value.get("count", 0)), [str(path) for path in samples])
            )
    return sorted(found, key=lambda one: (-one.count, one.reason))
