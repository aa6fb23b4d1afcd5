"""REST of jobs: the same scope, states and words as the pages."""

from __future__ import annotations

import pytest

from apps.access.grants import grant
from apps.access.models import User
from apps.jobs.errors import LastingFailure
from apps.jobs.models import Job
from apps.jobs.queue import enqueue
from apps.jobs.worker import run_job

pytestmark = pytest.mark.django_db
REPOSITORY = frozenset({"repository"})


@pytest.fixture
def olga():
    return User.objects.create_user("olga", password="x")


@pytest.fixture
def otto():
    return User.objects.create_user("otto", password="x")


@pytest.fixture
def source(make_repository, olga):
    return make_repository(visibility="private", owner=olga)


def report(run) -> None:
    run.progress("indexing", 3, 3)
    with run.batch():
        run.item("ok.md", "created", milliseconds=3, chunks=2, size=120)
        run.item("huge.md", "skipped", reason="too_large", message="11 MiB", warning=True)
        run.item("bad-yaml.md", "created", reason="bad_front_matter", message="tab", line=4, warning=True)
        run.counters["discovered_files"] = 3


def test_access_fact_47_as_json(client, kind, source, olga):
    job = run_job(enqueue(kind(report, sources=REPOSITORY), source=source, by=olga).job.pk)
    client.force_login(olga)
    whole = client.get(f"/api/jobs/{job.pk}").json()
    assert (whole["status"], whole["state"], whole["warnings"], whole["clean"]) == (
        "success",
        "done with warnings",
        2,
        "1 of 3 clean",
    )
    assert whole["items"] == {"created": 2, "skipped": 1}
    assert whole["source"]["label"] == source.slug
    assert (whole["percentage"], whole["requested_by"], whole["error"]) == (100, "olga", None)
    assert [attempt["ending"] for attempt in whole["attempt_list"]] == ["success"]
    items = client.get(f"/api/jobs/{job.pk}/items").json()
    assert (items["total"], [row["path"] for row in items["items"]]) == (3, ["bad-yaml.md", "huge.md", "ok.md"])
    assert items["items"][0] | {"details": 0} == {
        "path": "bad-yaml.md",
        "state": "created",
        "reason": "bad_front_matter",
        "message": "tab",
        "line": 4,
        "column": None,
        "bytes": None,
        "milliseconds": None,
        "chunks": None,
        "warning": True,
        "details": 0,
    }
    one = client.get(f"/api/jobs/{job.pk}/items", {"state": "created", "q": "OK", "limit": 1}).json()
    assert [row["path"] for row in one["items"]] == ["ok.md"]


def test_access_fact_12_and_55_hidden_jobs_are_absent(client, kind, source, olga, otto, make_repository):
    name = kind(report, sources=REPOSITORY)
    hidden = enqueue(name, source=source).job
    public = enqueue(name, source=make_repository(visibility="public")).job
    client.force_login(otto)
    assert [job["id"] for job in client.get("/api/jobs").json()["items"]] == [str(public.pk)]
    assert client.get("/api/jobs", {"source": f"repository:{source.pk}"}).json()["total"] == 0
    for below in ("", "/items"):
        answers = [client.get(f"/api/jobs/{job}{below}") for job in (hidden.pk, "00000000-0000-4000-8000-000000000000")]
        assert [answer.status_code for answer in answers] == [404, 404]
        assert answers[0].content == answers[1].content
    for act in ("cancel", "retry"):
        assert client.post(f"/api/jobs/{hidden.pk}/{act}").status_code == 404
        assert client.post(f"/api/jobs/{public.pk}/{act}").status_code == 403
    grant(source=source, to=otto, level="read", by=olga)
    assert client.get(f"/api/jobs/{hidden.pk}").status_code == 200
    assert Job.objects.get(pk=hidden.pk).status == "queued"


def test_cancel_then_retry_twice(client, kind, source, olga):
    def work(run) -> None:
        raise LastingFailure("gone", "It is gone.")

    job = enqueue(kind(work, sources=REPOSITORY), source=source).job
    client.force_login(olga)
    assert client.post(f"/api/jobs/{job.pk}/cancel").json()["status"] == "cancelled"
    refused = client.post(f"/api/jobs/{job.pk}/cancel")
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    first = client.post(f"/api/jobs/{job.pk}/retry")
    second = client.post(f"/api/jobs/{job.pk}/retry")
    assert (first.status_code, second.status_code) == (202, 200)
    assert first.json()["id"] == second.json()["id"] != str(job.pk)
    assert first.headers["Location"] == f"/api/jobs/{first.json()['id']}"
    assert (first.json()["retry_of"], second.json()["deduplicated"]) == (str(job.pk), True)
    run_job(first.json()["id"])
    assert client.get(f"/api/jobs/{first.json()['id']}").json()["error"] == {"code": "gone", "message": "It is gone."}


def test_lists_are_filtered_paged_and_strict(client, kind, make_repository):
    name = kind(report, sources=REPOSITORY)
    jobs = [enqueue(name, source=make_repository(visibility="public")).job for _ in range(5)]
    run_job(jobs[0].pk)
    client.force_login(User.objects.create_user("dana", password="x"))
    page = client.get("/api/jobs", {"limit": 3}).json()
    rest = client.get("/api/jobs", {"limit": 3, "cursor": page["next_cursor"]}).json()
    seen = [job["id"] for job in page["items"] + rest["items"]]
    assert seen == [str(job.pk) for job in reversed(jobs)]
    assert (page["total"], rest["next_cursor"]) == (5, None)
    assert client.get("/api/jobs", {"status": "success"}).json()["total"] == 1
    assert client.get("/api/jobs", {"kind": "other"}).json()["total"] == 0
    for query, code in (({"stauts": "x"}, "unknown_field"), ({"status": "x"}, None), ({"source": "x"}, "invalid")):
        answer = client.get("/api/jobs", query)
        assert answer.status_code == 400 and code in (None, answer.json()["code"])
