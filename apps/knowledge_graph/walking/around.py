"""What lies around one node (``knowledge-graph.md`` 9)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from apps.knowledge_graph.reader import Reader, SeenEdge, SeenNode, edge_of
from apps.knowledge_graph.vocabulary import PROJECT
from apps.knowledge_graph.walking.steps import Filters, Step, departures_from, steps

DECAY = 0.6
NODES, MOST_NODES = 50, 200
EDGES = 400
_ROUNDING = 1e-6
"""Values are compared after rounding to six decimals."""


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
        decay = DECAY if hop > 1 else 1.0
        # Along a path the value only falls. Once all places are taken and something is known to be left out, what is
        # worth less than the last of them can neither be kept nor lead to anything that is.
        floor = min(each.value for each in reached.values()) - _ROUNDING if truncated else 0.0
        departures = departures_from({(source, uid): value * decay for uid, value in frontier.items()}, floor)
        onward: dict[str, _Reached] = {}
        for step, met in steps(reader, departures, filters, needed=max_nodes + 1, cap=max_nodes + len(reached) + 1):
            uid = met.node.uid
            if uid == centre.uid:
                continue
            found = _Reached(met.node, frontier[step.at[1]] * step.weight * decay, hop, step)
            for known in (reached, onward):
                if uid not in known or found.order < known[uid].order:
                    known[uid] = found
        best = sorted(reached.values(), key=lambda each: each.order)
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
    # Behind a sub-query the uids are no constants to the planner, which else compares each with what is most common:
    # of 50 uids that was a third of its work.
    among = "ANY((SELECT %(uids)s::text[])::text[])"
    rows = reader.rows(
        f"SELECT e.* FROM {{edges}} e WHERE e.source_id = %(source)s AND e.from_uid = {among}"  # noqa: S608
        f" AND e.to_uid = {among}{' AND e.weight >= %(least)s' if min_weight else ''}{filters.edges_sql}"
        " ORDER BY e.walk_weight DESC, e.walk_rank, e.from_uid, e.to_uid LIMIT %(limit)s",
        source=source,
        uids=list(uids),
        least=min_weight,
        limit=limit,
        **filters.edges_params,
    )
    return [edge_of(row) for row in rows]
