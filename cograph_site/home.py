"""What the home page shows: the sources of the viewer as cards, what runs, what happened lately, how the portal is."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from django.conf import settings
from django.db.models import Count, Exists, OuterRef, Q
from django.urls import reverse
from django.utils import timezone

from apps.access import rules
from apps.access.models import ApiToken, TokenScope, User
from apps.access.sources import Source, source_models
from apps.collections.models import Collection, Document
from apps.jobs.models import Job, Status
from apps.jobs.presentation import JobLine
from apps.jobs.sweep import LATE_SECONDS, last_sweep
from apps.repos.lookup import with_document_total
from apps.repos.models import Repository
from cograph_site.samples import CANONICAL, GUIDES

if TYPE_CHECKING:
    from apps.access.viewers import Viewer

CARDS = 12
"""Cards of each kind; the rest is on the list of that kind."""
LISTS = {Repository.kind: "repos:list", Collection.kind: "collections:list"}
LATEST = 8
TOLD = ("sync", "upload")
"""Kinds that change what can be read. The others follow from them, and are told of when they fail."""


@dataclass(frozen=True, slots=True)
class Card:
    """A source with what a reader wants to know before opening it. ``documents`` None: not counted."""

    source: Source
    state: str
    documents: int | None
    fresh_at: datetime.datetime | None
    is_stale: bool
    job: Job | None


@dataclass(frozen=True, slots=True)
class Group:
    """Cards of one kind; ``more``: where the rest of them is listed, empty when all are here."""

    title: str
    cards: list[Card]
    more: str


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do first; it ticks itself off."""

    words: str
    text: str
    href: str
    done: bool


@dataclass(frozen=True, slots=True)
class Health:
    """What an administrator looks at first. Counts of the last seven days.

    ``unembedded``: sources whose vectors are being computed, or could not be; None where no embedder serves.
    """

    failed: int
    stale: int
    waiting: int
    unembedded: int | None
    swept_at: datetime.datetime | None

    @property
    def sweep_is_late(self) -> bool:
        return self.swept_at is None or (timezone.now() - self.swept_at).total_seconds() > LATE_SECONDS


def first_steps(user: User, *, searched: bool) -> list[Step]:
    """What to do in a new portal, for its administrator; empty once all is done. One query."""
    samples = Repository.objects.filter(slug=GUIDES)
    [(repository, document, agent)] = (
        User.objects.filter(pk=user.pk)
        .annotate(
            repository=Exists(Repository.objects.live().exclude(pk__in=samples.values("pk"))),
            document=Exists(Document.objects.filter(uploaded_by__isnull=False).exclude(collection__name=CANONICAL)),
            agent=Exists(ApiToken.objects.filter(scopes__contains=[TokenScope.MCP])),
        )
        .values_list("repository", "document", "agent")
    )
    steps = [
        Step(
            "Search the sample",
            "Ask the guides that came with the portal.",
            "/search?q=how+are+results+ranked",
            searched,
        ),
        Step(
            "Add a repository",
            "Give a git address; its documentation is read where it lives.",
            reverse("repos:add"),
            repository,
        ),
        Step("Upload a document", "Make a collection and drop markdown into it.", "/docs", document),
        Step("Connect an agent", "Make a token for it and copy its configuration.", reverse("connect"), agent),
    ]
    return [] if all(step.done for step in steps) else steps


def home_values(viewer: Viewer, *, searched: bool = False) -> dict[str, Any]:
    """At most ten queries, the same number for three sources and for thirty."""
    jobs = Job.objects.visible_to(viewer)
    latest = list(
        jobs.finished()
        .filter(Q(kind__in=TOLD) | Q(status=Status.ERROR))
        .select_related("requested_by")
        .order_by("-finished_at", "id")[:LATEST]
    )
    live = _live(jobs.live().order_by("created_at", "id")[:200])
    known: dict[tuple[str, UUID], Source] = {}
    groups = []
    for model in source_models():
        named = {job.source_id for job in latest if job.source_kind == model.kind and job.source_id}
        rows = _sources(model, viewer, named)
        known |= {(model.kind, source.pk): source for source in rows}
        newest = [source for source in rows if source.is_newest]  # type: ignore[attr-defined]
        cards = [_card(source, live) for source in newest[:CARDS]]
        more = reverse(LISTS[model.kind]) if len(newest) > CARDS else ""
        groups.append(Group(str(model._meta.verbose_name_plural).capitalize(), cards, more))
    administrator = rules.is_administrator(viewer)
    return {
        "groups": groups,
        "empty": not any(group.cards for group in groups),
        "latest": [
            JobLine(job, known.get((job.source_kind, job.source_id)) if job.source_id else None) for job in latest
        ],
        "administrator": administrator,
        "health": _health(viewer) if administrator else None,
        "steps": first_steps(cast("User", viewer), searched=searched) if administrator else [],
        "jobs_failed": reverse("jobs:list") + "?state=error",
    }


def _sources(model: type[Source], viewer: Viewer, named: set[UUID]) -> list[Source]:
    """The newest sources of a kind and those that are named, in one query."""
    visible: Any = model.objects.visible_to(viewer)
    newest = visible.order_by("-created_at", "pk").values("pk")[: CARDS + 1]
    rows = visible.filter(Q(pk__in=newest) | Q(pk__in=named))
    if issubclass(model, Repository):
        rows = with_document_total(rows.with_state())
    elif issubclass(model, Collection):
        rows = rows.annotate(document_total=Count("documents", filter=Q(documents__trashed_at=None)))
    inner = model.objects.filter(pk=OuterRef("pk"), pk__in=newest)
    return list(rows.annotate(is_newest=Exists(inner)).order_by("-created_at", "pk"))


def _live(rows: Iterable[Job]) -> dict[tuple[str, UUID | None], Job]:
    """The running or waiting job of each source, the oldest first."""
    found: dict[tuple[str, UUID | None], Job] = {}
    for job in rows:
        found.setdefault((job.source_kind, job.source_id), job)
    return found


def _card(source: Source, live: Mapping[tuple[str, UUID | None], Job]) -> Card:
    repository = source if isinstance(source, Repository) else None
    return Card(
        source=source,
        state=str(repository.get_state_display()) if repository else "",
        documents=getattr(source, "document_total", None),
        fresh_at=repository.last_checked_at if repository else None,
        is_stale=bool(getattr(source, "is_stale", False)),
        job=live.get((source.kind, source.pk)),
    )


def _health(viewer: Viewer) -> Health:
    failed = Q(status=Status.ERROR, finished_at__gt=timezone.now() - datetime.timedelta(days=7))
    live = Q(status__in=(Status.QUEUED, Status.RUNNING))
    counts = Job.objects.visible_to(viewer).aggregate(
        failed=Count("pk", filter=failed),
        waiting=Count("pk", filter=Q(status=Status.QUEUED)),
        # Every source without all of its vectors has such a job: counting the vectors would take a walk over them all.
        unembedded=Count("source_id", filter=Q(kind="embed") & (live | failed), distinct=True),
    )
    serves = settings.COGRAPH.embedding.backend != "none"
    return Health(
        failed=counts["failed"],
        waiting=counts["waiting"],
        unembedded=counts["unembedded"] if serves else None,
        stale=Repository.objects.visible_to(viewer).in_state("stale").count(),
        swept_at=last_sweep(),
    )
