"""Personas and sources for the pages, made as rows."""

from __future__ import annotations

import datetime
import os
import subprocess
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.contrib.auth.models import Group
from django.test import Client
from django.utils import timezone

from apps.access.grants import grant
from apps.access.models import User
from apps.jobs.models import Job, JobAttempt, JobItem
from apps.repos.models import Repository, RepositoryDocument, RepositoryFile, SyncReport

COMMIT = "4f2c9ab81d0e3f5a6b7c8d9e0f1a2b3c4d5e6f70"


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


def build() -> World:
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


FILES = {
    "README.md": (
        "# Handbook\n\nStart with [setting up](docs/set%20up.md#first-steps) or the [glossary](docs/glossary.md).\n"
    ),
    "docs/set up.md": (
        "# Set up\n\n## First steps\n\nRun it:\n\n```sh\nmake install\n```\n\n"
        "See `src/main.py` and [nothing](gone.md).\n\n## Sync ↔ Export — v2\n\nText.\n\n"
        "## 部署手順\n\n数据库备份每天凌晨执行。\n\n## 部署手順\n\nAgain.\n\n## 🚀 Go\n\nOne.\n\n## 🚀 Go\n\nTwo.\n\n"
        "[jump](#部署手順-1)\n\n![logo](../img/p.png)\n"
    ),
    "docs/glossary.md": "# Glossary\n\nA **chunk** is a piece.\n\n| a | b |\n|--:|---|\n| 1 | 2 |\n",
    "docs/hostile.md": (
        "# <img src=x onerror=alert(1)>\n\n<script>alert(1)</script>\n\n[c](javascript:alert(1)) "
        '<a href="javascript:alert(2)" onclick="alert(3)">d</a>\n\n<svg onload=alert(4)></svg>\n\n'
        '```mermaid\ngraph TD; A["<img src=x onerror=alert(5)>"]\n```\n\n<style>body{display:none}</style>\n\n'
        "![bad](../img/bad.svg)\n"
    ),
    "docs/diagram.md": (
        "# Diagram\n\n```mermaid\ngraph TD\n  A[Load balancer] --> B[Cache]\n```\n\n"
        "```mermaid\nthis is no diagram\n```\n"
    ),
    "docs/canon.md": (
        "---\ntype: decision\nslug: dec-new\nstatus: accepted\nsupersedes: [dec-old]\n---\n# New way\n\n"
        "Replaces [[dec-old]], for [[mod-cache]] and [[mod-nowhere]].\n"
    ),
    "docs/canon-old.md": (
        "---\ntype: decision\nslug: dec-old\nstatus: superseded\n---\n# Old way\n\nOnce for [[mod-cache]].\n"
    ),
    "docs/canon-cache.md": ("---\ntype: module\nslug: mod-cache\nstatus: accepted\n---\n# Cache\n\nKeeps things.\n"),
    "docs/empty.md": "",
    "docs/bad.md": "---\ntitle: x\n\tbad: [\n---\n# Bad\n\nText.\n",
    "src/main.py": "def main() -> None:\n    print('hello')\n\n\nmain()\n",
    "img/bad.svg": '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(6)</script></svg>',
}
PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c63606060f80f00010401005fe5c34b0000000049454e44ae426082"
)


def commit(path: Path, files: Mapping[str, str | bytes | None], message: str = "change") -> None:
    """Write files (None deletes) and commit them."""
    for name, content in files.items():
        target = path / name
        if content is None:
            target.unlink()
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)
    who = {f"GIT_{role}_{what}": "Ann" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1", **who}
    for arguments in (("add", "-A", "-f"), ("commit", "-q", "--allow-empty", "-m", message)):
        subprocess.run(["git", *arguments], cwd=path, check=True, capture_output=True, env=environment)


def upstream_of(path: Path) -> Path:
    """A real git repository with the documents that the browser reads."""
    path.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=path, check=True, capture_output=True)
    commit(path, {**FILES, "img/p.png": PICTURE})
    return path
