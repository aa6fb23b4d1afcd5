"""kill -9 at any moment loses nothing and duplicates nothing: real clusters, real SIGKILL, short leases."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap

import pytest
from django.db import connection

from apps.jobs.models import Job, Suspect
from apps.jobs.queue import enqueue
from tests.jobs.breaking_kinds import POINTS
from tests.jobs.conftest import ROOT, digest, finished, wait_for

pytestmark = [pytest.mark.workers, pytest.mark.django_db(transaction=True)]

FILES = 100


def rows(repository) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*), count(vector) FROM breaking_rows WHERE repository = %s", [repository.pk])
        return cursor.fetchone()


def run_through(repository, **params):
    live = Job.objects.filter(source_id=repository.pk, kind="b_sync").first()
    job = finished(live or enqueue("b_sync", source=repository, params={"files": FILES, **params}).job)
    embedding = wait_for(lambda: Job.objects.filter(source_id=repository.pk, kind="b_embed").first())
    finished(embedding)
    return job


def test_access_rule_50_kill_at_each_point(workers, make_repository):
    undisturbed = make_repository()
    run_through(undisturbed)
    assert rows(undisturbed) == (FILES, FILES)
    expected = digest(undisturbed)
    for points in zip(POINTS[::2], POINTS[1::2], strict=True):
        # Two jobs at a time, and each point kills the cluster that comes there first.
        repositories = [make_repository(), make_repository()]
        for point in points:
            workers.arm(point)
        for repository in repositories:
            enqueue("b_sync", source=repository, params={"files": FILES})
        for repository in repositories:
            run_through(repository)
        assert not list(workers.folder.iterdir()), "a point was never reached"
        for repository in repositories:
            assert digest(repository) == expected, points
            jobs = Job.objects.filter(source_id=repository.pk)
            assert sorted(jobs.values_list("kind", "status")) == [("b_embed", "success"), ("b_sync", "success")], points


def test_access_fact_40_kill_in_mid_sync(workers, make_repository):
    repository = make_repository()
    workers.arm("mid_batch")
    job = run_through(repository)
    assert (job.status, job.attempts) == ("success", 2)
    assert rows(repository) == (FILES, FILES)
    assert Job.objects.filter(source_id=repository.pk, kind="b_sync").count() == 1
    endings = list(job.attempt_rows.order_by("number").values_list("ending", "error_code"))
    assert endings == [("lost", "worker_lost"), ("success", "")]


def test_access_fact_41_death_between_commit_and_message(workers, make_repository):
    repository = make_repository()
    script = f"""
        import os, signal, django
        django.setup()
        from uuid import UUID
        from django.db import transaction
        from apps.jobs.queue import enqueue
        with transaction.atomic():
            transaction.on_commit(lambda: os.kill(os.getpid(), signal.SIGKILL))
            enqueue("b_sync", source_key=("repository", UUID("{repository.pk}")), params={{"files": 30}})
    """
    died = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], env=workers.environment, cwd=ROOT)
    assert died.returncode == -signal.SIGKILL
    job = Job.objects.get(kind="b_sync")
    assert job.status == "queued"
    assert finished(job).attempts == 1
    assert rows(repository)[0] == 30


def test_access_fact_41_a_message_that_comes_five_times_runs_once(workers, make_repository):
    from apps.jobs.queue import send

    repository = make_repository()
    job = enqueue("b_sync", source=repository, params={"files": 60, "pause": 0.1}).job
    for _ in range(5):
        send(job.pk)
    ended = finished(job)
    assert (ended.attempts, ended.runs, ended.attempt_rows.count()) == (1, 1, 1)


def test_access_fact_48_a_file_that_kills_its_worker(workers, make_repository):
    repository = make_repository()
    params = {"files": 101, "killers": {"017.md": "killer one"}}
    job = finished(enqueue("b_sync", source=repository, params=params).job, seconds=60)
    assert (job.status, job.warnings) == ("success", 1)
    assert job.attempts == 2  # one for the batch it was in, none for the losses while it was alone
    assert rows(repository)[0] == 100
    item = job.items.get(path="017.md")
    assert (item.state, item.reason) == ("quarantined", "worker_lost")
    assert "3 times" in item.message
    assert Suspect.objects.get().losses == 3
    assert job.items.filter(state="created").count() == 100

    params["killers"]["017.md"] = "harmless now"
    again = finished(enqueue("b_sync", source=repository, params=params).job)
    assert again.items.get(path="017.md").state == "created"
    assert (again.status, again.warnings, again.attempts) == ("success", 0, 1)


@pytest.mark.parametrize("in_batch", [False, True])
def test_access_fact_42_a_stopped_worker_writes_nothing_more(workers, make_repository, in_batch):
    repository = make_repository()
    job = enqueue("b_stoppable", source=repository, params={"in_batch": in_batch}).job
    mark = workers.folder / "stopped_pid"
    pid = int(wait_for(lambda: mark.exists() and mark.read_text(), what="the first attempt"))
    os.kill(pid, signal.SIGSTOP)
    try:
        ended = finished(job)
    finally:
        (workers.folder / "go_on").touch()
        os.kill(pid, signal.SIGCONT)
    assert (ended.status, ended.attempts) == ("success", 2)
    if not in_batch:
        refused = wait_for(lambda: (workers.folder / "refused").exists(), what="the first worker goes on")
        assert refused
    with connection.cursor() as cursor:
        cursor.execute("SELECT content FROM breaking_rows WHERE repository = %s", [repository.pk])
        assert cursor.fetchall() == [("second",)]
    ended.refresh_from_db()
    assert (ended.status, ended.runs) == ("success", 2)
