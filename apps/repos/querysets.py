"""Reading verbs of repositories and of what hangs on them."""

from __future__ import annotations

import datetime
from typing import Any, Self

from django.db import models
from django.db.models import Case, Count, Exists, F, IntegerField, OuterRef, Q, Subquery, Value, When
from django.db.models.functions import Coalesce
from django.utils import timezone

from apps.access.querysets import ScopedQuerySet, SourceQuerySet
from apps.jobs.models import Job

FAILED_RUNS_UNTIL_STALE = 3
INTERVALS = {
    "hourly": datetime.timedelta(hours=1),
    "daily": datetime.timedelta(days=1),
    "weekly": datetime.timedelta(days=7),
}


def overdue_before(now: datetime.datetime) -> list[datetime.datetime]:
    """For each schedule, in order: a repository that was not checked since then has missed two checks."""
    return [now - 2 * interval for interval in INTERVALS.values()]


class RepositoryQuerySet(SourceQuerySet[Any]):
    def live(self) -> Self:
        return self.filter(deleted_at__isnull=True)

    def by_slug(self, slug: str) -> Self:
        return self.filter(slug__iexact=slug)

    def with_state(self, now: datetime.datetime | None = None) -> Self:
        """Adds ``is_syncing``, ``failed_runs`` (since the last good check), and ``is_stale``, all in the same query.

        A run that died with its worker counts like any other failed one: the rows of jobs are asked, no counter.
        """
        now = now or timezone.now()
        syncs = Job.objects.filter(source_kind="repository", source_id=OuterRef("pk"), kind="sync")
        good = Coalesce(OuterRef("last_checked_at"), OuterRef("created_at"))
        failed = (
            syncs.filter(status="error", finished_at__gt=good)
            .order_by()
            .values("source_id")
            .annotate(runs=Count("pk"))
            .values("runs")
        )
        overdue = Q(pk__in=())
        for schedule, moment in zip(INTERVALS, overdue_before(now), strict=True):
            overdue |= Q(schedule=schedule, last_checked_at__lt=moment)
        return self.annotate(
            is_syncing=Exists(syncs.filter(status__in=("queued", "running"))),
            failed_runs=Coalesce(Subquery(failed, output_field=IntegerField()), Value(0)),
        ).annotate(
            is_stale=Case(
                When(last_checked_at__isnull=True, then=Value(False)),
                When(Q(failed_runs__gte=FAILED_RUNS_UNTIL_STALE) | overdue, then=Value(True)),
                default=Value(False),
                output_field=models.BooleanField(),
            )
        )

    def in_state(self, state: str, now: datetime.datetime | None = None) -> Self:
        """Repositories in a state of ``states.py``: stored ones, and ``syncing``, ``error``, ``stale``."""
        rows = self.with_state(now)
        if state == "syncing":
            return rows.filter(is_syncing=True)
        if state == "error":
            return rows.filter(failed_runs__gt=0)
        if state == "stale":
            return rows.filter(is_stale=True)
        return rows.filter(state=state)


class RepositoryChildQuerySet(ScopedQuerySet[Any]):
    """Rows with a foreign key ``repository``."""

    scope = ("repository",)


class DocumentLinkQuerySet(RepositoryChildQuerySet):
    def in_order(self) -> Self:
        """By the document that holds them, the lines where they stand, and their address: the same at every reading."""
        return self.order_by("document__path", "lines", "href", "id")


class DocumentQuerySet(RepositoryChildQuerySet):
    def in_latest_commit(self) -> Self:
        return self.filter(absence="")

    def held(self) -> Self:
        """Documents that are gone upstream and wait for a writer's word."""
        return self.filter(absence="held")

    def below(self, prefix: str) -> Self:
        return self.filter(path__startswith=prefix) if prefix else self

    def natural(self) -> Self:
        return self.order_by(F("path").asc(), "id")
