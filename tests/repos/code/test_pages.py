"""Pages of code: tree, search, outline, one symbol, and the code named on a page of documentation."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apps.access.models import User
from apps.repos.models import Repository
from apps.repos.models_code import CodeNode

SHOP = {
    "README.md": "# Shop\n\nUse `add_tax` and `Base`.\n",
    "src/base.py": (
        'class Base:\n    """All <b>things</b>."""\n\n\ndef add_tax(n):\n    return round_up(n)\n\n\n'
        "def round_up(n):\n    return n\n"
    ),
    "src/deep/bill.py": (
        "from base import Base, add_tax\n\n\nclass Bill(Base):\n    def pay(self, n):\n        return add_tax(n)\n"
    ),
}


@pytest.fixture
def repository(portal: Any, upstream: Any) -> Repository:
    upstream.commit(SHOP)
    found: Repository = portal.synced(upstream)[0]
    return found


@pytest.fixture
def client(admin: User) -> Client:
    client = Client()
    client.force_login(admin)
    return client


def text(client: Client, path: str, status: int = 200, **query: Any) -> str:
    response = client.get(path, query)
    assert response.status_code == status
    return response.content.decode()


def test_portal_code_tree_outline_and_search(client: Client, repository: Repository) -> None:
    address = f"/repos/{repository.slug}/code"
    assert f'href="{address}?folder=src"' in text(client, address)
    inside = text(client, address, folder="src")
    assert f'href="{address}?file=src%2Fbase.py"' in inside and "?folder=src%2Fdeep" in inside
    outline = text(client, address, file="src/base.py")
    assert outline.index("Base") < outline.index("add_tax") < outline.index("round_up")
    found = text(client, address, q="add tax")
    node = CodeNode.objects.get(name="add_tax")
    assert f'href="{address}/{node.pk}"' in found and "segments" in found
    fragment = client.get(address, {"q": "add tax"}, headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in fragment and f"{address}/{node.pk}" in fragment
    assert "No symbol is named like this" in text(client, address, q="zzzzzz")
    text(client, address, 404, file="../etc/passwd")


def test_portal_code_search_folds_the_overloads_of_a_function(client: Client, portal: Any, upstream: Any) -> None:
    lines = [f"export function pipe<A>({', '.join(f'a{n}: A' for n in range(count))}): A" for count in range(1, 5)]
    lines.append("export function pipe(...all: unknown[]): unknown {\n  return all\n}\n\nexport function piped() {}")
    upstream.commit({"src/flow.ts": "\n".join(lines) + "\n"})
    repository = portal.synced(upstream)[0]
    found = text(client, f"/repos/{repository.slug}/code", q="pipe")
    rows = CodeNode.objects.filter(name="pipe").order_by("start_line")
    assert len(rows) == 5
    assert "4 more declarations" in found
    assert found.count(">flow.pipe</a>") == 1
    assert [found.count(f"/code/{one.pk}") for one in rows] == [1] * 5


def test_portal_code_node_shows_body_callers_callees_and_documents(client: Client, repository: Repository) -> None:
    node = CodeNode.objects.get(name="add_tax")
    page = text(client, f"/repos/{repository.slug}/code/{node.pk}")
    assert page.index("<h2>Source</h2>") < page.index("Documents that mention it"), "what it is before who uses it"
    assert 'id="L5"' in page and 'id="L6"' in page and 'id="L7"' not in page
    assert "deep.bill.Bill.pay" in page and "base.round_up" in page
    assert f'href="/repos/{repository.slug}/docs/readme#shop"' in page
    base = text(client, f"/repos/{repository.slug}/code/{CodeNode.objects.get(name='Base').pk}")
    assert "&lt;b&gt;things&lt;/b&gt;" in base and "Inherited by" in base
    text(client, f"/repos/{repository.slug}/code/{repository.pk}", 404)


def test_portal_9_2_code_on_this_page(client: Client, repository: Repository) -> None:
    page = text(client, f"/repos/{repository.slug}/docs/readme")
    for name in ("add_tax", "Base"):
        node = CodeNode.objects.get(name=name)
        assert f'<a href="/repos/{repository.slug}/code/{node.pk}"><code>{name}</code></a>' in page


def test_portal_50_budgets_of_code_pages(client: Client, repository: Repository) -> None:
    node = CodeNode.objects.get(name="add_tax")
    for path in (f"/repos/{repository.slug}/code/{node.pk}", f"/repos/{repository.slug}/code?q=add_tax"):
        text(client, path)
        with CaptureQueriesContext(connection) as seen:
            text(client, path)
        queries = [one["sql"] for one in seen.captured_queries if not one["sql"].startswith(("SAVEPOINT", "RELEASE"))]
        assert len(queries) <= 12, queries


def test_hidden_code_is_absent(repository: Repository) -> None:
    otto = Client()
    otto.force_login(User.objects.create_user("otto"))
    node = CodeNode.objects.get(name="add_tax")
    for path in (f"/repos/{repository.slug}/code", f"/repos/{repository.slug}/code/{node.pk}"):
        text(otto, path, 404)
