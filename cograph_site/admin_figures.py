"""The numbers on the index page of the admin: what each room holds, and what wants attention. Scoped like the rest.

To add a room's panel, write a function that takes the viewer and put it into PANELS.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Count, Max, Q
from django.urls import reverse
from django.utils import timezone

from apps.access import rules
from apps.access.viewers import Viewer
from apps.collections.models import Collection
from apps.indexing.models import EmbeddingFailure
from apps.jobs.models import Job, Status
from apps.jobs.sweep import last_sweep, sweep_is_late
from apps.repos.models import Repository

WEEK = timedelta(days=7)
LITTLE_DISK = 0.1


@dataclass(frozen=True, slots=True)
class Figure:
    """One number with its words; `attention` marks what an operator should look at."""

    words: str
    value: int | datetime | str | None
    href: str = ""
    attention: bool = False

    @property
    def is_time(self) -> bool:
        return isinstance(self.value, datetime)


@dataclass(frozen=True, slots=True)
class Panel:
    title: str
    figures: Sequence[Figure]


def repositories(viewer: Viewer) -> Panel:
    visible = Repository.objects.visible_to(viewer)
    counts = visible.aggregate(total=Count("pk"), newest=Max("synced_at"))
    stale = visible.in_state("stale").count()
    address = reverse("admin:repos_repository_changelist")
    return Panel(
        "Repositories",
        (
            Figure("in all", counts["total"], address),
            Figure("stale", stale, address, attention=stale > 0),
            Figure("last sync", counts["newest"]),
        ),
    )


def collections(viewer: Viewer) -> Panel:
    counts = Collection.objects.visible_to(viewer).aggregate(total=Count("pk"), newest=Max("created_at"))
    return Panel("Collections", (Figure("in all", counts["total"]), Figure("newest", counts["newest"])))


def jobs(viewer: Viewer) -> Panel:
    lately = Q(status=Status.ERROR, finished_at__gt=timezone.now() - WEEK)
    counts = Job.objects.visible_to(viewer).aggregate(
        failed=Count("pk", filter=lately),
        waiting=Count("pk", filter=Q(status=Status.QUEUED)),
        running=Count("pk", filter=Q(status=Status.RUNNING)),
        embedding=Count("pk", filter=Q(kind="embed", status__in=[Status.QUEUED, Status.RUNNING])),
    )
    address = reverse("jobs:list")
    return Panel(
        "Jobs",
        (
            Figure("failed in 7 days", counts["failed"], f"{address}?state=error", attention=counts["failed"] > 0),
            Figure("waiting", counts["waiting"], f"{address}?state=queued"),
            Figure("running", counts["running"], f"{address}?state=running"),
            Figure("computing vectors", counts["embedding"]),
        ),
    )


def machine(viewer: Viewer) -> Panel | None:
    """What belongs to the deployment and not to a source: administrators only."""
    if not rules.is_administrator(viewer):
        return None
    disk = shutil.disk_usage(settings.COGRAPH.data_path)
    failures = EmbeddingFailure.objects.count()
    return Panel(
        "This deployment",
        (
            Figure("last job sweep", last_sweep(), attention=sweep_is_late()),
            Figure("texts without a vector after an error", failures, attention=failures > 0),
            Figure("free disk in MiB", disk.free >> 20, attention=disk.free < disk.total * LITTLE_DISK),
        ),
    )


PANELS: Sequence[Callable[[Viewer], Panel | None]] = (repositories, collections, jobs, machine)


def panels(viewer: Viewer) -> list[Panel]:
    return [panel for make in PANELS if (panel := make(viewer)) is not None]
