"""The graph and context packs by the tools."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from apps.mcp.bounds import tokens_of
from tests.mcp.conftest import Land, Said


def page(slug: str, *, status: str = "accepted", supersedes: str = "", text: str = "Text.\n", **more: str) -> str:
    lines = [f"slug: {slug}", "type: decision", f"status: {status}", f"title: {slug.title()}"]
    if supersedes:
        lines.append(f'supersedes: "[[{supersedes}]]"')
    lines += [f"{name}: {value}" for name, value in more.items()]
    return "---\n" + "\n".join(lines) + "\n---\n\n# " + slug.title() + "\n\n" + text


def uids(said: Said) -> list[str]:
    return [item["uid"] for item in said.items]


def test_api_fact_48_a_chain_is_told_from_whichever_page(land: Land) -> None:
    shelf = str(land.glossary.pk)
    land.upload(land.glossary, "decisions/dec-a.md", page("dec-a", status="superseded"))
    land.upload(land.glossary, "decisions/dec-b.md", page("dec-b", status="superseded", supersedes="dec-a"))
    land.upload(land.glossary, "decisions/dec-c.md", page("dec-c", supersedes="dec-b"))
    otto = land.agent("otto")
    for name in ("dec-a", "dec-b", "dec-c", "decisions/dec-b.md"):
        said = otto.call("graph", collection=shelf, node=name, view="chain")
        assert uids(said) == ["dec-a", "dec-b", "dec-c"], said.text
        assert [item["current"] for item in said.items] == [False, False, True]
        assert "CURRENT" in said.text
        assert said.first_line.startswith('collection "Glossary"')
    around = otto.call("graph", collection=shelf, node="dec-b")
    assert set(uids(around)) == {"dec-a", "dec-b", "dec-c"}
    assert "dec-c supersedes dec-b · weight 1" in around.text
    assert "decisions/dec-c.md:" in around.fences()[0]
    node = otto.call("graph", collection=shelf, node="dec-a", view="node")
    assert "superseded by: dec-c" in node.text
    assert "title: Dec-A" in node.text, node.text
    assert not re.search(r"^\w+: *(\[\]|\{\}|None)?$", node.text, re.MULTILINE), node.text
    way = otto.call("graph", collection=shelf, node="dec-a", view="path", to="dec-c")
    assert uids(way) == ["dec-a", "dec-b", "dec-c"]
    assert otto.call("graph", collection=shelf, view="lint").meta["total"] >= 0


def test_api_fact_48_a_cycle_is_said_and_ends(land: Land) -> None:
    land.upload(land.glossary, "decisions/dec-a.md", page("dec-a", supersedes="dec-b"))
    land.upload(land.glossary, "decisions/dec-b.md", page("dec-b", supersedes="dec-a"))
    said = land.agent("otto").call("graph", collection=str(land.glossary.pk), node="dec-a", view="chain")
    assert said.meta["cycle"] == ["dec-a", "dec-b"]
    assert "cycle: " in said.text
    assert not any(item["current"] for item in said.items)


@pytest.mark.parametrize("view", ["chain", "neighbourhood", "node"])
def test_api_20_api_23_pages_of_the_graph_say_where_they_are_and_what_they_cost(land: Land, view: str) -> None:
    shelf, otto = str(land.glossary.pk), land.agent("otto")
    land.upload(land.glossary, "decisions/dec-a.md", page("dec-a", text="See [[dec-b]] and [[gone]].\n"))
    land.upload(land.glossary, "decisions/dec-b.md", page("dec-b"))
    said = otto.call("graph", collection=shelf, node="dec-a", view=view)
    found = {item["uid"]: item for item in said.items}
    assert "location" not in found.get("gone", {})
    found.pop("gone", None)
    assert set(found) >= {"dec-a"}
    for item in found.values():
        read = otto.call("collection_document", collection=shelf, document=item["location"])
        assert not read.is_error
        assert f" · {item['location']} · {item['tokens']} tokens" in said.text
        assert item["tokens"] == read.meta["tokens"]


def test_api_fact_49_neighbours_of_hidden_sources_are_not_counted(land: Land) -> None:
    land.upload(land.glossary, "decisions/dec-a.md", page("dec-a", text="See [[dec-b]].\n"))
    land.upload(land.glossary, "decisions/dec-b.md", page("dec-b"))
    alone = land.agent("otto").call("graph", collection=str(land.glossary.pk), node="dec-a", view="node")
    land.upload(land.vault, "decisions/dec-z.md", page("dec-z", text="See [[dec-a]] and collection/glossary:dec-a.\n"))
    after = land.agent("otto").call("graph", collection=str(land.glossary.pk), node="dec-a", view="node")
    assert after.text == alone.text
    assert after.meta["degree"] == {"out": 1, "in": 0}


def test_api_fact_49_of_a_hub_some_relations_are_told_and_all_counted(land: Land) -> None:
    land.upload(land.glossary, "decisions/hub.md", page("hub", text="See [[s1]].\n"))
    for number in range(8):
        land.upload(land.glossary, f"decisions/s{number}.md", page(f"s{number}", text="See [[hub]].\n"))
    shelf = str(land.glossary.pk)
    said = land.agent("otto").call("graph", collection=shelf, node="hub", view="node", limit=3)
    assert said.meta["degree"] == {"out": 1, "in": 8}
    assert said.meta["truncated"]
    assert len(said.meta["edges"]) == 3
    assert "1 relations out, 8 in; 3 of them shown" in said.text
    inward = land.agent("otto").call("graph", collection=shelf, node="hub", view="node", direction="in", limit=20)
    assert len(inward.meta["edges"]) == 8
    assert not inward.meta["truncated"]
    found, cursor = list(said.meta["edges"]), said.meta["next_cursor"]
    while cursor:
        more = land.agent("otto").call("graph", collection=shelf, node="hub", view="node", limit=3, cursor=cursor)
        found += more.meta["edges"]
        cursor = more.meta["next_cursor"]
    assert found == ["hub>related_to>s1", *(f"s{number}>related_to>hub" for number in range(8))]
    land.upload(land.glossary, "decisions/s9.md", page("s9", text="See [[hub]].\n"))
    stale = land.agent("otto").call(
        "graph", collection=shelf, node="hub", view="node", limit=3, cursor=said.meta["next_cursor"]
    )
    assert stale.text.startswith("stale_cursor")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"view": "chain"}, "node"),
        ({"node": "x", "view": "path"}, "to"),
        ({"node": "x", "to": "y"}, "to"),
        ({"node": "x", "types": ["likes"]}, "types"),
        ({"node": "x", "types": "uses"}, "types"),
        ({"node": "x", "depth": 4}, "depth"),
        ({"node": "x", "cursor": "y"}, "cursor"),
    ],
)
def test_graph_arguments_belong_together(land: Land, arguments: dict[str, object], words: str) -> None:
    said = land.agent("otto").call("graph", collection=str(land.glossary.pk), **arguments)
    assert said.is_error
    assert f'"{words}"' in said.text


def test_a_node_that_is_not_there_is_not_found(land: Land) -> None:
    otto = land.agent("otto")
    for arguments in ({"collection": str(land.glossary.pk)}, {"repository": land.api.slug}):
        said = otto.call("graph", node="nothing", **arguments)
        assert said.text == "not_found: There is nothing here, or nothing that you may see."


def test_a_name_that_two_pages_bear_is_ambiguous(land: Land) -> None:
    for slug in ("dec-a", "dec-b"):
        land.upload(land.glossary, f"decisions/{slug}.md", page(slug, aliases="[the rule]"))
    said = land.agent("otto").call("graph", collection=str(land.glossary.pk), node="the rule")
    assert said.text.startswith("ambiguous: 2 pages bear this name")
    assert "dec-a" in said.text


def test_api_fact_47_packs_stay_within_their_budget(land: Land) -> None:
    body = "".join(
        f"## Part {number}\n\n" + f"Workers lease jobs, part {number}. " * 60 + "\n\n" for number in range(40)
    )
    land.upload(land.glossary, "long.md", "# Long\n\n" + body)
    otto = land.agent("otto")
    for budget in (500, 8000, 24_000):
        said = otto.call("context", task="how do workers lease jobs", max_tokens=budget)
        assert not said.is_error, said.text
        assert 0 < said.meta["tokens"] <= budget
        assert tokens_of(said.text) <= 25_000
        assert said.items
        assert said.first_line.startswith((land.api.slug, "collection"))
        assert all(one["location"] for one in said.meta["cut"])
    assert otto.call("context", task="x", max_tokens=499).text.startswith('out_of_range: "max_tokens" is 500..24000')
    assert otto.call("context", task="x" * 4001).text.startswith("out_of_range: ")
    assert land.plans.slug not in otto.call("context", task="zeppelin harbour").text
    assert otto.call("context", task="qqqq wwww").meta["reason"] == "words_absent"


def test_graph_fact_115_page_api_and_tool_give_the_same_nodes_in_the_same_order(land: Land, client: Client) -> None:
    land.upload(land.glossary, "decisions/dec-a.md", page("dec-a", text="See [[dec-b]], [[dec-d]] and [[gone]].\n"))
    land.upload(land.glossary, "decisions/dec-b.md", page("dec-b", supersedes="dec-c"))
    land.upload(land.glossary, "decisions/dec-c.md", page("dec-c", status="superseded", uses='"[[dec-d]]"'))
    land.upload(land.glossary, "decisions/dec-d.md", page("dec-d", retrieval_priority="80"))
    shelf = str(land.glossary.pk)
    said = land.agent("otto").call("graph", collection=shelf, node="dec-a", view="neighbourhood", depth=2)
    client.force_login(land.people["otto"])
    asked = client.get(f"/api/graph/collection/{shelf}/nodes/dec-a/neighbourhood", {"depth": 2}).json()
    assert uids(said) == [node["uid"] for node in asked["nodes"]]
    assert uids(said) == ["dec-a", "dec-d", "dec-b", "gone", "dec-c"]
    shown = client.get(f"/graph/collection/{shelf}", {"focus": "dec-a", "depth": 2}).content.decode()
    assert set(re.findall(r'data-uid="([^"]+)"', shown)) == set(uids(said))
