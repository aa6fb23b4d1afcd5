"""Search and chunks by REST: `api-and-mcp.md` facts 3, 4, 11 to 13, 60, and what became of a chunk."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apps.access.models import User
from apps.access.visibility import set_visibility
from apps.collections.curation import create_collection
from apps.collections.models import Collection, Document, DocumentChunk
from apps.collections.trash import trash_document
from apps.repos.models import Repository
from apps.retrieval.models import QueryLogEntry

pytestmark = pytest.mark.django_db
JSON = "application/json"
Fill = Callable[..., None]


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def api(olga: User) -> Client:
    return signed_in(olga)


def ask(client: Client, query: str, place: str = "/api/search", **more: Any) -> Any:
    return client.post(place, {"query": query, **more}, content_type=JSON)


def paths(answer: Any) -> list[str]:
    return [hit["path"] for hit in answer.json()["items"]]


def test_a_hit_tells_where_it_stands_and_why(fill: Fill, api: Client, shelf: Collection) -> None:
    fill({"a.md": "# Backup\n\n## Nightly\n\nWe back up the database every night.", "b.md": "# Other\n\nnothing"})
    answer = ask(api, "nightly backup", explain=True).json()
    (hit, *_) = answer["items"]
    assert (hit["path"], hit["layer"], hit["heading_path"]) == ("a.md", "collection", ["Backup", "Nightly"])
    assert hit["source"] == {
        "kind": "collection",
        "id": str(shelf.pk),
        "label": "Shelf",
        "slug": "",
        "url": f"/docs/{shelf.pk}",
    }
    assert hit["location"].startswith("a.md#nightly:")
    assert hit["why"]["streams"]["lexical"]["rank"] == 1
    assert hit["why"]["score"]["final"] > 0
    assert {term["word"] for term in hit["why"]["matched"]} == {"nightly", "backup"}
    assert (hit["version"], hit["tokens"] > 0, hit["text_time"][-1]) == (hit["version"], True, "Z")
    text, marks = hit["snippet"]["text"], hit["snippet"]["marks"]
    assert text in Document.objects.get(source_key="a.md").text
    assert any(text[start:end].lower() in ("nightly", "back", "backup") for start, end in marks)
    assert {facet["name"] for facet in answer["facets"]} >= {"source", "kind"}
    assert (answer["total"], answer["reason"], answer["next_cursor"]) == (len(answer["items"]), None, None)
    chunk = api.get(f"/api/chunks/{hit['chunk_id']}").json()
    assert (chunk["id"], chunk["document"]["path"]) == (hit["chunk_id"], "a.md")


def test_api_fact_03_ties_keep_their_order_over_pages(fill: Fill, api: Client) -> None:
    fill({f"{n}.md": "the very same line" for n in range(6)}, embed=False)
    first: list[str] = []
    for _ in range(20):
        seen: list[str] = []
        cursor = ""
        while True:
            page = ask(api, "same line", limit=2, cursor=cursor)
            seen += paths(page)
            cursor = page.json()["next_cursor"]
            if cursor is None:
                break
        assert sorted(seen) == [f"{n}.md" for n in range(6)]
        first = first or seen
        assert seen == first


def test_api_fact_04_a_cursor_is_good_for_one_question_and_one_reader(
    fill: Fill, api: Client, shelf: Collection, olga: User, otto: User
) -> None:
    set_visibility(source=shelf, visibility="public", by=olga)
    fill({f"{n}.md": "the very same line" for n in range(6)}, embed=False)
    cursor = ask(api, "same line", limit=2).json()["next_cursor"]
    assert ask(api, "same line", limit=2, cursor=cursor).status_code == 200
    for client, more in ((signed_in(otto), {}), (api, {"path": "1"}), (api, {"kinds": ["collection"]})):
        answer = ask(client, "same line", limit=2, cursor=cursor, **more)
        assert (answer.status_code, answer.json()["code"]) == (400, "stale_cursor")
    assert ask(api, "other line", limit=2, cursor=cursor).status_code == 400
    fill({"more.md": "the very same line"}, embed=False)
    assert ask(api, "same line", limit=2, cursor=cursor).json()["code"] == "stale_cursor"


@pytest.mark.parametrize(
    "query",
    [
        "what's up?",
        "((",
        "a & | !b",
        ":*",
        "foo:bar",
        "'",
        "<x@y.z>",
        '"open',
        "-v",
        "a\0b",
        "\0",
        "[" * 2000,
        "👍",
        "% _ \\",
    ],
)
def test_api_fact_11_any_text_is_a_query(fill: Fill, api: Client, query: str) -> None:
    fill({"a.md": "# A\n\nfoo:bar and <x@y.z>, what's up? -v"}, embed=False)
    assert ask(api, query).status_code == 200


def test_api_fact_11_taken_literally(fill: Fill, api: Client) -> None:
    fill({"a.md": "use foo:bar here", "b.md": "foo is not bar", "c.md": "pass -v for more"}, embed=False)
    assert paths(ask(api, "foo:bar"))[0] == "a.md"
    assert paths(ask(api, "-v")) == ["c.md"]


def test_an_empty_query_is_required_and_bounds_are_told(api: Client) -> None:
    for query in ("", "  "):
        answer = ask(api, query)
        assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (422, "required", "query")
    long = ask(api, "x" * 2001)
    assert (long.status_code, long.json()["code"], long.json()["field"]) == (422, "out_of_range", "query")
    assert ask(api, "x", limit=101).json()["code"] == "out_of_range"
    assert ask(api, "x", limit="10").status_code == 422
    assert ask(api, "x", limitt=1).json()["code"] == "unknown_field"
    assert ask(api, "x", since="yesterday").json()["field"] == "since"
    assert ask(api, "x", kinds=["novel"]).status_code == 422


def test_api_fact_12_only_common_words(fill: Fill, api: Client) -> None:
    fill({"a.md": "# A\n\nwhat is the matter"}, embed=False)
    answer = ask(api, "what is the")
    assert (answer.status_code, answer.json()["total"]) == (200, 0)
    assert answer.json()["reason"]["code"] == "only_common_words"
    assert "ommon words" in answer.json()["reason"]["message"]


@pytest.mark.parametrize("query", ["ADR-0042", '"--dry-run"', "--dry-run"])
def test_api_fact_13_identifiers_and_flags(fill: Fill, api: Client, query: str) -> None:
    fill({"a.md": "See ADR-0042 and run --dry-run", "b.md": "dry weather, a run in the park", "c.md": "ADR 7 and 42"})
    assert paths(ask(api, query))[0] == "a.md"


def test_filters_and_named_sources(fill: Fill, api: Client, shelf: Collection, olga: User, otto: User) -> None:
    other = create_collection(by=olga, name="Other")
    fill({"x/a.md": "alpha"}, embed=False)
    fill({"b.md": "alpha"}, collection=other, embed=False)
    assert sorted(paths(ask(api, "alpha"))) == ["b.md", "x/a.md"]
    assert paths(ask(api, "alpha", sources=[f"collection:{other.pk}"])) == ["b.md"]
    assert paths(ask(api, "alpha", path="x/")) == ["x/a.md"]
    assert paths(ask(api, "alpha", place=f"/api/md-collections/{shelf.pk}/search")) == ["x/a.md"]
    narrow = ask(api, "alpha", path="y/").json()
    assert narrow["reason"]["code"] in ("filters_too_narrow", "words_absent", "not_indexed")
    outsider = signed_in(otto)
    hidden = ask(outsider, "alpha", sources=[f"collection:{other.pk}"])
    absent = ask(outsider, "alpha", sources=[f"collection:{uuid.uuid4()}"])
    assert (hidden.status_code, hidden.content) == (404, absent.content)
    for name in ("repository:example.org/no/thing", "book:1", "collection:x"):
        assert ask(api, "alpha", sources=[name]).content == absent.content
    assert ask(api, "alpha", sources=["nothing"]).json()["field"] == "sources[0]"
    assert ask(outsider, "alpha").json()["total"] == 0


def test_one_repository(api: Client, olga: User) -> None:
    repository = Repository.objects.create(slug="example.org/a/b", git_url="https://example.org/a/b", owner=olga)
    place = "/api/repos/example.org/A/b/search"
    docs, wiki = ask(api, "alpha", place, mode="docs"), ask(api, "alpha", place, mode="wiki")
    assert (docs.status_code, docs.content) == (200, wiki.content)
    assert docs.json()["reason"]["code"] == "not_indexed"
    assert ask(api, "alpha", sources=[f"repository:{repository.slug.upper()}"]).status_code == 200


def test_api_fact_60_the_page_and_rest_give_the_same_rows(fill: Fill, api: Client) -> None:
    texts = {f"{n}.md": f"# Part {n}\n\nalpha {'beta ' * (n % 4)} text number {n}" for n in range(12)}
    fill(texts)
    rest = [hit["chunk_url"] for hit in ask(api, "alpha beta").json()["items"]]
    page = api.get("/search", {"q": "alpha beta"}).content.decode()
    shown = list(dict.fromkeys(re.findall(r"/chunks/\d+", page)))
    assert rest == shown
    assert len(rest) == 12


def test_the_number_of_queries_does_not_depend_on_the_hits(fill: Fill, api: Client) -> None:
    fill({"a.md": "alpha one"})

    def count() -> int:
        with CaptureQueriesContext(connection) as seen:
            assert ask(api, "alpha", limit=100).status_code == 200
        return len(seen)

    count()
    before = count()
    fill({f"{n}.md": f"alpha {n}" for n in range(20)})
    assert count() == before


def test_api_fact_53_searches_are_logged_and_reads_are_not(fill: Fill, api: Client, olga: User) -> None:
    fill({"a.md": "alpha"}, embed=False)
    ask(api, "alpha")
    ask(api, "the of and")
    ask(api, "")
    api.get(f"/api/chunks/{DocumentChunk.objects.get().pk}")
    rows = QueryLogEntry.objects.filter(user=olga).order_by("at").values_list("door", "query", "outcome", "code")
    assert list(rows) == [
        ("rest", "alpha", "ok", ""),
        ("rest", "the of and", "empty", ""),
        ("rest", "", "error", "required"),
    ]
    api.get("/search", {"q": "alpha"})
    assert QueryLogEntry.objects.filter(user=olga, door="page", outcome="ok").count() == 1


def test_api_fact_57_own_rows_and_all_rows_by_rest(fill: Fill, api: Client, olga: User, otto: User) -> None:
    fill({"a.md": "alpha"}, embed=False)
    ask(api, "alpha")
    ask(api, "nowhere")
    ask(signed_in(otto), "of otto")
    mine = api.get("/api/me/query-logs").json()
    assert [(row["query"], row["outcome"]) for row in mine["items"]] == [("nowhere", "empty"), ("alpha", "ok")]
    assert mine["items"][1]["found"][0]["label"] == "Shelf"
    assert api.get("/api/me/query-logs", {"outcome": "empty"}).json()["total"] == 1
    assert api.get("/api/query-logs").status_code == api.get("/api/query-logs/stats").status_code == 403
    ada = signed_in(User.objects.create_superuser("ada"))
    assert ada.get("/api/query-logs").json()["total"] == 3
    assert ada.get("/api/query-logs", {"user": "otto"}).json()["total"] == 1
    figures = ada.get("/api/query-logs/stats").json()
    assert (figures["queries"], figures["outcomes"]["ok"]) == (3, 1)
    assert {"name": "nowhere", "number": 1} in figures["zero_hit"]
    assert api.delete("/api/me/query-logs").status_code == 204
    assert api.get("/api/me/query-logs").json()["total"] == 0
    assert ada.get("/api/query-logs").json()["total"] == 1


def test_a_chunk_with_neighbours_and_etag(fill: Fill, api: Client, otto: User) -> None:
    text = "\n\n".join(f"# Part {n}\n\n{f'word{n} ' * 500}" for n in range(5))
    fill({"a.md": text})
    chunks = list(DocumentChunk.objects.order_by("chunk_index"))
    assert len(chunks) == 5
    place = f"/api/chunks/{chunks[2].pk}"
    alone = api.get(place)
    body = alone.json()
    assert (body["neighbours"], body["vector"]["state"], body["truncated"]) == ([], "embedded", False)
    assert text.encode()[body["start_byte"] : body["end_byte"]].decode() == body["source"]
    assert [one["index"] for one in api.get(place, {"neighbours": 2}).json()["neighbours"]] == [0, 1, 3, 4]
    assert [one["index"] for one in api.get(place, {"neighbours": 1}).json()["neighbours"]] == [1, 3]
    assert api.get(place, {"neighbours": 3}).json()["code"] == "out_of_range"
    assert api.get(place, headers={"If-None-Match": alone["ETag"]}).status_code == 304
    hidden = signed_in(otto).get(place, headers={"If-None-Match": alone["ETag"]})
    absent = signed_in(otto).get("/api/chunks/7")
    assert (hidden.status_code, hidden.content) == (404, absent.content)
    for wrong in ("0", "99999999999999999999", str(2**63), "x", "-1"):
        assert api.get(f"/api/chunks/{wrong}").status_code == 404


def test_a_replaced_chunk_is_gone_and_tells_its_successor(fill: Fill, api: Client, olga: User, otto: User) -> None:
    fill({"a.md": "# Guide\n\n## First\n\n" + "one " * 900 + "\n\n## Second\n\n" + "two " * 900})
    old = DocumentChunk.objects.get(heading_path=["Guide", "Second"])
    fill({"a.md": "# Guide\n\n## First\n\n" + "one " * 900 + "\n\n## Second\n\n" + "other " * 600})
    new = DocumentChunk.objects.get(heading_path=["Guide", "Second"])
    gone = api.get(f"/api/chunks/{old.pk}")
    assert (gone.status_code, gone["Content-Type"]) == (410, "application/problem+json")
    body = gone.json()
    document = Document.objects.get()
    assert (body["code"], body["heading_path"], body["successor"]) == ("gone", ["Guide", "Second"], str(new.pk))
    assert body["document_url"] == document.get_absolute_url()
    assert api.get(f"/chunks/{old.pk}").status_code == 410
    outsider = signed_in(otto)
    assert outsider.get(f"/api/chunks/{old.pk}").content == outsider.get("/api/chunks/7").content
    assert outsider.get(f"/chunks/{old.pk}").status_code == 404

    fill({"a.md": "# Guide\n\n## Renamed\n\n" + "words " * 300})
    moved = api.get(f"/api/chunks/{new.pk}").json()
    assert moved["successor"] == str(DocumentChunk.objects.get().pk)
    trash_document(document=Document.objects.get(), by=olga)
    assert api.get(f"/api/chunks/{old.pk}").status_code == 404
