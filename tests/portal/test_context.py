"""The context page, on text that is really indexed."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from apps.repos.models import Repository, RepositoryDocument
from apps.retrieval.context import context
from apps.retrieval.models import QueryLogEntry

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loud_templates")]

FILES = {
    "guide/walrus.md": "# Walrus\n\nSee [the feed](feed.md#times) and [nothing](gone.md).\n\n## Keeping a walrus\n\n"
    + "A walrus needs cold water and much walrus feed.\n\n" * 30,
    "guide/feed.md": "# Feed\n\n## Times\n\nTwice a day.\n",
    "guide/pool.md": "# Pool\n\nThe [walrus](walrus.md) swims here.\n",
}


def numbers(body: str) -> tuple[set[str], set[str]]:
    """Documents of the picture's left column, and of the parts."""
    nodes = set(re.findall(r'id="cg-node-(\d+)" href="#cg-doc-\1"', body))
    parts = set(re.findall(r'<(?:article|li)[^>]*data-doc="(\d+)"', body))
    return nodes, parts


def test_portal_fact_29_the_pack_is_what_an_agent_gets(world: Any, synced: Callable[..., Repository]) -> None:
    repository = synced(files=FILES)
    client = world.client("otto")
    for budget in (8000, 500):
        page = client.get("/context", {"task": "keep a walrus", "budget": budget})
        body = page.content.decode()
        pack = context(viewer=world.people["otto"], task="keep a walrus", max_tokens=budget)
        shown = html.unescape(body.partition('id="cg-pack" tabindex="0">')[2].partition("</pre>")[0])
        assert shown == pack.text
        assert pack.tokens <= budget
        assert f"{pack.tokens:,} of {budget:,} tokens" in body
        nodes, parts = numbers(body)
        assert nodes == parts != set()
        assert len(re.findall(r'id="cg-doc-\d+"', body)) == len(parts)
    assert "reads on at" in body
    body = client.get("/context?task=keep+a+walrus").content.decode()
    assert re.search(rf'href="{repository.get_absolute_url()}/docs/[\w-]*feed', body)


def test_portal_rule_33_copy_as_call_and_log_row(world: Any, synced: Callable[..., Repository]) -> None:
    repository = synced(files=FILES)
    client = world.client("otto")
    body = client.get(
        "/context", {"task": "feed times", "budget": "2000", "source": f"repository:{repository.pk}"}
    ).content.decode()
    call = json.loads(html.unescape(body.partition('id="cg-call" tabindex="0">')[2].partition("</pre>")[0]))
    assert call == {
        "name": "cograph_context",
        "arguments": {"task": "feed times", "max_tokens": 2000, "repository": repository.slug},
    }
    row = QueryLogEntry.objects.get(tool="context")
    assert (row.door, row.query, row.results > 0, row.tokens > 0) == ("page", "feed times", True, True)


def test_portal_rule_34_empty_task_and_nothing_found(world: Any, synced: Callable[..., Repository]) -> None:
    synced(files=FILES)
    client = world.client("otto")
    samples = re.findall(r'href="\?task=([^"]+)"', client.get("/context").content.decode())
    assert len(samples) == 3
    assert 'id="cg-pack"' in client.get(f"/context?task={html.unescape(samples[0])}").content.decode()
    nothing = client.get("/context?task=xylophone+zeppelin").content.decode()
    assert "None of your words occurs" in nothing
    assert "Search instead" in nothing


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"budget": "499"}, "500 to 24000"),
        ({"budget": "many"}, "a number from 500"),
        ({"source": "repository:00000000-0000-4000-8000-000000000000"}, "no such source"),
        ({"source": "nonsense"}, "no such source"),
    ],
)
def test_context_refusals_are_words_on_the_page(
    world: Any, synced: Callable[..., Repository], asked: dict[str, str], words: str
) -> None:
    synced(files=FILES)
    page = world.client("otto").get("/context", {"task": "walrus", **asked})
    assert page.status_code == 200
    assert words in page.content.decode()


def test_portal_rule_36_hidden_sources_leave_no_trace(world: Any, synced: Callable[..., Repository]) -> None:
    synced("open", files=FILES)
    closed = synced("closed", visibility="private", files={"x.md": "# Quokka\n\nquokka walrus\n"})
    body = world.client("otto").get("/context?task=quokka+walrus").content.decode()
    assert "closed" not in body
    assert str(closed.pk) not in body
    assert "Quokka" not in body.replace("quokka", "")
    named = world.client("otto").get("/context", {"task": "walrus", "source": f"repository:{closed.pk}"})
    assert "no such source" in named.content.decode()


def test_portal_fact_30_the_same_picture_twice(world: Any, synced: Callable[..., Repository]) -> None:
    synced(files=FILES)
    bodies = {
        world.client("otto")
        .get("/context?task=walrus")
        .content.decode()
        .partition('<svg class="graph"')[2]
        .partition("</svg>")[0]
        for _ in range(3)
    }
    assert len(bodies) == 1


def test_portal_fact_37_hostile_text_on_the_context_page(world: Any, synced: Callable[..., Repository]) -> None:
    synced(files={"docs/h.md": "# <img src=x onerror=alert(1)> numbat\n\n<script>alert(1)</script> numbat\n"})
    body = world.client("otto").get("/context?task=numbat+%3Cimg+src%3Dx%3E").content.decode()
    assert not re.search(r"<img[^>]*onerror", body)
    assert "<script>" not in body.partition("<main")[2]
    assert len(re.findall(r"<h1\b", body)) == 1


def test_portal_rule_50_context_budget(world: Any, synced: Callable[..., Repository]) -> None:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    def count() -> int:
        client = world.client("otto")
        client.get("/context?task=numbat")
        with CaptureQueriesContext(connection) as seen:
            assert client.get("/context?task=numbat").status_code == 200
        skipped = ("SAVEPOINT", "RELEASE", "SET ")
        return len([one for one in seen.captured_queries if not one["sql"].startswith(skipped)])

    synced("few", files={f"n/{number}.md": f"# N{number}\n\nnumbat {number}\n" for number in range(3)})
    few = count()
    synced("many", files={f"n/{number}.md": f"# N{number}\n\nnumbat {number}\n" for number in range(30)})
    assert count() == few
    assert few <= 28, few


def test_portal_rule_34_sample_tasks_ask_about_headings_that_say_something(
    world: Any, documents: Callable[..., RepositoryDocument]
) -> None:
    documents(world.public, "CHANGELOG.md", "# Changes\n\n## 8.2.2 (2026-08-20)\n\n## v9\n", chunk_count=99)
    documents(world.public, "guide.md", "# Guide\n\n## 1.0\n\n## Backups\n", chunk_count=9)
    body = world.client("otto").get("/context").content.decode().partition("Tasks to try")[2]
    assert "“Backups”" in body
    assert "8.2.2" not in body and "“1.0”" not in body
