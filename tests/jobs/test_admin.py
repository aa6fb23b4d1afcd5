"""The admin pages of jobs: scoped, read-only, acts by the functions of the pages and only after a question."""

from __future__ import annotations

import pytest

from apps.access.models import User
from apps.jobs.models import Job, JobItem, Suspect
from apps.jobs.queue import enqueue
from apps.jobs.worker import run_job

pytestmark = pytest.mark.django_db
REPOSITORY = frozenset({"repository"})
LIST = "/admin/jobs/job/"


@pytest.fixture
def stan():
    return User.objects.create_user("stan", password="x", is_staff=True)


@pytest.fixture
def jobs(kind, make_repository, stan):
    """One job on a public, on a hidden and on an own source, and one of the deployment."""
    name = kind(lambda run: None, sources=REPOSITORY)
    sources = {
        "public": make_repository(visibility="public", slug="example.org/team/public"),
        "hidden": make_repository(visibility="private", slug="example.org/team/hidden"),
        "own": make_repository(visibility="private", slug="example.org/team/own", owner=stan),
    }
    made = {label: enqueue(name, source=source).job for label, source in sources.items()}
    made["system"] = enqueue(kind(lambda run: None, name="of_deployment")).job
    return made


def post(client, action, *jobs, confirmed=True):
    data = {"action": action, "_selected_action": [str(job.pk) for job in jobs]}
    return client.post(LIST, data | ({"confirmed": "1"} if confirmed else {}), follow=True)


def test_access_fact_22_staff_see_and_filter_only_readable_jobs(client, stan, jobs):
    client.force_login(stan)
    page = client.get(LIST).content.decode()
    assert "example.org/team/public" in page and "example.org/team/own" in page
    assert "team/hidden" not in page and "deployment" not in page.lower()
    for label in ("public", "hidden"):
        found = client.get(LIST, {"source": f"repository:{jobs[label].source_id}"})
        assert [job.pk for job in found.context["cl"].result_list] == ([jobs["public"].pk] if label == "public" else [])
    missing = client.get(f"{LIST}00000000-0000-4000-8000-000000000000/change/")
    hidden = client.get(f"{LIST}{jobs['hidden'].pk}/change/")
    assert hidden.status_code == missing.status_code != 200
    assert client.get(f"{LIST}{jobs['own'].pk}/change/").status_code == 200


@pytest.mark.parametrize("page", ["job", "jobitem", "jobattempt", "suspect"])
def test_pages_are_read_only_and_open_for_staff(client, stan, jobs, page):
    JobItem.objects.create(job=jobs["own"], path="mine.md", state="created")
    JobItem.objects.create(job=jobs["hidden"], path="theirs.md", state="created")
    for label in ("own", "hidden"):
        Suspect.objects.create(
            source_kind="repository", source_id=jobs[label].source_id, path=f"bad-{label}.md", content_id="1", losses=3
        )
    run_job(jobs["own"].pk)
    client.force_login(stan)
    shown = client.get(f"/admin/jobs/{page}/").content.decode()
    assert "theirs.md" not in shown and "bad-hidden.md" not in shown
    assert client.get(f"/admin/jobs/{page}/add/").status_code == 403


def test_cancel_asks_first_then_refuses_row_by_row(client, stan, jobs):
    client.force_login(stan)
    asked = post(client, "cancel_jobs", jobs["own"], jobs["public"], confirmed=False)
    assert "What they stored stays" in asked.content.decode()
    assert "Tried of example.org/team/own" in asked.content.decode()
    assert Job.objects.filter(status="cancelled").count() == 0
    told = [str(message) for message in post(client, "cancel_jobs", jobs["own"], jobs["public"]).context["messages"]]
    assert told[0].startswith("tried (queued): You may read this")
    assert told[1] == "1 job cancelled or about to end."
    assert set(Job.objects.filter(status="cancelled")) == {jobs["own"]}


def test_retry_calls_the_function_of_the_pages(client, stan, jobs):
    client.force_login(stan)
    post(client, "cancel_jobs", jobs["own"])
    post(client, "retry_jobs", jobs["own"])
    assert Job.objects.get(retry_of=jobs["own"]).requested_by == stan


def test_release_from_quarantine(client, stan, jobs):
    files = {
        label: Suspect.objects.create(
            source_kind="repository", source_id=jobs[label].source_id, path="bad.md", content_id="1", losses=3
        )
        for label in ("own", "public")
    }
    client.force_login(stan)
    client.post(
        "/admin/jobs/suspect/",
        {"action": "release", "_selected_action": [file.pk for file in files.values()], "confirmed": "1"},
    )
    assert list(Suspect.objects.all()) == [files["public"]]


def test_portal_50_the_list_costs_the_same_for_3_and_30_rows(
    client, kind, make_repository, django_assert_max_num_queries
):
    ada = User.objects.create_superuser("ada", password="x")
    name = kind(lambda run: None, sources=REPOSITORY)
    for number in range(30):
        enqueue(name, source=make_repository(), by=None)
        if number in (2, 29):
            client.force_login(ada)
            with django_assert_max_num_queries(15):  # 12, and three that prolong the session
                assert client.get(LIST).status_code == 200


def test_access_rule_34_the_queue_has_no_pages_of_its_own(client):
    client.force_login(User.objects.create_superuser("ada", password="x"))
    assert "/admin/django_q/" not in client.get("/admin/").content.decode()
    for table in ("ormq", "schedule", "success", "failure", "task"):
        assert client.get(f"/admin/django_q/{table}/").status_code == 404
