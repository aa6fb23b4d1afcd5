"""Personas and sources for the pages; and templates that fail loudly on a variable that is not there."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from apps.jobs.models import Job
from apps.jobs.worker import run_job
from apps.repos.models import Repository, RepositoryDocument
from apps.repos.registration import register_repository, request_sync
from tests.portal.worlds import World, build, commit, make_document, make_job, make_repository, upstream_of


@pytest.fixture
def world(db: None) -> World:
    return build()


@pytest.fixture
def documents() -> Callable[..., RepositoryDocument]:
    return make_document


@pytest.fixture
def jobs() -> Callable[..., Job]:
    return make_job


@pytest.fixture
def repositories() -> Callable[..., Repository]:
    return make_repository


@pytest.fixture
def synced(world: Any, tmp_path: Path, settings: Any) -> Callable[..., Repository]:
    """``synced(name, visibility, files)`` registers a real upstream and syncs it."""
    settings.COGRAPH = dataclasses.replace(
        settings.COGRAPH,
        data_dir=str(tmp_path / "var"),
        embedding=dataclasses.replace(settings.COGRAPH.embedding, backend="none"),
    )

    def make(name: str = "handbook", visibility: str = "public", files: Any = None) -> Repository:
        path = upstream_of(tmp_path / "acme" / name)
        commit(path, files or {})
        ada = world.people["ada"]
        repository = register_repository(
            by=ada, git_url=str(path), slug=f"local/acme/{name}", trusted_path=True, visibility=visibility, sync=False
        ).repository
        assert run_job(request_sync(repository=repository, by=ada).job.pk)
        repository.refresh_from_db()
        return repository

    return make
