"""REST of symbols: lists, bodies, neighbourhoods, re-link."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from apps.access.models import User
from apps.repos.models import Repository, RepositoryDocument
from apps.repos.models_code import CodeNode

SHOP = {
    "README.md": "# Shop\n\nUse `add_tax`.\n",
    "src/base.py": (
        "class Base:\n    pass\n\n\ndef add_tax(n):\n    return round_up(n)\n\n\ndef round_up(n):\n    return n\n"
    ),
    "src/bill.py": (
        "from base import Base, add_tax\n\n\nclass Bill(Base):\n    def pay(self, n):\n        return add_tax(n)\n"
    ),
}


@pytest.fixture
def repository(portal: Any, upstream: Any) -> Repository:
    upstream.commit(SHOP)
    found: Repository = portal.synced(upstream)[0]
    return found


@pytest.fixture
def api(admin: User) -> Client:
    client = Client()
    client.force_login(admin)
    return client


def node(name: str) -> CodeNode:
    return CodeNode.objects.get(qualified_name=name)


def test_nodes_by_path_and_by_name(api: Client, repository: Repository) -> None:
    address = f"/api/repos/{repository.slug}/nodes"
    listed = api.get(address).json()
    assert [row["qualified_name"] for row in listed["items"]] == [
        "base", "base.Base", "base.add_tax", "base.round_up", "bill", "bill.Bill", "bill.Bill.pay",
    ]  # fmt: skip
    assert listed["total"] == 7 and listed["repository"]["commit"] == repository.synced_commit
    first = api.get(address, {"limit": 3, "path": "src/base"}).json()
    rest = api.get(address, {"limit": 3, "path": "src/base", "cursor": first["next_cursor"]}).json()
    assert [len(first["items"]), len(rest["items"]), rest["next_cursor"]] == [3, 1, None]
    assert api.get(address, {"path": "**/bill.py"}).json()["total"] == 3
    found = api.get(address, {"q": "add tax"}).json()["items"][0]
    assert (found["qualified_name"], found["matched"], found["evidence"]) == ("base.add_tax", "segments", 0.85)
    assert api.get(address, {"kind": "class"}).json()["total"] == 2
    assert api.get(address, {"kind": "klass"}).status_code == 400
    assert api.get(address, {"kinds": "class"}).json()["code"] == "unknown_field"


def test_a_node_has_its_body_verbatim_and_linked_docs(api: Client, repository: Repository) -> None:
    address = f"/api/repos/{repository.slug}/nodes/{node('base.add_tax').pk}"
    answer = api.get(address)
    body = answer.json()
    assert body["body"] == "def add_tax(n):\n    return round_up(n)"
    assert (body["body_start_line"], body["body_end_line"], body["total_lines"]) == (5, 6, 10)
    assert (body["callers"], body["callees"]) == (1, 1)
    (related,) = body["related_repo_doc_chunks"]
    assert (related["path"], related["line"], related["form"], related["confidence"]) == ("README.md", 3, "code", 70)
    assert api.get(address, {"context_lines": 1}).json()["body_start_line"] == 4
    assert api.get(address, headers={"If-None-Match": answer["ETag"]}).status_code == 304
    assert api.get(address, {"related": 0}).json()["related_repo_doc_chunks"] == []


def test_related_walks_both_ways_within_bounds(api: Client, repository: Repository) -> None:
    address = f"/api/repos/{repository.slug}/nodes/{node('base.add_tax').pk}/related"

    def names(**query: Any) -> set[str]:
        return {row["qualified_name"] for row in api.get(address, query).json()["nodes"]}

    assert names(direction="callers", kinds="calls") == {"bill.Bill.pay"}
    assert names(direction="callees", kinds="calls") == {"base.round_up"}
    assert names(direction="callers", kinds="imports") == {"bill"}
    assert {"base", "bill.Bill.pay", "base.round_up"} <= names()
    assert {"bill.Bill", "base.Base"} <= names(depth=2)
    cut = api.get(address, {"limit": 1}).json()
    assert len(cut["nodes"]) == 1 and cut["truncated"]
    assert api.get(address, {"depth": 3}).json()["code"] == "out_of_range"


def test_hidden_and_absent_are_alike_and_relink_needs_write(
    api: Client, repository: Repository, new_upstream: Any, portal: Any
) -> None:
    otto = Client()
    otto.force_login(User.objects.create_user("otto"))
    one = node("base.add_tax").pk
    hidden = otto.get(f"/api/repos/{repository.slug}/nodes/{one}")
    absent = otto.get(f"/api/repos/{repository.slug}/nodes/{repository.pk}")
    assert hidden.status_code == absent.status_code == 404 and hidden.content == absent.content
    other, _ = portal.synced(new_upstream("other"))
    assert api.get(f"/api/repos/{other.slug}/nodes/{one}").status_code == 404
    queued = api.post(f"/api/repos/{repository.slug}/re-link", {}, content_type="application/json")
    assert queued.status_code == 202 and queued.json()["kind"] == "link_symbols"
    again = api.post(f"/api/repos/{repository.slug}/re-link", {}, content_type="application/json")
    assert again.status_code == 200
    assert otto.post(f"/api/repos/{repository.slug}/re-link").status_code == 404


def test_repo_docs_9_3_a_page_tells_the_code_it_names_and_the_code_that_names_it(
    portal: Any, upstream: Any, api: Client
) -> None:
    upstream.commit(
        {
            **SHOP,
            "docs/tax.md": "# Tax\n\nCall `add_tax`, then `add_tax(1)` and `Bill`.\n\n## Rounding\n\nSee `round_up`.\n",
            "src/page.py": 'PAGE = "../docs/tax.md#rounding"\nGONE = "../docs/tax.md#nowhere"\n',
        }
    )
    repository, _ = portal.synced(upstream)
    page = api.get(f"/api/repos/{repository.slug}/docs/tax").json()
    assert [
        (symbol["qualified_name"], symbol["path"], symbol["start_line"], symbol["count"], symbol["confidence"])
        for symbol in page["related_code"]["symbols"]
    ] == [
        ("base.add_tax", "src/base.py", 5, 2, 70),
        ("base.round_up", "src/base.py", 9, 1, 70),
        ("bill.Bill", "src/bill.py", 4, 1, 70),
    ]
    assert page["related_code"]["more"] == 0
    assert page["related_code"]["symbols"][0]["url"] == f"/repos/{repository.slug}/code/{node('base.add_tax').pk}"
    assert [(one["path"], one["line"], one["anchor"], one["state"]) for one in page["named_in_code"]] == [
        ("src/page.py", 1, "rounding", "resolved"),
        ("src/page.py", 2, "", "anchor missing"),
    ]
    found = RepositoryDocument.objects.get(repository=repository, path="docs/tax.md")
    chunks = api.get(f"/api/repos/{repository.slug}/documents/{found.pk}/chunks").json()["items"]
    assert [[symbol["name"] for symbol in chunk["mentions"]] for chunk in chunks] == [["add_tax", "Bill"], ["round_up"]]
    shown = api.get(f"/repos/{repository.slug}/docs/tax").content.decode()
    assert "Named in code" in shown and "src/page.py:1" in shown
    plain = api.get(f"/api/repos/{repository.slug}/docs/readme").json()
    assert plain["named_in_code"] == []
