"""Golden: the worked example and the three sample companies against their expected graphs."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from apps.knowledge_graph.values import GraphValue
from tests.knowledge_graph import pages_of_texts as helpers

SAMPLES = ["worked-example", "rotta-logistics", "prometeo-antincendio", "passolibero-calzature"]
COMPANIES = SAMPLES[1:]
Texts = Callable[[str], dict[str, str]]


def counts(graph: GraphValue) -> dict[str, Any]:
    rows = [row for rows in graph.evidence.values() for row in rows if row.outcome == "edge"]
    touched = {uid for edge in graph.edges.values() for uid in (edge.from_uid, edge.to_uid)}
    return {
        "nodes": len(graph.nodes),
        "nodes_by_type": dict(Counter(node.node_type for node in graph.nodes.values())),
        "dangling": sum(node.dangling for node in graph.nodes.values()),
        "orphans": len(set(graph.nodes) - touched),
        "edges": len(graph.edges),
        "edges_by_type": dict(Counter(edge.edge_type for edge in graph.edges.values())),
        "edges_by_displayed_provenance": dict(Counter(edge.provenance for edge in graph.edges.values())),
        "evidence": len(rows),
        "evidence_by_provenance": dict(Counter(row.occurrence.provenance for row in rows)),
    }


def test_graph_fact_01_four_files_in_every_order() -> None:
    graphs = [helpers.graph_of(dict(order)) for order in itertools.permutations(helpers.WORKED_EXAMPLE.items())]
    assert len(graphs) == 24
    first = graphs[0]
    assert all(graph == first for graph in graphs)
    assert helpers.edges_of(first) == {
        ("dec-cache-v2", "supersedes", "dec-cache-v1"): (1.0, "frontmatter_supersedes"),
        ("dec-cache-v2", "decision_for", "mod-session-store"): (1.0, "wikilink"),
        ("mod-session-store", "depends_on", "mod-redis-pool"): (0.8, "frontmatter_related"),
    }
    lines = {row.edge_uid: row.occurrence.line for rows in first.evidence.values() for row in rows}
    assert lines == {
        "dec-cache-v2>supersedes>dec-cache-v1": 5,
        "dec-cache-v2>decision_for>mod-session-store": 9,
        "mod-session-store>depends_on>mod-redis-pool": 5,
    }
    assert len(first.nodes) == 4
    assert not any(node.dangling for node in first.nodes.values())


def test_graph_fact_02_targets_dangle_until_their_page_arrives() -> None:
    files = {path: text for path, text in helpers.WORKED_EXAMPLE.items() if "v2" in path}
    alone = helpers.graph_of(files)
    assert helpers.edges_of(alone) == {
        ("dec-cache-v2", "supersedes", "dec-cache-v1"): (1.0, "frontmatter_supersedes"),
        ("dec-cache-v2", "related_to", "mod-session-store"): (0.5, "wikilink"),
    }
    assert {uid: (node.node_type, node.label) for uid, node in alone.nodes.items() if node.dangling} == {
        "dec-cache-v1": ("unknown", "dec-cache-v1"),
        "mod-session-store": ("unknown", "mod-session-store"),
    }


@pytest.mark.parametrize("name", SAMPLES)
def test_graph_facts_17_to_19_samples(name: str, samples: Texts, expected: Any) -> None:
    graph = helpers.graph_of(samples(name))
    wanted = expected[name]
    assert counts(graph) == wanted["counts"]
    paths = {page.document: page.path for page in helpers.pages_of(samples(name))}
    assert [
        {"uid": n.uid, "type": n.node_type, "status": n.status, "label": n.label, "path": paths[n.document]}
        for n in sorted(graph.nodes.values(), key=lambda node: node.uid)
    ] == sorted(wanted["nodes"], key=lambda node: node["uid"])
    found = []
    for uid, edge in graph.edges.items():
        rows = [row for rows in graph.evidence.values() for row in rows if row.edge_uid == uid]
        found.append(
            {
                "from": edge.from_uid,
                "to": edge.to_uid,
                "type": edge.edge_type,
                "weight": float(edge.weight),
                "provenance": edge.provenance,
                "evidence": sorted(
                    (row.occurrence.provenance, paths[row.document], row.occurrence.line, row.occurrence.raw)
                    for row in rows
                ),
            }
        )
    in_order = sorted(found, key=lambda edge: (edge["from"], edge["to"], edge["type"]))
    golden = [
        {**edge, "evidence": sorted((e["provenance"], e["path"], e["line"], e["raw"]) for e in edge["evidence"])}
        for edge in sorted(wanted["edges"], key=lambda edge: (edge["from"], edge["to"], edge["type"]))
    ]
    assert in_order == golden


def test_graph_fact_20_all_three_as_one_source(samples: Texts, expected: Any) -> None:
    files = {f"{name}/{path}": text for name in COMPANIES for path, text in samples(name).items()}
    assert counts(helpers.graph_of(files)) == expected["all three in one source"]["counts"]


def test_graph_fact_21_edges_that_say_more_than_related(samples: Texts) -> None:
    found = {
        key for name in COMPANIES for key in helpers.edges_of(helpers.graph_of(samples(name))) if key[1] != "related_to"
    }
    assert found == {
        ("incidente-blackout-hub-mi-07", "affects", "rete-hub-magazzini"),
        ("rete-hub-magazzini", "uses", "wms-orbita-integrazione"),
        ("decision-scadenzario-pro", "supersedes", "rejected-controlli-manuali-carta"),
        ("incidente-richiamo-lotto-zr20", "affects", "catalogo-modelli"),
    }
    prometeo = helpers.edges_of(helpers.graph_of(samples("prometeo-antincendio")))
    assert ("decision-scadenzario-pro", "related_to", "rejected-controlli-manuali-carta") in prometeo


@pytest.mark.parametrize("name", COMPANIES)
def test_graph_fact_22_the_index_alone(name: str, samples: Texts, expected: Any) -> None:
    graph = helpers.graph_of({"_index.md": samples(name)["_index.md"]})
    assert counts(graph) == expected[name]["only_index_counts"]


@pytest.mark.parametrize("name", SAMPLES)
def test_graph_facts_23_and_24_without_one_page(name: str, samples: Texts, expected: Any) -> None:
    wanted = expected[name]["after_hard_delete"]
    pages = [page for page in helpers.pages_of(samples(name)) if page.uid != wanted["slug"]]
    assert counts(helpers.project(pages)) == wanted["counts"]


def test_graph_fact_25_pages_with_most_links_to_them(samples: Texts) -> None:
    leaders = {}
    for name in COMPANIES:
        degrees = Counter(edge.to_uid for edge in helpers.graph_of(samples(name)).edges.values())
        best = max(degrees.values())
        leaders |= {uid: degree for uid, degree in degrees.items() if degree == best}
    assert leaders == {
        "rete-hub-magazzini": 7,
        "servizi-spedizione": 7,
        "normativa-cpi": 7,
        "catalogo-modelli": 6,
    }
