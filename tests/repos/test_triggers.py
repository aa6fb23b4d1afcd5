"""What starts a sync: schedules, webhooks, commands, admin; and what ends a repository."""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import hmac
import io
import json
import uuid
from typing import Any
from urllib.parse import quote_plus

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps.access.errors import Forbidden, NotFound
from apps.access.grants import grant
from apps.access.models import User
from apps.jobs.models import Job
from apps.jobs.queue import enqueue
from apps.jobs.worker import drain, run_job
from apps.repos import remotes, webhooks
from apps.repos.models import Repository, RepositoryDocument, WebhookDelivery
from apps.repos.registration import (
    change_repository,
    delete_repository,
    enable_webhook,
    register_repository,
    request_sync,
)
from apps.repos.samples import register_local
from apps.repos.schedules import due_syncs, next_run

pytestmark = pytest.mark.django_db

UTC = datetime.UTC


def at(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("schedule", "after", "due"),
    [
        ("hourly", "2026-01-07T10:15", "2026-01-07T11:00"),
        ("hourly", "2026-01-07T10:00", "2026-01-07T11:00"),
        ("daily", "2026-01-07T01:59", "2026-01-07T02:00"),
        ("daily", "2026-01-07T02:00", "2026-01-08T02:00"),
        ("weekly", "2026-01-07T10:15", "2026-01-12T02:00"),
        ("weekly", "2026-01-12T01:00", "2026-01-12T02:00"),
        ("weekly", "2026-01-12T02:00", "2026-01-19T02:00"),
    ],
)
def test_repos_fact_35_due_times(schedule: str, after: str, due: str) -> None:
    assert next_run(schedule, at(after)) == at(due)


def test_repos_fact_35_manual_cancels_queued_scheduled_runs(upstream: Any, portal: Any) -> None:
    upstream.commit({"a.md": "# A"})
    repository = portal.add(upstream, schedule="hourly")
    assert repository.next_sync_at > timezone.now()
    assert list(due_syncs(timezone.now())) == []
    Repository.objects.update(next_sync_at=timezone.now())
    [due] = due_syncs(timezone.now())
    assert due.source == ("repository", repository.pk)
    repository.refresh_from_db()
    assert repository.next_sync_at > timezone.now(), "asked for once"
    job = enqueue("sync", source=repository, params=due.params, cause="schedule").job
    change_repository(repository=repository, by=portal.admin, schedule="manual")
    job.refresh_from_db()
    repository.refresh_from_db()
    assert (job.status, repository.next_sync_at) == ("cancelled", None)


def test_repos_fact_35_scheduled_at_an_unchanged_commit_ends_at_once(upstream: Any, portal: Any) -> None:
    upstream.commit({"a.md": "# A"})
    repository, _ = portal.synced(upstream)
    before = repository.last_checked_at
    drain()
    job = run_job(enqueue("sync", source=repository, params={"sync": True}, cause="schedule").job.pk)
    assert job is not None
    repository.refresh_from_db()
    assert job.outcome.startswith("Unchanged at ")
    assert not job.items.exists()
    assert repository.last_checked_at > before
    change_repository(repository=repository, by=portal.admin, max_words=100, overlap_words=10)
    drain()
    job = run_job(enqueue("sync", source=repository, params={"sync": True}, cause="schedule").job.pk)
    assert job is not None
    assert job.counters["indexed_documents"] == 1, "another profile is no reason to rest"


def hook(portal: Any, repository: Repository) -> tuple[str, str]:
    changed, secret = enable_webhook(repository=repository, by=portal.admin)
    return str(changed.hook_id), secret


def push(secret: str, ref: str = "refs/heads/main", event: str = "push", delivery: str = "d1") -> Any:
    body = json.dumps({"ref": ref, "repository": {"default_branch": "main"}}).encode()
    signature = "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return {"X-Hub-Signature-256": signature, "X-GitHub-Event": event, "X-GitHub-Delivery": delivery}, body


def test_repos_fact_36_webhook(upstream: Any, portal: Any) -> None:
    upstream.commit({"a.md": "# A"})
    repository, _ = portal.synced(upstream)
    hook_id, secret = hook(portal, repository)
    headers, body = push(secret)
    job = webhooks.receive("github", hook_id, headers, body).job
    assert job is not None
    assert (job.kind, job.cause) == ("sync", "webhook")
    assert webhooks.receive("github", hook_id, headers, body).job is None, "the same delivery twice"
    assert Job.objects.filter(kind="sync").count() == 2
    assert WebhookDelivery.objects.count() == 1
    for changes in ({"event": "ping"}, {"ref": "refs/heads/other"}, {"ref": "refs/tags/v1"}):
        headers, body = push(secret, delivery="d2", **changes)
        assert webhooks.receive("github", hook_id, headers, body).job is None
    assert Job.objects.filter(kind="sync").count() == 2


@pytest.mark.parametrize(("wrapped", "taken"), [(b"payload=%s", True), (b"other=%s", False), (b"[" * 99_000, False)])
def test_repos_rule_6_10_a_push_in_a_form(upstream: Any, portal: Any, wrapped: bytes, taken: bool) -> None:
    hook_id, secret = hook(portal, portal.add(upstream))
    headers, body = push(secret)
    body = wrapped.replace(b"%s", quote_plus(body).encode())
    headers["X-Hub-Signature-256"] = "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    assert (webhooks.receive("github", hook_id, headers, body).job is not None) is taken


def test_repos_fact_36_refusals_are_alike(upstream: Any, portal: Any, new_upstream: Any) -> None:
    repository = portal.add(upstream)
    hook_id, secret = hook(portal, repository)
    plain = portal.add(new_upstream("plain"))
    gone = portal.add(new_upstream("gone"))
    gone_id, gone_secret = hook(portal, gone)
    delete_repository(repository=gone, by=portal.admin)
    headers, body = push(secret)
    bad = {**headers, "X-Hub-Signature-256": "sha256=" + "0" * 64}
    tries = [
        ("github", hook_id, bad, body),
        ("github", hook_id, {}, body),
        ("github", str(uuid.uuid4()), headers, body),
        ("github", "nonsense", headers, body),
        ("github", str(plain.hook_id), *push("")),
        ("github", gone_id, *push(gone_secret)),
        ("nohost", hook_id, headers, body),
    ]
    answers = set()
    for attempt in tries:
        with CaptureQueriesContext(connection) as queries, pytest.raises(NotFound) as refusal:
            webhooks.receive(*attempt)
        answers.add((refusal.value.code, refusal.value.message, refusal.value.field, len(queries)))
    assert len(answers) == 1
    assert not Job.objects.filter(kind="sync").exists()


@pytest.mark.parametrize("provider", ["gitlab", "gitea", "forgejo", "bitbucket"])
def test_repos_rule_6_10_other_hosts(upstream: Any, portal: Any, provider: str) -> None:
    repository = portal.add(upstream)
    hook_id, secret = hook(portal, repository)
    shape = webhooks.PROVIDERS[provider]
    payload: dict[str, Any] = {"ref": "refs/heads/main"}
    if provider == "bitbucket":
        payload = {"push": {"changes": [{"new": {"type": "branch", "name": "main"}}]}}
    body = json.dumps(payload).encode()
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    headers = {
        shape.signature.upper(): secret if shape.token else shape.prefix + digest,
        shape.event: shape.pushes[0],
        shape.delivery[0]: "x1",
    }
    assert webhooks.receive(provider, hook_id, headers, body).job is not None
    with pytest.raises(NotFound):
        webhooks.receive(provider, hook_id, headers | {shape.signature.upper(): "no"}, body)


def test_access_fact_46_pushes_while_a_sync_runs_make_one_more(upstream: Any, portal: Any) -> None:
    upstream.commit({"a.md": "# A"})
    repository = portal.add(upstream)
    hook_id, secret = hook(portal, repository)
    running = request_sync(repository=repository, by=portal.admin).job
    from apps.jobs.claims import claim

    assert claim(running.pk) is not None
    for number in range(3):
        webhooks.receive("github", hook_id, *push(secret, delivery=f"d{number}"))
    assert Job.objects.filter(kind="sync").count() == 1
    running.refresh_from_db()
    assert running.again
    assert running.again_params.get("sync")


def test_repos_deleted_at_once_and_purged(upstream: Any, portal: Any) -> None:
    upstream.commit({"a.md": "# A\n\n[b](b.md)", "b.md": "# B\n\ntext", "c.md": "# C"})
    repository, _ = portal.synced(upstream)
    upstream.git("mv", "b.md", "d.md")
    upstream.commit({"c.md": None})
    portal.sync(repository)
    mirror = remotes.mirror(repository).directory
    assert mirror.exists()
    delete_repository(repository=repository, by=portal.admin)
    assert not Repository.objects.visible_to(portal.admin).exists()
    again = portal.add(upstream)
    assert again.slug == repository.slug, "the slug is free at once"
    drain()
    assert not Repository.objects.filter(pk=repository.pk).exists()
    assert not RepositoryDocument.objects.exists()
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            if table.startswith("repo_"):
                cursor.execute(f'SELECT count(*) FROM "{table}"')
                assert cursor.fetchone() == (0,), table
    assert mirror.exists(), "the other repository of the same address uses it"
    delete_repository(repository=again, by=portal.admin)
    drain()
    assert not mirror.exists()


def test_repos_rights(upstream: Any, portal: Any) -> None:
    repository = portal.add(upstream)
    wim = User.objects.create_user("wim")
    with pytest.raises(NotFound):
        request_sync(repository=repository, by=wim)
    grant(source=repository, to=wim, level="read", by=portal.admin)
    with pytest.raises(Forbidden):
        request_sync(repository=repository, by=wim)
    grant(source=repository, to=wim, level="write", by=portal.admin)
    assert request_sync(repository=repository, by=wim).job.requested_by == wim
    assert change_repository(repository=repository, by=wim, description="x").description == "x"
    with pytest.raises(Forbidden):
        change_repository(repository=repository, by=wim, schedule="daily")
    with pytest.raises(Forbidden):
        delete_repository(repository=repository, by=wim)
    with pytest.raises(Forbidden):
        enable_webhook(repository=repository, by=wim)


def test_repos_register_local_is_added_once(upstream: Any, admin: User) -> None:
    upstream.commit({"a.md": "# A"})
    added = register_local(path=upstream.path, slug="local/cograph/docs", by=admin)
    assert added is not None
    assert (added.repository.slug, added.repository.visibility) == ("local/cograph/docs", "public")
    assert register_local(path=upstream.path, slug="local/cograph/docs", by=admin) is None
    assert {job.status for job in drain()} == {"success"}


def command(*arguments: str) -> tuple[str, str]:
    out, errors = io.StringIO(), io.StringIO()
    call_command("repo", *arguments, stdout=out, stderr=errors)
    return out.getvalue(), errors.getvalue()


def test_repos_command(upstream: Any, admin: User) -> None:
    upstream.commit({"a.md": "# A\n\ntext", "b.md": b"caf\xe9 text"})
    out, errors = command("add", str(upstream.path), "--visibility", "public")
    assert out.splitlines()[0] == "local/acme/site"
    assert "1 of 2 clean" in out
    assert "b.md" in errors
    out, _ = command("sync", "local/acme/site")
    assert "unchanged" in out
    out, _ = command("list")
    assert out.startswith("local/acme/site\tpublic\tready\t")
    with pytest.raises(CommandError) as failure:
        command("sync", "local/acme/nothing")
    assert failure.value.returncode == 1
    with pytest.raises(CommandError):
        command("add", "ftp://x/y")
    upstream.path.rename(upstream.path.with_name("away"))
    with pytest.raises(CommandError, match="not_found_upstream"):
        command("sync", "local/acme/site")


def test_repos_command_needs_an_administrator(upstream: Any) -> None:
    with pytest.raises(CommandError, match="administrator"):
        command("add", str(upstream.path))


ADMIN_PAGES = (
    "repository",
    "repositorydocument",
    "repositorydocumentchunk",
    "repositorydocumentlink",
    "repositorydocumentredirect",
    "repositoryfile",
    "syncreport",
    "repositoryusergrant",
    "repositorygroupgrant",
)


def test_repos_admin_pages_and_actions(client: Any, upstream: Any, portal: Any, settings: Any) -> None:
    upstream.commit({"a.md": "# A\n\n[x](b.md)"})
    repository, _ = portal.synced(upstream)
    client.force_login(portal.admin)
    for page in ADMIN_PAGES:
        assert client.get(f"/admin/repos/{page}/").status_code == 200, page
    place = f"/admin/repos/repository/{repository.pk}/change/"
    assert client.get(place).status_code == 200
    chosen = {"_selected_action": str(repository.pk)}
    for action in ("sync_now", "chunk_anew", "resolve_links", "make_public"):
        asked = client.post("/admin/repos/repository/", {"action": action, **chosen})
        assert asked.status_code == 200
        assert repository.slug in asked.content.decode()
        done = client.post("/admin/repos/repository/", {"action": action, "confirmed": "1", **chosen})
        assert done.status_code == 302
    repository.refresh_from_db()
    assert repository.visibility == "public"
    assert Job.objects.filter(kind="sync", status="queued").count() == 1
    refused = client.post(
        "/admin/repos/repository/", {"action": "approve_held", "confirmed": "1", **chosen}, follow=True
    )
    assert "No deletion of these documents waits." in refused.content.decode()


def test_repos_admin_changes_and_registers(client: Any, upstream: Any, portal: Any, settings: Any) -> None:
    settings.COGRAPH = dataclasses.replace(
        settings.COGRAPH, git=dataclasses.replace(settings.COGRAPH.git, file_roots=(str(upstream.path.parent),))
    )
    client.force_login(portal.admin)
    form = {
        "git_url": str(upstream.path),
        "visibility": "private",
        "schedule": "manual",
        "max_words": 512,
        "overlap_words": 64,
        "max_chars": 8000,
        "language": "english",
        "link_style": "auto",
        "include": ".claude/skills/**\n.agents/skills/**",
        "logs_queries": "on",
    }
    answer = client.post("/admin/repos/repository/add/", form)
    assert answer.status_code == 302, answer.content.decode()[:2000]
    repository = Repository.objects.get()
    assert repository.include == [".claude/skills/**", ".agents/skills/**"]
    assert Job.objects.filter(kind="sync").count() == 1
    place = f"/admin/repos/repository/{repository.pk}/change/"
    assert client.post(place, form | {"max_words": 256}).status_code == 302
    repository.refresh_from_db()
    assert repository.max_words == 256
    answer = client.post(place, form | {"overlap_words": 600}, follow=True)
    assert "at most half" in answer.content.decode()
    answer = client.post(f"/admin/repos/repository/{repository.pk}/delete/", {"post": "yes"})
    assert answer.status_code == 302
    assert not Repository.objects.visible_to(portal.admin).exists()


def test_repos_admin_staff_see_what_they_may_read(client: Any, upstream: Any, portal: Any, db: None) -> None:
    repository = portal.add(upstream)
    stan = User.objects.create_user("stan", is_staff=True)
    client.force_login(stan)
    assert repository.slug not in client.get("/admin/repos/repository/").content.decode()
    grant(source=repository, to=stan, level="write", by=portal.admin)
    assert repository.slug in client.get("/admin/repos/repository/").content.decode()
    place = f"/admin/repos/repository/{repository.pk}/change/"
    assert client.post(place, {"description": "by Stan", "max_words": 100}).status_code == 302
    repository.refresh_from_db()
    assert (repository.description, repository.max_words) == ("by Stan", 512)


def test_repos_registration_queues_the_first_sync(upstream: Any, admin: User) -> None:
    registered = register_repository(by=admin, git_url=str(upstream.path), trusted_path=True)
    assert registered.job.source_id == registered.repository.pk
    assert registered.repository.visibility == "private"


def test_repos_mirrors_that_nobody_wants_are_pruned(upstream: Any, new_upstream: Any, portal: Any) -> None:
    upstream.commit({"a.md": "# A"})
    repository, _ = portal.synced(upstream)
    wanted = remotes.mirror(repository).directory
    other = wanted.with_name("0" * 40 + ".git")
    other.mkdir()
    enqueue("retention", by=portal.admin)
    assert {job.status for job in drain()} == {"success"}
    assert wanted.exists()
    assert not other.exists()


def test_repos_lists_by_a_part_of_a_path_use_an_index(upstream: Any, portal: Any) -> None:
    upstream.commit({f"docs/part{number}.md": "# A" for number in range(20)})
    portal.synced(upstream)
    rows = RepositoryDocument.objects.filter(path__icontains="PART7")
    assert rows.get().path == "docs/part7.md"
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_extension WHERE extname = 'pg_trgm'")
        if cursor.fetchone() is None:
            pytest.skip("this server has no pg_trgm")
        cursor.execute("SET LOCAL enable_seqscan = off")
        assert "repo_documents_path_part" in rows.explain()
