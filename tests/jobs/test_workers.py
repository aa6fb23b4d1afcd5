"""What real workers and the real sweep do short of dying: waits, limits, cancels, deadlines, restarts."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.utils import timezone

from apps.access.models import User
from apps.jobs.clusters import Clusters, hung
from apps.jobs.control import cancel, source_deleted
from apps.jobs.models import Clock, Job
from apps.jobs.queue import enqueue
from apps.jobs.sweep import SWEEP_CLOCK, last_sweep, sweep_is_late
from tests.jobs.conftest import finished, wait_for

pytestmark = [pytest.mark.workers, pytest.mark.django_db(transaction=True)]


def running(job, **more):
    return wait_for(lambda: Job.objects.filter(pk=job.pk, status="running", **more).first(), what="running")


def vectors(repository) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(vector) FROM breaking_rows WHERE repository = %s", [repository.pk])
        return cursor.fetchone()[0]


def rows_with(repository, count) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO breaking_rows SELECT %s, 'p' || n, 'text ' || n FROM generate_series(1, %s) AS n",
            [repository.pk, count],
        )


def alive_in_group(group: int) -> list[int]:
    """Processes of a group that are more than a zombie's entry."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _parent, its_group = entry.read_text().rpartition(")")[2].split()[:3]
            if int(its_group) == group and state != "Z":
                found.append(int(entry.parent.name))
    return found


@pytest.fixture
def administrator():
    return User.objects.create_superuser("ada", password="x")


def test_access_fact_43_sweeps_run_while_all_workers_are_busy(workers, make_repository):
    jobs = [enqueue("b_sync", source=make_repository(), params={"files": 200, "pause": 0.2}).job for _ in range(2)]
    for job in jobs:
        running(job)
    for _ in range(3):
        before = last_sweep()
        wait_for(lambda seen=before: last_sweep() != seen, seconds=5, what="a sweep")
    assert Job.objects.filter(status="running").count() == 2
    assert not sweep_is_late()
    Clock.objects.filter(name=SWEEP_CLOCK).update(at=timezone.now() - timedelta(minutes=6))
    assert sweep_is_late()


def test_access_fact_46_three_pushes_while_a_sync_runs_make_one_more(workers, make_repository):
    repository = make_repository()
    job = enqueue("b_sync", source=repository, params={"files": 60, "pause": 0.2}).job
    running(job)
    pushes = [enqueue("b_sync", source=repository, params={"files": 70}, cause="webhook") for _ in range(3)]
    assert [(push.deduplicated, push.job.pk) for push in pushes] == [(True, job.pk)] * 3
    finished(job)
    wait_for(lambda: not Job.objects.live().filter(source_id=repository.pk).exists(), what="all jobs to end")
    syncs = list(Job.objects.filter(kind="b_sync").order_by("created_at"))
    assert [(sync.status, sync.cause) for sync in syncs] == [("success", "manual"), ("success", "follow_up")]
    assert syncs[1].params == {"files": 70}


def test_access_fact_52_a_rate_limit_is_waited_for_and_uses_no_attempt(workers, make_repository):
    repository = make_repository()
    job = enqueue("b_limited", source=repository, params={"retry_after": 3}).job
    waiting = wait_for(lambda: Job.objects.filter(pk=job.pk, not_before__isnull=False).first(), what="waiting")
    assert (waiting.status, waiting.attempts, waiting.state_words) == ("queued", 0, "waiting")
    assert waiting.waiting_reason.startswith("rate limited until ")
    ended = finished(job)
    assert (ended.status, ended.attempts) == ("success", 1)  # the kind has a single attempt
    first, second = (float(line) for line in (workers.folder / "requests").read_text().split())
    assert second - first >= 3


def test_access_fact_54_cancel_in_mid_embed(workers, make_repository, administrator):
    repository = make_repository()
    rows_with(repository, 100)
    job = enqueue("b_embed", source=repository, params={"pause": 1}).job
    wait_for(lambda: vectors(repository) >= 20, what="a stored batch")
    started = time.monotonic()
    cancel(job, by=administrator)
    assert finished(job).status == "cancelled"
    assert time.monotonic() - started < 10
    kept = vectors(repository)
    assert kept in (20, 40, 60)
    time.sleep(1.2)
    assert vectors(repository) == kept
    rest = finished(enqueue("b_embed", source=repository).job)
    assert (rest.status, rest.counters, vectors(repository)) == ("success", {"embedded": 100 - kept}, 100)


def test_cancel_of_a_run_that_does_not_listen(workers, make_repository, administrator):
    repository = make_repository()
    job = enqueue("b_deaf", source=repository).job
    wait_for(lambda: job.items.exists(), what="its first batch")
    started = time.monotonic()
    cancel(job, by=administrator)
    ended = finished(job)
    assert (ended.status, ended.error_code) == ("cancelled", "")
    assert time.monotonic() - started < 10
    pid = int(ended.attempt_rows.get().worker.rpartition(":")[2])
    os.kill(pid, signal.SIGKILL)  # it would sleep for a minute more; its cluster makes another worker
    with connection.cursor() as cursor:
        cursor.execute("SELECT path FROM breaking_rows")
        assert cursor.fetchall() == [("before.md",)]


def test_access_fact_56_delete_a_source_while_its_job_runs(workers, make_repository):
    repository = make_repository()
    rows_with(repository, 100)
    job = enqueue("b_embed", source=repository, params={"pause": 1}).job
    wait_for(lambda: vectors(repository) >= 20, what="a stored batch")
    repository.deleted_at = timezone.now()
    repository.save()
    purge = source_deleted(repository)
    wait_for(lambda: not Job.objects.live().filter(pk=job.pk).exists(), seconds=10, what="cancelled")
    assert set(Job.objects.filter(pk=job.pk).values_list("status", flat=True)) <= {"cancelled"}  # or purged already
    assert finished(purge).status == "success"
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM breaking_rows")
        assert cursor.fetchone() == (0,)
    assert not Job.objects.filter(source_id=repository.pk).exists()


def test_access_rule_47_at_most_two_syncs_run(workers, make_repository):
    jobs = [enqueue("b_sync", source=make_repository(), params={"files": 40, "pause": 0.2}).job for _ in range(4)]
    most = 0

    def all_done():
        nonlocal most
        most = max(most, Job.objects.filter(status="running", kind="b_sync").count())
        return Job.objects.filter(kind="b_sync", status="success").count() == len(jobs)

    wait_for(all_done, what="all syncs")
    assert most == 2


def test_a_run_that_hears_no_deadline_takes_its_process_with_it(workers, make_repository, monkeypatch):
    """Rule 39, with a deadline of one second; the 30 s of patience are the product's own, so the sweep is not waited
    for: the stop flag must be up, and the lease still held, while the deaf run sleeps."""
    job = enqueue("b_deadline", source=make_repository()).job
    attempt = running(job).attempt_rows.get()
    time.sleep(1.5)
    assert Job.objects.get(pk=job.pk).status == "running"
    os.kill(int(attempt.worker.rpartition(":")[2]), signal.SIGKILL)
    ended = finished(job)
    assert (ended.status, ended.error_code) == ("error", "worker_lost")


def test_workers_go_on_when_every_connection_was_cut(workers, make_repository):
    repository = make_repository()
    job = enqueue("b_sync", source=repository, params={"files": 100, "pause": 0.2}).job
    running(job, done__gte=10)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid <> pg_backend_pid()"
        )
        assert cursor.rowcount >= 3
    # It waits 15 s after such a failure; the test does not.
    waiting = Job.objects.filter(pk=job.pk, not_before__isnull=False)
    wait_for(lambda: waiting.update(not_before=timezone.now(), resend_at=timezone.now()), what="put back")
    assert finished(job).status == "success"
    assert job.items.filter(state="created").count() == 100
    assert last_sweep() > timezone.now() - timedelta(seconds=5)


def test_stopping_a_cluster_puts_its_job_back(workers, make_repository):
    repository = make_repository()
    rows_with(repository, 60)
    job = enqueue("b_embed", source=repository, params={"pause": 1}).job
    leader = running(job).attempt_rows.get().worker.rpartition(":")[2]
    os.kill(os.getpgid(int(leader)), signal.SIGTERM)
    ended = finished(job)
    assert (ended.status, ended.attempts, ended.runs) == ("success", 1, 2)
    assert list(ended.attempt_rows.order_by("number").values_list("error_code", flat=True)) == ["worker_ended", ""]


def test_a_hung_cluster_is_found_and_replaced(workers, make_repository, tmp_path):
    """A stopped worker in an idle cluster is what a dead queue lock looks like from outside: no beat, no log."""
    clusters = Clusters(1, command=workers.command, environment=workers.environment, hang_seconds=3)
    clusters.start()
    try:
        [cluster] = clusters._clusters
        wait_for(lambda: (cluster.folder / "beat").exists(), what="a beat")
        old = clusters.pids
        os.killpg(old[0], signal.SIGSTOP)
        wait_for(lambda: clusters.watch() or clusters.pids != old, seconds=20, what="another cluster")
        assert clusters.restarts == 1
        wait_for(lambda: not alive_in_group(old[0]), seconds=5, what="the end of the killed group")
    finally:
        clusters.stop(seconds=5)
    assert not hung(timedelta(seconds=60))


def test_an_idle_worker_killed_by_sigkill_delays_nothing_for_long(workers, make_repository):
    """The out-of-memory killer takes an idle worker, which held the lock of its cluster's queue: the next one waits for
    that lock in vain (django-q issue 394). The other cluster goes on, and no job is lost."""
    first = finished(enqueue("b_sync", source=make_repository(), params={"files": 1}).job)
    time.sleep(0.3)
    worker = int(first.attempt_rows.get().worker.rpartition(":")[2])
    group = os.getpgid(worker)
    os.kill(worker, signal.SIGKILL)
    for _ in range(4):
        job = finished(enqueue("b_sync", source=make_repository(), params={"files": 1}).job, seconds=20)
        assert (job.status, job.attempts) == ("success", 1)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)  # the watchdog would find it in 15 s; the next test shall not wait
