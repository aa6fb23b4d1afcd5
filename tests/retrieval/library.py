"""Git repositories put into the portal for the tests of search, workers' jobs run in this process."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from apps.access.models import User
from apps.jobs.worker import drain
from apps.repos.models import Repository
from apps.repos.registration import register_repository

STAMP = "1700000000 +0000"


def repository_of(folder: Path, files: Mapping[str, str], admin: User) -> Repository:
    """A repository at ``folder`` (its last two parts are owner and name) with one commit, synced and embedded."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    commit_all(folder)
    made = register_repository(by=admin, git_url=str(folder), trusted_path=True).repository
    drain()
    made.refresh_from_db()
    return made


def commit_all(folder: Path) -> None:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "Ann",
        "GIT_AUTHOR_EMAIL": "ann@example.com",
        "GIT_COMMITTER_NAME": "Ann",
        "GIT_COMMITTER_EMAIL": "ann@example.com",
        "GIT_AUTHOR_DATE": STAMP,
        "GIT_COMMITTER_DATE": STAMP,
    }
    for arguments in (("init", "-q", "-b", "main"), ("add", "-A", "-f"), ("commit", "-q", "-m", "all")):
        subprocess.run(["git", *arguments], cwd=folder, check=True, env=environment)
