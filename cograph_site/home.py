"""What the home page shows: the sources of the viewer as cards, what runs, what changed lately, how the portal is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from apps.access import rules
from apps.access.sources import Source, source_models
from apps.jobs.models import Job
from apps.jobs.presentation import JobLine, lines

if TYPE_CHECKING:
    from apps.access.viewers import Viewer

CARDS = 12
"""Cards of each kind; the rest is on the list of that kind."""


@dataclass(frozen=True, slots=True)
class Card:
    source: Source
    kind: str
    state: str = ""
    documents: int | None = None
    fresh_at: datetime | None = None
    stale_since: datetime | None = None
    job: Job | None = None
    notes: tuple[str, ...] = field(default=())


def home_values(viewer: Viewer) -> dict[str, Any]:
    """At most ten queries, the same number for three sources and for thirty."""
    groups = []
    live = live_jobs(viewer)
    for model in source_models():
        rows = list(model.objects.visible_to(viewer).order_by("-created_at", "pk")[: CARDS + 1])
        cards = [card(source, live) for source in rows[:CARDS]]
        groups.append((str(model._meta.verbose_name_plural).capitalize(), cards, len(rows) > CARDS))
    latest = Job.objects.visible_to(viewer).finished().exclude(kind__in=("retention",)).select_related("requested_by")
    return {
        "groups": groups,
        "empty": not any(cards for _, cards, _ in groups),
        "latest": lines(latest.order_by("-finished_at", "id")[:8], viewer),
        "administrator": rules.is_administrator(viewer),
    }


def live_jobs(viewer: Viewer) -> dict[tuple[str, object], JobLine]:
    """The running or waiting job of each source, the oldest first."""
    found: dict[tuple[str, object], JobLine] = {}
    rows: Iterable[Job] = Job.objects.visible_to(viewer).live().order_by("created_at", "id")[:200]
    for job in rows:
        found.setdefault((job.source_kind, job.source_id), JobLine(job))
    return found


def card(source: Source, live: dict[tuple[str, object], JobLine]) -> Card:
    line = live.get((source.kind, source.pk))
    return Card(source=source, kind=source.kind, job=line.job if line else None)
