"""One search behind every door: same people, same question, same ids in the same order."""

from __future__ import annotations

import pytest
from django.test import Client

from apps.access.tokens import create_token
from tests.mcp.conftest import Land


@pytest.mark.parametrize("name", ["otto", "dana", "olga"])
def test_api_facts_36_60_page_rest_and_mcp_agree(land: Land, name: str) -> None:
    user = land.people[name]
    _, token = create_token(user=user, name="rest", scopes=["read"])
    rest = Client(headers={"Authorization": f"Bearer {token}"})
    query = "zeppelin lease jobs install"
    body = {"query": query, "limit": 25}
    answer = rest.post("/api/search", body, content_type="application/json").json()
    by_rest = [str(item["chunk_id"]) for item in answer["items"]]
    agent = land.agent(name)
    asked = {"query": query, "top_k": 25}
    by_retrieve = rest.post("/api/retrieve", asked, content_type="application/json").json()
    by_mcp = [item["chunk"] for item in agent.call("retrieve", **asked).items]
    assert by_mcp == [str(item["chunk_id"]) for item in by_retrieve["items"]]
    page = Client()
    page.force_login(user)
    by_page = [str(hit.chunk_id) for hit in page.get("/search", {"q": query}).context["answer"].hits]
    assert by_page == by_rest
    assert set(by_mcp) == set(by_rest)
    named = {**asked, "repository": land.api.slug}
    one = rest.post("/api/retrieve", named, content_type="application/json").json()
    said = agent.call("retrieve", **named)
    assert [item["chunk"] for item in said.items] == [str(item["chunk_id"]) for item in one["items"]]


def test_api_fact_13_names_and_options_are_taken_literally(land: Land) -> None:
    land.upload(land.glossary, "flags.md", "# Flags\n\nUse `--dry-run` as in ADR-0099.\n")
    for query in ("ADR-0099", '"--dry-run"', "--dry-run"):
        said = land.agent("otto").call("collection_search", query=query)
        assert said.items[0]["location"].startswith("flags.md"), query
    for query in ("what's up?", "((", "a & | !b", ":*", "foo:bar", "'", "<x@y.z>", '"open', "-v", "a\0b"):
        assert not land.agent("otto").call("retrieve", query=query).is_error, query


def test_retrieval_8_1_blocks_beside_the_hits_are_the_same_on_every_door(land: Land) -> None:
    def page(slug: str, kind: str, body: str, status: str = "accepted", more: str = "") -> str:
        return f"---\nslug: {slug}\ntype: {kind}\nstatus: {status}\n{more}---\n\n# {slug}\n\n{body}\n"

    for number in range(9):
        land.upload(land.glossary, f"notes/{number}.md", f"# Note {number}\n\nWalrus herd, seen by {number}.\n")
    land.upload(land.glossary, "old.md", page("walrus-herd", "decision", "One process.", "superseded"))
    land.upload(land.glossary, "new.md", page("beetroot", "decision", "Soup.", more="supersedes: [walrus-herd]\n"))
    land.upload(land.glossary, "no.md", page("walrus-cookies", "rejected-approach", "Walrus in cookies."))
    land.upload(land.vault, "no.md", page("walrus-secret", "rejected-approach", "Walrus herd, walrus herd."))
    otto = land.people["otto"]
    _, token = create_token(user=otto, name="rest", scopes=["read"])
    rest = Client(headers={"Authorization": f"Bearer {token}"})
    found = []
    for door, body in (("search", {"limit": 25}), ("retrieve", {"top_k": 25})):
        answer = rest.post(f"/api/{door}", {"query": "walrus herd", **body}, content_type="application/json").json()
        found.append(
            ([one["page"]["uid"] for one in answer[name]] for name in ("neighbours", "already_rejected")),
        )
    answers = [tuple(each) for each in found]
    client = Client()
    client.force_login(otto)
    shown = client.get("/search", {"q": "walrus herd"})
    on_page = shown.context["answer"]
    answers.append(([one.place.uid for one in on_page.neighbours], [one.place.uid for one in on_page.already_rejected]))
    for tool in ("retrieve", "collection_search"):
        said = land.agent("otto").call(tool, query="walrus herd")
        answers.append(tuple([one["uid"] for one in said.meta[name]] for name in ("neighbours", "already_rejected")))
        assert "already rejected (not results" in said.text and "replaces walrus-herd" in said.text
        assert "no.md" not in [item["location"].partition("#")[0] for item in said.items]
    assert answers == [(["beetroot"], ["walrus-cookies"])] * 5
    html = shown.content.decode()
    assert "Already rejected" in html and "Near these in the graph" in html and "replaces walrus-herd" in html
    assert '<span class="badge warn">superseded</span>' in html
    assert "walrus-secret" not in html
