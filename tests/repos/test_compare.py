"""Two syncs of a document compared: `portal.md` 25 and fact 19; hidden as all that belongs to a repository."""

from __future__ import annotations

import re
import shutil
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from apps.access.grants import grant
from apps.access.models import User
from apps.jobs.models import Job
from apps.markup.shared_pool import close_shared_pool
from apps.repos import remotes
from apps.repos.models import Repository, RepositoryDocument, RepositoryDocumentChunk
from tests.repos.conftest import Portal, Upstream

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _no_children_left() -> Iterator[None]:
    yield
    close_shared_pool()


@pytest.fixture
def page(admin: User) -> Client:
    return signed_in(admin)


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def long(*words: str) -> str:
    return "# Pool\n\n" + "\n\n".join(f"## {word}\n\n" + f"{word} text. " * 120 for word in words) + "\n"


def text(answer: Any) -> str:
    assert answer.status_code == 200, answer.content
    return str(answer.content.decode())


def figures(body: str) -> dict[str, int]:
    return {name: int(value) for name, value in re.findall(r"<dt>([A-Z][a-z ]+)</dt><dd>(\d+)</dd>", body)}


def address(path: str, query: str = "", *, raw: bool = False) -> str:
    held = RepositoryDocument.objects.select_related("repository").get(path=path)
    return f"{held.get_absolute_url()}/compare{'/raw' if raw else ''}{query}"


def put(portal: Portal, repository: Repository, upstream: Upstream, files: dict[str, Any]) -> str:
    """Commits and syncs; gives the commit."""
    commit = upstream.commit(files)
    portal.sync(repository)
    return commit


def synced(portal: Portal, upstream: Upstream, files: dict[str, Any]) -> Repository:
    upstream.commit(files)
    return portal.synced(upstream)[0]


@pytest.fixture
def site(portal: Portal, upstream: Upstream) -> Repository:
    return synced(portal, upstream, {"docs/pool.md": long("one", "two", "three")})


def test_portal_fact_19_one_changed_section_is_one_changed_chunk(
    page: Client, portal: Portal, upstream: Upstream, site: Repository
) -> None:
    before = dict(RepositoryDocumentChunk.objects.values_list("chunk_index", "pk"))
    put(portal, site, upstream, {"docs/pool.md": long("one", "two", "three").replace("two text.", "2 text.", 1)})
    after = dict(RepositoryDocumentChunk.objects.values_list("chunk_index", "pk"))
    changed = {place for place in after if before.get(place) != after[place]}
    body = text(page.get(address("docs/pool.md")))
    assert figures(body) == {"Added": 0, "Changed": 1, "Moved": 0, "Gone": 0, "Embedded anew": 1}
    assert len(changed) == 1
    assert f'<a href="/chunks/{after[changed.pop()]}">' in body
    assert "1 line added, 1 removed" in body
    assert f'href="{address("docs/pool.md")}"' in text(page.get(address("docs/pool.md").removesuffix("/compare")))


def test_any_two_syncs_that_brought_other_content(
    page: Client, portal: Portal, upstream: Upstream, site: Repository
) -> None:
    first = upstream.git("rev-parse", "HEAD")
    second = put(portal, site, upstream, {"docs/pool.md": long("one", "two", "three", "four")})
    put(portal, site, upstream, {"other.md": "# Other\n\ntext"})  # this page stays as it was
    portal.sync(site)
    third = put(portal, site, upstream, {"docs/pool.md": long("three", "one")})
    body = text(page.get(address("docs/pool.md")))
    assert re.findall(r'<option value="(\w+)"', body) == [third, second, first] * 2
    body = text(page.get(address("docs/pool.md", f"?from={first}&to={second}")))
    assert figures(body)["Added"] >= 1 and figures(body)["Gone"] == 0
    assert f"From {first[:7]} to {second[:7]}" in body
    assert figures(text(page.get(address("docs/pool.md", f"?from={second}&to={first}"))))["Gone"] >= 1
    patch = page.get(address("docs/pool.md", f"?from={first}&to={second}", raw=True))
    assert patch.content.decode().startswith(f"--- docs/pool.md ({first[:7]})\n+++ docs/pool.md ({second[:7]})\n@@ ")
    assert patch["Content-Type"].startswith("text/plain") and "sandbox" in patch["Content-Security-Policy"]


def test_a_page_that_moved_keeps_its_versions(
    page: Client, portal: Portal, upstream: Upstream, site: Repository
) -> None:
    old = address("docs/pool.md")
    put(portal, site, upstream, {"docs/pool.md": None, "docs/lake.md": long("one", "two", "three")})
    assert "One version only" in text(page.get(address("docs/lake.md")))
    put(portal, site, upstream, {"docs/lake.md": long("one", "two", "three", "four")})
    body = text(page.get(address("docs/lake.md")))
    assert len(re.findall(r"<option", body)) == 4 and figures(body)["Added"] >= 1
    answer = page.get(old, {"from": "x"})
    assert (answer.status_code, answer["Location"]) == (301, address("docs/lake.md", "?from=x"))
    assert answer["Cache-Control"] == "private, no-store"


def test_odd_paths(page: Client, portal: Portal, upstream: Upstream) -> None:
    names = ["a b/c d blob.md", "HEAD:x.md", "-.md", "\u00fc [1].md", "missing.md"]
    repository = synced(portal, upstream, {name: f"# One\n\n{name}" for name in names})
    put(portal, repository, upstream, {name: f"# Two\n\n{name}" for name in names})
    for name in names:
        assert "1 line added, 1 removed" in text(page.get(address(name))), name


def test_secrets_of_old_commits_stay_hidden(page: Client, portal: Portal, upstream: Upstream) -> None:
    secret = "AKIA" + "A1B2" * 4
    repository = synced(portal, upstream, {"keys.md": f"# Keys\n\nkey: {secret}\n"})
    put(portal, repository, upstream, {"keys.md": "# Keys\n\nnone\n"})
    for raw in (False, True):
        body = text(page.get(address("keys.md", raw=raw)))
        assert secret not in body and "none" in body


def test_empty_states(page: Client, portal: Portal, upstream: Upstream, site: Repository) -> None:
    assert "One version only" in text(page.get(address("docs/pool.md")))
    commit = put(portal, site, upstream, {"docs/pool.md": "# Other"})
    assert "The same version twice" in text(page.get(address("docs/pool.md", f"?from={commit}&to={commit}")))
    for query in ("?from=9&to=2", "?to=x", "?from=%00", f"?from={'0' * 40}"):
        assert "No sync that is known brought such a version" in text(page.get(address("docs/pool.md", query))), query
        assert page.get(address("docs/pool.md", query, raw=True)).status_code == 404
    put(portal, site, upstream, {"docs/pool.md": ">" * 200 + " deep"})
    Job.objects.all().delete()  # their reports go with them
    put(portal, site, upstream, {"docs/pool.md": "# Last"})
    body = text(page.get(address("docs/pool.md")))
    assert len(re.findall(r"<option", body)) == 4 and "earlier</option>" in body
    assert "was not read and counts as empty here" in body
    shutil.rmtree(remotes.mirror(site).directory)
    assert "No history here" in text(page.get(address("docs/pool.md")))


def test_hidden_versions_answer_as_absent_ones(
    page: Client, portal: Portal, upstream: Upstream, site: Repository, admin: User
) -> None:
    put(portal, site, upstream, {"docs/pool.md": "# Other"})
    otto = User.objects.create_user("otto", password="x")
    outsider = signed_in(otto)
    absent = outsider.get(f"/repos/local/no/{uuid.uuid4()}").content
    for raw in (False, True):
        answer = outsider.get(address("docs/pool.md", raw=raw))
        assert (answer.status_code, answer.content) == (404, absent)
    grant(source=site, to=otto, level="read", by=admin)
    assert outsider.get(address("docs/pool.md")).status_code == 200
    assert Client().get(address("docs/pool.md")).status_code == 302
    gone = address("docs/pool.md")
    put(portal, site, upstream, {"docs/pool.md": None, "docs/else.md": "# Quite another\n\npage"})
    assert page.get(gone).status_code in {301, 410}
