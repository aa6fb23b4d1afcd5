"""What a sync does with code once the files of a commit are known: store, resolve, link, take stock."""

from __future__ import annotations

from pathlib import Path

from apps.jobs.running import JobRun
from apps.markup.values import Limits
from apps.repos.code.stage import CodeStage
from apps.repos.models import Repository


def sync_code(run: JobRun, repository: Repository, *, mirror: Path, limits: Limits, forced: bool) -> None:
    """Bring everything that is derived from code up to the synced commit."""
    CodeStage(run, repository, mirror=mirror, limits=limits).work(forced=forced)
