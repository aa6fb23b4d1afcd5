"""Uploads by real workers that are killed: `collections.md` fact 46, access facts 45, 47 and 48."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django_q.models import OrmQ

from apps.access.models import User
from apps.collections.curation import create_collection
from apps.collections.models import Collection, Document, DocumentChunk, DocumentLink
from apps.collections.tasks import PORTION_BYTES
from apps.collections.uploads import stage_batch
from apps.jobs.models import Job, Suspect
from tests.jobs.conftest import Workers, breakable_workers, finished

pytestmark = [pytest.mark.workers, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def workers(transactional_db: None, tmp_path: Path, monkeypatch: Any) -> Iterator[Workers]:
    with breakable_workers(tmp_path, monkeypatch) as started:
        yield started


def digest(collection: Collection) -> list[Any]:
    """All derived rows, without ids."""
    return [
        list(model.objects.filter(collection=collection).order_by(*fields).values_list(*fields))  # type: ignore[attr-defined]
        for model, fields in (
            (Document, ("source_key", "title", "version", "chunk_count")),
            (DocumentChunk, ("document__source_key", "chunk_index", "source", "start_line")),
            (DocumentLink, ("document__source_key", "href", "lines")),
        )
    ]


def entries(count: int, times: int = 1) -> list[tuple[str, bytes, str | None]]:
    texts = [f"# Page {n}\n\n[next](p{n + 1:03}.md)\n\n{f'Words of {n}. ' * times}\n" for n in range(count)]
    return [(f"p{n:03}.md", text.encode(), None) for n, text in enumerate(texts)]


def test_collections_fact_46_a_worker_killed_in_the_middle_of_an_upload(workers: Workers) -> None:
    olga = User.objects.create_user("olga")
    clean = create_collection(by=olga, name="Clean")
    long = entries(60, times=12_000)
    assert sum(len(raw) for _, raw, _ in long) > PORTION_BYTES, "more than one batch"
    finished(stage_batch(collection=clean, by=olga, entries=long).job, seconds=60)
    killed = create_collection(by=olga, name="Killed")
    workers.arm("mid_batch")
    # What was under way comes alone afterwards, each file in a transaction of its own.
    job = finished(stage_batch(collection=killed, by=olga, entries=long).job, seconds=90)
    assert not (workers.folder / "mid_batch").exists(), "the worker was never killed"
    assert (job.status, job.attempts, job.counters["created"]) == ("success", 2, 60), job.error_message
    assert digest(killed) == digest(clean)
    assert Job.objects.filter(source_id=killed.pk, kind="upload").count() == 1

    # The row is there and its message is not: the sweep sends it again.
    lost = create_collection(by=olga, name="Lost")
    staged = stage_batch(collection=lost, by=olga, entries=entries(3))
    OrmQ.objects.all().delete()
    assert finished(staged.job, seconds=60).counters["created"] == 3

    # Access fact 48: a file that costs a worker each time costs itself only.
    bad = create_collection(by=olga, name="Bad")
    workers.arm("killer")
    staged = stage_batch(collection=bad, by=olga, entries=[*entries(40), ("killer.md", b"# Killer", None)])
    job = finished(staged.job, seconds=60)
    workers.calm()
    assert (job.status, job.warnings) == ("success", 1), job.error_message
    assert Document.objects.filter(collection=bad).count() == 40
    assert job.items.get(path="killer.md").state == "quarantined"
    assert Suspect.objects.get().losses == 3
