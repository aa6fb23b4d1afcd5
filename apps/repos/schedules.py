"""When a repository is synced by itself (``repository-documents.md`` 6.10). Times are UTC."""

from __future__ import annotations

import datetime
from collections.abc import Iterable

from django.conf import settings

from apps.jobs.kinds import Due
from apps.repos.models import Repository, Schedule


def next_run(schedule: str, after: datetime.datetime) -> datetime.datetime | None:
    """The first due time later than ``after``: the full hour, the hour of the night, that hour on Monday."""
    after = after.astimezone(datetime.UTC)
    if schedule == Schedule.HOURLY:
        return after.replace(minute=0, second=0, microsecond=0) + datetime.timedelta(hours=1)
    if schedule not in (Schedule.DAILY, Schedule.WEEKLY):
        return None
    due = after.replace(hour=settings.COGRAPH.git.sync_hour, minute=0, second=0, microsecond=0)
    if due <= after:
        due += datetime.timedelta(days=1)
    if schedule == Schedule.WEEKLY:
        due += datetime.timedelta(days=-due.weekday() % 7)
    return due


def due_syncs(now: datetime.datetime) -> Iterable[Due]:
    """What is due now, the longest waiting first. A time that passed while nothing ran is made up for once."""
    due = list(Repository.objects.live().filter(next_sync_at__lte=now).order_by("next_sync_at", "slug"))
    for repository in due:
        repository.next_sync_at = next_run(repository.schedule, now)
    Repository.objects.bulk_update(due, ["next_sync_at"])
    return [Due(source=(repository.kind, repository.pk), params={"sync": True}) for repository in due]
