"""A worker that dies in the middle of a sync: real clusters, real SIGKILL, short leases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.access.models import User
from apps.jobs.models import Job, Suspect
from apps.repos.models import (
    Repository,
    RepositoryDocument,
    RepositoryDocumentChunk,
    RepositoryDocumentLink,
    RepositoryFile,
)
from apps.repos.read_stage import BATCH_FILES
from apps.repos.registration import request_sync
from tests.jobs.conftest import Workers, breakable_workers, finished
from tests.repos.conftest import Portal, Upstream

pytestmark = [pytest.mark.workers, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def workers(transactional_db: None, tmp_path: Path, monkeypatch: Any) -> Iterator[Workers]:
    with breakable_workers(tmp_path, monkeypatch) as started:
        yield started


def digest(repository: Repository) -> list[Any]:
    """All derived rows, without ids."""
    of_it = {"repository": repository}
    return [
        list(model.objects.filter(**of_it).order_by(*fields).values_list(*fields))  # type: ignore[attr-defined]
        for model, fields in (
            (RepositoryDocument, ("path", "title", "slug", "content_hash", "chunk_count", "commit")),
            (RepositoryDocumentChunk, ("document__path", "chunk_index", "source", "start_line", "end_line")),
            (RepositoryDocumentLink, ("document__path", "href", "state", "target_document__path", "lines")),
            (RepositoryFile, ("path", "blob", "kind", "state")),
        )
    ]


PAGES = BATCH_FILES + 44
"""More than one batch."""


def pages(count: int) -> dict[str, str | bytes | None]:
    return {
        f"docs/p{n:03}.md": f"# Page {n}\n\n[next](p{n + 1:03}.md)\n\n## More\n\nWords of {n}.\n" for n in range(count)
    }


def test_repos_fact_34_access_fact_40_case_B090_kill_in_mid_sync(workers: Workers, upstream: Upstream) -> None:
    portal = Portal(User.objects.create_superuser("ada", password="x"))
    upstream.commit(pages(PAGES))
    clean = portal.add(upstream, name="clean")
    finished(request_sync(repository=clean, by=portal.admin).job)
    repository = portal.add(upstream, name="killed")
    workers.arm("mid_batch")
    job = finished(request_sync(repository=repository, by=portal.admin).job)
    assert not (workers.folder / "mid_batch").exists(), "the worker was never killed"
    assert (job.status, job.attempts) == ("success", 2), job.error_message
    assert digest(repository) == digest(clean)
    assert Job.objects.filter(source_id=repository.pk, kind="sync").count() == 1
    counters = Job.objects.get(source_id=clean.pk, kind="sync").counters
    assert {name: job.counters[name] for name in ("indexed_documents", "indexed_chunks", "discovered_files")} == {
        name: counters[name] for name in ("indexed_documents", "indexed_chunks", "discovered_files")
    }
    again = finished(request_sync(repository=repository, by=portal.admin).job)
    assert again.counters["unchanged_documents"] == PAGES, "the lock is free and nothing is left to do"

    bad = portal.add(upstream, name="bad")
    upstream.commit({"killer.md": "# Killer"} | {f"docs/p{n:03}.md": None for n in range(100, PAGES)})
    workers.arm("killer")
    job = finished(request_sync(repository=bad, by=portal.admin).job, seconds=60)
    assert (job.status, job.warnings) == ("success", 1), job.error_message
    assert bad.documents.count() == 100
    assert job.items.get(path="killer.md").state == "quarantined"
    assert Suspect.objects.get().losses == 3
    assert RepositoryFile.objects.get(repository=bad, path="killer.md").state == "quarantined"
    workers.calm()
    upstream.commit({"killer.md": "# Harmless now"})
    job = finished(request_sync(repository=bad, by=portal.admin).job)
    assert job.items.get(path="killer.md").state == "created"
