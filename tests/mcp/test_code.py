"""Symbols and routes by the tools."""

from __future__ import annotations

from tests.mcp.conftest import Land

APP = (
    "class Queue:\n"
    '    """Where jobs wait."""\n\n'
    "    def push(self, job):\n"
    "        return handle(job)\n\n\n"
    "class Stack:\n"
    "    def push(self, job):\n"
    "        return None\n\n\n"
    "def handle(job):\n"
    '    """Handle one job."""\n'
    "    return job\n"
)
DOCS = "# Queueing\n\nA job enters by `Queue.push` and is handled by `handle()`.\n"


def grown(land: Land) -> str:
    land.upstreams["api"].commit({"src/queue.py": APP, "docs/queueing.md": DOCS})
    land.sync(land.api)
    return land.api.slug


def test_symbols_by_name_in_full_and_around(land: Land) -> None:
    otto, slug = land.agent("otto"), grown(land)
    found = otto.call("search_code", query="handle", repository=slug)
    assert found.first_line.startswith(f"{slug} @ ")
    hit = next(item for item in found.items if item["location"].startswith("src/queue.py"))
    assert "doc: Handle one job." in found.text
    said = otto.call("read_node", repository=slug, node=hit["node"])
    assert said.fences()[0] == 'def handle(job):\n    """Handle one job."""\n    return job\n'
    assert said.meta["callers"] == 1
    assert "docs/queueing.md#queueing:1-3" in said.text
    around = otto.call("related", repository=slug, node=hit["node"], direction="callers", kinds=["calls"])
    assert [one["qualified_name"].rpartition(".")[2] for one in around.items] == ["push"]
    assert "src/queue.py:5" in around.text
    page = otto.call("doc_page", repository=slug, page="docs/queueing.md")
    assert "symbols discussed here: " in page.text
    assert "handle" in page.text.split("symbols discussed here: ")[1]
    hits = otto.call("retrieve", query="how does a job enter queueing", repository=slug)
    assert "code named here: " in hits.text


def test_api_fact_43_a_name_that_two_symbols_share_is_ambiguous(land: Land) -> None:
    otto, slug = land.agent("otto"), grown(land)
    said = otto.call("read_node", repository=slug, node="push")
    assert said.is_error
    assert said.text.startswith("ambiguous: 2 symbols have this name")
    assert said.text.count("node ") == 2
    one = otto.call("read_node", repository=slug, node="Stack.push")
    assert one.fences()[0] == "    def push(self, job):\n        return None\n"
    assert otto.call("related", repository=slug, node="push").text.startswith("ambiguous: ")
    assert otto.call("read_node", repository=slug, node="nothing_like_it").text.startswith("not_found: There is")


def test_code_by_meaning_where_no_symbol_has_the_name(land: Land) -> None:
    otto, slug = land.agent("otto"), grown(land)
    said = otto.call("search_code", query="what handles one job in the queue", repository=slug)
    assert any(item["location"].startswith("src/queue.py") for item in said.items), said.text
    assert any("node" in item for item in said.items)
    both = otto.call("retrieve", query="handle one job", repository=slug)
    layers = {item["layer"] for item in both.items}
    assert "repo_doc" in layers
    assert layers & {"code", "signature"}
    only = otto.call("retrieve", query="handle one job", repository=slug, mode="code")
    assert {item["layer"] for item in only.items} <= {"code", "signature"}


def test_no_symbol_found_says_why(land: Land) -> None:
    otto = land.agent("otto")
    assert otto.call("search_code", query="qwyzzx").meta["reason"] == "words_absent"
    assert otto.call("search_code", query="qwyzzx", kind="class").meta["reason"] == "filters_too_narrow"


def test_a_question_is_routed_to_readable_sources(land: Land) -> None:
    said = land.agent("olga").call("route", query="how are jobs leased")
    labels = [item["label"] for item in said.items]
    assert land.api.slug in labels
    assert "Glossary" in labels
    assert "score " in said.text
    assert "why: " in said.text
    for name in ("otto",):
        said = land.agent(name).call("route", query="zeppelin harbour dawn codes")
        assert land.plans.slug not in said.text
        assert "Vault" not in said.text
    assert land.agent("otto").call("route", query="the").meta["reason"] == "only_common_words"
    assert land.agent("otto").call("route", query="x" * 513).text.startswith("out_of_range: ")
