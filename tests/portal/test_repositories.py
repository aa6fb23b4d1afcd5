"""Pages of repositories: list, reader, files, report, settings."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from apps.jobs.models import Job, JobItem
from apps.repos.models import Repository, RepositoryDocument, RepositoryFile
from apps.repos.tree import Entry, build, natural

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loud_templates")]


def entry(path: str, kind: str = "repo_doc") -> Entry:
    import uuid

    return Entry(uuid.uuid4(), path, path, path, kind)


def test_repository_rule_9_2_order_of_the_tree() -> None:
    paths = ["docs/b10.md", "docs/b2.md", "docs/zebra/x.md", "docs/index.md", "README.md", "docs/overview.md", "a.md"]
    tree = build([*map(entry, paths), entry(".github/workflows/ci.yml", "workflow")])
    assert [page.path for page in tree.order] == [
        "README.md",
        "a.md",
        "docs/index.md",
        "docs/overview.md",
        "docs/b2.md",
        "docs/b10.md",
        "docs/zebra/x.md",
    ]
    assert tree.total == 8
    assert tree.files.total == 1
    assert natural("v2") < natural("v10") < natural("va")


def test_list_filters_sort_and_say_what_to_do(world: Any, repositories: Callable[..., Repository]) -> None:
    repositories("gitlab.example.org/team/handbook", visibility="public", state="never_synced", last_checked_at=None)
    client = world.client("otto")
    assert "gitlab.example.org/team/handbook" in client.get("/repos?state=never_synced").content.decode()
    body = client.get("/repos?host=gitlab.example.org").content.decode()
    assert world.public.slug not in body
    assert "secret-plans" not in client.get("/repos").content.decode()
    assert "No repository matches" in client.get("/repos?q=zzz").content.decode()
    assert client.get("/repos?q=100%25_&order=size&state=nonsense").status_code == 200
    body = client.get("/repos?order=size", headers={"HX-Request": "true"}).content.decode()
    assert body.index(world.public.slug) < body.index("handbook")


def test_portal_rule_20_reader(world: Any, documents: Callable[..., RepositoryDocument]) -> None:
    body = world.client("otto").get(f"/repos/{world.public.slug}/docs/docs-setup").content.decode()
    assert 'aria-current="page">Set up' in body
    assert 'href="#first"' in body
    assert 'rel="prev"' in body
    raw = world.client("otto").get(f"/repos/{world.public.slug}/docs/docs-setup?raw=1")
    assert raw["Content-Type"] == "text/plain; charset=utf-8"
    assert "sandbox" in raw["Content-Security-Policy"]
    assert raw["X-Content-Type-Options"] == "nosniff"
    assert raw.content.decode() == "# Set up\n\n## First\n\nOne.\n\n## Second\n\nTwo.\n"


def test_repository_fact_46_paths_are_looked_up_never_opened(world: Any) -> None:
    client = world.client("otto")
    start = f"/repos/{world.public.slug}/files"
    unknown = client.get(f"{start}/unknown.md")
    for path in ("../../../etc/passwd", "docs/../../x", "%2e%2e/x", "/etc/hostname", "a%00b"):
        answer = client.get(f"{start}/{path}")
        assert answer.status_code == 404
        assert answer.content == unknown.content


def test_files_say_why_a_text_is_not_there(world: Any) -> None:
    body = world.client("otto").get(f"/repos/{world.public.slug}/files/src/main.go").content.decode()
    assert "no rule" in body
    assert "not stored" in body
    RepositoryFile.objects.filter(repository=world.public, path="src/main.go").update(text="package main\n")
    body = world.client("otto").get(f"/repos/{world.public.slug}/files/src/main.go").content.decode()
    assert 'id="L1"' in body
    assert "main</span>" in body


def test_portal_rule_30_report_as_page_json_and_csv(world: Any) -> None:
    client = world.client("otto")
    path = f"/repos/{world.public.slug}/report"
    body = client.get(path).content.decode()
    assert "4 files at 4f2c9ab: 2 indexed, 1 skipped, 1 with errors; 2 of 4 clean." in body
    assert "Nested too deep." in body
    assert "line 4, column 2" in body
    assert "src/main.go" in body
    assert "README.md" not in client.get(f"{path}?state=error", headers={"HX-Request": "true"}).content.decode()
    as_json = client.get(f"{path}?format=json").json()
    assert as_json["counters"]["indexed_chunks"] == 5
    assert [item["path"] for item in as_json["items"]] == ["README.md", "docs/bad.md"]
    rows = list(csv.DictReader(io.StringIO(client.get(f"{path}?format=csv").content.decode())))
    assert rows[1]["message"] == "Nested too deep."


def test_report_as_csv_holds_no_formulas(world: Any) -> None:
    job = Job.objects.filter(source_id=world.public.pk).get()
    JobItem.objects.create(job=job, path="=HYPERLINK(1)", state="skipped", message="@x")
    body = world.client("otto").get(f"/repos/{world.public.slug}/report?format=csv").content.decode()
    assert "'=HYPERLINK(1)" in body
    assert ",=HYPERLINK" not in body
    assert "'@x" in body


def test_portal_rule_31_held_deletions_are_decided_by_writers(
    world: Any, documents: Callable[..., RepositoryDocument]
) -> None:
    documents(world.private, "docs/old.md", absence="held")
    path = f"/repos/{world.private.slug}/report"
    assert "held back" in world.client("dana").get(path).content.decode()
    assert "Keep them" not in world.client("dana").get(path).content.decode()
    assert (
        world.client("dana").post(f"/repos/{world.private.slug}/held-deletions", {"act": "approve"}).status_code == 403
    )
    assert "Keep them" in world.client("wim").get(path).content.decode()
    assert (
        world.client("wim").post(f"/repos/{world.private.slug}/held-deletions", {"act": "discard"}).status_code == 302
    )
    assert RepositoryDocument.objects.get(path="docs/old.md").absence == "kept"


def test_sync_button_starts_a_job_and_shows_its_bar(world: Any) -> None:
    page = f"/repos/{world.private.slug}"
    assert "Sync now" not in world.client("dana").get(page).content.decode()
    wim = world.client("wim")
    assert wim.post(f"{page}/sync")["Location"] == page
    body = wim.get(page).content.decode()
    job = Job.objects.get(kind="sync", status="queued")
    assert f'hx-get="/jobs/{job.pk}?bar=1"' in body
    assert wim.post(f"{page}/sync").status_code == 302
    assert "already asked for" in wim.get(page).content.decode()
    assert Job.objects.filter(kind="sync", status="queued").count() == 1


def test_settings_dry_run_and_grants(world: Any) -> None:
    path = f"/repos/{world.private.slug}/settings"
    ada, olga, otto = world.client("ada"), world.client("olga"), world.client("otto")
    body = ada.post(path, {"act": "preview", "only": "nothing/**"}, headers={"HX-Request": "true"}).content.decode()
    assert "Would take 0 of 3 files." in body
    assert "README.md" in body
    whole = ada.post(path, {"act": "preview", "only": "docs/**"}).content.decode()
    assert "Would take 1 of 3 files." in whole
    assert ">docs/**</textarea>" in whole
    assert ada.post(path, {"act": "preview", "only": "a/[b"}, headers={"HX-Request": "true"}).status_code == 200
    body = olga.get(path).content.decode()
    assert "Delete repository" not in body
    assert olga.post(path, {"act": "grant", "kind": "user", "name": "otto", "level": "read"}).status_code == 302
    assert otto.get(f"/repos/{world.private.slug}").status_code == 200
    assert olga.post(path, {"act": "revoke", "kind": "user", "name": "otto"}).status_code == 302
    assert otto.get(f"/repos/{world.private.slug}").status_code == 404
    assert olga.post(path, {"act": "grant", "kind": "user", "name": "nobody", "level": "read"}).status_code == 422
    assert olga.post(path, {"act": "filters", "only": "x"}).status_code == 403
    assert (
        ada.post(path, {"act": "filters", "only": "docs/**", "include": "", "exclude": "*.rst\n\n"}).status_code == 302
    )
    world.private.refresh_from_db()
    assert (world.private.only, world.private.exclude) == (["docs/**"], ["*.rst"])
    assert ada.post(path, {"act": "delete", "confirm": "no"}).status_code == 422
    assert ada.post(path, {"act": "delete", "confirm": world.private.slug}).status_code == 302
    assert ada.get(f"/repos/{world.private.slug}").status_code == 404


def test_names_are_linked_anew_by_who_manages(world: Any) -> None:
    address = f"/repos/{world.public.slug}/settings"
    assert world.client("dana").post(address, {"act": "relink"}).status_code == 403
    assert not Job.objects.filter(kind="link_symbols").exists()
    owner = world.client("ada")
    body = owner.post(address, {"act": "relink"}, follow=True).content.decode()
    assert "Names are being linked anew." in body
    assert Job.objects.filter(kind="link_symbols", source_id=world.public.pk).count() == 1
    assert "linked anew already" in owner.post(address, {"act": "relink"}, follow=True).content.decode()


def test_webhook_secret_is_shown_once(world: Any) -> None:
    path = f"/repos/{world.public.slug}/settings"
    shown = world.client("ada").post(path, {"act": "webhook"}).content.decode()
    assert "cg-hook-secret" in shown
    assert "cg-hook-secret" not in world.client("ada").get(path).content.decode()


def test_add_refuses_by_field_and_keeps_what_was_typed(world: Any) -> None:
    ada = world.client("ada")
    answer = ada.post("/repos/add", {"git_url": "--upload-pack=x", "description": "Mine"})
    assert answer.status_code == 422
    assert 'value="Mine"' in answer.content.decode()
    assert 'aria-invalid="true"' in answer.content.decode()


def test_previous_and_next_walk_the_whole_tree_in_its_order(
    world: Any, documents: Callable[..., RepositoryDocument]
) -> None:
    from apps.repos.branches import above, branches, neighbours

    repository = world.public
    for path in (
        "a/b/c/deep.md",
        "a/b/z10.md",
        "a/b/z9.md",
        "a/readme.md",
        "b/only/one.md",
        "z.md",
        "docs/x/y.md",
        "m/n.md",
    ):
        documents(repository, path)
    rows = RepositoryDocument.objects.filter(repository=repository)
    order = build(
        Entry(*row) for row in rows.values_list("id", "path", "title", "slug", "kind", "state", "absence")
    ).order
    for at, page in enumerate(order):
        tree = branches(rows, above(page.path))
        assert tree.total == len(order)
        beside = neighbours(rows, tree.docs, page.path, page.id)
        assert (beside.previous.path if beside.previous else None) == (order[at - 1].path if at else None)
        assert (beside.next.path if beside.next else None) == (order[at + 1].path if at + 1 < len(order) else None)


def test_closed_folders_are_links_that_open_and_pages_are_found_by_name(world: Any) -> None:
    client = world.client("otto")
    start = f"/repos/{world.public.slug}/docs"
    closed = client.get(start).content.decode()
    assert 'class="folder" href="/repos/github.com/acme/guides/docs?folder=docs"' in closed
    assert "Set up" not in closed
    assert "Set up" in client.get(f"{start}?folder=docs").content.decode()
    assert "<html" not in client.get(f"{start}?folder=docs", headers={"HX-Request": "true"}).content.decode()
    assert "Set up" in client.get(f"{start}?q=set").content.decode()
    assert "No page of this name" in client.get(f"{start}?q=zzz").content.decode()
    assert client.get(f"{start}?folder=../../etc").status_code == 200


def test_portal_rule_47_an_empty_overview_says_what_happens_next(
    world: Any, repositories: Callable[..., Repository], jobs: Callable[..., Job]
) -> None:
    repository = repositories("github.com/acme/new", visibility="public", state="pending", synced_commit="")
    address, ada = f"/repos/{repository.slug}", world.client("ada")
    body = ada.get(address).content.decode()
    assert "Sync this repository to read its documentation." in body
    assert "See the sync report" not in body
    running = jobs(repository, status="running")
    assert "The sync is under way" in ada.get(address).content.decode()
    running.delete()
    jobs(repository)
    assert "See the sync report" in ada.get(address).content.decode()


def test_portal_rule_47_an_overview_says_that_the_last_sync_failed_until_one_succeeds(
    world: Any, jobs: Callable[..., Job]
) -> None:
    address, otto = f"/repos/{world.public.slug}", world.client("otto")
    failed = jobs(world.public, status="error", error_message="The host did not answer.", error_code="unreachable")
    Job.objects.filter(pk=failed.pk).update(created_at=timezone.now())
    body = otto.get(address).content.decode()
    assert "The last sync failed" in body
    assert "The host did not answer." in body
    assert "Search keeps answering from 4f2c9ab." in body
    good = jobs(world.public)
    Job.objects.filter(pk=good.pk).update(created_at=timezone.now())
    assert "The last sync failed" not in otto.get(address).content.decode()
