"""Proposed edges and what people say to them (facts 119 to 123), one contract for every proposer."""

from __future__ import annotations

import uuid
from typing import Any

import numpy as np
import pytest
from django.test import Client

from apps.access.errors import Forbidden
from apps.access.grants import grant
from apps.access.models import User
from apps.collections.models import Collection, Document
from apps.collections.trash import trash_document
from apps.jobs.queue import enqueue
from apps.jobs.worker import drain
from apps.knowledge_graph import export
from apps.knowledge_graph.models import CanonicalPage, Edge, GraphSource, ProposalDecision
from apps.knowledge_graph.pasting import line_to_paste
from apps.knowledge_graph.proposals import BUILT_IN, decide, propose, proposers
from apps.knowledge_graph.proposing import mutual_neighbours, shared_symbol
from apps.knowledge_graph.proposing.gathering import prose
from apps.knowledge_graph.proposing.values import Proposal, ProposerPage
from apps.knowledge_graph.reader import open_graph
from apps.knowledge_graph.storing.rebuild import rebuild
from tests.knowledge_graph.pages_of_texts import page_text, parsed
from tests.knowledge_graph.test_stored_projection import write

pytestmark = pytest.mark.django_db

STORE = page_text("mod-session-store", "# Session store\n\nReads sessions.")
NAMING = page_text(
    "a",
    "# About the Session store\n\nThe Session store is asked here.\n\n`Session store` and\n\n    the Session store\n\n"
    "Then the session-store again, not [Session store](x.md).",
    type="decision",
)


def page(uid: str, **more: Any) -> ProposerPage:
    return ProposerPage(uid, "module", uid.upper(), (), uuid.uuid4(), **more)


@pytest.fixture
def graph(platform: Collection) -> GraphSource:
    for key, text in {"s.md": STORE, "a.md": NAMING}.items():
        write(platform, key, text)
    rebuild("collection", platform.pk)
    return GraphSource.objects.get(collection=platform)


def guesses(graph: GraphSource) -> dict[str, float]:
    rows = Edge.objects.filter(source=graph, provenance="inferred")
    return {row.edge_uid: row.payload["confidence"] for row in rows}


def test_graph_fact_121_mentions(graph: GraphSource, platform: Collection) -> None:
    assert propose(graph) == 1
    [edge] = Edge.objects.filter(provenance="inferred")
    assert (edge.edge_uid, edge.payload["confidence"]) == ("a>decision_for>mod-session-store", 0.6)
    assert [(reason["line"], reason["text"]) for reason in edge.payload["reasons"]] == [
        (9, "Session store"),
        (15, "session-store"),
    ]
    write(platform, "t.md", page_text("t", title="Session store"))
    rebuild("collection", platform.pk)
    assert propose(graph) == 0


def test_graph_fact_119_authored_edges_are_left_alone(graph: GraphSource, platform: Collection) -> None:
    propose(graph)
    kept = Edge.objects.get(provenance="inferred").pk
    write(platform, "c.md", page_text("c", "The Session store once more."))
    rebuild("collection", platform.pk)
    assert Edge.objects.get(provenance="inferred").pk == kept
    propose(graph)
    assert set(guesses(graph)) == {"a>decision_for>mod-session-store", "c>depends_on>mod-session-store"}
    assert Edge.objects.get(from_uid="a").pk == kept
    write(platform, "a.md", page_text("a", "[[related_to::mod-session-store]]", type="decision"))
    rebuild("collection", platform.pk)
    assert set(guesses(graph)) == {"c>depends_on>mod-session-store"}
    authored = Edge.objects.get(from_uid="a")
    assert (authored.edge_type, authored.provenance) == ("related_to", "wikilink")
    propose(graph)
    assert set(guesses(graph)) == {"c>depends_on>mod-session-store"}


def test_graph_exports_say_how_sure_guesses_are(graph: GraphSource, olga: User) -> None:
    propose(graph)
    reader, held = open_graph(olga, graph.collection)
    nodes, edges = export.reader_rows(reader, held)
    [guess] = edges
    assert (guess["provenance"], guess["confidence"]) == ("inferred", 0.6)
    drawn = "".join(export.write("graphml", "x", 1, nodes, [guess, {**guess, "confidence": 0.5}]))
    assert drawn.count('<data key="edge_confidence">0.6</data>') == 1
    del guess["confidence"]
    assert 'edge_confidence">' not in "".join(export.write("graphml", "x", 1, nodes, [guess]))


def test_graph_fact_120_decisions(graph: GraphSource, platform: Collection, olga: User) -> None:
    propose(graph)
    edge = Edge.objects.get(provenance="inferred")
    paste = decide(edge=edge, verdict="accepted", by=olga)
    assert paste is not None
    assert (paste.path, paste.line, paste.text) == ("a.md", 5, 'related: ["[[mod-session-store]]"]')
    assert paste == line_to_paste(edge)
    before = Document.objects.get(source_key="a.md").content_hash
    assert bytes(Document.objects.get(source_key="a.md").content_hash) == bytes(before)
    lines = NAMING.split("\n")
    lines.insert(paste.line - 1, paste.text)
    write(platform, "a.md", "\n".join(lines))
    rebuild("collection", platform.pk)
    assert Edge.objects.get(from_uid="a").provenance == "frontmatter_related"
    write(platform, "a.md", NAMING)
    rebuild("collection", platform.pk)
    propose(graph)
    wim = User.objects.create_user("wim")
    grant(source=platform, to=wim, level="read", by=olga)
    with pytest.raises(Forbidden):
        decide(edge=Edge.objects.get(provenance="inferred"), verdict="rejected", by=wim)
    decide(edge=Edge.objects.get(provenance="inferred"), verdict="rejected", by=olga)
    assert guesses(graph) == {}
    assert propose(graph) == 0
    assert ProposalDecision.objects.get().verdict == "rejected"


@pytest.mark.parametrize(
    ("written", "line", "text", "replaces"),
    [
        (["related: [s]"], 5, 'related: ["[[mod-session-store]]", s]', True),
        (["related: []"], 5, 'related: ["[[mod-session-store]]"]', True),
        (["related: [[s]]  # why"], 5, 'related: ["[[mod-session-store]]", [s]]  # why', True),
        (["related: [s,", "  t]"], 5, 'related: ["[[mod-session-store]]", s,', True),
        (["related: s"], 5, 'related: ["[[mod-session-store]]", s]', True),
        (["Related:", "  - s", "  - t"], 6, '  - "[[mod-session-store]]"', False),
        (["related:", "# these", "- s"], 7, '- "[[mod-session-store]]"', False),
        (["related:", "  uses: [s]"], 7, 'related_to: ["[[mod-session-store]]"]', False),
        (["related: {uses: [s]}"], 5, 'related: ["[[mod-session-store]]", {uses: [s]}]', True),
        (["uses: [s]"], 6, 'related: ["[[mod-session-store]]"]', False),
    ],
)
def test_graph_fact_120_the_line_fits_what_the_header_says_already(
    written: list[str], line: int, text: str, replaces: bool, platform: Collection
) -> None:
    header = NAMING.replace("\n---\n", "\n" + "\n".join(written) + "\n---\n", 1).replace("decision", "standard")
    for key, body in {"s.md": page_text("s"), "t.md": page_text("t"), "m.md": STORE, "a.md": header}.items():
        write(platform, key, body)
    rebuild("collection", platform.pk)
    graph = GraphSource.objects.get(collection=platform)
    before = set(Edge.objects.filter(from_uid="a").values_list("edge_uid", flat=True))
    propose(graph)
    paste = line_to_paste(Edge.objects.get(provenance="inferred", from_uid="a"))
    assert (paste.line, paste.text, paste.replaces) == (line, text, replaces)
    write(platform, "a.md", paste.into(header))
    rebuild("collection", platform.pk)
    rows = Edge.objects.filter(from_uid="a").exclude(provenance="inferred")
    assert set(rows.values_list("edge_uid", flat=True)) == before | {"a>related_to>mod-session-store"}
    assert CanonicalPage.objects.get(uid="a").header_state == "current"


def test_graph_fact_122_shared_symbols() -> None:
    one = {"1": "Pool.acquire"}
    [proposal] = shared_symbol.propose([page("a", symbols=one), page("b", symbols=one), page("c")])
    assert (proposal.from_uid, proposal.to_uid, proposal.confidence) == ("a", "b", 0.5)
    two = {**one, "2": "Pool.release"}
    [proposal] = shared_symbol.propose([page("a", symbols=two), page("b", symbols=two)])
    assert proposal.confidence == 0.75
    assert [reason["symbol"] for reason in proposal.reasons] == ["Pool.acquire", "Pool.release"]
    assert list(shared_symbol.propose([page(f"p{n}", symbols=one) for n in range(9)])) == []


def test_graph_fact_123_mutual_neighbours() -> None:
    def at(*numbers: float) -> Any:
        vector = np.array([*numbers, *[0.0] * (8 - len(numbers))], dtype=np.float32)
        return vector / np.linalg.norm(vector)

    left, right = at(1), at(0.71, (1 - 0.71**2) ** 0.5)
    [proposal] = mutual_neighbours.propose([page("a", vector=left), page("b", vector=right), page("c")])
    assert (proposal.from_uid, proposal.to_uid, proposal.confidence) == ("a", "b", 0.71)
    assert list(mutual_neighbours.propose([page("a", vector=left), page("b", vector=at(0.5, 0.9))])) == []
    # Six pages are nearer to b than a is: a has b among its nearest, b has others.
    near = [page(f"n{n}", vector=at(0.70, 0.72, 0.01 * n)) for n in range(6)]
    found = mutual_neighbours.propose([page("a", vector=left), page("b", vector=right), *near])
    assert not any("a" in (each.from_uid, each.to_uid) and "b" in (each.from_uid, each.to_uid) for each in found)


def test_graph_fact_123_readers_of_both_pages_only(graph: GraphSource, platform: Collection, olga: User) -> None:
    propose(graph)
    reader, _ = open_graph(olga, platform)
    assert [edge.type_source for edge in reader.all_edges(graph.pk)] == ["inferred"]
    trash_document(document=Document.objects.get(source_key="s.md"), by=olga)
    reader, _ = open_graph(olga, platform)
    assert reader.all_edges(graph.pk) == []


@pytest.mark.parametrize("path", BUILT_IN)
def test_every_proposer_keeps_the_contract(path: str, graph: GraphSource) -> None:
    from django.utils.module_loading import import_string

    proposer = import_string(path)
    assert list(proposer([])) == []
    from apps.knowledge_graph.proposing.gathering import gather

    pages = gather(graph)
    found = list(proposer(pages))
    assert found == list(proposer(list(reversed(pages))))
    for each in found:
        assert isinstance(each, Proposal)
        assert 0 < each.confidence <= 1
        assert each.from_uid != each.to_uid
        assert each.reasons


def test_proposers_are_those_of_the_settings(graph: GraphSource, settings: Any) -> None:
    import dataclasses

    assert len(proposers()) == 3
    chosen = dataclasses.replace(settings.COGRAPH.graph, proposers=(BUILT_IN[1],))
    settings.COGRAPH = dataclasses.replace(settings.COGRAPH, graph=chosen)
    assert propose(graph) == 0


def test_proposals_by_job_with_vectors(put: Any, platform: Collection) -> None:
    for key in ("one", "two"):
        put(f"{key}.md", page_text(key, "Pooled connections are handed out by weight and age.\n" * 3))
    drain()
    enqueue("propose_edges", source=platform)
    assert [job.status for job in drain() if job.kind == "propose_edges"] == ["success"]
    [edge] = Edge.objects.filter(provenance="inferred")
    assert (edge.from_uid, edge.to_uid, edge.edge_type) == ("one", "two", "depends_on")
    assert edge.payload["reasons"][0]["kind"] == "neighbours"


def test_prose_is_what_is_read_as_text() -> None:
    text = "---\na: b\n---\n# Head\n\nOne `code` two <b>three</b>\nfour [link](x) five\n\n```\nfence\n```\n\n> six\n"
    words = [(line, part.replace("\x01", "").split()) for line, part in prose(parsed(text, "a.md"))]
    assert words == [(6, ["One", "two", "three"]), (7, ["four", "five"]), (13, [">", "six"])]


def test_admin_pages_of_the_graph(graph: GraphSource, ada: User, olga: User) -> None:
    propose(graph)
    client = Client()
    client.force_login(ada)
    for name in (
        "graphsource", "canonicalpage", "node", "edge", "evidence", "crosssourcereference", "graphrevision",
        "lintfinding", "proposaldecision",
    ):  # fmt: skip
        assert client.get(f"/admin/knowledge_graph/{name}/").status_code == 200, name
    for name, row in (("node", "node"), ("edge", "edge"), ("canonicalpage", "page")):
        model = {"node": CanonicalPage, "edge": Edge, "page": CanonicalPage}[row]
        pk = model.objects.values_list("pk", flat=True)[0]
        if name != "node":
            assert client.get(f"/admin/knowledge_graph/{name}/{pk}/change/").status_code == 200, name
    chosen = {"action": "dry_run", "_selected_action": [graph.pk]}
    assert b"0 nodes, 0 edges" in client.post("/admin/knowledge_graph/graphsource/", chosen, follow=True).content
    Edge.objects.filter(provenance="inferred").delete()
    client.post("/admin/knowledge_graph/graphsource/", {**chosen, "action": "propose"})
    drain()
    assert list(guesses(graph)) == ["a>decision_for>mod-session-store"]
    edge = Edge.objects.get(provenance="inferred")
    accepted = {"action": "accept", "_selected_action": [edge.pk]}
    answer = client.post("/admin/knowledge_graph/edge/", accepted, follow=True)
    assert b"before line 5" in answer.content
    queue = client.get("/admin/knowledge_graph/edge/?provenance__exact=inferred").content.decode()
    assert "mention: " in queue
    assert '<td class="field-decision">accepted</td>' in queue
    staff = User.objects.create_user("stan", is_staff=True)
    client.force_login(staff)
    assert b"mod-session-store" not in client.get("/admin/knowledge_graph/node/").content
    client.force_login(olga)
    assert client.get("/admin/knowledge_graph/node/").status_code == 302
