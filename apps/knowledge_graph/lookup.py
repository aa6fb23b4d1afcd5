"""Nodes by what people call them, and the line of pages that took each other's place."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from apps.access.errors import NotFound
from apps.knowledge_graph.models import CanonicalPage, GraphSource
from apps.knowledge_graph.naming import wanted_by_name
from apps.knowledge_graph.reader import Reader, SeenEdge, SeenNode, edge_of
from apps.knowledge_graph.vocabulary import INVALIDATED_BY, SUPERSEDES

LONGEST_NAME = 1024
MOST_IN_CHAIN = 200
MOST_EDGES_OF_CHAINS = 1000
NOT_IN_FORCE = frozenset({"draft", "archived"})
_LINES = re.compile(r":\d+(?:-\d+)?$")


def nodes_called(reader: Reader, graph: GraphSource | None, name: str) -> list[SeenNode]:
    """The node with this uid, else those whose page has this path, else those that bear the name, as a link to it would
    be resolved. Raises NotFound when the reader sees none."""
    name = name.strip()
    if graph is None or not name or len(name) > LONGEST_NAME or "\0" in name:
        raise NotFound
    node = reader.node(graph.pk, name)
    if node is not None:
        return [node]
    bare = _LINES.sub("", name)
    readings: list[list[str]] = [[f"path:{name}"], [f"path:{bare}"], [f"path:{bare.partition('#')[0]}"]]
    readings += [[wanted] for wanted in wanted_by_name(name, "")]
    pages = CanonicalPage.objects.filter(source=graph, bears=True).kept().live()
    for names in readings:
        uids = list(pages.filter(names__overlap=names).values_list("uid", flat=True))
        seen = reader.nodes(graph.pk, uids) if uids else {}
        if seen:
            return [seen[uid] for uid in sorted(seen)]
    raise NotFound


@dataclass(frozen=True, slots=True)
class Chain:
    """``nodes`` from the oldest to the newest; those in ``current`` nothing in force has replaced. In a ``cycle`` the
    pages of it have no order, and none of them is current."""

    nodes: tuple[SeenNode, ...]
    current: frozenset[str]
    edges: tuple[SeenEdge, ...]
    cycle: frozenset[str]
    truncated: bool


def chain_of(reader: Reader, graph: GraphSource, start: SeenNode) -> Chain:
    """Every page that the reader sees on a line of supersession with ``start``, whichever of them is asked about."""
    seen = {start.uid}
    frontier = {start.uid}
    edges: dict[str, SeenEdge] = {}
    truncated = False
    while frontier:
        found = _edges_of_chains(reader, graph, frontier)
        truncated = truncated or len(found) > MOST_EDGES_OF_CHAINS
        frontier = set()
        for edge in found:
            edges[edge.uid] = edge
            for uid in (edge.from_uid, edge.to_uid):
                if uid not in seen:
                    if len(seen) >= MOST_IN_CHAIN:
                        truncated = True
                        continue
                    seen.add(uid)
                    frontier.add(uid)
    nodes = reader.nodes(graph.pk, seen)
    kept = [edge for edge in edges.values() if edge.from_uid in nodes and edge.to_uid in nodes]
    newer: defaultdict[str, set[str]] = defaultdict(set)
    for edge in kept:
        old, new = _old_and_new(edge)
        if old != new:
            newer[old].add(new)
    order, circle = _from_old_to_new(nodes, newer)
    current = frozenset(
        uid
        for uid in nodes
        if uid not in circle and not nodes[uid].dangling and not any(_in_force(nodes[one]) for one in newer[uid])
    )
    return Chain(tuple(nodes[uid] for uid in order), current, tuple(kept), frozenset(circle), truncated)


def _edges_of_chains(reader: Reader, graph: GraphSource, uids: Iterable[str]) -> list[SeenEdge]:
    """Written edges of supersession at these nodes, by uid; more than `MOST_EDGES_OF_CHAINS` when some are left out."""
    part = (
        "(SELECT * FROM {edges} e WHERE e.source_id = %(source)s AND e.{at} = ANY(%(uids)s)"
        " AND e.edge_type = '{type}' AND e.provenance <> 'inferred' ORDER BY e.from_uid, e.to_uid LIMIT %(most)s)"
    )
    parts = [
        part.replace("{at}", at).replace("{type}", type_)
        for type_ in (SUPERSEDES, INVALIDATED_BY)
        for at in ("from_uid", "to_uid")
    ]
    rows = reader.rows(" UNION ALL ".join(parts), source=graph.pk, uids=list(uids), most=MOST_EDGES_OF_CHAINS + 1)
    found = {edge.uid: edge for edge in map(edge_of, rows)}
    return [found[uid] for uid in sorted(found)][: MOST_EDGES_OF_CHAINS + 1]


def _old_and_new(edge: SeenEdge) -> tuple[str, str]:
    """``new supersedes old``; ``old invalidated_by new``."""
    return (edge.to_uid, edge.from_uid) if edge.edge_type == SUPERSEDES else (edge.from_uid, edge.to_uid)


def _in_force(node: SeenNode) -> bool:
    return not node.dangling and node.status not in NOT_IN_FORCE


def _from_old_to_new(nodes: Iterable[str], newer: dict[str, set[str]]) -> tuple[list[str], set[str]]:
    """Each page behind all that it replaced, by uid where that leaves a choice; then what stands in a circle."""
    waiting = dict.fromkeys(nodes, 0)
    for ends in newer.values():
        for uid in ends:
            waiting[uid] += 1
    order: list[str] = []
    ready = sorted(uid for uid, count in waiting.items() if not count)
    while ready:
        uid = ready.pop(0)
        order.append(uid)
        for following in newer.get(uid, ()):
            waiting[following] -= 1
            if not waiting[following]:
                ready = sorted([*ready, following])
    left = set(waiting) - set(order)
    # What only follows a circle is no part of it, but has no place before it either.
    circle = set(left)
    while True:
        inner = {uid for uid in circle if newer.get(uid, set()) & circle}
        if inner == circle:
            break
        circle = inner
    return [*order, *sorted(left)], circle
