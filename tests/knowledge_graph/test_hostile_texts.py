"""Texts at the edge of what can be read, through upload, graph and lists (facts 74, 90, 91, 114)."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from apps.collections.models import Collection, Document
from apps.collections.trash import trash_document
from apps.collections.uploads import stage_batch
from apps.jobs.worker import drain
from apps.knowledge_graph.lint import lint_stored
from apps.knowledge_graph.models import CanonicalPage, Edge, Evidence, Node
from apps.knowledge_graph.storing.rebuild import rebuild
from tests.knowledge_graph.pages_of_texts import page_text
from tests.knowledge_graph.test_stored_projection import write

pytestmark = pytest.mark.django_db


def test_graph_fact_74_anchors_in_any_script(put: Any, platform: Collection) -> None:
    put("a.md", page_text("a", "## 部署手順\n\nOne.\n\n## 部署手順\n\nTwo."))
    put("b.md", page_text("b", "[[a#部署手順-1]] [[a#部署手順]] [[a#部署手順-2]]"))
    drain()
    assert [(f.rule, f.line) for f in lint_stored(platform) if f.rule == "KG116"] == [("KG116", 7)]
    assert "部署手順-2" in next(f.message for f in lint_stored(platform) if f.rule == "KG116")


def test_graph_fact_90_bytes_of_all_kinds(put: Any) -> None:
    put("latin.md", page_text("latin", "Überfällig: [[nul]]").encode("cp1252"))
    put("nul.md", page_text("nul", "one\0two [[latin]]").encode())
    put("empty.md", b"")
    put("bare.md", b"---\nslug: bare\ntype: module\nstatus: accepted\n---\n")
    drain()
    rows = {row.source_key: row for row in Document.objects.all()}
    assert "Überfällig" in rows["latin.md"].text
    assert rows["latin.md"].encoding_guessed
    assert "\0" not in rows["nul.md"].text
    assert any("nul" in warning["code"] for warning in rows["nul.md"].warnings)
    assert rows["empty.md"].state == "empty"
    assert set(CanonicalPage.objects.values_list("uid", flat=True)) == {"latin", "nul", "bare"}
    assert set(Edge.objects.values_list("edge_uid", flat=True)) == {"latin>depends_on>nul", "nul>depends_on>latin"}
    assert not Evidence.objects.filter(page__uid="bare").exists()


def test_graph_fact_91_texts_made_to_stop_the_reader(platform: Collection, olga: Any) -> None:
    texts = {
        "brackets.md": page_text("brackets", "[[a](" * 400_000),
        "list.md": page_text("list", "- " * 5000 + "x"),
        "good.md": page_text("good", "[[other]]"),
        "other.md": page_text("other"),
    }
    job = stage_batch(
        collection=platform, by=olga, entries=[(key, text.encode(), None) for key, text in texts.items()]
    ).job
    drain()
    items = {item.path: item for item in job.items.all()}
    for name in ("good.md", "other.md"):
        assert items[name].state == "created"
    # Brackets cost no more than other text; what is nested too deep is left out, and why is said.
    assert items["brackets.md"].state == "created"
    assert (items["list.md"].state, items["list.md"].reason) == ("skipped", "nesting")
    assert "good>depends_on>other" in set(Edge.objects.values_list("edge_uid", flat=True))


def test_graph_fact_114_counts_without_what_is_hidden(platform: Collection, olga: Any) -> None:
    for number in range(30):
        tags = "[open]" if number < 10 else "[shut]"
        write(platform, f"p{number:02}.md", page_text(f"p{number:02}", tags=tags, title=f"Subject {number}"))
    rebuild("collection", platform.pk)
    for number in range(10, 30):
        trash_document(document=Document.objects.get(source_key=f"p{number:02}.md"), by=olga)
    assert Node.objects.count() == 30
    client = Client()
    client.force_login(olga)
    listed = client.get(f"/api/graph/collection/{platform.pk}/nodes", {"limit": 10}).json()
    assert ([node["uid"] for node in listed["items"]], listed["total"], listed["next_cursor"]) == (
        [f"p{number:02}" for number in range(10)], 10, None,
    )  # fmt: skip
    assert client.get(f"/api/graph/collection/{platform.pk}/nodes", {"tag": "shut"}).json()["total"] == 0
    page = client.get(f"/graph/collection/{platform.pk}").content.decode()
    assert "p09" in page
    assert "shut" not in page
    assert "p10" not in page
    assert "Subject 11" not in page
