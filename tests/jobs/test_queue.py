"""Asking for jobs: one live job an object, limits, order, follow-ups, schedules, retention, who sees what."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from django.contrib.auth.models import AnonymousUser, Group
from django.utils import timezone

from apps.access.errors import Conflict, Forbidden, NotFound, Throttled
from apps.access.grants import grant
from apps.access.models import AuditRecord, User
from apps.jobs.claims import BEHIND_MANUAL
from apps.jobs.control import cancel, may_write, retry, source_deleted
from apps.jobs.errors import LastingFailure
from apps.jobs.kinds import Due, Slot, register_prune
from apps.jobs.models import Clock, Job, JobItem
from apps.jobs.queue import enqueue
from apps.jobs.sweep import sweep
from apps.jobs.worker import drain, run_job

pytestmark = pytest.mark.django_db
REPOSITORY = frozenset({"repository"})


def nothing(run) -> None:
    pass


@pytest.fixture
def ada():
    return User.objects.create_superuser("ada", password="x")


@pytest.fixture
def limits(settings):
    def change(**values):
        settings.COGRAPH = replace(settings.COGRAPH, jobs=replace(settings.COGRAPH.jobs, **values))

    return change


def age(job: Job, **delta) -> None:
    Job.objects.filter(pk=job.pk).update(resend_at=timezone.now() - timedelta(**delta))


def test_access_rule_37_one_live_job_an_object(kind, make_repository):
    name = kind(nothing, sources=REPOSITORY)
    one, two = make_repository(), make_repository()
    first = enqueue(name, source=one, params={"force": False, "path": "a"}, cause="schedule")
    again = enqueue(name, source=one, params={"force": True})
    assert (first.deduplicated, again.deduplicated, again.job.pk) == (False, True, first.job.pk)
    assert (again.job.params, again.job.cause) == ({"force": True, "path": "a"}, "manual")
    assert not enqueue(name, source=two).deduplicated
    assert not enqueue(name, source=one, key="other batch").deduplicated
    drain()
    assert not enqueue(name, source=one).deduplicated


def test_a_request_while_it_runs_makes_one_follow_up_with_its_params(kind):
    def work(run):
        if not run.params.get("second"):
            for _ in range(3):
                assert enqueue("tried", params={"second": True}).deduplicated

    enqueue(kind(work))
    assert [(job.cause, job.params) for job in drain()] == [("manual", {}), ("follow_up", {"second": True})]


def test_success_queues_the_kinds_that_come_after(kind, make_repository):
    kind(nothing, name="first", sources=REPOSITORY)
    kind(nothing, name="next", sources=REPOSITORY, after=("first",))
    kind(nothing, name="third", sources=REPOSITORY, after=("next", "first"))
    kind(nothing, name="elsewhere", after=("first",))
    enqueue("first", source=make_repository())
    assert [job.kind for job in drain()] == ["first", "next", "third"]


def test_a_success_that_changed_nothing_queues_only_what_is_owed(kind, make_repository):
    def rest(run) -> None:
        run.changed_nothing = True

    def fail(run) -> None:
        raise LastingFailure("broken", "It is broken")

    kind(rest, name="first", sources=REPOSITORY)
    kind(nothing, name="good", sources=REPOSITORY, after=("first",))
    kind(fail, name="bad", sources=REPOSITORY, after=("first",))
    one, two = make_repository(), make_repository()
    for source, expected in ((one, {"good", "bad"}), (one, {"bad"}), (two, {"good", "bad"})):
        enqueue("first", source=source)
        assert {job.kind for job in drain()} == {"first", *expected}


def test_access_fact_57_the_21st_live_job_of_a_user(kind, limits, make_repository, ada):
    limits(live_total=22)
    name = kind(nothing, sources=REPOSITORY)
    repositories = [make_repository() for _ in range(24)]
    for repository in repositories[:20]:
        enqueue(name, source=repository, by=ada)
    with pytest.raises(Throttled) as refused:
        enqueue(name, source=repositories[20], by=ada)
    assert (refused.value.code, refused.value.status, refused.value.retry_after) == ("too_many_jobs", 429, 30)
    assert Job.objects.count() == 20
    assert enqueue(name, source=repositories[0], by=ada).deduplicated  # asks for nothing new
    enqueue(name, source=repositories[20], by=ada, cause="follow_up")
    for repository in repositories[21:23]:
        enqueue(name, source=repository)
    with pytest.raises(Throttled, match="22 jobs"):
        enqueue(name, source=repositories[23])


def test_access_rule_47_slots_and_their_waiting_reason(kind, make_repository):
    waiting = []

    def work(run):
        if not waiting:
            other = Job.objects.exclude(pk=run.job.pk).get()
            assert run_job(other.pk) is None
            waiting.append(Job.objects.get(pk=other.pk).waiting_reason)

    name = kind(work, sources=REPOSITORY, slot=lambda job: Slot("one", 1, "{running} syncs running"))
    for _ in range(2):
        enqueue(name, source=make_repository())
    assert [(job.status, job.waiting_reason) for job in drain()] == [("success", ""), ("success", "")]
    assert waiting == ["1 syncs running"]


def test_access_rule_47_scheduled_work_waits_behind_manual(kind):
    scheduled = enqueue(kind(nothing, name="scheduled"), cause="schedule").job
    manual = enqueue(kind(nothing, name="manual")).job
    assert run_job(scheduled.pk) is None
    scheduled.refresh_from_db()
    assert scheduled.waiting_reason == BEHIND_MANUAL
    assert [job.pk for job in drain()] == [manual.pk, scheduled.pk]


def test_access_rule_40_messages_are_sent_again_ever_more_rarely(kind, django_capture_on_commit_callbacks):
    from django_q.models import OrmQ

    job = enqueue(kind(nothing)).job
    waits = []
    for round_ in range(6):
        age(job, seconds=1)
        with django_capture_on_commit_callbacks(execute=True):
            assert sweep().sent == 1
        assert sweep().sent == 0
        job.refresh_from_db()
        waits.append(round((job.resend_at - timezone.now()).total_seconds() / 60))
        assert OrmQ.objects.count() == round_ + 1
    assert waits == [2, 4, 8, 15, 15, 15]
    message = OrmQ.objects.first().task
    assert (message["func"], message["args"], message["kwargs"]) == ("apps.jobs.tasks.perform", (str(job.pk),), {})


def test_access_rule_40_schedules_become_jobs(kind, make_repository):
    repository = make_repository()
    kind(nothing, name="nightly", every=timedelta(days=1))
    kind(
        nothing, name="by_row", sources=REPOSITORY, every=lambda now: [Due(("repository", repository.pk), "", {"n": 1})]
    )
    kind(nothing, name="faulty", every=lambda now: 1 / 0)
    assert sweep().scheduled == 1
    assert sweep().scheduled == 0
    Clock.objects.filter(name="kind:nightly").update(at=timezone.now() - timedelta(seconds=1))
    assert sweep().scheduled == 1
    assert sorted(Job.objects.values_list("kind", "cause", "source_kind")) == [
        ("by_row", "schedule", "repository"),
        ("nightly", "schedule", ""),
    ]
    assert sweep().scheduled == 0
    assert Clock.objects.get(name="kind:nightly").at > timezone.now() + timedelta(hours=23)


def test_access_fact_55_who_sees_jobs(kind, make_repository, ada):
    name = kind(nothing, sources=REPOSITORY)
    olga, dana, otto = (User.objects.create_user(n, password="x") for n in ("olga", "dana", "otto"))
    stan = User.objects.create_user("stan", password="x", is_staff=True)
    docs = Group.objects.create(name="docs")
    dana.groups.add(docs)
    public = make_repository(visibility="public")
    private = make_repository(visibility="private", owner=olga)
    secret = make_repository(visibility="admin_only", owner=olga)
    other = make_repository(visibility="private")
    for repository in (private, secret):
        grant(source=repository, to=docs, level="read", by=ada)
    jobs = {source.pk: enqueue(name, source=source).job for source in (public, private, secret, other)}
    enqueue(kind(nothing, name="of_deployment"))

    def seen_by(viewer):
        return {job.source_id for job in Job.objects.visible_to(viewer)}

    assert seen_by(dana) == {public.pk, private.pk, secret.pk}
    assert seen_by(olga) == {public.pk, private.pk}
    assert seen_by(otto) == seen_by(stan) == {public.pk}
    assert seen_by(AnonymousUser()) == set()
    assert seen_by(ada) == {public.pk, private.pk, secret.pk, other.pk, None}
    with pytest.raises(NotFound):
        Job.objects.get_for(otto, pk=jobs[private.pk].pk)
    run_job(jobs[public.pk].pk)
    JobItem.objects.create(job=jobs[private.pk], path="a.md", state="created")
    assert not JobItem.objects.visible_to(otto).exists() and JobItem.objects.visible_to(dana).exists()


def test_access_rule_4_who_may_cancel_and_retry(kind, make_repository, ada):
    name = kind(nothing, sources=REPOSITORY)
    olga, dana = (User.objects.create_user(n, password="x") for n in ("olga", "dana"))
    private = make_repository(visibility="private", owner=olga)
    job = enqueue(name, source=private).job
    system = enqueue(kind(nothing, name="of_deployment")).job
    with pytest.raises(NotFound):
        cancel(job, by=dana)
    grant(source=private, to=dana, level="read", by=olga)
    with pytest.raises(Forbidden):
        cancel(job, by=dana)
    with pytest.raises(NotFound):
        cancel(system, by=olga)
    assert (may_write(job, dana), may_write(job, olga), may_write(system, olga), may_write(system, ada)) == (
        False,
        True,
        False,
        True,
    )
    assert cancel(job, by=olga).status == "cancelled"
    with pytest.raises(Conflict, match="already finished"):
        cancel(job, by=olga)
    with pytest.raises(Forbidden):
        retry(job, by=dana)
    again = retry(job, by=olga)
    assert (again.job.retry_of_id, again.job.requested_by) == (job.pk, olga)
    drain()
    with pytest.raises(Conflict, match="succeeded"):
        retry(Job.objects.get(pk=again.job.pk), by=olga)
    acts = AuditRecord.objects.filter(target_kind="job").order_by("act")
    assert [(row.act, row.actor_name, row.target_id) for row in acts] == [
        ("job_cancelled", "olga", str(job.pk)),
        ("job_retried", "olga", str(job.pk)),
    ]


def test_access_fact_45_and_rule_42_a_retry_needs_its_payload(kind, ada):
    staged = {"batch": ["a.md", "b.md"]}

    def upload(run):
        files = staged[run.job.key]
        with run.batch():
            run.item(files[0], "created")
        if not run.job.retry_of_id:
            raise ConnectionRefusedError
        with run.batch():
            run.item(files[0], "unchanged")
            run.item(files[1], "created")

    name = kind(upload, attempts=1, payload_ready=lambda job: job.key in staged)
    failed = run_job(enqueue(name, key="batch").job.pk)
    assert failed and failed.status == "error"
    ended = run_job(retry(failed, by=ada).job.pk)
    assert ended and list(ended.items.values_list("path", "state")) == [("a.md", "created"), ("b.md", "created")]
    del staged["batch"]
    with pytest.raises(Conflict) as refused:
        retry(failed, by=ada)
    assert (refused.value.code, refused.value.status) == ("payload_expired", 409)


def test_deleting_a_source_ends_its_jobs_and_purges_their_rows(kind, make_repository, ada):
    name = kind(nothing, sources=REPOSITORY)
    gone, stays = make_repository(), make_repository()
    run_job(enqueue(name, source=gone).job.pk)
    waiting, other = enqueue(name, source=gone).job, enqueue(name, source=stays).job
    gone.deleted_at = timezone.now()
    gone.save()
    purge = source_deleted(gone, by=ada)
    waiting.refresh_from_db()
    assert waiting.status == "cancelled"
    late = enqueue(name, source=gone).job  # a request that was under way
    assert run_job(late.pk).status == "cancelled"
    assert {job.kind: job.status for job in drain()} == {"purge": "success", name: "success"}
    assert set(Job.objects.values_list("pk", flat=True)) == {purge.pk, other.pk}
    assert Job.objects.visible_to(ada).filter(pk=purge.pk).exists()


def test_retention_prunes_jobs_and_what_rooms_register(kind, settings, own_kinds):
    run_job(enqueue("retention").job.pk)  # what earlier tests left on disk is not of this one's count
    left = [3, 2, 0]
    register_prune(lambda now: left.pop(0))
    name = kind(nothing)
    jobs = [run_job(enqueue(name).job.pk) for _ in range(settings.COGRAPH.retention.reports + 4)]
    old = timezone.now() - timedelta(days=8)
    Job.objects.filter(pk__in=[job.pk for job in jobs[:2]]).update(finished_at=old)
    Job.objects.filter(pk=jobs[2].pk).update(finished_at=old, status="error")
    retention = run_job(enqueue("retention").job.pk)
    assert retention.status == "success", retention.error_message
    assert retention.counters == {"removed_rows": 7}
    assert left == []
    # The failed one may still be retried for a month, the last two are young.
    assert set(Job.objects.filter(kind=name).values_list("pk", flat=True)) == {job.pk for job in jobs[2:]}
