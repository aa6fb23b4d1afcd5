"""What a sync does with code once the files of a commit are known: store, resolve, link, take stock."""

from __future__ import annotations

from pathlib import Path

from apps.jobs.running import JobRun
from apps.markup.values import Limits
from apps.repos.code.linking import link, read_names
from apps.repos.code.literals import resolve_literals
from apps.repos.code.stage import CodeStage
from apps.repos.code.stock import take_stock
from apps.repos.models import Repository
from apps.repos.models_code import CodeState


def sync_code(run: JobRun, repository: Repository, *, mirror: Path, limits: Limits, forced: bool) -> None:
    """Bring everything that is derived from code up to the synced commit."""
    stage = CodeStage(run, repository, mirror=mirror, limits=limits)
    changes = stage.work(forced=forced)
    chunks = read_names(run, repository)
    everything = forced or not stage.state.is_linked
    link(run, repository, chunks=chunks, names=sorted(changes.names), everything=everything)
    resolve_literals(run, repository)
    with run.batch():
        CodeState.objects.filter(repository=repository).update(is_linked=True)
    take_stock(run, repository)
