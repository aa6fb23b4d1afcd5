"""Job pages: lists, the live bar, the end of polling, cancel and retry."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from apps.jobs.models import Job

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loud_templates")]
HTMX = {"HX-Request": "true"}


def test_portal_fact_22_bars_of_unknown_total_known_total_and_the_end(world: Any, jobs: Callable[..., Job]) -> None:
    client = world.client("ada")
    unknown = jobs(world.public, kind="embed", status="running", stage="waiting for the embedder")
    body = client.get(f"/jobs/{unknown.pk}").content.decode()
    assert "waiting for the embedder" in body
    assert '<progress aria-label="Progress of Embed: total unknown">' in body
    known = jobs(world.public, status="running", stage="indexing", done=118, total=126)
    body = client.get(f"/jobs/{known.pk}", headers=HTMX).content.decode()
    assert "indexing 118 of 126 files" in body
    assert "93 %" in body
    assert 'max="126" value="118"' in body
    assert "hx-get" in body
    done = jobs(world.public, warnings=2, outcome="126 files, 2 with warnings")
    last = client.get(f"/jobs/{done.pk}", headers=HTMX)
    assert last.status_code == 286
    body = last.content.decode()
    assert "done with warnings" in body
    assert 'id="cg-job"' in body, "the finished page is complete without another request"
    assert "data-polls" not in body
    assert last["HX-Retarget"] == "#cg-job"
    bar = client.get(f"/jobs/{done.pk}?bar=1", headers=HTMX)
    assert bar.status_code == 286
    assert 'id="cg-job"' not in bar.content.decode()
    assert "HX-Retarget" not in bar
    assert f'href="/repos/{world.public.slug}">Show what it brought</a>' in bar.content.decode()
    assert "Show what it brought" not in body


def test_a_new_attempt_is_told_while_the_page_follows(world: Any, jobs: Callable[..., Job]) -> None:
    client = world.client("ada")
    job = jobs(world.public, status="running", stage="indexing", done=1, total=9, attempts=1, runs=2)
    page = client.get(f"/jobs/{job.pk}?state=error").content.decode()
    assert "<li>attempt 2</li>" in page, "every run counts, also one that was not charged"
    assert f'hx-get="/jobs/{job.pk}?state=error&amp;run=2"' in page
    same = client.get(f"/jobs/{job.pk}?state=error&run=2", headers=HTMX)
    assert 'id="cg-job"' not in same.content.decode()
    Job.objects.filter(pk=job.pk).update(runs=3)
    whole = client.get(f"/jobs/{job.pk}?state=error&run=2", headers=HTMX)
    assert (whole.status_code, whole["HX-Retarget"]) == (200, "#cg-job")
    assert "<li>attempt 3</li>" in whole.content.decode()
    assert f'hx-get="/jobs/{job.pk}?state=error&amp;run=3"' in whole.content.decode()


def test_portal_fact_23_without_script_the_page_reloads_only_while_it_runs(
    world: Any, jobs: Callable[..., Job]
) -> None:
    client = world.client("ada")
    refresh = '<noscript><meta http-equiv="refresh" content="5"></noscript>'
    running = jobs(world.public, status="running")
    assert refresh in client.get(f"/jobs/{running.pk}").content.decode()
    assert refresh not in client.get(f"/jobs/{jobs(world.public).pk}").content.decode()


def test_portal_rule_26_filters_and_scope(world: Any, jobs: Callable[..., Job]) -> None:
    jobs(None, kind="retention")
    jobs(world.private, kind="embed", status="error")
    otto, ada = world.client("otto"), world.client("ada")
    listed = otto.get("/jobs").content.decode()
    assert world.public.slug in listed
    assert world.private.slug not in listed
    assert "Retention" not in listed.partition("<table")[2]
    body = ada.get("/jobs?state=error").content.decode()
    assert "failed" in body
    assert "done with warnings</span>" not in body
    assert "Retention" in ada.get("/jobs?kind=retention").content.decode().partition("<table")[2]
    assert "No job matches" in ada.get("/jobs?kind=nothing").content.decode()
    for strange in (
        "/jobs?source=x:y",
        "/jobs?source=repository:zz",
        "/jobs?page=zz",
        "/jobs?page=99",
        "/jobs?state=%00",
    ):
        assert ada.get(strange).status_code == 200


def test_access_rule_49_a_job_of_a_hidden_source_is_absent(world: Any, jobs: Callable[..., Job]) -> None:
    import uuid

    job = jobs(world.private)
    client = world.client("otto")
    hidden, missing = client.get(f"/jobs/{job.pk}"), client.get(f"/jobs/{uuid.uuid4()}")
    assert hidden.status_code == missing.status_code == 404
    assert hidden.content == missing.content
    assert client.post(f"/jobs/{job.pk}/cancel").status_code == 404


def test_portal_rule_27_cancel_and_retry_for_writers_only(world: Any, jobs: Callable[..., Job]) -> None:
    job = jobs(world.private, status="queued")
    dana, wim = world.client("dana"), world.client("wim")
    assert "Cancel this job" not in dana.get(f"/jobs/{job.pk}").content.decode()
    assert dana.post(f"/jobs/{job.pk}/cancel").status_code == 403
    assert "Cancel this job" in wim.get(f"/jobs/{job.pk}").content.decode()
    assert wim.post(f"/jobs/{job.pk}/cancel").status_code == 302
    job.refresh_from_db()
    assert job.status == "cancelled"
    again = wim.post(f"/jobs/{job.pk}/retry")
    new = Job.objects.get(retry_of=job)
    assert again["Location"] == f"/jobs/{new.pk}"
    assert "an earlier job" in wim.get(again["Location"]).content.decode()


def test_portal_fact_25_nothing_taken_is_no_success(world: Any, jobs: Callable[..., Job]) -> None:
    jobs(
        world.public,
        warnings=1,
        outcome="0 files at 4f2c9ab.",
        counters={"discovered_files": 0},
        notes=[
            {
                "code": "nothing_taken",
                "message": "0 of 120 files matched",
                "samples": [{"path": "docs/a.md", "reason": "filtered"}],
            }
        ],
    )
    body = world.client("otto").get(f"/repos/{world.public.slug}/report").content.decode()
    assert "0 of 120 files matched" in body
    assert "docs/a.md" in body
    assert "done with warnings" in body
    assert "success" not in body


def test_portal_rule_26_lists_filter_by_the_name_of_a_source(world: Any, jobs: Callable[..., Job]) -> None:
    jobs(world.public)
    jobs(world.private)
    ada, otto = world.client("ada"), world.client("otto")

    def listed(client: Any, query: str) -> str:
        body: str = client.get(f"/jobs?{query}").content.decode()
        return body.partition('id="cg-jobs"')[2]

    assert world.private.slug in listed(ada, "about=secret-PLANS")
    assert world.public.slug not in listed(ada, "about=secret-PLANS")
    assert "No job matches" in listed(otto, "about=secret")
    whole = ada.get(f"/jobs?source=repository:{world.public.pk}&state=done").content.decode()
    assert f'href="?state=done">{world.public.slug} ' in whole, "the filter by one source says its name and can go"
    hidden = otto.get(f"/jobs?source=repository:{world.private.pk}").content.decode()
    assert world.private.slug not in hidden


def test_access_rule_35_jobs_of_single_pages_are_folded_unless_they_fail(world: Any, jobs: Callable[..., Job]) -> None:
    client = world.client("ada")
    rows = {status: jobs(world.public, kind="project_document", status=status) for status in ("success", "queued")}
    rows["error"] = jobs(world.public, kind="project_document", status="error")
    for address, shown in (
        ("/jobs", {"error"}),
        ("/jobs?state=queued", set()),
        ("/jobs?kind=project_document", {"success", "queued", "error"}),
    ):
        body = client.get(address).content.decode()
        assert {status for status, job in rows.items() if str(job.pk) in body} == shown


def test_portal_rule_47_a_finished_job_says_what_it_did_and_its_state_once(
    world: Any, jobs: Callable[..., Job]
) -> None:
    counted = jobs(world.public, kind="embed", counters={"embedded": 1661, "graph": {}})
    silent = jobs(world.public, kind="describe_source")
    body = world.client("ada").get(f"/jobs/{counted.pk}").content.decode()
    words = re.compile(r'<div class="bar-words"><span>([^<]*)</span></div>')
    assert [one.strip() for one in words.findall(body)] == ["1,661 embedded"]
    body = world.client("ada").get(f"/jobs/{silent.pk}").content.decode()
    assert [one.strip() for one in words.findall(body)] == [""]
    assert f'<h1>Source description: <a href="/repos/{world.public.slug}">' in body


def test_portal_rule_28_a_list_follows_what_runs_and_rests_afterwards(world: Any, jobs: Callable[..., Job]) -> None:
    client = world.client("ada")
    polls = 'href="/jobs?state=running" data-polls hx-get="/jobs?state=running"'
    assert "data-polls" not in client.get("/jobs").content.decode().partition('id="cg-jobs"')[2]
    jobs(world.public, kind="embed", status="running")
    assert polls in client.get("/jobs?state=running").content.decode()
    assert polls in client.get("/jobs?state=running", headers=HTMX).content.decode()
