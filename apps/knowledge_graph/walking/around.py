"""What lies around one node, and the shortest way between two (``knowledge-graph.md`` 9)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import pairwise

from apps.knowledge_graph.reader import Reader, SeenEdge, SeenNode, edge_of
from apps.knowledge_graph.vocabulary import EDGE_TYPES, PROJECT, PROVENANCES, TYPE_RANK, strength
from apps.knowledge_graph.walking.steps import STRENGTH_SQL, WEIGHT_SQL, Filters, Step, steps

DECAY = 0.6
NODES, MOST_NODES = 50, 200
EDGES = 400
MOST_HOPS = 6
MOST_VISITED = 50_000


@dataclass(frozen=True, slots=True)
class Around:
    """``nodes``: the centre first, then by rank. Each edge has both ends among them. ``truncated`` is true exactly when
    something within the request was left out."""

    nodes: tuple[SeenNode, ...]
    hops: dict[str, int]
    edges: tuple[SeenEdge, ...]
    truncated: bool


@dataclass(frozen=True, slots=True)
class _Reached:
    node: SeenNode
    value: float
    hops: int
    step: Step

    @property
    def order(self) -> tuple[object, ...]:
        node = self.node
        return (
            -round(self.value, 6), self.hops, self.step.rank, node.node_type == PROJECT, -node.priority, node.uid,
        )  # fmt: skip


def neighbourhood(
    reader: Reader,
    source: int,
    centre: SeenNode,
    *,
    depth: int = 1,
    filters: Filters = Filters(),  # noqa: B008 - frozen
    max_nodes: int = NODES,
    max_edges: int = EDGES,
) -> Around:
    """The best ``max_nodes`` nodes within ``depth`` steps of ``centre``, with the edges between them."""
    reached: dict[str, _Reached] = {}
    frontier: dict[str, float] = {centre.uid: 1.0}
    truncated = False
    for hop in range(1, depth + 1):
        onward: dict[str, _Reached] = {}
        for step, met in steps(
            reader, [(source, uid) for uid in frontier], filters, cap=max_nodes + 1, fan=10 * max_nodes + 10
        ):
            uid = met.node.uid
            if uid == centre.uid:
                continue
            value = frontier[step.at[1]] * step.weight * (DECAY if hop > 1 else 1.0)
            found = _Reached(met.node, value, hop, step)
            for known in (reached, onward):
                if uid not in known or found.order < known[uid].order:
                    known[uid] = found
        best = sorted(reached.values(), key=lambda each: each.order)
        # Along a path the value only falls: what is dropped here could lead to nothing that is kept.
        truncated = truncated or len(best) > max_nodes - 1
        reached = {each.node.uid: each for each in best[: max_nodes - 1]}
        frontier = {uid: each.value for uid, each in onward.items() if uid in reached}
        if not frontier:
            break
    ranked = sorted(reached.values(), key=lambda each: each.order)
    nodes = (centre, *(each.node for each in ranked))
    edges = edges_between(reader, source, [node.uid for node in nodes], filters, limit=max_edges + 1)
    hops = {centre.uid: 0, **{uid: each.hops for uid, each in reached.items()}}
    return Around(nodes, hops, tuple(edges[:max_edges]), truncated or len(edges) > max_edges)


def edges_between(
    reader: Reader, source: int, uids: Collection[str], filters: Filters, *, limit: int, min_weight: float = 0
) -> list[SeenEdge]:
    """Edges with both ends among ``uids``, the heaviest first."""
    provenance = filters.provenance or [name for name in PROVENANCES if name != "inferred" or filters.inferred]
    rows = reader.rows(
        f"SELECT e.* FROM {{edges}} e WHERE e.source_id = %(source)s AND e.from_uid = ANY(%(uids)s)"  # noqa: S608
        " AND e.to_uid = ANY(%(uids)s) AND e.edge_type = ANY(%(types)s::text[])"
        " AND e.provenance = ANY(%(provenance)s::text[]) AND e.weight >= %(least)s"
        f" ORDER BY {WEIGHT_SQL} DESC, array_position(%(ranks)s::text[], e.edge_type::text), {STRENGTH_SQL},"
        " e.from_uid, e.to_uid LIMIT %(limit)s",
        source=source,
        uids=list(uids),
        types=list(filters.types or EDGE_TYPES),
        ranks=list(EDGE_TYPES),
        provenance=list(provenance),
        least=min_weight,
        limit=limit,
    )
    return [edge_of(row) for row in rows]


@dataclass(frozen=True, slots=True)
class Way:
    """The nodes from one end to the other and the edges between them; no nodes when there is no way."""

    nodes: tuple[SeenNode, ...] = ()
    edges: tuple[SeenEdge, ...] = ()
    truncated: bool = False
    """The search was given up at `MOST_VISITED` nodes."""


def shortest_path(reader: Reader, source: int, start: str, end: str) -> Way:
    """Fewest hops (at most six, in either direction), then the largest product of weights, then uids.

    The search goes on from both ends at once, from the side with fewer nodes.
    """
    if start == end:
        node = reader.node(source, start)
        return Way((node,)) if node else Way()
    sides = ({start: 0}, {end: 0})
    edges_of_sides = ({start}, {end})
    frontiers: list[set[str]] = list(edges_of_sides)
    depths = [0, 0]
    while sum(depths) < MOST_HOPS:
        side = 0 if len(frontiers[0]) <= len(frontiers[1]) else 1
        if not frontiers[side]:
            side = 1 - side
        if not frontiers[side]:
            return Way()
        seen = sides[side]
        fresh = _beside(reader, source, frontiers[side]) - set(seen)
        depths[side] += 1
        seen.update(dict.fromkeys(fresh, depths[side]))
        frontiers[side] = fresh
        if fresh & set(sides[1 - side]):
            return _best_way(reader, source, start, end, sides)
        if len(sides[0]) + len(sides[1]) > MOST_VISITED:
            return Way(truncated=True)
    return Way()


def _beside(reader: Reader, source: int, uids: Collection[str]) -> set[str]:
    rows = reader.rows(
        "SELECT e.to_uid AS uid FROM {edges} e WHERE e.source_id = %(source)s AND e.from_uid = ANY(%(uids)s)"
        " AND e.provenance <> 'inferred' UNION"
        " SELECT e.from_uid FROM {edges} e WHERE e.source_id = %(source)s AND e.to_uid = ANY(%(uids)s)"
        " AND e.provenance <> 'inferred'",
        source=source,
        uids=list(uids),
    )
    return {row["uid"] for row in rows}


def _best_way(reader: Reader, source: int, start: str, end: str, sides: tuple[dict[str, int], dict[str, int]]) -> Way:
    left, right = sides
    length = min(left[uid] + right[uid] for uid in left if uid in right)
    # A node lies on a shortest way when its distances to both ends add up; those that only one side has seen do so
    # through the layers in the middle.
    layers: list[set[str]] = [{uid for uid, depth in left.items() if depth == place} for place in range(length + 1)]
    for uid, depth in right.items():
        layers[length - depth].add(uid) if depth <= length else None
    edges: dict[tuple[str, str], SeenEdge] = {}
    wanted = set().union(*layers)
    for edge in edges_between(reader, source, wanted, Filters(), limit=1_000_000):
        for pair in ((edge.from_uid, edge.to_uid), (edge.to_uid, edge.from_uid)):
            known = edges.get(pair)
            if known is None or _edge_order(edge) < _edge_order(known):
                edges[pair] = edge
    beside: dict[str, set[str]] = {}
    for at, other in edges:
        beside.setdefault(at, set()).add(other)
    best: dict[str, tuple[float, tuple[str, ...]]] = {start: (-1.0, (start,))}
    for place in range(1, length + 1):
        following: dict[str, tuple[float, tuple[str, ...]]] = {}
        for at, (value, way) in best.items():
            for other in beside.get(at, set()) & layers[place]:
                candidate = (round(value * float(edges[at, other].weight), 9), (*way, other))
                if other not in way and (other not in following or candidate < following[other]):
                    following[other] = candidate
        best = following
    if end not in best:
        return Way()
    way = best[end][1]
    nodes = reader.nodes(source, way)
    return Way(tuple(nodes[uid] for uid in way), tuple(edges[pair] for pair in pairwise(way)))


def _edge_order(edge: SeenEdge) -> tuple[object, ...]:
    return (
        -edge.weight, TYPE_RANK[edge.edge_type], strength(edge.provenance, edge.type_source == "authored"), edge.uid,
    )  # fmt: skip
