"""Who sees jobs: readers of the source; jobs without a source only administrators."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Self
from uuid import UUID

from django.db import models
from django.db.models import Exists, Q

from apps.access.querysets import SourceKeyQuerySet
from apps.jobs.kinds import folded_kinds

if TYPE_CHECKING:
    from apps.access.viewers import Viewer
    from apps.jobs.models import Job


class JobQuerySet(SourceKeyQuerySet["Job"]):
    """Jobs. ``visible_to(viewer)`` and ``get_for(viewer, pk=...)`` come from the rules of access."""

    def live(self) -> Self:
        return self.filter(status__in=("queued", "running"))

    def finished(self) -> Self:
        return self.filter(finished_at__isnull=False)

    def of_source(self, kind: str, source_id: UUID) -> Self:
        return self.filter(source_kind=kind, source_id=source_id)

    def unfolded(self) -> Self:
        """Without the small parts of other jobs, unless they failed."""
        return self.exclude(Q(kind__in=folded_kinds()) & ~Q(status="error"))

    def same_object(self, job: Job) -> Self:
        """Every job, live or not, of the same kind about the same object."""
        return self.filter(kind=job.kind, source_kind=job.source_kind, source_id=job.source_id, key=job.key)


class SuspectQuerySet(SourceKeyQuerySet[Any]):
    """Files that were under way when a worker was lost."""


class JobChildQuerySet(models.QuerySet[Any]):
    """Rows that hang on a job and are seen with it."""

    def visible_to(self, viewer: Viewer) -> Self:
        from apps.jobs.models import Job

        return self.filter(job__in=Job.objects.visible_to(viewer))

    def of_report(self, reporter_id: UUID, finished_at: datetime) -> Self:
        """The lines that a job holds, as one tells them that finished then. Of jobs that share them, only the newest
        tells what is unchanged (``access-and-jobs.md`` 44)."""
        from apps.jobs.models import Job

        newer = Job.objects.filter(same_as=reporter_id, finished_at__gt=finished_at)
        return self.filter(job=reporter_id).exclude(Exists(newer), state="unchanged")
