"""Queries a request: within the budget of each page, and equal for 3 rows and for 30 (``portal.md`` 50)."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.jobs.models import Job, JobItem
from apps.jobs.worker import run_job
from apps.knowledge_graph.storing.rebuild import rebuild
from apps.repos.models import Repository, RepositoryDocument
from apps.repos.registration import request_sync
from tests.portal.worlds import commit

pytestmark = pytest.mark.django_db


def queries(client: Any, path: str, **headers: str) -> int:
    client.get(path, headers=headers)  # the first call of a process loads content types
    with CaptureQueriesContext(
        connection,
    ) as seen:
        response = client.get(path, headers=headers)
    assert response.status_code in (200, 286)
    found = [
        query["sql"] for query in seen.captured_queries if not query["sql"].startswith(("SAVEPOINT", "RELEASE", "SET "))
    ]
    return len(found)


@pytest.fixture
def more(
    world: Any,
    jobs: Callable[..., Job],
    documents: Callable[..., RepositoryDocument],
    repositories: Callable[..., Repository],
) -> Callable[[int], None]:
    def make(count: int) -> None:
        job = Job.objects.filter(source_id=world.public.pk, kind="sync", status="success").order_by("created_at")[0]
        for number in range(count):
            repositories(f"github.com/more/r{count}-{number}", visibility="public")
            documents(world.public, f"more/{count}/{number}.md")
            jobs(world.public, requested_by=world.people["wim"])
            JobItem.objects.create(job=job, path=f"{count}/{number}", state="created")

    return make


@pytest.mark.parametrize("persona", ["otto", "ada"])
def test_portal_fact_41_budgets_hold_for_3_and_for_30_rows(
    world: Any, more: Callable[[int], None], persona: str
) -> None:
    client = world.client(persona)
    slug = world.public.slug
    more(3)
    live = Job.objects.create(kind="embed", source_kind="repository", source_id=world.public.pk)
    job = Job.objects.filter(source_id=world.public.pk, kind="sync").latest("finished_at")
    budgets = {
        "/": 10,
        "/repos": 6,
        "/jobs": 6,
        f"/repos/{slug}": 14,
        f"/repos/{slug}/docs/readme": 12,
        f"/repos/{slug}/report": 8,
        f"/repos/{slug}/report/{job.pk}": 8,
        "/account/tokens": 5,
    }
    few = {path: queries(client, path) for path in budgets}
    over = {path: count for path, count in few.items() if count > budgets[path]}
    assert not over
    poll = queries(client, f"/jobs/{live.pk}", **{"HX-Request": "true"})
    assert poll <= 3
    job.created_at += datetime.timedelta(days=1)
    job.save()  # still among the newest, which the history holds anyway
    more(30)
    assert {path: queries(client, path) for path in budgets} == few
    assert queries(client, f"/jobs/{live.pk}", **{"HX-Request": "true"}) == poll


def test_portal_rule_50_pages_that_ask_for_much(world: Any, synced: Callable[..., Repository], tmp_path: Path) -> None:
    """Search, context and findings over one repository."""
    repository = synced(files={f"docs/more/{number}.md": f"# Install {number}\n\n[gone](x.md)" for number in range(3)})
    rebuild("repository", repository.pk)
    client = world.client("otto")
    budgets = {
        "/search?q=install+handbook": 14,
        "/context?task=install+the+handbook": 16,
        f"/repos/{repository.slug}/lint": 8,
    }
    few = {path: queries(client, path) for path in budgets}
    assert {path: count for path, count in few.items() if count > budgets[path]} == {}
    commit(
        tmp_path / "acme" / "handbook",
        {f"docs/more/{number}.md": f"# Install {number}\n\n[gone](x.md)" for number in range(3, 33)},
    )
    assert run_job(request_sync(repository=repository, by=world.people["ada"]).job.pk)
    rebuild("repository", repository.pk)
    more = {path: queries(client, path) for path in budgets}
    # Which tiers a pack has depends on what it finds; its budget is that of a pack with all of them.
    packs = "/context?task=install+the+handbook"
    assert more.pop(packs) <= budgets[packs]
    assert more == {path: few[path] for path in more}
