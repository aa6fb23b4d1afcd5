"""The first line of every answer: which state of which source it shows, and how old that is."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

from apps.collections.models import Collection
from apps.mcp.bounds import one_line
from apps.repos.models import Repository

SHOWN = 5


def line_of(source: Any, now: datetime.datetime) -> str:
    """``source`` is a collection, or a repository with its state (``with_state()``)."""
    if isinstance(source, Collection):
        changed = moment(source.changed_at, now)
        return f'collection "{one_line(source.name, 80)}" · changed {changed} · id {source.pk}'
    return _of_repository(source, now)


def lines_of(sources: Sequence[Any], now: datetime.datetime) -> list[str]:
    """One line each, at most five, then how many more."""
    lines = [line_of(source, now) for source in sources[:SHOWN]]
    if len(sources) > SHOWN:
        lines.append(f"+{len(sources) - SHOWN} more sources")
    return lines


def _of_repository(repository: Repository, now: datetime.datetime) -> str:
    name = repository.slug
    if repository.synced_commit:
        name += f" @ {repository.synced_commit[:7]}"
    parts = [name]
    checked = repository.last_checked_at or repository.synced_at
    if getattr(repository, "is_stale", False):
        parts.append(f"stale since {moment(checked, now)}")
    else:
        if checked is not None:
            parts.append(f"synced {moment(checked, now)}")
        parts.append(str(repository.get_state_display()))
    if getattr(repository, "is_syncing", False):
        parts.append("a sync is running")
    return " · ".join(parts)


def moment(at: datetime.datetime | None, now: datetime.datetime) -> str:
    """``2026-01-31 21:05Z (12 min ago)``."""
    if at is None:
        return "never"
    return f"{at.astimezone(datetime.UTC):%Y-%m-%d %H:%M}Z ({age(now - at)})"


def age(passed: datetime.timedelta) -> str:
    seconds = max(0, int(passed.total_seconds()))
    if seconds < 60:
        return "just now"
    if seconds < 3600:
        return f"{seconds // 60} min ago"
    if seconds < 2 * 86_400:
        return f"{seconds // 3600} h ago"
    return f"{seconds // 86_400} days ago"
