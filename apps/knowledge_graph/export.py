"""The whole graph as JSON or GraphML, streamed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from apps.knowledge_graph.models import GraphSource
from apps.knowledge_graph.past import PastGraph
from apps.knowledge_graph.reader import Reader

FORMATS = ("json", "graphml")
CONTENT_TYPES = {"json": "application/json", "graphml": "application/xml"}
_NODE_KEYS = ("type", "label", "status", "priority", "dangling")
_EDGE_KEYS = ("type", "weight", "provenance", "type_source", "confidence")
"""``confidence`` of guesses only: who exports must be able to tell how sure they are."""


def reader_rows(reader: Reader, graph: GraphSource | None) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Nodes and edges of what a reader sees."""
    if graph is None:
        return [], []
    nodes = [
        {
            "uid": node.uid,
            "type": node.node_type,
            "label": node.label,
            "status": node.status,
            "priority": node.priority,
            "dangling": node.dangling,
        }
        for node in reader.all_nodes(graph.pk)
    ]
    edges = [
        {
            "from": edge.from_uid,
            "to": edge.to_uid,
            "type": edge.edge_type,
            "weight": float(edge.weight),
            "provenance": edge.provenance,
            "type_source": edge.type_source,
            **({"confidence": edge.payload["confidence"]} if "confidence" in edge.payload else {}),
        }
        for edge in reader.all_edges(graph.pk)
    ]
    return nodes, edges


def past_rows(past: PastGraph) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Nodes and edges of a past state; edges to pages that were erased for good since then are left out."""
    nodes = [
        {
            "uid": node.uid,
            "type": node.node_type,
            "label": node.label,
            "status": node.status,
            "priority": node.priority,
            "dangling": bool(node.payload.get("dangling")),
        }
        for node in past.nodes
    ]
    known = {node["uid"] for node in nodes}
    edges = []
    for edge in past.edges:
        start, kind, end = edge.uid.split(">")
        if {start, end} <= known:
            edges.append(
                {
                    "from": start,
                    "to": end,
                    "type": kind,
                    "weight": float(edge.weight),
                    "provenance": edge.provenance,
                    "type_source": edge.type_source,
                }
            )
    return nodes, edges


def write(
    form: str, source: str, revision: int, nodes: Iterable[dict[str, Any]], edges: Iterable[dict[str, Any]]
) -> Iterator[str]:
    """Pieces of the file; ``form`` is one of `FORMATS`."""
    return _graphml(source, revision, nodes, edges) if form == "graphml" else _json(source, revision, nodes, edges)


def _json(
    source: str, revision: int, nodes: Iterable[dict[str, Any]], edges: Iterable[dict[str, Any]]
) -> Iterator[str]:
    yield f'{{"source": {json.dumps(source)}, "revision": {revision}, "nodes": ['
    yield from _joined(nodes)
    yield '], "edges": ['
    yield from _joined(edges)
    yield "]}\n"


def _joined(rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    for number, row in enumerate(rows):
        yield f"{',' if number else ''}\n{json.dumps(row, ensure_ascii=False)}"


def _graphml(
    source: str, revision: int, nodes: Iterable[dict[str, Any]], edges: Iterable[dict[str, Any]]
) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
    kinds = {"priority": "int", "dangling": "boolean", "weight": "double", "confidence": "double"}
    for owner, names in (("node", _NODE_KEYS), ("edge", _EDGE_KEYS)):
        for name in names:
            kind = kinds.get(name, "string")
            yield f'<key id="{owner}_{name}" for="{owner}" attr.name="{name}" attr.type="{kind}"/>\n'
    yield f'<graph id={quoteattr(_clean(f"{source}@{revision}"))} edgedefault="directed">\n'
    for node in nodes:
        yield f"<node id={quoteattr(_clean(node['uid']))}>{_data('node', _NODE_KEYS, node)}</node>\n"
    for number, edge in enumerate(edges):
        ends = f"source={quoteattr(edge['from'])} target={quoteattr(edge['to'])}"
        yield f'<edge id="e{number}" {ends}>{_data("edge", _EDGE_KEYS, edge)}</edge>\n'
    yield "</graph>\n</graphml>\n"


def _data(owner: str, names: Iterable[str], row: dict[str, Any]) -> str:
    return "".join(
        f'<data key="{owner}_{name}">{escape(_clean(_text(row[name])))}</data>' for name in names if name in row
    )


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _clean(text: str) -> str:
    """XML takes no control characters but blanks, not even escaped."""
    return "".join(letter for letter in text if letter in "\t\n\r" or (letter >= " " and letter not in "\ufffe\uffff"))
