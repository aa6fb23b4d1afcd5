"""What a hidden source may not betray, asked at every door: access facts 14, 16, 17 and 20."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest
from django.db import transaction
from django.test import Client

from apps.access.tokens import create_token
from tests.mcp.conftest import Land


@pytest.fixture
def public_reading(settings: Any) -> None:
    settings.COGRAPH = dataclasses.replace(settings.COGRAPH, public_read=True)


@pytest.fixture
def rest(land: Land) -> Client:
    _, token = create_token(user=land.people["otto"], name="rest", scopes=["read"])
    return Client(headers={"Authorization": f"Bearer {token}"})


@pytest.fixture
def page(land: Land) -> Client:
    client = Client()
    client.force_login(land.people["otto"])
    return client


def canonical(slug: str, body: str, related: str) -> str:
    return f"---\nslug: {slug}\ntype: decision\nstatus: accepted\nrelated: [{related}]\n---\n\n# {slug}\n\n{body}\n"


def test_access_fact_14_a_page_is_filled_from_what_is_readable(land: Land, public_reading: None) -> None:
    for number in range(30):
        shelf = land.glossary if number % 3 == 0 else land.vault
        land.upload(shelf, f"walrus/{number}.md", f"# Walrus {number}\n\nThe walrus number {number} eats clams.\n")
    anonymous = Client()
    found = anonymous.post(
        "/api/search", {"query": "walrus", "path": "walrus/**", "limit": 10}, content_type="application/json"
    ).json()
    assert (len(found["items"]), found["total"], found["next_cursor"]) == (10, 10, None)
    assert {item["path"] for item in found["items"]} == {f"walrus/{number}.md" for number in range(0, 30, 3)}
    shown = anonymous.get("/search", {"q": "walrus", "path": "walrus/**"})
    assert [hit.path for hit in shown.context["answer"].hits] == [item["path"] for item in found["items"]]
    assert b"10 results" in shown.content


def test_access_fact_16_a_readable_page_tells_nothing_of_its_hidden_neighbour(
    land: Land, rest: Client, page: Client
) -> None:
    land.upload(land.glossary, "open.md", canonical("open-page", "All may read this.", ""))
    before = _everything(land, rest, page)
    land.upload(
        land.vault, "hidden.md", canonical("hidden-page", "Leads to [open](open.md) [[open-page]].", "open-page")
    )
    assert _everything(land, rest, page) == before
    assert "hidden-page" not in "".join(before)


def test_access_fact_17_links_to_hidden_and_to_no_pages_are_alike(land: Land, rest: Client, page: Client) -> None:
    land.upload(land.vault, "target.md", canonical("target-one", "Behind the door.", ""))
    hidden = str(land.vault.documents.get(source_key="target.md").pk)
    absent = hidden[:-1] + ("1" if hidden[-1] == "0" else "0")
    texts = []
    for slug, uuid in (("target-one", hidden), ("target-onf", absent)):
        address = f"/docs/{land.vault.pk}/documents/{uuid}"
        body = f"See [[{slug}]], [it]({slug}.md) and [it]({address})."
        before = transaction.savepoint()
        land.upload(land.glossary, "open.md", canonical("open-page", body, slug))
        told = _everything(land, rest, page)
        transaction.savepoint_rollback(before)
        texts.append([re.sub(rf"(?i){slug}", "TARGET", each.replace(uuid, "ID")) for each in told])
    assert any("broken" in each for each in texts[0])
    assert texts[0] == texts[1]


def test_access_fact_20_searching_everything_finds_nothing_hidden(land: Land, rest: Client, page: Client) -> None:
    for query in ("zeppelin", "the zeppelin code", "Codes", "codes.md", "lease jobs"):
        body = {"query": query, "limit": 25}
        by_rest = rest.post("/api/search", body, content_type="application/json").json()
        by_page = page.get("/search", {"q": query}).context["answer"].hits
        said = land.agent("otto").call("retrieve", query=query, top_k=25)
        ids = [str(item["chunk_id"]) for item in by_rest["items"]]
        assert [str(hit.chunk_id) for hit in by_page] == ids
        assert sorted(item["chunk"] for item in said.items) == sorted(ids)
        sources = {item["source"]["id"] for item in by_rest["items"]}
        assert sources <= {str(land.api.pk), str(land.glossary.pk)}, query


def _everything(land: Land, rest: Client, page: Client) -> list[str]:
    """What Otto is told of the page "open", its links and its place in the graph; times and tokens left out."""
    shelf, document = land.glossary.pk, land.glossary.documents.get(source_key="open.md")
    by_page = [
        page.get(f"/docs/{shelf}/documents/{document.pk}", {"tab": tab}) for tab in ("preview", "metadata", "chunks")
    ]
    by_page += [page.get(f"/docs/{shelf}/{part}") for part in ("links", "lint")]
    by_page += [
        page.get(f"/graph/{part}") for part in (f"collection/{shelf}?focus=open-page", f"document/{document.pk}")
    ]
    by_rest = [rest.get(f"/api/md-collections/{shelf}/{part}") for part in (f"documents/{document.pk}", "lint")]
    graph = ("nodes", "nodes/open-page", "nodes/open-page/edges", "nodes/open-page/neighbourhood", "lint", "export")
    by_rest += [rest.get(f"/api/graph/collection/{shelf}/{part}") for part in graph]
    for answer in (*by_page, *by_rest):
        assert answer.status_code == 200, answer.request
    agent, shelf_id = land.agent("otto"), str(shelf)
    said = [
        agent.call("collection_document", collection=shelf_id, document=document.source_key).text,
        agent.call("graph", collection=shelf_id).text,
        agent.call("read_node", collection=shelf_id, node="open-page").text,
        agent.call("related", collection=shelf_id, node="open-page").text,
    ]
    told = [answer.getvalue().decode() for answer in (*by_page, *by_rest)] + said
    return [_without_times(text) for text in told]


def _without_times(text: str) -> str:
    """Without what differs from one writing of the same text to the next."""
    text = re.sub(r'name="csrfmiddlewaretoken" value="\w+"|"X-CSRFToken": "\w+"', "", text)
    text = re.sub(r"\d+(\.\d+)? (ms|s|min) ago|just now|\d{4}-\d\d-\d\d[T ][\d:.]+(Z|\+00:00| UTC)", "", text)
    text = re.sub(r'"fingerprint":\s*"\w+"|cg-edge-\w+', "", text)
    return re.sub(r"\b(\d{15,20}|[0-9a-f]{64}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})\b", "", text)
