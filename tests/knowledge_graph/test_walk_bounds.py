"""Walks read few edges of each page, and find what a walk over all edges finds (fact 107)."""

from __future__ import annotations

import random
from typing import Any

import pytest

from apps.collections.models import Collection, Document
from apps.collections.trash import trash_document
from apps.knowledge_graph.models import CanonicalPage
from apps.knowledge_graph.reader import Reader, SeenEdge, open_graph
from apps.knowledge_graph.storing.rebuild import rebuild
from apps.knowledge_graph.vocabulary import EDGE_TYPES, walk_rank
from apps.knowledge_graph.walks import Options, expand, neighbourhood, shortest_path
from tests.knowledge_graph.pages_of_texts import page_text
from tests.knowledge_graph.test_stored_projection import write

pytestmark = pytest.mark.django_db

STATUSES = ("accepted", "accepted", "review", "draft", "deprecated")
KEYS = [name for name in EDGE_TYPES if name not in ("owned_by", "supersedes", "invalidated_by")]


class AllEdges:
    """A graph that is read whole, once, to be walked as the specification says."""

    def __init__(self, reader: Reader, source: int) -> None:
        self.nodes = {node.uid: node for node in reader.all_nodes(source)}
        self.beside: dict[str, list[tuple[str, SeenEdge]]] = {uid: [] for uid in self.nodes}
        for edge in reader.all_edges(source, inferred=False):
            self.beside[edge.from_uid].append((edge.to_uid, edge))
            self.beside[edge.to_uid].append((edge.from_uid, edge))

    def around(self, centre: str, depth: int, most: int) -> list[str]:
        """The nodes of a neighbourhood, in order."""
        best: dict[str, tuple[Any, ...]] = {}
        frontier = {centre: 1.0}
        for hop in range(1, depth + 1):
            onward: dict[str, tuple[tuple[Any, ...], float]] = {}
            for at, value in frontier.items():
                for uid, edge in self.beside[at]:
                    if uid == centre:
                        continue
                    worth = value * float(edge.weight) * (0.6 if hop > 1 else 1.0)
                    rank = walk_rank(edge.edge_type, edge.provenance, edge.type_source)
                    node = self.nodes[uid]
                    order = (-round(worth, 6), hop, rank, node.node_type == "project", -node.priority, uid)
                    best[uid] = min(best.get(uid, order), order)
                    onward[uid] = min(onward.get(uid, (order, worth)), (order, worth))
            best = dict(sorted(best.items(), key=lambda item: item[1])[: most - 1])
            frontier = {uid: worth for uid, (_, worth) in onward.items() if uid in best}
        return [centre, *best]


@pytest.fixture
def tangle(platform: Collection) -> Collection:
    """Forty pages that link each other at random, two of them hubs, one of them in the trash."""
    drawn = random.Random(7)
    for number in range(40):
        keys: dict[str, list[str]] = {}
        for _ in range(drawn.choice((0, 1, 2, 3, 25))):
            keys.setdefault(drawn.choice(KEYS), []).append(f"p{drawn.choice((0, 1, drawn.randrange(40)))}")
        fields = {key: f"[{', '.join(dict.fromkeys(targets))}]" for key, targets in keys.items()}
        fields |= {"retrieval_priority": str(drawn.choice((40, 50, 60)))}
        write(platform, f"p{number}.md", page_text(f"p{number}", status=drawn.choice(STATUSES), **fields))
    rebuild("collection", platform.pk)
    trash_document(document=Document.objects.get(source_key="p7.md"), by=platform.owner)
    return platform


def test_graph_fact_107_neighbourhoods_are_those_of_all_edges(tangle: Collection, olga: Any) -> None:
    reader, graph = open_graph(olga, tangle)
    assert graph is not None
    whole = AllEdges(reader, graph.pk)
    for uid, centre in whole.nodes.items():
        for depth in (1, 2, 3):
            reach = len(whole.around(uid, depth, 1000))
            for most in (3, 10, 50):
                found = neighbourhood(reader, graph.pk, centre, depth=depth, max_nodes=most)
                assert [node.uid for node in found.nodes] == whole.around(uid, depth, most), (uid, depth, most)
                assert found.truncated is (reach > most), (uid, depth, most)


def test_graph_ways_are_shortest_ones(tangle: Collection, olga: Any) -> None:
    reader, graph = open_graph(olga, tangle)
    assert graph is not None
    nodes = reader.all_nodes(graph.pk)
    beside: dict[str, set[str]] = {node.uid: set() for node in nodes}
    for edge in reader.all_edges(graph.pk):
        beside[edge.from_uid].add(edge.to_uid)
        beside[edge.to_uid].add(edge.from_uid)
    for start in nodes[:10:2]:
        distances = {start.uid: 0}
        frontier = {start.uid}
        while frontier:
            frontier = {other for uid in frontier for other in beside[uid]} - set(distances)
            distances |= dict.fromkeys(frontier, max(distances.values()) + 1)
        for end in nodes:
            way = shortest_path(reader, graph.pk, start.uid, end.uid)
            hops = distances.get(end.uid, 7)
            assert len(way.nodes) == (hops + 1 if hops <= 6 else 0), (start.uid, end.uid)
            ends = [{edge.from_uid, edge.to_uid} for edge in way.edges]
            assert ends == [{a.uid, b.uid} for a, b in zip(way.nodes, way.nodes[1:], strict=False)]


def test_graph_parallel_edges_do_not_crowd_out_neighbours(platform: Collection, olga: Any) -> None:
    many = f"[{', '.join(f'p{n}' for n in range(40))}]"
    lone = f"[{', '.join(f'q{n}' for n in range(10))}]"
    write(platform, "n.md", page_text("n", implements=many, decision_for=many, depends_on=many, related=lone))
    write(platform, "y.md", page_text("y", uses="[n, m]"))
    for uid in ("m", *(f"p{n}" for n in range(40)), *(f"q{n}" for n in range(10))):
        write(platform, f"{uid}.md", page_text(uid))
    rebuild("collection", platform.pk)
    reader, graph = open_graph(olga, platform)
    assert graph is not None
    centre = reader.node(graph.pk, "y")
    assert centre is not None
    assert len(neighbourhood(reader, graph.pk, centre, depth=2, max_nodes=60).nodes) == 53
    y = CanonicalPage.objects.get(uid="y").document_id
    assert len(expand(olga, {y: 1.0}, Options(hops=2, max_nodes=60)).neighbours) == 52
