"""Pages of findings, on text that is really indexed."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from apps.collections.curation import create_collection
from apps.collections.uploads import upload_document
from apps.indexing.findings import findings
from apps.indexing.models import FindingSighting
from apps.jobs.models import Job
from apps.jobs.worker import drain, run_job
from apps.repos.models import Repository
from apps.repos.registration import delete_repository, request_sync
from tests.portal.worlds import commit

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loud_templates")]

FILES = {
    "docs/fence.md": "# Fence\n```python\nprint(1)\n",
    "docs/links.md": "# Links\n\n[a](glosary.md) and [b](glossary.md#glosary)\n\n[c](=cmd.md)\n",
    "docs/latin.md": "# Café\n\nAu lait.\n".encode("latin-1"),
}


def rows(client: Any, path: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get(path).json()["items"]
    return found


def test_portal_rule_32_links_fences_encodings_and_headers(world: Any, synced: Callable[..., Repository]) -> None:
    repository = synced(files=FILES)
    client = world.client("otto")
    page = f"{repository.get_absolute_url()}/lint"
    found = {(row["rule"], row["path"], row["line"]) for row in rows(client, f"{page}?format=json")}
    assert {
        ("link_broken", "docs/links.md", 3),
        ("anchor_missing", "docs/links.md", 3),
        ("link_broken", "docs/set up.md", 11),
        ("fence_unclosed", "docs/fence.md", 2),
        ("encoding_guessed", "docs/latin.md", 1),
        ("front_matter_error", "docs/bad.md", 3),
    } <= found
    body = client.get(page).content.decode()
    assert f'href="{repository.get_absolute_url()}/files/docs/fence.md#L2"' in body
    assert "is never closed" in body
    assert 'aria-current="page">Findings' in body
    (broken,) = [row for row in rows(client, f"{page}?format=json&q=glosary.md") if row["rule"] == "link_broken"]
    assert broken["column"] == 5
    assert broken["replacement"] == "[a](glossary.md) and [b](glossary.md#glosary)"


def test_portal_rule_32_pages_that_nothing_leads_to(world: Any, synced: Callable[..., Repository]) -> None:
    files = {
        "guide/start.md": "# Start\n\n[next](next.md)\n",
        "guide/next.md": "# Next\n\nText.\n",
        "guide/alone.md": "# Alone\n\n[myself](alone.md) and [back](start.md)\n",
        "guide/shown.md": "# Shown\n\nThe program shows it.\n",
        "guide/README.md": "# Guide\n\nEntry.\n",
        "LICENSE.md": "# Licence\n",
        "src/show.py": 'def show():\n    open_page("guide/shown.md")\n',
    }
    repository = synced(files=files)
    found = findings(world.people["otto"], repository, rules=["orphan_page"])
    assert [one.path for one in found if one.path.startswith(("guide/", "LICENSE"))] == ["guide/alone.md"]
    assert {(one.severity, one.line) for one in found} == {("info", None)}


def test_portal_rule_32_collections_have_such_pages_too(world: Any) -> None:
    olga = world.people["olga"]
    shelf = create_collection(by=olga, name="Shelf", visibility="private")
    texts = {"a.md": "# A\n\nText.\n", "b.md": "# B\n\nText.\n"}
    for key, text in texts.items():
        upload_document(collection=shelf, by=olga, source_key=key, raw=text.encode())
    assert findings(olga, shelf, rules=["orphan_page"]) == []  # where nothing is linked, links are not how it is read
    upload_document(collection=shelf, by=olga, source_key="a.md", raw=b"# A\n\n[b](b.md)\n")
    drain()
    assert [one.path for one in findings(olga, shelf, rules=["orphan_page"])] == ["a.md"]


def test_portal_rule_32_the_same_document_in_two_sources(world: Any, synced: Callable[..., Repository]) -> None:
    text = "# Rules\n\n" + "Thirty-two connections, no more. " * 10 + "\n"
    files = {"docs/rules.md": text, "docs/short.md": "# Short\n"}
    first, second = synced("first", files=files), synced("second", files={"docs/copy.md": text})
    olga, otto = world.people["olga"], world.people["otto"]
    shelf = create_collection(by=olga, name="Shelf", visibility="private")
    upload_document(collection=shelf, by=olga, source_key="rules.md", raw=text.encode())

    def told(viewer: Any, source: Any, path: str) -> list[str]:
        return [one.message for one in findings(viewer, source, rules=["duplicate_document"]) if one.path == path]

    assert told(otto, second, "docs/copy.md") == ["The same text stands in local/acme/first: docs/rules.md."]
    assert told(olga, first, "docs/rules.md") == ["The same text stands in Shelf: rules.md and in 1 more place."]
    assert told(olga, first, "docs/short.md") == []
    assert told(olga, shelf, "rules.md") == [
        "The same text stands in local/acme/first: docs/rules.md and in 1 more place."
    ]


def test_the_overview_counts_findings_apart(world: Any, synced: Callable[..., Repository]) -> None:
    repository = synced(files=FILES)
    client, page = world.client("otto"), f"{repository.get_absolute_url()}/lint"
    overview = client.get(repository.get_absolute_url()).content.decode()
    assert f'href="{page}" hx-get="{page}/figures"' in overview
    figures = client.get(f"{page}/figures", headers={"HX-Request": "true"}).content.decode()
    shown = {name: int(count) for name, count in re.findall(r"severity=(\w+)\">(\d+)<", figures)}
    severities = [row["severity"] for row in rows(client, f"{page}?format=json")]
    assert shown == {name: severities.count(name) for name in set(severities)}
    assert client.get(f"{page}/figures")["Location"] == page  # not half a page for who has no script


def test_portal_rule_32_a_renamed_target_is_named(
    world: Any, synced: Callable[..., Repository], tmp_path: Path
) -> None:
    repository = synced(files={"a/old.md": "# Old\n\nText of the old page.\n", "a/x.md": "# X\n\n[o](old.md#old)\n"})
    commit(tmp_path / "acme/handbook", {"b/other.md": "# Old\n\nText of the old page.\n", "a/old.md": None})
    run_job(request_sync(repository=repository, by=world.people["ada"]).job.pk)
    (found,) = [one for one in findings(world.people["otto"], repository) if one.path == "a/x.md"]
    assert "now b/other.md" in found.hint
    assert found.patch is not None
    assert found.patch.new == "[o](../b/other.md#old)"


def test_portal_rule_32_filters_sort_and_formats(world: Any, synced: Callable[..., Repository]) -> None:
    repository = synced(files=FILES)
    client = world.client("otto")
    page = f"{repository.get_absolute_url()}/lint"
    body = client.get(f"{page}?severity=info").content.decode()
    assert "encoding_guessed" in body
    assert "is never closed" not in body
    assert "Drop all filters" in body
    assert {row["rule"] for row in rows(client, f"{page}?rule=link_broken&format=json")} == {"link_broken"}
    paths = [row["path"] for row in rows(client, f"{page}?order=path&format=json")]
    assert paths == sorted(paths)
    table = list(csv.DictReader(io.StringIO(client.get(f"{page}?format=csv").content.decode())))
    assert len(table) == len(paths)
    assert not [value for row in table for value in row.values() if value[:1] in ("=", "+", "@")]
    sarif = client.get(f"{page}?format=sarif").json()
    assert sarif["version"] == "2.1.0"
    (run,) = sarif["runs"]
    assert len(run["results"]) == len(paths)
    assert any("fixes" in result for result in run["results"])
    assert run["versionControlProvenance"][0]["revisionId"] == repository.synced_commit
    fragment = client.get(page, headers={"HX-Request": "true"}).content
    assert b"<html" not in fragment
    assert "No finding matches" in client.get(f"{page}?q=nowhere-at-all").content.decode()


def test_findings_of_a_collection_by_page_and_by_rest(world: Any, settings: Any) -> None:
    olga = world.people["olga"]
    collection = create_collection(by=olga, name="Pages", visibility="public")
    texts = {"a.md": "# A\n\n[b](b.md#nowhere) [gone](gone.md)\n", "b.md": "# B\n```\nopen\n"}
    for key, text in texts.items():
        upload_document(collection=collection, by=olga, source_key=key, raw=text.encode(), title=None)
    for job in Job.objects.filter(kind="resolve_links", source_id=collection.pk, status="queued"):
        run_job(job.pk)
    client = world.client("otto")
    page = f"/docs/{collection.pk}/lint"
    found = {(row["rule"], row["path"], row["line"]) for row in rows(client, f"{page}?format=json")}
    assert {("anchor_missing", "a.md", 3), ("link_broken", "a.md", 3), ("fence_unclosed", "b.md", 2)} <= found
    body = client.get(page).content.decode()
    assert re.search(rf'href="/docs/{collection.pk}/documents/[\w-]+\?tab=raw#L3"', body)
    served = client.get(f"/api/md-collections/{collection.pk}/lint?severity=error&limit=1").json()
    assert [row["rule"] for row in served["items"]] == ["link_broken"]
    assert client.get(f"/api/md-collections/{collection.pk}/lint?severity=bad").status_code == 400


def test_portal_fact_27_hidden_and_missing_targets_are_found_alike(
    world: Any, synced: Callable[..., Repository]
) -> None:
    hidden = synced("closed", visibility="private", files={"secret.md": "# Secret\n"})
    links = {"x.md": f"[one]({hidden.get_absolute_url()}/docs/secret)\n\n[two](/repos/local/acme/absent/docs/secret)\n"}
    repository = synced("open", files=links)
    client = world.client("otto")
    found = [row for row in rows(client, f"{repository.get_absolute_url()}/lint?format=json") if row["path"] == "x.md"]
    alike = [{key: row[key] for key in ("rule", "severity", "hint", "column")} for row in found]
    assert len(alike) == 2
    assert alike[0] == alike[1]
    assert client.get(f"{hidden.get_absolute_url()}/lint").status_code == 404
    assert client.get(f"/api/repos/{hidden.slug}/lint").status_code == 404
    everything = client.get("/lint").content.decode()
    assert f'href="{hidden.get_absolute_url()}' not in everything
    assert str(hidden.pk) not in everything
    assert repository.slug in everything


def test_portal_rule_50_lint_asks_the_same_for_few_and_many(world: Any, synced: Callable[..., Repository]) -> None:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    def count(repository: Repository) -> int:
        client = world.client("otto")
        path = f"{repository.get_absolute_url()}/lint"
        client.get(path)
        with CaptureQueriesContext(connection) as seen:
            assert client.get(path).status_code == 200
        skipped = ("SAVEPOINT", "RELEASE", "SET ")
        return len([one for one in seen.captured_queries if not one["sql"].startswith(skipped)])

    few = synced("few", files={f"n/{number}.md": "# N\n\n[x](gone.md)\n" for number in range(3)})
    many = synced("many", files={f"n/{number}.md": "# N\n\n[x](gone.md)\n" for number in range(30)})
    assert count(few) == count(many) <= 20


def test_portal_rule_32_findings_say_since_when_and_at_which_commit(
    world: Any, synced: Callable[..., Repository], tmp_path: Path
) -> None:
    ada, otto = world.people["ada"], world.people["otto"]
    repository = synced(files={"docs/a.md": "# A\n\n[gone](nowhere.md)\n"})
    address = f"/repos/{repository.slug}/lint"
    client = world.client("otto")
    assert {row["since"] for row in rows(client, f"{address}?format=json")} == {None}
    assert "not noted yet" in client.get(address).content.decode()

    def note() -> str:
        """Runs what the sync has queued; gives the commit."""
        run_job(Job.objects.get(kind="note_findings", source_id=repository.pk, status="queued").pk)
        repository.refresh_from_db()
        return repository.synced_commit

    def change(files: dict[str, str | None]) -> str:
        commit(tmp_path / "acme/handbook", files)
        run_job(request_sync(repository=repository, by=ada).job.pk)
        return note()

    def first(href: str) -> str | None:
        (row,) = [row for row in rows(client, f"{address}?format=json&q={href}") if row["rule"] == "link_broken"]
        assert (row["since"] is None) == (row["first_commit"] is None)
        return str(row["first_commit"]) if row["first_commit"] else None

    begin = note()
    assert first("nowhere.md") == begin
    second = change({"docs/a.md": "# A\n\nMore.\n\n[gone](nowhere.md) [new](missing.md)\n"})
    assert (first("nowhere.md"), first("missing.md")) == (begin, second)  # the line may move
    change({"docs/a.md": "# A\n\n[new](missing.md)\n"})
    fourth = change({"docs/a.md": "# A\n\n[gone](nowhere.md) [new](missing.md)\n"})
    assert (first("nowhere.md"), first("missing.md")) == (fourth, second)  # what comes back is new

    every = rows(client, f"{address}?format=json")
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", row["since"]) for row in every)
    (item,) = [
        item
        for item in client.get(f"/api/repos/{repository.slug}/lint?rule=link_broken").json()["items"]
        if "missing.md" in item["message"]
    ]
    assert item["first_commit"] == second
    assert item["since"].endswith("Z")
    results = client.get(f"{address}?format=sarif").json()["runs"][0]["results"]
    (result,) = [one for one in results if "missing.md" in one["message"]["text"]]
    assert result["properties"] == {"firstSeenCommit": second}
    assert result["provenance"]["firstDetectionTimeUtc"] == item["since"]
    table = list(csv.DictReader(io.StringIO(client.get(f"{address}?format=csv").content.decode())))
    assert second in {row["first_commit"] for row in table}
    page = client.get(f"{address}?order=newest").content.decode()
    assert f"first seen at <code>{second[:7]}" in page
    assert page.index("nowhere.md") < page.index("missing.md")
    assert findings(otto, repository) == findings(ada, repository)


def test_what_was_noted_of_a_source_goes_with_it(world: Any, synced: Callable[..., Repository]) -> None:
    repository = synced(files={"docs/a.md": "# A\n\n[gone](nowhere.md)\n"})
    run_job(Job.objects.get(kind="note_findings", source_id=repository.pk, status="queued").pk)
    assert FindingSighting.objects.filter(source_id=repository.pk).exists()
    delete_repository(repository=repository, by=world.people["ada"])
    run_job(Job.objects.get(kind="purge").pk)
    assert not FindingSighting.objects.exists()
