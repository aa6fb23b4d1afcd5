"""One job in this process: batches, progress, items, and how attempts end."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import timedelta

import pytest
from django.db import IntegrityError, OperationalError, connection, transaction
from django.utils import timezone

from apps.access.models import User
from apps.jobs import poison
from apps.jobs.control import retry
from apps.jobs.errors import Cancelled, LastingFailure, LeaseLost, TransientFailure
from apps.jobs.items import clean_words
from apps.jobs.models import Job, JobItem, Status, Suspect
from apps.jobs.queue import enqueue
from apps.jobs.running import JobRun
from apps.jobs.sweep import sweep
from apps.jobs.worker import drain, run_job

pytestmark = pytest.mark.django_db


def expire(job: Job) -> None:
    Job.objects.filter(pk=job.pk).update(lease_expires=timezone.now() - timedelta(seconds=1))


def lose_worker(job: Job) -> Job:
    """What a sweep finds after kill -9."""
    expire(job)
    sweep()
    job.refresh_from_db()
    return job


class Killed(BaseException):
    """Leaves a run as SIGKILL does: nothing is settled."""


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
            raise LastingFailure("gone", "It is gone from https://me:tok3n@example.org/x. Point it elsewhere.")

    job = run_job(enqueue(kind(work)).job.pk)
    assert job
    assert (job.status, job.error_code) == ("error", "gone")
    assert "tok3n" not in job.error_message
    assert list(JobItem.objects.values_list("path", flat=True)) == ["a.md"]


def test_access_fact_47_and_case_B094_every_file_has_its_row(kind):
    def work(run: JobRun) -> None:
        with run.batch():
            run.item("ok.md", "created", milliseconds=3, chunks=2, size=120)
            run.item("huge.md", "skipped", reason="too_large", message="11 MiB, the limit is 10 MiB", warning=True)
            run.item("bad-yaml.md", "created", reason="bad_front_matter", message="tab", line=4, column=1, warning=True)

    job = run_job(enqueue(kind(work)).job.pk)
    assert job
    assert (job.status, job.warnings, job.state_words, clean_words(job)) == (
        "success",
        2,
        "done with warnings",
        "1 of 3 clean",
    )
    assert list(job.items.values_list("path", "state", "reason", "line")) == [
        ("bad-yaml.md", "created", "bad_front_matter", 4),
        ("huge.md", "skipped", "too_large", None),
        ("ok.md", "created", "", None),
    ]


@pytest.mark.parametrize("failure", [TransientFailure("network", "Down"), OperationalError("deadlock")])
def test_access_rule_41_a_transient_failure_waits_and_uses_attempts_up(kind, failure):
    def work(run: JobRun) -> None:
        raise failure

    pk = enqueue(kind(work)).job.pk
    for attempt, wait in ((1, 15), (2, 60)):
        before = timezone.now()
        job = run_job(pk)
        assert job and (job.status, job.attempts) == ("queued", attempt)
        assert job.not_before and wait * 0.79 < (job.not_before - before).total_seconds() < wait * 1.21 + 1
        assert run_job(pk) is None
        Job.objects.filter(pk=pk).update(not_before=None)
    job = run_job(pk)
    assert job and (job.status, job.attempts) == ("error", 3)
    assert [row.ending for row in job.attempt_rows.all()] == ["transient", "transient", "error"]


def test_a_programming_fault_is_final_and_hides_its_text(kind):
    def work(run: JobRun) -> None:
        raise KeyError("secret")

    job = run_job(enqueue(kind(work)).job.pk)
    assert job and (job.status, job.error_code) == ("error", "internal")
    assert "KeyError" in job.error_message and "secret" not in job.error_message


def test_a_kind_may_set_its_own_waits_and_a_missing_kind_says_so(kind, monkeypatch):
    def work(run: JobRun) -> None:
        raise TransientFailure("network", "Down")

    job = run_job(enqueue(kind(work, waits=lambda attempt: 1000.0 * attempt)).job.pk)
    assert job and job.not_before and job.not_before > timezone.now() + timedelta(seconds=990)
    other = enqueue(kind(work, name="short_lived")).job
    monkeypatch.delitem(__import__("apps.jobs.kinds", fromlist=["_KINDS"])._KINDS, ("short_lived", ""))
    ended = run_job(other.pk)
    assert ended and (ended.status, ended.error_code) == ("error", "unknown_kind")


def test_access_fact_44_and_case_B092_retry_pressed_twice(kind, django_user_model):
    stored: dict[str, int] = {}
    fail = [True]

    def work(run: JobRun) -> None:
        for number in range(10):
            if number == 5 and fail[0]:
                raise LastingFailure("broken", "It broke. Mend it, then retry.")
            with run.batch():
                path = f"{number}.md"
                run.item(path, "unchanged" if path in stored else "created")
                stored.setdefault(path, number)

    ada = User.objects.create_superuser("ada", password="x")
    job = run_job(enqueue(kind(work)).job.pk)
    assert job and job.status == "error" and len(stored) == 5
    fail[0] = False
    first, second = retry(job, by=ada), retry(job, by=ada)
    assert (first.deduplicated, second.deduplicated) == (False, True)
    assert first.job.pk == second.job.pk != job.pk
    assert first.job.retry_of_id == job.pk
    [ended] = drain()
    assert (ended.status, Job.objects.count()) == ("success", 2)
    # As in a first run: the half that the failed job stored is not "unchanged" for the one who asked.
    assert set(ended.items.values_list("state", flat=True)) == {"created"}
    assert ended.items.count() == 10


def test_access_rule_36_a_constraint_ties_status_to_lease_and_finish(kind):
    job = enqueue(kind(lambda run: None)).job
    for wrong in (
        {"status": "running"},
        {"status": "success"},
        {"finished_at": timezone.now()},
        {"lease_token": job.pk},
        {"status": "success", "finished_at": timezone.now(), "lease_token": job.pk},
    ):
        with pytest.raises(IntegrityError, match="jobs_status_ties"), transaction.atomic():
            Job.objects.filter(pk=job.pk).update(**wrong)


def test_access_rule_39_a_run_whose_lease_was_taken_writes_nothing(kind):
    def work(run: JobRun) -> None:
        if run.job.attempts == 1:
            lose_worker(run.job)
            assert Job.objects.get(pk=run.job.pk).status == "queued"
        with run.batch():
            run.item("a.md", "created", message=f"attempt {run.job.attempts}")

    job = run_job(enqueue(kind(work)).job.pk)
    assert job and job.status == "queued" and not job.items.exists()
    job = run_job(job.pk)
    assert job and job.status == "success"
    assert job.items.get().message == "attempt 2"


def test_case_B090_a_lost_worker_ends_when_attempts_are_used_up(kind):
    def work(run: JobRun) -> None:
        raise Killed

    job = enqueue(kind(work, attempts=2)).job
    for expected in (("queued", ""), ("error", "worker_lost")):
        with pytest.raises(Killed):
            run_job(job.pk)
        lose_worker(job)
        assert (job.status, job.error_code) == expected
    assert [row.ending for row in job.attempt_rows.all()] == ["lost", "lost"]


def test_a_lost_job_that_was_to_be_cancelled_is_cancelled(kind):
    def work(run: JobRun) -> None:
        Job.objects.update(cancel_requested=True)
        raise Killed

    job = enqueue(kind(work)).job
    with pytest.raises(Killed):
        run_job(job.pk)
    assert lose_worker(job).status == "cancelled"


@pytest.mark.parametrize("failure", [TransientFailure("network", "Down"), SystemExit()])
def test_a_cancel_that_a_failing_run_has_not_heard_ends_the_job(kind, failure):
    def work(run: JobRun) -> None:
        Job.objects.update(cancel_requested=True)
        raise failure

    pk = enqueue(kind(work)).job.pk
    with nullcontext() if isinstance(failure, Exception) else pytest.raises(SystemExit):
        run_job(pk)
    assert Job.objects.get(pk=pk).status == "cancelled", "queued again, nobody could claim it"


def test_cancel_is_heard_at_the_next_batch(kind):
    def work(run: JobRun) -> None:
        with run.batch():
            run.item("a.md", "created")
        Job.objects.update(cancel_requested=True)
        with pytest.raises(Cancelled), run.batch():
            raise AssertionError("not reached")
        with pytest.raises(Cancelled):
            run.check()
        raise ConnectionError("the child was killed")

    job = run_job(enqueue(kind(work)).job.pk)
    assert job and job.status == "cancelled"
    assert job.items.count() == 1


def test_access_rule_43_progress_never_falls_and_writes_once_a_second(kind, django_assert_max_num_queries):
    seen = []

    def work(run: JobRun) -> None:
        run.progress("reading", 0, 1000)
        with django_assert_max_num_queries(3):
            for number in range(500):
                run.progress("reading", number, 1000)
        run.progress("reading", 200, 1000)
        run.progress("storing", 100, 1000)
        seen.append(Job.objects.values("stage", "done", "total").get())
        run.progress("storing", 600, None)
        with run.batch():
            pass
        seen.append(Job.objects.values("stage", "done", "total").get())
        with connection.cursor() as cursor:
            cursor.execute("UPDATE jobs_job SET counting_from = progress_at - interval '10 seconds', total = 900")
        job = Job.objects.get()
        assert (job.rate, job.remaining, job.percentage) == (60, timedelta(seconds=5), 66)

    ended = run_job(enqueue(kind(work)).job.pk)
    assert ended and ended.status == "success", ended.error_message
    assert seen == [
        {"stage": "storing", "done": 499, "total": 1000},
        {"stage": "storing", "done": 600, "total": None},
    ]
    assert [entry["stage"] for entry in ended.attempt_rows.get().stages] == ["reading", "storing"]
    assert ended.remaining is None


def test_access_rule_44_reports_of_older_jobs_shrink(kind, settings):
    def work(run: JobRun) -> None:
        with run.batch():
            run.item("same.md", "unchanged")
            run.item("new.md", "replaced")

    name = kind(work)
    jobs = [run_job(enqueue(name).job.pk) for _ in range(settings.COGRAPH.retention.reports + 3)]
    counts = [job.items.count() for job in jobs]
    assert counts == [0, 0] + [1] * settings.COGRAPH.retention.reports + [2]


def test_access_rule_45_losses_alone_use_no_attempt_until_there_are_too_many(kind, make_repository, monkeypatch):
    monkeypatch.setattr(poison, "LONE_LOSSES", 2)
    bad = {"1.md", "3.md", "5.md"}

    def work(run: JobRun) -> None:
        files = [(f"{number}.md", "v1") for number in range(6)]
        for portion in run.portions(files, size=1, key=lambda file: file):
            if portion[0][0] in bad:
                raise Killed
            with run.batch():
                run.item(portion[0][0], "created")

    repository = make_repository()
    job = enqueue(kind(work, sources=frozenset({"repository"}), attempts=1), source=repository).job
    for _ in range(20):
        try:
            run_job(job.pk)
        except Killed:
            lose_worker(job)
    job.refresh_from_db()
    assert (job.status, job.error_code) == ("error", "too_many_bad_files")
    assert Suspect.objects.filter(quarantined_at__isnull=False).count() == 2
    assert Suspect.objects.get(path="5.md").losses == 1


def test_quarantine_ends_with_a_retry_by_a_writer(kind, make_repository):
    calm = [False]

    def work(run: JobRun) -> None:
        for portion in run.portions([("a.md", "v1"), ("b.md", "v1")], size=2, key=lambda file: file):
            if ("a.md", "v1") in portion and not calm[0]:
                raise Killed
            with run.batch():
                for path, _ in portion:
                    run.item(path, "created")

    ada = User.objects.create_superuser("ada", password="x")
    job = enqueue(kind(work, sources=frozenset({"repository"})), source=make_repository()).job
    for _ in range(3):
        with pytest.raises(Killed):
            run_job(job.pk)
        lose_worker(job)
    ended = run_job(job.pk)
    assert ended and (ended.status, ended.warnings, ended.attempts) == ("success", 1, 2)
    assert list(ended.items.values_list("path", "state")) == [("a.md", "quarantined"), ("b.md", "created")]
    calm[0] = True
    again = run_job(retry(ended, by=ada).job.pk)
    assert again and set(again.items.values_list("state", flat=True)) == {"created"}
    assert not Suspect.objects.exists()


def test_stop_callbacks_run_from_another_thread_and_for_late_comers(kind):
    called = []

    def work(run: JobRun) -> None:
        with run.on_stop(lambda: called.append("child")):
            run.stop(LeaseLost)
        with run.on_stop(lambda: called.append("late")):
            pass
        run.check()

    job = run_job(enqueue(kind(work)).job.pk)
    assert job and job.status == "running"  # its lease is somebody else's affair now
    assert called == ["child", "late"]


def test_items_reported_between_batches_do_not_hide_what_is_under_way(kind, make_repository, monkeypatch):
    monkeypatch.setattr("apps.jobs.running.ITEMS_IN_MEMORY", 3)

    def work(run: JobRun) -> None:
        run.under_way([("a.md", "1")])
        for number in range(4):
            run.item(f"skipped-{number}", "skipped")
        assert run.item_counts() == {"skipped": 4, "warnings": 0}
        assert run.job.under_way.count() == 1
        with run.batch():
            run.item("a.md", "created")
        assert run.job.under_way.count() == 0

    job = run_job(enqueue(kind(work, sources=frozenset({"repository"})), source=make_repository()).job.pk)
    assert job and job.status == "success" and job.items.count() == 5
