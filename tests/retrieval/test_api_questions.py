"""Route, retrieve, context and explain by REST."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from apps.access.models import User
from apps.access.rest import throttles
from apps.collections.models import Collection, Document
from apps.retrieval.models import QueryLogEntry

pytestmark = pytest.mark.django_db
Fill = Callable[..., None]


@pytest.fixture
def post(olga: User) -> Callable[..., Any]:
    def ask(path: str, viewer: User | None = None, **body: Any) -> Any:
        throttles.reset()
        client = Client()
        client.force_login(viewer or olga)
        return client.post(f"/api/{path}", body, content_type="application/json")

    return ask


def test_what_each_gives_and_logs(fill: Fill, post: Any, shelf: Collection) -> None:
    fill({"backup.md": "# Backup\n\nThe database is saved at night.\n\n## Restore\n\nRestore it with care.\n"})
    routed = post("route", query="restore the backup").json()
    assert routed["repositories"] == []
    assert [one["id"] for one in routed["collections"]] == [str(shelf.pk)]
    found = post("retrieve", query="restore", top_k=1, explain=True).json()
    assert [one["path"] for one in found["items"]] == ["backup.md"]
    assert found["blocks"][0]["name"] == "docs"
    assert found["items"][0]["why"]["score"]["final"] > 0
    pack = post("context", task="restore the backup", max_tokens=500).json()
    assert pack["tokens"] <= 500
    assert "Restore it with care." in pack["text"]
    assert [row.tool for row in QueryLogEntry.objects.order_by("at")] == ["route", "retrieve", "context"]
    assert QueryLogEntry.objects.get(tool="context").tokens == pack["tokens"]
    document = Document.objects.get(source_key="backup.md")
    told = post("explain", query="restore", document=str(document.pk)).json()
    assert told["row"]["rank"] == 1
    assert told["why_not"] is None


def test_retrieval_facts_92_and_119_bounds_and_alike(fill: Fill, post: Any, otto: User, shelf: Collection) -> None:
    fill({"a.md": "# A\n\nalpha"})
    document = str(Document.objects.get(source_key="a.md").pk)
    other = "7b0c1d9e-0000-4000-8000-000000000007"
    answers = [post("explain", otto, query="alpha", document=one) for one in (document, other, "no id")]
    assert {(answer.status_code, answer.content) for answer in answers} == {(404, answers[0].content)}
    answers = [post("context", otto, task="alpha", collection=one) for one in (str(shelf.pk), other)]
    assert {(answer.status_code, answer.content) for answer in answers} == {(404, answers[0].content)}
    assert post("route", query="").status_code == 422
    assert post("route", query="the is").json() == {
        "repositories": [], "collections": [], "only_common_words": True,
    }  # fmt: skip
    refused = post("route", query="alpha", top_k=99)
    assert (refused.status_code, refused.json()["field"]) == (422, "top_k")
    assert "1..10" in refused.json()["message"]
    for path, body in (
        ("retrieve", {"query": "alpha", "top_k": 26}),
        ("retrieve", {"query": "alpha", "top_k": "10"}),
        ("retrieve", {"query": "alpha", "topk": 1}),
        ("context", {"task": "alpha", "max_tokens": 499}),
        ("context", {"task": ""}),
        ("explain", {"query": "", "document": document}),
    ):
        assert post(path, **body).status_code == 422, (path, body)
