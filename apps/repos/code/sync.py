"""What a sync does with code once the files of a commit are known: store, resolve, link, take stock."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from apps.jobs.running import JobRun
from apps.markup.values import Limits
from apps.repos.code.dates import date_files
from apps.repos.code.departures import note_departures
from apps.repos.code.linking import link, read_names
from apps.repos.code.literals import resolve_literals
from apps.repos.code.stage import CodeStage
from apps.repos.code.stock import take_stock
from apps.repos.models import Repository
from apps.repos.models_code import CodeState


def sync_code(
    run: JobRun,
    repository: Repository,
    *,
    mirror: Path,
    limits: Limits,
    forced: bool,
    previous: str,
    gone_paths: Mapping[str, str],
) -> None:
    """Bring everything that is derived from code up to the synced commit. ``previous`` is the one synced before,
    ``gone_paths`` the paths that it had and this one has not, with their blobs."""
    stage = CodeStage(run, repository, mirror=mirror, limits=limits)
    previous = stage.state.commit or previous  # an older one, when the run before this died after the documents
    changes = stage.work(forced=forced)
    date_files(run, repository, mirror=mirror)
    chunks = read_names(run, repository)
    everything = forced or not stage.state.is_linked
    link(run, repository, chunks=chunks, names=sorted(changes.names), everything=everything)
    resolve_literals(run, repository)
    note_departures(run, repository, changes, gone_paths, mirror=mirror, previous=previous)
    with run.batch():
        CodeState.objects.filter(repository=repository).update(is_linked=True)
    take_stock(run, repository)
