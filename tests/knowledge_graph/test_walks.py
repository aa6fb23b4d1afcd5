"""Neighbours of hits, what lies around a node, ways between two (facts 8 to 10, 27 to 29, 96, 97, 103 to 107, 110)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.collections.models import Collection, Document
from apps.collections.trash import trash_document
from apps.jobs.worker import drain
from apps.knowledge_graph.models import CanonicalPage
from apps.knowledge_graph.panel import panel
from apps.knowledge_graph.reader import open_graph
from apps.knowledge_graph.storing.rebuild import rebuild
from apps.knowledge_graph.walks import (
    Filters,
    Options,
    already_rejected,
    expand,
    find_pages,
    neighbourhood,
    shortest_path,
    walk,
)
from tests.knowledge_graph.pages_of_texts import WORKED_EXAMPLE, page_text
from tests.knowledge_graph.test_stored_projection import write

pytestmark = pytest.mark.django_db

Files = Mapping[str, str]


@pytest.fixture
def filled(platform: Collection) -> Callable[[Files], Collection]:
    def fill(files: Files) -> Collection:
        for key, text in files.items():
            write(platform, key, text)
        rebuild("collection", platform.pk)
        return platform

    return fill


def seeds(**scores: float) -> dict[Any, float]:
    pages = CanonicalPage.objects.filter(uid__in=[uid.replace("_", "-") for uid in scores], bears=True)
    return {page.document_id: scores[page.uid.replace("-", "_")] for page in pages}


def emitted(olga: Any, scores: Mapping[str, float], hops: int = 1, **options: Any) -> list[tuple[str, float, int]]:
    pages = dict(CanonicalPage.objects.filter(bears=True).values_list("uid", "document"))
    found = expand(olga, {pages[uid]: score for uid, score in scores.items()}, Options(hops=hops, **options))
    return [(each.node.uid, each.score, each.hops) for each in found.neighbours]


def names(olga: Any, scores: Mapping[str, float], hops: int = 1, **options: Any) -> list[str]:
    return [uid for uid, _, _ in emitted(olga, scores, hops, **options)]


def test_graph_fact_08_and_10_worked_example(filled: Any, olga: Any) -> None:
    filled(WORKED_EXAMPLE)
    assert emitted(olga, {"dec-cache-v2": 1.0}) == [("mod-session-store", 1.0, 1)]
    assert emitted(olga, {"dec-cache-v2": 1.0}, 2) == [("mod-session-store", 1.0, 1), ("mod-redis-pool", 0.48, 2)]
    assert emitted(olga, {"mod-redis-pool": 1.0}, 3) == [("mod-session-store", 0.8, 1), ("dec-cache-v2", 0.48, 2)]


def test_graph_fact_09_newest_first(filled: Any, olga: Any) -> None:
    filled(WORKED_EXAMPLE)
    found = expand(olga, seeds(dec_cache_v1=1.0), Options())
    assert [(each.node.uid, each.label) for each in found.neighbours] == [("dec-cache-v2", "replaces dec-cache-v1")]


@pytest.mark.parametrize("name", ["rotta-logistics", "prometeo-antincendio", "passolibero-calzature"])
def test_graph_facts_27_to_29_samples(name: str, filled: Any, samples: Any, expected: Any, olga: Any) -> None:
    filled(samples(name))
    for case in expected[name]["expansion"]:
        assert emitted(olga, case["seeds"], case["hops"]) == [tuple(each) for each in case["emitted"]]
    for case in expected["worked-example"]["expansion"] if name == "rotta-logistics" else ():
        assert case["hops"] in (1, 2)


def test_graph_fact_96_walks_end_in_a_circle(filled: Any, olga: Any) -> None:
    filled({f"{uid}.md": page_text(uid, supersedes=f"[{old}]") for uid, old in (("a", "b"), ("b", "c"), ("c", "a"))})
    found = expand(olga, seeds(a=1.0), Options(hops=3))
    assert [(each.node.uid, each.label) for each in found.neighbours] == [
        ("b", "superseded in a circle"),
        ("c", "superseded in a circle"),
    ]


def test_graph_fact_97_newest_by_either_declaration(filled: Any, olga: Any) -> None:
    filled(
        {
            "a.md": page_text("a", supersedes="[b]"),
            "b.md": page_text("b", status="superseded"),
            "c.md": page_text("c", status="superseded", superseded_by="b"),
            "d.md": page_text("d", supersedes="[c]"),
            "e.md": page_text("e", supersedes="[c]", status="draft"),
            "n.md": page_text("n", uses="[c]"),
        }
    )
    assert names(olga, {"c": 1.0}) == ["a", "d", "n", "e"]  # the draft is near, and has replaced nothing
    # A superseded page that is met on the way gives its place to its newest.
    found = expand(olga, seeds(n=1.0), Options())
    assert [(each.node.uid, each.score, each.label) for each in found.neighbours] == [
        ("a", 0.8, "replaces c"),
        ("d", 0.8, "replaces c"),
    ]


def test_graph_superseded_without_successor(filled: Any, olga: Any) -> None:
    filled({"a.md": page_text("a", uses="[b]"), "b.md": page_text("b", status="superseded")})
    found = expand(olga, seeds(a=1.0), Options())
    assert [(each.node.uid, each.score, each.label) for each in found.neighbours] == [
        ("b", 0.24, "superseded, without a successor")
    ]


def test_graph_fact_103_nothing_is_spent_on_the_rest(filled: Any, olga: Any) -> None:
    files = {f"s{n}.md": page_text(f"s{n}", status="superseded", superseded_by="good") for n in range(20)}
    files |= {"r.md": page_text("r", type="rejected-approach"), "z.md": page_text("z", status="archived")}
    implements = [f"gone-{n}" for n in range(20)] + ["r", "z"]
    files["a.md"] = page_text("a", "[[related_to::good]]", implements=f"[{', '.join(implements)}]")
    files["good.md"] = page_text("good")
    filled(files)
    assert emitted(olga, {"a": 1.0}, max_nodes=1) == [("good", 0.5, 1)]


def test_graph_fact_104_equal_scores_in_one_order(platform: Collection, elsewhere: Collection, olga: Any) -> None:
    files = {f"p{n}.md": page_text(f"p{n}", "[[hub]]") for n in range(5)} | {"hub.md": page_text("hub")}
    for collection, order in ((platform, list(files)), (elsewhere, list(reversed(files)))):
        for key in order:
            write(collection, key, files[key])
        rebuild("collection", collection.pk)
    ways = [
        [
            each.node.uid
            for each in expand(
                olga, {CanonicalPage.objects.get(source__collection=c, uid="hub").document_id: 1.0}, Options()
            ).neighbours
        ]
        for c in (platform, elsewhere)
    ]
    assert ways[0] == ways[1] == ["p0", "p1", "p2", "p3", "p4"]


def test_graph_facts_105_and_106_one_entry_each(filled: Any, olga: Any) -> None:
    filled(
        {
            "a.md": page_text("a", uses="[n]"),
            "b.md": page_text("b", "[[related_to::n]]"),
            "n.md": page_text("n", uses="[m]"),
            "m.md": page_text("m", uses="[n]"),
        }
    )
    found = expand(olga, seeds(a=1.0, b=0.9), Options())
    [only] = found.neighbours
    assert (only.node.uid, only.score, only.words) == ("n", 0.8, "a uses n")
    assert [[step.words for step in way] for way in only.other_paths] == [["b related_to n"]]
    assert names(olga, {"m": 1.0}, 3).count("n") == 1


def test_graph_project_pages_are_not_walked_through(filled: Any, olga: Any) -> None:
    filled(
        {
            "i.md": page_text("i", type="project", uses="[a, b]"),
            "a.md": page_text("a"),
            "b.md": page_text("b"),
        }
    )
    assert names(olga, {"a": 1.0}, 3) == ["i"]


def test_graph_fact_107_caps(filled: Any, olga: Any) -> None:
    collection = filled(
        {
            "c.md": page_text("c", uses="[p0, p1, p2]", related="[q]"),
            **{f"p{n}.md": page_text(f"p{n}") for n in range(3)},
            "q.md": page_text("q", type="incident"),
        }
    )
    reader, graph = open_graph(olga, collection)
    assert graph is not None
    centre = reader.node(graph.pk, "c")
    assert centre is not None
    whole = neighbourhood(reader, graph.pk, centre, depth=2, max_nodes=5)
    assert [node.uid for node in whole.nodes] == ["c", "p0", "p1", "p2", "q"]
    assert (len(whole.edges), whole.truncated) == (4, False)
    cut = neighbourhood(reader, graph.pk, centre, depth=2, max_nodes=4)
    assert [node.uid for node in cut.nodes] == ["c", "p0", "p1", "p2"]
    assert cut.truncated
    assert all({edge.from_uid, edge.to_uid} <= {node.uid for node in cut.nodes} for edge in cut.edges)
    assert neighbourhood(reader, graph.pk, centre, max_edges=4).truncated is False
    assert neighbourhood(reader, graph.pk, centre, max_edges=3).truncated is True
    only = neighbourhood(reader, graph.pk, centre, filters=Filters(types=("uses",)))
    assert len(only.nodes) == 4
    inward = neighbourhood(reader, graph.pk, centre, filters=Filters(direction="in"))
    assert [node.uid for node in inward.nodes] == ["c"]


def test_graph_ways_between_two(filled: Any, olga: Any) -> None:
    collection = filled(
        {
            "a.md": page_text("a", uses="[m, n]", related="[far]"),
            "m.md": page_text("m", "[[related_to::z]]"),
            "n.md": page_text("n", uses="[z]"),
            "z.md": page_text("z"),
            "far.md": page_text("far"),
            "alone.md": page_text("alone"),
        }
    )
    reader, graph = open_graph(olga, collection)
    assert graph is not None

    def way(start: str, end: str) -> list[str]:
        return [node.uid for node in shortest_path(reader, graph.pk, start, end).nodes]

    assert way("a", "z") == ["a", "n", "z"]
    assert way("z", "far") == ["z", "n", "a", "far"]
    assert way("a", "a") == ["a"]
    assert way("a", "alone") == []


def test_graph_ways_of_at_most_six_hops(filled: Any, olga: Any) -> None:
    collection = filled({f"p{n}.md": page_text(f"p{n}", f"[[p{n + 1}]]") for n in range(8)})
    reader, graph = open_graph(olga, collection)
    assert graph is not None
    assert len(shortest_path(reader, graph.pk, "p0", "p6").nodes) == 7
    assert shortest_path(reader, graph.pk, "p0", "p7").nodes == ()


def test_graph_fact_110_few_queries(filled: Any, olga: Any) -> None:
    filled({"a.md": page_text("a", uses=f"[{', '.join(f'p{n}' for n in range(8))}]")} | {
        f"p{n}.md": page_text(f"p{n}") for n in range(8)
    })  # fmt: skip
    chosen = seeds(a=1.0)
    with CaptureQueriesContext(
        connection,
    ) as queries:
        assert len(expand(olga, chosen, Options()).neighbours) == 8
    assert len(queries) == 3
    with CaptureQueriesContext(connection) as queries:
        assert expand(olga, {}, Options()).neighbours == ()
    assert len(queries) == 0


def test_graph_fact_112_trash_is_absent_from_walks(put: Any, platform: Collection, olga: Any) -> None:
    for key, text in WORKED_EXAMPLE.items():
        put(key, text)
    drain()
    trash_document(document=Document.objects.get(source_key="modules/mod-session-store.md"), by=olga)
    assert emitted(olga, {"dec-cache-v2": 1.0}, 3) == []
    reader, graph = open_graph(olga, platform)
    assert graph is not None
    node = reader.node(graph.pk, "mod-session-store")
    assert node is not None
    assert (node.node_type, node.label, node.dangling) == ("unknown", "mod-session-store", True)
    assert {edge.uid for edge in reader.all_edges(graph.pk)} == {
        "dec-cache-v2>supersedes>dec-cache-v1",
        "dec-cache-v2>related_to>mod-session-store",
    }


def test_graph_other_readers_see_nothing(filled: Any, olga: Any, ada: Any, elsewhere: Collection) -> None:
    from apps.access.models import User

    filled(WORKED_EXAMPLE)
    wim = User.objects.create_user("wim")
    assert names(wim, {"dec-cache-v2": 1.0}, 3) == []
    assert names(ada, {"dec-cache-v2": 1.0}) == ["mod-session-store"]


def test_graph_facts_28_and_108_rejected_approaches(filled: Any, olga: Any) -> None:
    files = {f"r{n}.md": page_text(f"r{n}", type="rejected-approach") for n in range(7)}
    files["r5.md"] = page_text("r5", type="rejected-approach", status="draft")
    files["d.md"] = page_text("d", type="decision", supersedes="[r6]", related="[r0]")
    filled(files)
    pages = dict(CanonicalPage.objects.values_list("uid", "document"))

    def block(hits: Mapping[str, float], **cosines: float) -> list[tuple[str, list[str]]]:
        near = {pages[uid]: cosine for uid, cosine in cosines.items()}
        found = find_pages(olga, {pages[uid]: score for uid, score in hits.items()}, near)
        expansion = walk(found, Options())
        assert not any(each.node.node_type == "rejected-approach" for each in expansion.neighbours)
        return [
            (page.node.uid, [met.node.uid for met in page.successors])
            for page in already_rejected(found, expansion, near)
        ]

    assert block({"d": 1.0}, r0=0.41, r1=0.39) == [("r0", [])]
    nearest = block({"d": 1.0}, r0=0.41, r1=0.9, r2=0.5, r3=0.5, r4=0.45, r5=0.99)
    assert [uid for uid, _ in nearest] == ["r1", "r2", "r3"]
    assert block({"d": 1.0, "r6": 0.5}) == [("r6", ["d"])]
    assert block({}, r6=0.6) == [("r6", ["d"])]


def test_graph_fact_111_panels(filled: Any, olga: Any, platform: Collection) -> None:
    filled(
        {
            "a.md": page_text("a", "[plain](plain.md) [[b]]"),
            "b.md": page_text("b"),
            "c.md": page_text("b"),
            "plain.md": "# Plain\n",
        }
    )

    def of(key: str) -> Any:
        return panel(olga, platform, document=Document.objects.get(source_key=key).pk, path=key)

    detail = of("a.md").detail
    assert [(edge.edge.edge_type, edge.other.uid) for edge in detail.outgoing] == [("depends_on", "b")]
    plain = of("plain.md")
    assert [(link.uid, link.line, link.raw) for link in plain.linked_by] == [("a", 7, "[plain](plain.md)")]
    assert "no known type" in plain.why_not
    assert of("c.md").why_not == "the slug b is borne by b.md"
