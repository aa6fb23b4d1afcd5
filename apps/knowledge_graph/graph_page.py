"""What the page of one graph shows, by what its address asks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.http import QueryDict

from apps.access.errors import NotFound
from apps.knowledge_graph import drawing
from apps.knowledge_graph.describing import picture
from apps.knowledge_graph.detail import EDGES, NodeDetail, by_type
from apps.knowledge_graph.lookup import Chain, chain_of, nodes_called
from apps.knowledge_graph.models import GraphSource
from apps.knowledge_graph.node_edges import page_of_edges, position_in
from apps.knowledge_graph.page_values import READ_FROM, EdgeLine, edge_lines
from apps.knowledge_graph.reader import Reader, SeenNode
from apps.knowledge_graph.vocabulary import EDGE_TYPES, NODE_TYPES, STATUSES
from apps.knowledge_graph.walks import Filters, Way, neighbourhood, shortest_path

if TYPE_CHECKING:
    from apps.access.sources import Source
    from apps.access.viewers import Viewer

STATE = ("type", "edge", "status", "provenance", "inferred", "weight", "depth", "focus", "to")
"""What the address keeps from one look to the next."""
PARTS = ("out", "in")
"""Where the lists of edges of the focused node go on."""
WEIGHTS = ("0.5", "0.7", "0.8", "1.0")
LONGEST_NAME = 1024


def one_of(params: QueryDict, name: str, known: Sequence[str]) -> list[str]:
    value = params.get(name, "")
    return [value] if value in known else []


def filters_of(params: QueryDict) -> Filters:
    inferred = bool(params.get("inferred"))
    provenance = one_of(params, "provenance", tuple(READ_FROM))
    return Filters(
        types=one_of(params, "edge", EDGE_TYPES),
        status=one_of(params, "status", STATUSES),
        provenance=[*provenance, "inferred"] if provenance and inferred else provenance,
        inferred=inferred,
    )


def depth_of(params: QueryDict) -> int:
    return int(next(iter(one_of(params, "depth", ("1", "2", "3"))), "1"))


@dataclass(frozen=True, slots=True)
class WayLine:
    """One step of a way: from a node by a relation to the next one."""

    start: SeenNode
    words: str
    end: SeenNode


@dataclass(frozen=True, slots=True)
class WayShown:
    """The way from the focused node to the one named beside it. ``problem`` says why there is none; ``candidates`` are
    the nodes that the name may mean when there are several."""

    way: Way = Way()  # noqa: RUF009 - frozen
    steps: Sequence[WayLine] = ()
    target: SeenNode | None = None
    problem: str = ""
    candidates: Sequence[SeenNode] = ()


def way_shown(reader: Reader, graph: GraphSource | None, detail: NodeDetail | None, name: str) -> WayShown | None:
    """None when no way is asked for."""
    if graph is None or detail is None or not name.strip():
        return None
    try:
        found = nodes_called(reader, graph, name[:LONGEST_NAME])
    except NotFound:
        return WayShown(problem="No node that you can see has the name of the other end.")
    if len(found) > 1:
        return WayShown(candidates=found)
    way = shortest_path(reader, graph.pk, detail.node.uid, found[0].uid)
    if not way.nodes:
        told = "too many pages lie between" if way.truncated else "none of at most six steps"
        return WayShown(way, target=found[0], problem=f"No way to {found[0].label}: {told}.")
    steps = [
        WayLine(start, drawing.words_of(edge, backwards=edge.from_uid != start.uid), end)
        for start, edge, end in zip(way.nodes, way.edges, way.nodes[1:], strict=False)
    ]
    return WayShown(way, steps, found[0])


def drawn(
    params: QueryDict,
    reader: Reader,
    graph: GraphSource | None,
    detail: NodeDetail | None,
    way: WayShown | None,
) -> tuple[drawing.Drawing, int, bool]:
    """The picture, how many nodes there are within the filters, and whether some are left out."""
    filters = filters_of(params)
    kinds = one_of(params, "type", NODE_TYPES)
    least = max(map(float, one_of(params, "weight", WEIGHTS)), default=0.0)
    link = drawing.Links(params, STATE)
    if graph is None or detail is None:
        seen = picture(reader, graph, filters, node_types=kinds, min_weight=least)
        return drawing.draw(seen.nodes, seen.edges, link), seen.total_nodes, seen.truncated
    if way is not None and way.way.nodes:
        nodes = way.way.nodes
        return drawing.draw(nodes, way.way.edges, link, focus=detail.node.uid), len(nodes), False
    around = neighbourhood(reader, graph.pk, detail.node, depth=depth_of(params), filters=filters)
    kept = [node for node in around.nodes if not kinds or node.node_type in kinds or node.uid == detail.node.uid]
    edges = [edge for edge in around.edges if edge.weight >= least]
    return drawing.draw(kept, edges, link, focus=detail.node.uid), len(kept), around.truncated


@dataclass(frozen=True, slots=True)
class EdgeList:
    """A part of the edges of the focused node in one direction. ``following`` and ``first`` are addresses, empty where
    nothing follows or the part begins with the heaviest."""

    lines: Sequence[EdgeLine]
    total: int
    following: str
    first: str


def edge_list(
    viewer: Viewer,
    source: Source,
    reader: Reader,
    graph: GraphSource | None,
    detail: NodeDetail,
    params: QueryDict,
    name: str,
) -> EdgeList:
    """The part of the outgoing (``out``) or incoming (``in``) edges that the address asks for."""
    outward = name == "out"
    after = position_in(params.get(name, ""), outward=outward)
    total = detail.degrees[0 if outward else 1]
    if after is None:
        edges = detail.outgoing if outward else detail.incoming
        end = detail.outgoing_end if outward else detail.incoming_end
    else:
        page = page_of_edges(reader, graph, detail.node.uid, direction=name, types=(), after=after, limit=EDGES)
        edges, end = by_type(page.edges), page.edges[-1].position if page.more else None
    names = (*STATE, *PARTS)
    return EdgeList(
        edge_lines(viewer, source, edges),
        total,
        drawing.address(params, names, **{name: str(end)}) + f"#cg-{name}" if end else "",
        drawing.address(params, names, **{name: ""}) + f"#cg-{name}" if after else "",
    )


def chain_shown(reader: Reader, graph: GraphSource | None, detail: NodeDetail | None) -> Chain | None:
    """The line of pages that replaced each other, when the focused page stands on one."""
    if graph is None or detail is None:
        return None
    found = chain_of(reader, graph, detail.node)
    return found if len(found.nodes) > 1 else None
