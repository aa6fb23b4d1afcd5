"""Real git repositories in temporary folders, and the portal's side of them."""

from __future__ import annotations

import dataclasses
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from apps.access.models import User
from apps.jobs.models import Job
from apps.jobs.worker import run_job
from apps.repos.models import Repository, RepositoryDocument
from apps.repos.registration import register_repository, request_sync

ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Ann Author",
    "GIT_AUTHOR_EMAIL": "ann@example.com",
    "GIT_COMMITTER_NAME": "Ann Author",
    "GIT_COMMITTER_EMAIL": "ann@example.com",
    "LC_ALL": "C.UTF-8",
}


class Upstream:
    """A repository that somebody else works on."""

    def __init__(self, path: Path, branch: str = "main") -> None:
        self.path = path
        self.clock = 1_700_000_000
        path.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", branch)

    def git(self, *arguments: str) -> str:
        self.clock += 60
        stamp = f"{self.clock} +0000"
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.path,
            check=True,
            capture_output=True,
            env={**ENVIRONMENT, "GIT_AUTHOR_DATE": stamp, "GIT_COMMITTER_DATE": stamp},
        )
        return done.stdout.decode().strip()

    def write(self, files: Mapping[str, str | bytes | None]) -> Upstream:
        """Contents by path; None deletes, a ``→`` in front makes a symbolic link."""
        for name, content in files.items():
            path = self.path / name
            if content is None:
                path.unlink()
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, str) and content.startswith("→"):
                path.symlink_to(content[1:])
            else:
                path.write_bytes(content.encode() if isinstance(content, str) else content)
        return self

    def commit(self, files: Mapping[str, str | bytes | None] | None = None, message: str = "change") -> str:
        self.write(files or {})
        self.git("add", "-A", "-f")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")


class Portal:
    """What an administrator does with repositories, jobs run in this process."""

    def __init__(self, admin: User) -> None:
        self.admin = admin

    def add(self, upstream: Upstream, **settings: Any) -> Repository:
        registered = register_repository(
            by=self.admin, git_url=str(upstream.path), trusted_path=True, sync=False, **settings
        )
        return registered.repository

    def sync(self, repository: Repository, **params: Any) -> Job:
        enqueued = request_sync(repository=repository, by=self.admin, **params)
        job = run_job(enqueued.job.pk)
        assert job is not None
        repository.refresh_from_db()
        return job

    def synced(self, upstream: Upstream, **settings: Any) -> tuple[Repository, Job]:
        repository = self.add(upstream, **settings)
        return repository, self.sync(repository)


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    return Upstream(tmp_path / "acme" / "site")


@pytest.fixture
def new_upstream(tmp_path: Path) -> Callable[[str], Upstream]:
    return lambda name: Upstream(tmp_path / "acme" / name)


@pytest.fixture(autouse=True)
def _own_data_folder(settings: Any, tmp_path: Path) -> None:
    settings.COGRAPH = dataclasses.replace(
        settings.COGRAPH,
        data_dir=str(tmp_path / "var"),
        embedding=dataclasses.replace(settings.COGRAPH.embedding, backend="none"),
    )


@pytest.fixture
def admin(db: None) -> User:
    return User.objects.create_superuser("ada", password="x")


@pytest.fixture
def portal(admin: User) -> Portal:
    return Portal(admin)


@pytest.fixture
def documents() -> Callable[[Repository], dict[str, RepositoryDocument]]:
    return lambda repository: {
        document.path: document for document in RepositoryDocument.objects.filter(repository=repository)
    }


@pytest.fixture
def items() -> Callable[[Job], dict[str, Any]]:
    return lambda job: {item.path: item for item in job.items.all()}
