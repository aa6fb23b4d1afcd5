"""The graph by REST (facts 7, 107, 111 to 118)."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Mapping
from html import unescape
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apps.access.grants import grant
from apps.access.models import AuditRecord, User
from apps.collections.models import Collection, Document
from apps.collections.trash import trash_document
from apps.jobs.worker import drain
from apps.knowledge_graph import layout
from apps.knowledge_graph.lint import refresh_findings
from apps.knowledge_graph.panel import panel
from apps.knowledge_graph.storing.rebuild import rebuild
from tests.knowledge_graph.pages_of_texts import WORKED_EXAMPLE, page_text
from tests.knowledge_graph.test_stored_projection import write

pytestmark = pytest.mark.django_db


@pytest.fixture
def fill(platform: Collection) -> Callable[..., Collection]:
    def fill(files: Mapping[str, str], collection: Collection = platform) -> Collection:
        for key, text in files.items():
            write(collection, key, text)
        rebuild("collection", collection.pk)
        return collection

    return fill


def client_of(user: Any) -> Client:
    client = Client()
    client.force_login(user)
    return client


def address(collection: Collection, rest: str) -> str:
    return f"/api/graph/collection/{collection.pk}/{rest}"


def get(user: Any, collection: Collection, rest: str, status: int = 200) -> Any:
    answer = client_of(user).get(address(collection, rest))
    assert answer.status_code == status, (rest, answer.status_code, getattr(answer, "content", b"")[:300])
    return json.loads(b"".join(answer) if answer.streaming else answer.content)  # type: ignore[attr-defined]


def test_graph_fact_07_node_detail(fill: Any, olga: Any) -> None:
    book = page_text("book", type="runbook")
    files = {**WORKED_EXAMPLE, "book.md": book, "x.md": page_text("x", documented_by="[book]")}
    collection = fill(files)
    detail = get(olga, collection, "nodes/mod-redis-pool")
    [edge] = detail["incoming"]
    assert (edge["type"], edge["other"]["uid"], edge["by_page_types"]) == ("depends_on", "mod-session-store", True)
    assert [(row["path"], row["line"], row["raw"]) for row in edge["evidence"]] == [
        ("modules/mod-session-store.md", 5, "[[mod-redis-pool]]")
    ]
    assert [node["uid"] for node in get(olga, collection, "nodes/dec-cache-v1")["newest"]] == ["dec-cache-v2"]
    assert [edge["type"] for edge in get(olga, collection, "nodes/book")["incoming"]] == ["documented_by"]


def test_graph_of_a_hub_some_edges_are_shown_and_all_counted(fill: Any, olga: Any) -> None:
    spoke = [page_text(f"s{number:03}", "[[hub]]", uses="[hub]" if number < 7 else "[]") for number in range(130)]
    hub = page_text("hub", "[[s001]] [[s002]]")
    collection = fill({"hub.md": hub, **{f"s{number:03}.md": text for number, text in enumerate(spoke)}})
    detail = get(olga, collection, "nodes/hub")
    assert (len(detail["incoming"]), detail["incoming_total"]) == (100, 137)
    assert (len(detail["outgoing"]), detail["outgoing_total"]) == (2, 2)
    few = get(olga, collection, "nodes/hub?edges=5&types=uses")
    assert [edge["other"]["uid"] for edge in few["incoming"]] == ["s000", "s001", "s002", "s003", "s004"]
    assert (few["incoming_total"], few["outgoing_total"]) == (7, 0)
    for number in range(10):
        trash_document(document=Document.objects.get(source_key=f"s{number:03}.md"), by=olga)
    assert get(olga, collection, "nodes/hub")["incoming_total"] == 120
    assert get(olga, collection, "nodes/hub?edges=0", 400)["field"] == "edges"
    body = client_of(olga).get(f"/graph/collection/{collection.pk}?focus=hub").content.decode()
    assert "100 of 120 shown, the heaviest" in body


def test_graph_all_edges_of_a_hub_in_pages(fill: Any, olga: Any) -> None:
    spoke = {f"s{n:03}.md": page_text(f"s{n:03}", "[[hub]]", uses="[hub]" if n % 3 == 0 else "[]") for n in range(45)}
    weighted = page_text("w", related="\n- {slug: hub, type: uses, weight: 0.6}")
    collection = fill({"hub.md": page_text("hub", "[[s001]] [[s002]] [[gone]]"), "w.md": weighted, **spoke})

    def all_of(rest: str) -> list[Any]:
        found, cursor = [], ""
        while True:
            page = get(olga, collection, f"nodes/hub/edges?limit=7&cursor={cursor}{rest}")
            found += page["items"]
            cursor = page["next_cursor"]
            if not cursor:
                assert len(found) == page["total"]
                return found
            assert len(page["items"]) == 7

    every = all_of("")
    assert [edge["outgoing"] for edge in every] == [True] * 3 + [False] * 61
    assert len({(edge["from"], edge["type"], edge["to"]) for edge in every}) == 64
    weights = [edge["weight"] for edge in every if not edge["outgoing"]]
    assert weights == sorted(weights, reverse=True)
    assert [edge["evidence"][0]["path"] for edge in every if edge["from"] == "w"] == ["w.md"]
    assert all_of("&direction=in") == every[3:]
    assert all_of("&direction=out") == every[:3]
    assert [edge["from"] for edge in all_of("&direction=in&types=uses")] == [
        *(f"s{n:03}" for n in range(0, 45, 3)),
        "w",
    ]
    # What lies in the trash is in no part of it, and the parts join.
    for name in ("s000.md", "s031.md"):
        trash_document(document=Document.objects.get(source_key=name), by=olga)
    gone = ("s000", "s031")
    assert all_of("") == [edge for edge in every if edge["from"] not in gone]
    detail = get(olga, collection, "nodes/hub")
    assert sorted(edge["other"]["uid"] for edge in detail["incoming"]) == sorted(
        edge["other"]["uid"] for edge in every[3:] if edge["from"] not in gone
    )


def test_graph_pages_of_edges_belong_to_one_question_and_one_reader(fill: Any, olga: Any, ada: Any) -> None:
    spokes = {f"s{number}.md": page_text(f"s{number}", "[[hub]]") for number in range(5)}
    collection = fill({"hub.md": page_text("hub"), **spokes})
    cursor = get(olga, collection, "nodes/hub/edges?limit=2")["next_cursor"]
    assert len(get(olga, collection, f"nodes/hub/edges?limit=3&cursor={cursor}")["items"]) == 3
    for user, rest in ((ada, "hub/edges?"), (olga, "s1/edges?"), (olga, "hub/edges?direction=in&")):
        assert get(user, collection, f"nodes/{rest}cursor={cursor}", 400)["code"] == "stale_cursor"
    assert get(olga, collection, "nodes/hub/edges?direction=up", 400)["field"] == "direction"
    assert get(olga, collection, "nodes/none/edges", 404) == get(olga, collection, "nodes/none", 404)


def test_graph_edges_of_a_hub_go_on_in_the_page(fill: Any, olga: Any) -> None:
    spokes = {f"s{number:03}.md": page_text(f"s{number:03}", "[[hub]]") for number in range(250)}
    collection = fill({"hub.md": page_text("hub"), **spokes})
    client = client_of(olga)
    path = f"/graph/collection/{collection.pk}?focus=hub"
    seen: list[str] = []
    for count in (100, 100, 50):
        body = client.get(path).content.decode()
        assert f"{count} of 250 shown" in body
        incoming = body.partition('id="cg-in"')[2].partition("</section>")[0]
        part = re.findall(r'href="\?focus=(s\d+)"', incoming)
        assert len(part) == count
        assert ("From the heaviest on" in incoming) == bool(seen)
        seen += part
        following = re.search(r'rel="next" href="([^"#]+)#cg-in"', incoming)
        path = f"/graph/collection/{collection.pk}{unescape(following[1])}" if following else ""
    assert (path, seen) == ("", [f"s{number:03}" for number in range(250)])
    # An address that names no place begins with the first.
    odd = client.get(f"/graph/collection/{collection.pk}?focus=hub&in=0.5,x").content.decode()
    assert "100 of 250 shown, the heaviest" in odd


def test_graph_of_an_edge_said_often_the_strongest_places_are_shown(fill: Any, olga: Any) -> None:
    collection = fill({"a.md": page_text("a", "[[b]] \n" * 40, related="[b]"), "b.md": page_text("b")})
    [edge] = get(olga, collection, "nodes/b")["incoming"]
    assert (len(edge["evidence"]), edge["evidence_total"]) == (20, 41)
    assert edge["evidence"][0]["provenance"] == "frontmatter_related"
    lines = [place["line"] for place in edge["evidence"][1:]]
    assert lines == sorted(lines)
    assert "and 21 more places" in client_of(olga).get(f"/graph/collection/{collection.pk}?focus=b").content.decode()


def test_graph_of_a_page_with_many_findings_the_worst_are_shown(fill: Any, olga: Any) -> None:
    collection = fill({"a.md": page_text("a", " ".join(f"[[n{number}]]" for number in range(70)), status="acepted")})
    refresh_findings(collection)
    for _ in range(2):
        detail = get(olga, collection, "nodes/a")
        assert (len(detail["findings"]), detail["findings_total"]) == (50, 71)
        assert {one["severity"] for one in detail["findings"]} == {"warning"}
        write(collection, "b.md", page_text("b"))  # what is in the trash makes readers find by themselves
        rebuild("collection", collection.pk)
        trash_document(document=Document.objects.get(source_key="b.md"), by=olga)
    body = client_of(olga).get(f"/graph/collection/{collection.pk}?focus=a").content.decode()
    assert "50 of 71 shown, the worst" in body


def test_graph_panel_of_a_plain_document_that_many_name(fill: Any, olga: Any) -> None:
    pages = {f"s{number:03}.md": page_text(f"s{number:03}", "[plain](plain.md)") for number in range(60)}
    collection = fill({**pages, "plain.md": "# Plain\n"})
    found = panel(olga, collection, document=Document.objects.get(source_key="plain.md").pk, path="plain.md")
    assert found is not None
    assert (len(found.linked_by), found.links) == (50, 60)


def test_graph_node_detail_is_few_queries(fill: Any, olga: Any) -> None:
    collection = fill(WORKED_EXAMPLE)
    client = client_of(olga)
    client.get(address(collection, "nodes/dec-cache-v2"))
    with CaptureQueriesContext(connection) as queries:
        assert client.get(address(collection, "nodes/dec-cache-v2")).status_code == 200
    about_the_graph = [one["sql"] for one in queries if "kb_" in one["sql"]]
    assert len(about_the_graph) <= 6


def test_graph_lists_filters_and_pages(fill: Any, olga: Any) -> None:
    files = {f"p{n}.md": page_text(f"p{n}", "[[gone]]", tags="[blue]" if n else "[red]") for n in range(5)}
    collection = fill({**files, "d.md": page_text("d", type="decision", status="draft", title="Use the 50% rule")})
    everything = get(olga, collection, "nodes")
    assert (everything["total"], everything["next_cursor"]) == (7, None)
    first = get(olga, collection, "nodes?limit=4&type=module")
    assert ([node["uid"] for node in first["items"]], first["total"]) == (["p0", "p1", "p2", "p3"], 5)
    second = get(olga, collection, f"nodes?limit=4&type=module&cursor={first['next_cursor']}")
    assert ([node["uid"] for node in second["items"]], second["total"], second["next_cursor"]) == (["p4"], 5, None)
    assert get(olga, collection, f"nodes?limit=4&cursor={first['next_cursor']}", 400)["code"] == "stale_cursor"
    for query, wanted in {
        "dangling=true": ["gone"],
        "tag=red": ["p0"],
        "q=50%25": ["d"],
        "q=((": [],
        "q=%00": everything["items"],
        "status=draft": ["d"],
        "type=decision&type=unknown": ["d", "gone"],
        "q=_": [],
    }.items():
        answer = get(olga, collection, f"nodes?{query}")
        found = answer["items"] if wanted and isinstance(wanted[0], dict) else [n["uid"] for n in answer["items"]]
        assert found == wanted, query
        assert answer["total"] == len(wanted), query


@pytest.mark.parametrize(
    ("rest", "field"),
    [
        ("nodes?colour=red", "colour"),
        ("nodes/dec-cache-v2/neighbourhood?depth=9", "depth"),
        ("subgraph?types=usess", "types"),
        ("subgraph?nodes=501", "nodes"),
        ("path?from=dec-cache-v2", "to"),
        ("lint?rule=KG1", "rule"),
        ("export?format=xml", "format"),
    ],
)
def test_graph_fact_116_wrong_parameters(rest: str, field: str, fill: Any, olga: Any) -> None:
    answer = get(olga, fill(WORKED_EXAMPLE), rest, 400)
    assert answer["field"].startswith(field)


def test_graph_walks_by_rest(fill: Any, olga: Any) -> None:
    collection = fill(WORKED_EXAMPLE)
    around = get(olga, collection, "nodes/mod-session-store/neighbourhood?depth=2")
    assert [node["uid"] for node in around["nodes"]] == [
        "mod-session-store", "dec-cache-v2", "mod-redis-pool", "dec-cache-v1",
    ]  # fmt: skip
    assert (len(around["edges"]), around["truncated"]) == (3, False)
    only = get(olga, collection, "nodes/mod-session-store/neighbourhood?depth=3&types=depends_on")
    assert len(only["nodes"]) == 2
    way = get(olga, collection, "path?from=dec-cache-v1&to=mod-redis-pool")
    assert [node["uid"] for node in way["nodes"]] == [
        "dec-cache-v1", "dec-cache-v2", "mod-session-store", "mod-redis-pool",
    ]  # fmt: skip
    assert [edge["type"] for edge in way["edges"]] == ["supersedes", "decision_for", "depends_on"]
    get(olga, collection, "path?from=dec-cache-v1&to=nothing", 404)


def test_graph_pictures_are_the_same_each_time(fill: Any, olga: Any) -> None:
    collection = fill(WORKED_EXAMPLE)
    first, second = (get(olga, collection, "subgraph") for _ in range(2))
    assert first == second
    assert [(node["uid"], node["degree"]) for node in first["nodes"]] == [
        ("dec-cache-v2", 2), ("mod-session-store", 2), ("dec-cache-v1", 1), ("mod-redis-pool", 1),
    ]  # fmt: skip
    assert all(0 <= node["x"] <= 1 and 0 <= node["y"] <= 1 for node in first["nodes"])
    cut = get(olga, collection, "subgraph?nodes=2")
    assert (len(cut["nodes"]), len(cut["edges"]), cut["total_nodes"], cut["truncated"]) == (2, 1, 4, True)
    assert layout.arrange({}, []).shares() == {}


def test_graph_fact_112_and_113_absent_alike(put: Any, platform: Collection, elsewhere: Collection, olga: Any) -> None:
    put("a.md", page_text("a", "[[linked]]"))
    put("l.md", page_text("linked", title="Zanzibar", tags="[mango]"))
    put("t.md", page_text("trashed", title="Quetzal"))
    put("p.md", page_text("purged"))
    drain()
    wim = User.objects.create_user("wim")
    grant(source=platform, to=wim, level="read", by=olga)
    for key in ("l.md", "t.md"):
        trash_document(document=Document.objects.get(source_key=key), by=olga)
    Document.objects.get(source_key="p.md")
    from apps.collections.trash import purge_document

    purge_document(collection=platform, document_id=Document.objects.get(source_key="p.md").pk, by=olga)
    client = client_of(wim)
    client.get(address(platform, "nodes"))
    answers = set()
    for uid in ("trashed", "purged", "invented"):
        for rest in (f"nodes/{uid}", f"nodes/{uid}/neighbourhood", f"path?from=a&to={uid}"):
            with CaptureQueriesContext(connection) as queries:
                answer = client.get(address(platform, rest))
            answers.add((rest.replace(uid, ""), answer.status_code, answer.content, len(queries)))
    assert len(answers) == 3
    assert {status for _, status, _, _ in answers} == {404}
    linked = get(wim, platform, "nodes/linked")
    assert (linked["type"], linked["label"], linked["dangling"]) == ("unknown", "linked", True)
    for rest in ("nodes", "nodes/linked", "nodes/a", "subgraph", "export", "lint", "nodes?tag=mango"):
        text = json.dumps(get(wim, platform, rest))
        for word in ("Zanzibar", "Quetzal", "mango" if "tag=" not in rest else "Zanzibar"):
            assert word not in text, rest
    assert get(wim, platform, "nodes")["total"] == 2


def test_graph_fact_111_and_113_hidden_sources(fill: Any, elsewhere: Collection, olga: Any) -> None:
    fill(WORKED_EXAMPLE, elsewhere)
    wim = User.objects.create_user("wim")
    for rest in ("nodes", "nodes/dec-cache-v2", "path", "subgraph", "lint", "revisions", "export"):
        hidden = client_of(wim).get(address(elsewhere, rest))
        absent = client_of(wim).get(f"/api/graph/collection/{uuid.uuid4()}/{rest}")
        assert (hidden.status_code, hidden.content) == (absent.status_code, absent.content) == (404, absent.content)
    assert client_of(wim).post(address(elsewhere, "rebuild")).status_code == 404


def test_graph_fact_117_other_sources(fill: Any, platform: Collection, elsewhere: Collection, olga: Any) -> None:
    fill({"d.md": page_text("dec-x", type="decision", title="Decision X")}, elsewhere)
    collection = fill({"a.md": page_text("a", "[[elsewhere:dec-x]] [[uses::elsewhere:dec-x]] [[nowhere:dec-x]]")})
    assert [node["uid"] for node in get(olga, collection, "nodes")["items"]] == ["a"]
    links = get(olga, collection, "nodes/a")["cross_source_links"]
    assert [(link["type"], link["target_uid"], link["target_label"]) for link in links] == [
        ("related_to", "dec-x", "Decision X"),
        ("uses", "dec-x", "Decision X"),
        ("related_to", None, None),
    ]
    wim = User.objects.create_user("wim")
    grant(source=platform, to=wim, level="read", by=olga)
    hidden = get(wim, collection, "nodes/a")["cross_source_links"]
    assert {(link["target_source"], link["target_uid"]) for link in hidden} == {(None, None)}


def test_graph_fact_118_labels_are_text(fill: Any, olga: Any) -> None:
    collection = fill({"a.md": page_text("a", title="'<img src=x onerror=alert(1)>'")})
    answer = client_of(olga).get(address(collection, "export?format=graphml"))
    assert b"<img" not in b"".join(answer)  # type: ignore[arg-type]
    assert get(olga, collection, "nodes/a")["label"] == "<img src=x onerror=alert(1)>"


def test_graph_exports_are_audited_and_tags_work(fill: Any, olga: Any) -> None:
    collection = fill(WORKED_EXAMPLE)
    exported = get(olga, collection, "export")
    assert (len(exported["nodes"]), len(exported["edges"])) == (4, 3)
    assert AuditRecord.objects.filter(act="exported").count() == 1
    client = client_of(olga)
    first = client.get(address(collection, "nodes/dec-cache-v1"))
    again = client.get(address(collection, "nodes/dec-cache-v1"), headers={"If-None-Match": first["ETag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_graph_is_rebuilt_by_writers(fill: Any, platform: Collection, olga: Any) -> None:
    fill(WORKED_EXAMPLE)
    wim = User.objects.create_user("wim")
    grant(source=platform, to=wim, level="read", by=olga)
    assert client_of(wim).post(address(platform, "rebuild")).status_code == 403
    queued = client_of(olga).post(address(platform, "rebuild"))
    assert (queued.status_code, queued.json()["kind"]) == (202, "project_graph")
    assert client_of(olga).post(address(platform, "rebuild")).status_code == 200
    assert {job.kind for job in drain()} == {"project_graph", "lint_graph", "note_findings"}
    assert get(olga, platform, "revisions")["total"] == 1


def test_graph_fact_109_sources_without_pages(platform: Collection, olga: Any) -> None:
    write(platform, "plain.md", "# Plain\n\n[[x]]\n")
    assert get(olga, platform, "nodes") == {"items": [], "total": 0, "next_cursor": None}
    assert get(olga, platform, "subgraph")["nodes"] == []
    assert get(olga, platform, "lint")["total"] == 0
    assert get(olga, platform, "export")["nodes"] == []
    get(olga, platform, "nodes/x", 404)
