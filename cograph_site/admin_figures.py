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
from apps.collections.models import Collection, Document
from apps.indexing.models import EmbeddingFailure
from apps.jobs.models import Job, Status
from apps.jobs.sweep import last_sweep, sweep_is_late
from apps.knowledge_graph.models import Node
from apps.repos.models import Repository, RepositoryDocument
from apps.retrieval.models import Outcome, QueryLogEntry
from cograph_site.templatetags.cograph import size

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

    @property
    def is_number(self) -> bool:
        return isinstance(self.value, int)


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
    address = reverse("admin:collections_collection_changelist")
    return Panel("Collections", (Figure("in all", counts["total"], address), Figure("newest", counts["newest"])))


def documents(viewer: Viewer) -> Panel:
    """What is read and searched, of both kinds of source."""
    pages = RepositoryDocument.objects.visible_to(viewer).count() + Document.objects.visible_to(viewer).count()
    nodes = Node.objects.visible_to(viewer).aggregate(total=Count("pk"), dangling=Count("pk", filter=Q(dangling=True)))
    return Panel(
        "Content",
        (
            Figure("documents", pages, reverse("admin:repos_repositorydocument_changelist")),
            Figure("graph nodes", nodes["total"], reverse("admin:knowledge_graph_node_changelist")),
            Figure(
                "names without a page",
                nodes["dangling"],
                reverse("admin:knowledge_graph_node_changelist") + "?dangling__exact=1",
            ),
        ),
    )


def jobs(viewer: Viewer) -> Panel:
    lately = Q(status=Status.ERROR, finished_at__gt=timezone.now() - WEEK)
    counts = Job.objects.visible_to(viewer).aggregate(
        failed=Count("pk", filter=lately),
        waiting=Count("pk", filter=Q(status=Status.QUEUED)),
        running=Count("pk", filter=Q(status=Status.RUNNING)),
        embedding=Count("source_id", filter=Q(kind="embed", status__in=[Status.QUEUED, Status.RUNNING]), distinct=True),
    )
    address = reverse("jobs:list")
    return Panel(
        "Jobs",
        (
            Figure("failed in 7 days", counts["failed"], f"{address}?state=error", attention=counts["failed"] > 0),
            Figure("waiting", counts["waiting"], f"{address}?state=queued"),
            Figure("running", counts["running"], f"{address}?state=running"),
            Figure("sources without all vectors", counts["embedding"], f"{address}?kind=embed"),
        ),
    )


def machine(viewer: Viewer) -> Panel | None:
    """What belongs to the deployment and not to a source: administrators only."""
    if not rules.is_administrator(viewer):
        return None
    disk = shutil.disk_usage(settings.COGRAPH.data_path)
    failures = EmbeddingFailure.objects.count()
    week = timezone.now() - WEEK
    asked = QueryLogEntry.objects.filter(at__gt=week).aggregate(
        total=Count("pk"), empty=Count("pk", filter=Q(outcome=Outcome.EMPTY))
    )
    log = reverse("admin:retrieval_querylogentry_changelist")
    return Panel(
        "This deployment",
        (
            Figure("last job sweep", last_sweep(), attention=sweep_is_late()),
            Figure("texts without a vector after an error", failures, attention=failures > 0),
            Figure("queries in 7 days", asked["total"], log),
            Figure("of them without a result", asked["empty"], f"{log}?outcome__exact={Outcome.EMPTY}"),
            Figure("free disk", size(disk.free), attention=disk.free < disk.total * LITTLE_DISK),
        ),
    )


PANELS: Sequence[Callable[[Viewer], Panel | None]] = (repositories, collections, documents, jobs, machine)


def panels(viewer: Viewer) -> list[Panel]:
    return [panel for make in PANELS if (panel := make(viewer)) is not None]
