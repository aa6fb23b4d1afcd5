"""Personas and sources for the pages, made as rows; and templates that fail loudly on a variable that is not there."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.template import engines
from django.test import Client
from django.utils import timezone

from apps.access.grants import grant
from apps.access.models import User
from apps.jobs.models import Job, JobAttempt, JobItem
from apps.repos.models import Repository, RepositoryDocument, RepositoryFile, SyncReport

COMMIT = "4f2c9ab81d0e3f5a6b7c8d9e0f1a2b3c4d5e6f70"


class Loud(str):
    """Takes the place of Django's silent empty string."""

    def __contains__(self, key: object) -> bool:
        return True

    def __mod__(self, variable: object) -> str:
        raise AssertionError(f"a template asks for {variable}, which is not there")


@pytest.fixture
def loud_templates() -> Iterator[None]:
    engine = engines["django"].engine  # type: ignore[attr-defined]
    before = engine.string_if_invalid
    engine.string_if_invalid = Loud("invalid")
    yield
    engine.string_if_invalid = before


@dataclass
class World:
    """Rp public, Rv private (owner Olga, read for group docs, write for Wim); Ada administrates, Otto has nothing."""

    people: dict[str, User]
    public: Repository
    private: Repository
    clients: dict[str, Client] = field(default_factory=dict)

    def client(self, name: str) -> Client:
        if name not in self.clients:
            client = Client()
            if name != "anonymous":
                client.force_login(self.people[name])
            self.clients[name] = client
        return self.clients[name]


def make_repository(slug: str, **values: Any) -> Repository:
    now = timezone.now()
    return Repository.objects.create(
        **{
            "slug": slug,
            "git_url": f"https://{slug}.git",
            "state": "ready",
            "synced_commit": COMMIT,
            "synced_branch": "main",
            "synced_at": now,
            "last_checked_at": now,
            "committed_at": now,
            **values,
        }
    )


def make_document(
    repository: Repository, path: str, text: str = "# Title\n\nText.\n", **values: Any
) -> RepositoryDocument:
    heading = next((line.lstrip("# ") for line in text.splitlines() if line.startswith("#")), path.rpartition("/")[2])
    document = RepositoryDocument.objects.create(
        **{
            "repository": repository,
            "path": path,
            "kind": "repo_doc",
            "title": heading,
            "slug": path.rpartition(".")[0].replace("/", "-").lower(),
            "state": "indexed" if text.strip() else "empty",
            "blob": "0" * 40,
            "size": len(text.encode()),
            "content_hash": "0" * 64,
            "parser_version": "1",
            "chunk_profile": "words",
            "encoding": "utf-8",
            "text": text,
            "line_count": text.count("\n"),
            "word_count": len(text.split()),
            "commit": COMMIT,
            "committed_at": timezone.now(),
            "structure": {
                "headings": [
                    {
                        "level": len(line) - len(line.lstrip("#")),
                        "text": line.lstrip("# "),
                        "anchor": line.lstrip("# ").lower().replace(" ", "-"),
                        "line": number,
                        "nested": False,
                    }
                    for number, line in enumerate(text.splitlines(), start=1)
                    if line.startswith("#")
                ]
            },
            **values,
        }
    )
    RepositoryFile.objects.create(
        repository=repository,
        path=path,
        mode=0o100644,
        blob="0" * 40,
        size=len(text.encode()),
        kind=document.kind,
        state="indexed",
    )
    return document


def make_job(repository: Repository | None, kind: str = "sync", status: str = "success", **values: Any) -> Job:
    now = timezone.now()
    finished = status in ("success", "error", "cancelled")
    running = status == "running"
    return Job.objects.create(
        **{
            "kind": kind,
            "source_kind": "repository" if repository else "",
            "source_id": repository.pk if repository else None,
            "key": "" if finished else uuid.uuid4().hex,
            "status": status,
            "created_at": now - datetime.timedelta(minutes=3),
            "started_at": now - datetime.timedelta(minutes=2) if finished or running else None,
            "finished_at": now if finished else None,
            "lease_token": uuid.uuid4() if running else None,
            "lease_expires": now + datetime.timedelta(hours=1) if running else None,
            "attempts": 1 if finished or running else 0,
            **values,
        }
    )


@pytest.fixture
def world(db: None) -> World:
    people = {
        name: User.objects.create_user(name, password="a long enough one") for name in ("olga", "wim", "dana", "otto")
    }
    people["ada"] = User.objects.create_superuser("ada", password="a long enough one")
    people["stan"] = User.objects.create_user("stan", password="a long enough one", is_staff=True)
    group = Group.objects.create(name="docs")
    people["dana"].groups.add(group)
    public = make_repository("github.com/acme/guides", visibility="public", description="What everybody needs.")
    private = make_repository("github.com/acme/secret-plans", visibility="private", owner=people["olga"])
    grant(source=private, to=group, level="read", by=people["ada"])
    grant(source=private, to=people["wim"], level="write", by=people["ada"])
    for repository in (public, private):
        make_document(repository, "README.md", "# Welcome\n\nRead [setup](docs/setup.md).\n\n## Next\n\nGo.\n")
        make_document(repository, "docs/setup.md", "# Set up\n\n## First\n\nOne.\n\n## Second\n\nTwo.\n")
        RepositoryFile.objects.create(
            repository=repository,
            path="src/main.go",
            mode=0o100644,
            blob="1" * 40,
            size=9,
            state="not_taken",
            reason="no rule",
        )
        job = make_job(
            repository,
            warnings=2,
            outcome="4 files at 4f2c9ab: 2 indexed, 1 skipped, 1 with errors; 2 of 4 clean.",
            counters={
                "discovered_files": 4,
                "indexed_documents": 2,
                "indexed_chunks": 5,
                "unchanged_documents": 0,
                "deleted_documents": 0,
                "replaced_files": 0,
                "moved": 1,
            },
            notes=[{"code": "history", "message": "History was rewritten upstream."}],
        )
        SyncReport.objects.create(
            job=job,
            repository=repository,
            commit=COMMIT,
            branch="main",
            totals={"clean": 2, "listed": 9},
            not_taken={"no rule": {"count": 5, "samples": ["src/main.go"]}},
        )
        JobItem.objects.create(job=job, path="README.md", state="created", size=60, milliseconds=4, chunks=2)
        JobItem.objects.create(
            job=job,
            path="docs/bad.md",
            state="error",
            reason="parse",
            message="Nested too deep.",
            line=4,
            column=2,
            warning=True,
        )
        JobAttempt.objects.create(
            job=job,
            number=1,
            worker="w",
            started_at=job.started_at,
            finished_at=job.finished_at,
            ending="success",
            stages=[{"stage": "fetching", "at": job.started_at.timestamp()}],
        )
    return World(people, public, private)


@pytest.fixture
def documents() -> Callable[..., RepositoryDocument]:
    return make_document


@pytest.fixture
def jobs() -> Callable[..., Job]:
    return make_job


@pytest.fixture
def repositories() -> Callable[..., Repository]:
    return make_repository
