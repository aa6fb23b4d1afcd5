"""The report of a sync or an upload says of each file what the graph made of it (``knowledge-graph.md`` 12)."""

from __future__ import annotations

import csv
import dataclasses
import io
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.jobs.models import Job
from apps.jobs.worker import drain
from tests.knowledge_graph.pages_of_texts import WORKED_EXAMPLE, page_text
from tests.repos.conftest import Portal, Upstream

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _own_data_folder(settings: Any, tmp_path: Path) -> None:
    settings.COGRAPH = dataclasses.replace(
        settings.COGRAPH,
        data_dir=str(tmp_path / "var"),
        embedding=dataclasses.replace(settings.COGRAPH.embedding, backend="none"),
    )


def outcomes(job: Job) -> dict[str, str]:
    return {item.path: item.details.get("graph", "") for item in job.items.all()}


def test_graph_report_of_a_sync(ada: Any, tmp_path: Path, client: Client) -> None:
    portal, upstream = Portal(ada), Upstream(tmp_path / "acme" / "site")
    upstream.commit(
        {
            **WORKED_EXAMPLE,
            "copies/v1.md": page_text("dec-cache-v1", type="decision"),
            "plain.md": "# Plain\n",
            "post.md": "---\ntype: post\n---\n# Post\n",
        }
    )
    repository, first = portal.synced(upstream)
    drain()
    assert outcomes(first) == {
        **dict.fromkeys(WORKED_EXAMPLE, "projected"),
        "copies/v1.md": "duplicate",
        "plain.md": "",
        "post.md": "",
    }
    upstream.commit(
        {
            "modules/mod-redis-pool.md": "---\nslug: mod-redis-pool\ntype: module\ntitle: a: b\n---\n",
            "modules/mod-session-store.md": page_text("mod-session-store", "No links any more."),
            "copies/v1.md": "# A plain copy\n",
        }
    )
    second = portal.sync(repository)
    drain()
    told = outcomes(second)
    assert told["modules/mod-redis-pool.md"] == "stale header"
    assert told["modules/mod-session-store.md"] == "projected"
    assert told["copies/v1.md"] == "plain"
    client.force_login(ada)
    page = reverse("repos:report-of", args=[repository.slug, second.pk])
    shown = client.get(page).content.decode()
    assert "graph: stale header" in shown
    assert "edges removed from it by edits" in shown
    as_json = client.get(page, {"format": "json"}).json()
    assert {row["path"]: row["graph"] for row in as_json["items"]} == told
    assert as_json["totals"]["edges_removed"] == 1
    rows = list(csv.DictReader(io.StringIO(client.get(page, {"format": "csv"}).content.decode())))
    assert {row["path"]: row["graph"] for row in rows} == told
    asked = client.get(f"/api/jobs/{second.pk}/items", {"limit": 100}).json()["items"]
    assert {row["path"]: row["details"].get("graph", "") for row in asked} == told


def test_graph_report_of_a_sync_that_is_projected_at_once(ada: Any, tmp_path: Path) -> None:
    portal, upstream = Portal(ada), Upstream(tmp_path / "acme" / "site")
    upstream.commit({f"p{n}.md": page_text(f"p{n}", f"[[p{n + 1}]]") for n in range(40)} | {"plain.md": "# Plain\n"})
    _, job = portal.synced(upstream)
    drain()
    assert outcomes(job) == {**{f"p{n}.md": "projected" for n in range(40)}, "plain.md": ""}


def test_graph_report_of_an_upload(platform: Any, olga: Any, client: Client) -> None:
    from django.core.files.uploadedfile import SimpleUploadedFile

    client.force_login(olga)
    files = [SimpleUploadedFile(f"p{n}.md", page_text(f"p{n}", f"[[p{n + 1}]]").encode()) for n in range(3)]
    client.post(reverse("collections:upload", args=[platform.pk]), {"files": files})
    drain()
    job = Job.objects.get(kind="upload")
    assert outcomes(job) == {f"p{n}.md": "projected" for n in range(3)}
    assert "graph: projected" in client.get(reverse("jobs:job", args=[job.pk])).content.decode()
