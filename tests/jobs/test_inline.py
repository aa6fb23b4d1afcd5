"""Jobs run in this process: queue, claim, progress, items, endings."""

from __future__ import annotations

import pytest

from apps.jobs import kinds
from apps.jobs.errors import LastingFailure, TransientFailure
from apps.jobs.kinds import JobKind, register_kind
from apps.jobs.models import Job, JobItem, Status
from apps.jobs.queue import enqueue
from apps.jobs.running import JobRun
from apps.jobs.worker import drain, run_job

pytestmark = pytest.mark.django_db


@pytest.fixture
def kind(monkeypatch):
    monkeypatch.setattr(kinds, "_KINDS", dict(kinds._KINDS))

    def make(run, name="tried", **more):
        register_kind(JobKind(name, run, **more))
        return name

    return make


def test_a_job_runs_and_reports(kind):
    def work(run: JobRun) -> None:
        for number in range(3):
            run.progress("reading", number + 1, 3)
            with run.batch():
                run.item(f"{number}.md", "created", size=number)
                run.counters["indexed_documents"] = number + 1
        run.note("3 files: 3 taken")

    job = enqueue(kind(work), params={"force": True}).job
    [ended] = drain()
    assert ended.pk == job.pk
    assert (ended.status, ended.done, ended.total, ended.attempts) == (Status.SUCCESS, 3, 3, 1)
    assert ended.counters == {"indexed_documents": 3}
    assert ended.outcome == "3 files: 3 taken"
    assert list(ended.items.values_list("path", "state", "size")) == [
        ("0.md", "created", 0),
        ("1.md", "created", 1),
        ("2.md", "created", 2),
    ]
    assert ended.attempt_rows.get().ending == "success"


def test_a_batch_that_fails_leaves_nothing(kind):
    def work(run: JobRun) -> None:
        with run.batch():
            run.item("a.md", "created")
        with run.batch():
            run.item("b.md", "created")
            raise LastingFailure("gone", "It is gone. Point it elsewhere.")

    job = run_job(enqueue(kind(work)).job.pk)
    assert job
    assert (job.status, job.error_code, job.error_message) == ("error", "gone", "It is gone. Point it elsewhere.")
    assert list(JobItem.objects.values_list("path", flat=True)) == ["a.md"]


def test_a_transient_failure_waits_and_uses_attempts_up(kind):
    def work(run: JobRun) -> None:
        raise TransientFailure("network", "The network is down")

    pk = enqueue(kind(work)).job.pk
    for attempt in (1, 2):
        job = run_job(pk)
        assert job and (job.status, job.attempts) == ("queued", attempt)
        assert job.not_before
        assert run_job(pk) is None
        Job.objects.filter(pk=pk).update(not_before=None)
    job = run_job(pk)
    assert job and (job.status, job.error_code, job.attempts) == ("error", "network", 3)
