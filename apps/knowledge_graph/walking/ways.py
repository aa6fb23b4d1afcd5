"""The shortest way between two nodes (``knowledge-graph.md`` 9)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

from apps.knowledge_graph.reader import Reader, SeenEdge, SeenNode, edge_of
from apps.knowledge_graph.vocabulary import walk_rank

MOST_HOPS = 6
MOST_EDGES = 100_000
"""Edges a direction that are read to widen one side of the search."""
MOST_PAIRS = 2_000
"""Pairs of nodes of both sides that are looked up before either side is widened."""

Layers = list[set[str]]


@dataclass(frozen=True, slots=True)
class Way:
    """The nodes from one end to the other and the edges between them; no nodes when there is no way."""

    nodes: tuple[SeenNode, ...] = ()
    edges: tuple[SeenEdge, ...] = ()
    truncated: bool = False
    """The search was given up at `MOST_EDGES` edges."""


def shortest_path(reader: Reader, source: int, start: str, end: str) -> Way:
    """Fewest hops (at most six, in either direction), then the largest product of weights, then uids.

    The search goes on from both ends at once, from the side with fewer nodes. Before a side is widened, which may bring
    every neighbour of a hub, it is asked whether an edge joins the two.
    """
    if start == end:
        node = reader.node(source, start)
        return Way((node,)) if node else Way()
    left: Layers = [{start}]
    right: Layers = [{end}]
    while (hops := len(left) + len(right) - 1) <= MOST_HOPS:
        if len(left[-1]) * len(right[-1]) <= MOST_PAIRS:
            joints = _edges_between(reader, source, left[-1], right[-1])
            if joints:
                left[-1] &= {uid for edge in joints for uid in (edge.from_uid, edge.to_uid)}
                return _best_way(reader, source, [*left, *reversed(right)], len(left) - 1)
            if hops == MOST_HOPS:
                break
        near, far = (left, right) if len(left[-1]) <= len(right[-1]) else (right, left)
        found = _beside(reader, source, near[-1])
        if found is None:
            return Way(truncated=True)
        fresh = found.difference(*near)
        if middle := fresh & far[-1]:
            far[-1] = middle
            return _best_way(reader, source, [*left, *reversed(right)], len(left) - (far is left))
        if not fresh:
            break
        near.append(fresh)
    return Way()


def _beside(reader: Reader, source: int, uids: Collection[str]) -> set[str] | None:
    """All neighbours; None when there are too many edges to read."""
    part = (
        "(SELECT e.{other} AS uid FROM {{edges}} e WHERE e.source_id = %(source)s AND e.{at} = ANY(%(uids)s)"
        " AND e.provenance <> 'inferred' LIMIT %(most)s)"
    )
    rows = reader.rows(
        "SELECT count(*) AS read, array_agg(b.uid) AS uids FROM ("  # noqa: S608
        f"SELECT *, true AS outward FROM {part.format(at='from_uid', other='to_uid')} o UNION ALL"
        f" SELECT *, false FROM {part.format(at='to_uid', other='from_uid')} i) b GROUP BY b.outward",
        source=source,
        uids=list(uids),
        most=MOST_EDGES,
    )
    if any(row["read"] >= MOST_EDGES for row in rows):
        return None
    return {uid for row in rows for uid in row["uids"]}


def _edges_between(reader: Reader, source: int, some: Collection[str], others: Collection[str]) -> list[SeenEdge]:
    """Edges with one end among ``some`` and the other among ``others``, in either direction."""
    rows = reader.rows(
        "SELECT e.* FROM {edges} e WHERE e.source_id = %(source)s AND e.provenance <> 'inferred'"
        " AND e.from_uid = ANY(%(some)s) AND e.to_uid = ANY(%(others)s) UNION ALL"
        " SELECT e.* FROM {edges} e WHERE e.source_id = %(source)s AND e.provenance <> 'inferred'"
        " AND e.from_uid = ANY(%(others)s) AND e.to_uid = ANY(%(some)s)",
        source=source,
        some=list(some),
        others=list(others),
    )
    return [edge_of(row) for row in rows]


def _best_way(reader: Reader, source: int, layers: Sequence[set[str]], middle: int) -> Way:
    """The best of the ways that take one node of each layer. Those of layer ``middle`` all lie on one; from there on
    both sides only what is joined is kept."""
    kept = list(layers)
    edges: dict[tuple[str, str], SeenEdge] = {}
    beside: defaultdict[str, set[str]] = defaultdict(set)
    gaps = [(at, at - 1) for at in range(middle, 0, -1)] + [(at, at + 1) for at in range(middle, len(layers) - 1)]
    for at, other in gaps:
        reached: set[str] = set()
        for edge in _edges_between(reader, source, kept[at], kept[other]):
            for pair in ((edge.from_uid, edge.to_uid), (edge.to_uid, edge.from_uid)):
                known = edges.get(pair)
                if known is None or _edge_order(edge) < _edge_order(known):
                    edges[pair] = edge
                beside[pair[0]].add(pair[1])
                reached.add(pair[0])
        kept[other] = kept[other] & reached
    (start,), (end,) = layers[0], layers[-1]
    best: dict[str, tuple[float, tuple[str, ...]]] = {start: (-1.0, (start,))}
    for layer in kept[1:]:
        following: dict[str, tuple[float, tuple[str, ...]]] = {}
        for at_uid, (value, way) in best.items():
            for uid in beside[at_uid] & layer:
                candidate = (round(value * float(edges[at_uid, uid].weight), 9), (*way, uid))
                if uid not in following or candidate < following[uid]:
                    following[uid] = candidate
        best = following
    uids = best[end][1]
    nodes = reader.nodes(source, uids)
    return Way(tuple(nodes[uid] for uid in uids), tuple(edges[pair] for pair in pairwise(uids)))


def _edge_order(edge: SeenEdge) -> tuple[object, ...]:
    return (-edge.weight, walk_rank(edge.edge_type, edge.provenance, edge.type_source), edge.uid)
