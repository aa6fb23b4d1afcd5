"""The knowledge graph: a page and its relations, what surrounds it, what replaced it, the way to another, findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from apps.access.rest.cursors import read_cursor, write_cursor
from apps.knowledge_graph.lint import lint_seen
from apps.knowledge_graph.linting.values import GraphFinding
from apps.knowledge_graph.lookup import chain_of, nodes_called
from apps.knowledge_graph.models import GraphSource
from apps.knowledge_graph.node_edges import Position, page_of_edges
from apps.knowledge_graph.reader import Reader, SeenEdge, SeenNode, open_graph
from apps.knowledge_graph.snapshot import in_one_snapshot
from apps.knowledge_graph.walks import Filters, neighbourhood, newest, shortest_path
from apps.mcp.bounds import Room, fenced, fitting_lines, one_line
from apps.mcp.errors import ToolError
from apps.mcp.freshness import line_of
from apps.mcp.replies import Call, Reply
from apps.mcp.tools.graph_places import NOWHERE, places_of

VIEWS = ("neighbourhood", "node", "chain", "path", "lint")
CANDIDATES = 5
HEADER_KEYS = 12
SHARE = 4
"""Pages, relations, evidence and the header of a page have a quarter of the room each."""
EVIDENCE_CHARS = 300


@in_one_snapshot
def graph(call: Call) -> Reply:
    view = call["view"]
    if call["cursor"] and view != "node":
        raise ToolError("invalid_argument", '"cursor" belongs to the view node, which lists all relations of a page')
    if view != "lint" and not call["node"].strip():
        raise ToolError("invalid_argument", f'"node" is required for the view {view}: uid, alias or path of a page')
    if (view == "path") != bool(call["to"].strip()):
        raise ToolError("invalid_argument", '"to" belongs to the view path: uid, alias or path of the other page')
    source = call.repository() if call["repository"] else call.collection()
    reply = _VIEWS[view](call, source)
    reply.freshness = [line_of(source, call.now)]
    return reply


def _opened(call: Call, source: Any) -> tuple[Reader, GraphSource, SeenNode]:
    reader, held = open_graph(call.viewer, source)
    node = _one(reader, held, call["node"])
    if held is None:
        raise AssertionError("a node of no graph")
    return reader, held, node


def _one(reader: Reader, held: GraphSource | None, name: str) -> SeenNode:
    """Raises NotFound, ToolError ``ambiguous`` with up to five candidates."""
    found = nodes_called(reader, held, name)
    if len(found) > 1:
        shown = "; ".join(f"{node.uid} ({node.node_type}) {one_line(node.label, 80)}" for node in found[:CANDIDATES])
        raise ToolError("ambiguous", f"{len(found)} pages bear this name; give the uid of one: {shown}")
    return found[0]


def _neighbourhood(call: Call, source: Any) -> Reply:
    reader, held, node = _opened(call, source)
    filters = Filters(types=tuple(call["types"] or ()), direction=call["direction"])
    around = neighbourhood(
        reader, held.pk, node, depth=call["depth"], filters=filters, max_nodes=min(200, call["limit"] + 1)
    )
    return _picture(
        call, reader, held, around.nodes, around.edges, truncated=around.truncated, hops=around.hops,
        title=f"around {_named(node)}",
    )  # fmt: skip


def _node(call: Call, source: Any) -> Reply:
    reader, held, node = _opened(call, source)
    question = call.question(revision=held.revision)
    at = read_cursor(call["cursor"], viewer=call.viewer, question=question)
    found = page_of_edges(
        reader, held, node.uid, direction=call["direction"], types=tuple(call["types"] or ()),
        after=Position.unpacked(at) if at else None, limit=call["limit"], places=1,
    )  # fmt: skip
    told = len(fitting_lines([_relation(each.edge) for each in found.edges], call.room, share=SHARE))
    shown = found.edges[: max(1, told)]
    more = found.more or len(shown) < len(found.edges)
    others = {each.other.uid: each.other for each in shown}
    nodes = [node, *(others[uid] for uid in sorted(others) if uid != node.uid)]
    reply = _picture(
        call, reader, held, nodes, [each.edge for each in shown], truncated=more, title=_named(node)
    )  # fmt: skip
    if more:
        reply.next_cursor = write_cursor(shown[-1].position.packed, viewer=call.viewer, question=question)
    page = reader.pages([node.page]).get(node.page) if node.page is not None else None
    facts = []
    if page is not None:
        facts.append(f"page: {one_line(page.path, 300)} · header {page.header_state}")
        said = [(key, value) for key, value in page.header.items() if value not in (None, "", [], {})]
        facts += [f"{one_line(str(key), 40)}: {_words(value)}" for key, value in said[:HEADER_KEYS]]
    else:
        facts.append("no page: only links name it.")
    replaced = newest(reader, [(held.pk, node.uid)]).get((held.pk, node.uid))
    if replaced is not None:
        ends = ", ".join(_named(met.node) for met in replaced.ends)
        facts.append("superseded in a cycle: there is no newest page." if replaced.cycle else f"superseded by: {ends}")
    outgoing, incoming = found.degrees
    shown_of = f"; {len(shown)} of them shown" if len(shown) < found.total else ""
    facts.append(f"{outgoing} relations out, {incoming} in{shown_of}")
    reply.blocks = [reply.blocks[0], "\n".join(facts), *reply.blocks[1:]]
    reply.meta |= {"degree": {"out": outgoing, "in": incoming}}
    return reply


def _chain(call: Call, source: Any) -> Reply:
    reader, held, node = _opened(call, source)
    chain = chain_of(reader, held, node)
    places = places_of(call, reader, chain.nodes)
    lines = []
    for place, one in enumerate(chain.nodes, start=1):
        marks = [one.status or "no status"]
        if one.uid in chain.current:
            marks.append("CURRENT")
        if one.uid in chain.cycle:
            marks.append("in a cycle")
        if one.uid == node.uid:
            marks.append("asked about")
        lines.append(f"{place}. {_named(one)} · {', '.join(marks)}{places.get(one.uid, NOWHERE).words}")
    closing = []
    if len(chain.nodes) == 1:
        closing.append("Nothing superseded it and it superseded nothing.")
    if chain.cycle:
        closing.append("cycle: these pages supersede each other, so that none of them is the newest (KG108).")
    if chain.truncated:
        closing.append("truncated: the line of supersession is longer.")
    told = "\n".join(["oldest to newest:", *fitting_lines(lines, call.room, share=2)])
    return Reply(
        blocks=[told, *_evidence(reader, held, chain.edges, call.room)],
        closing=closing,
        meta={
            "returned": len(chain.nodes),
            "total": len(chain.nodes),
            "items": [
                {"uid": one.uid, "current": one.uid in chain.current, **places.get(one.uid, NOWHERE).meta}
                for one in chain.nodes
            ],
            "cycle": sorted(chain.cycle),
            "truncated": chain.truncated,
        },
    )


def _path(call: Call, source: Any) -> Reply:
    reader, held, node = _opened(call, source)
    other = _one(reader, held, call["to"])
    way = shortest_path(reader, held.pk, node.uid, other.uid)
    if not way.nodes:
        told = "The search was given up: too many pages lie between." if way.truncated else "There is no way."
        return Reply(
            blocks=[f"from {_named(node)} to {_named(other)}"],
            closing=[f"0 steps. {told}"],
            meta={"returned": 0, "total": 0, "items": [], "truncated": way.truncated},
        )
    return _picture(
        call, reader, held, way.nodes, way.edges, truncated=way.truncated,
        title=f"from {_named(node)} to {_named(other)}, {len(way.nodes) - 1} steps", ordered=True,
    )  # fmt: skip


def _lint(call: Call, source: Any) -> Reply:
    found = lint_seen(call.viewer, source)
    if call["node"].strip():
        reader, held = open_graph(call.viewer, source)
        page = _one(reader, held, call["node"]).page
        found = [one for one in found if one.page_id == page]
    shown = found[: call["limit"]]
    lines = fitting_lines([_finding(one) for one in shown], call.room)
    closing = [f"{len(lines)} of {len(found)} findings."]
    if len(lines) < len(found):
        closing.append("truncated: raise limit, or name a node.")
    return Reply(
        blocks=["\n".join(lines)],
        closing=closing,
        meta={
            "returned": len(lines),
            "total": len(found),
            "items": [{"rule": one.rule, "path": one.path, "line": one.line} for one in shown[: len(lines)]],
            "truncated": len(lines) < len(found),
        },
    )


def _finding(one: GraphFinding) -> str:
    place = f"{one_line(one.path, 200)}:{one.line}" if one.line else one_line(one.path, 200)
    return f"- {one.severity} {one.rule} {place}: {one_line(one.message, 300)}"


_VIEWS: dict[str, Callable[[Call, Any], Reply]] = {
    "neighbourhood": _neighbourhood,
    "node": _node,
    "chain": _chain,
    "path": _path,
    "lint": _lint,
}


def _words(value: Any) -> str:
    """A value of a header as a line reads it."""
    parts = (
        value
        if isinstance(value, list)
        else [f"{key} {held}" for key, held in value.items()]
        if isinstance(value, dict)
        else [value]
    )
    return one_line(", ".join(map(str, parts)), 160)


def _named(node: SeenNode) -> str:
    kind = "no page yet" if node.dangling else f"{node.node_type}, {node.status}"
    return f"{node.uid} ({kind}) {one_line(node.label, 120)}"


def _relation(edge: SeenEdge) -> str:
    by_types = " (by page types)" if edge.type_source == "matrix" else ""
    weight = f"{edge.weight.normalize():f}"
    return f"- {edge.from_uid} {edge.edge_type} {edge.to_uid} · weight {weight} · {edge.provenance}{by_types}"


def _picture(
    call: Call,
    reader: Reader,
    held: GraphSource,
    nodes: Sequence[SeenNode],
    edges: Sequence[SeenEdge],
    *,
    truncated: bool,
    title: str,
    hops: dict[str, int] | None = None,
    ordered: bool = False,
) -> Reply:
    """Nodes, edges with type, weight and provenance, and the text that says so."""
    places = places_of(call, reader, nodes)
    node_lines = []
    for place, node in enumerate(nodes, start=1):
        mark = f"{place}. " if ordered else "- "
        far = f" · {hops[node.uid]} steps" if hops and hops.get(node.uid) else ""
        node_lines.append(f"{mark}{_named(node)}{far}{places.get(node.uid, NOWHERE).words}")
    edge_lines = [_relation(edge) for edge in edges]
    shown_nodes = fitting_lines(node_lines, call.room, share=SHARE)
    shown_edges = fitting_lines(edge_lines, call.room, share=SHARE)
    truncated = truncated or len(shown_nodes) < len(node_lines) or len(shown_edges) < len(edge_lines)
    blocks = [title, "\n".join([f"pages ({len(nodes)}):", *shown_nodes])]
    if edge_lines:
        blocks.append("\n".join([f"relations ({len(edges)}):", *shown_edges]))
        blocks += _evidence(reader, held, edges[: len(shown_edges)], call.room)
    closing = ["truncated: there is more; narrow with types or direction, or raise limit."] if truncated else []
    return Reply(
        blocks=blocks,
        closing=closing,
        meta={
            "returned": len(shown_nodes),
            "total": len(nodes),
            "truncated": truncated,
            "items": [{"uid": node.uid, **places.get(node.uid, NOWHERE).meta} for node in nodes],
            "edges": [edge.uid for edge in edges],
        },
    )


def _evidence(reader: Reader, held: GraphSource, edges: Iterable[SeenEdge], room: Room) -> list[str]:
    """For each edge the first place that says so, as quoted source."""
    uids = [edge.uid for edge in edges]
    if not uids:
        return []
    found = reader.evidence(held.pk, uids)
    first = {uid: rows[0] for uid, rows in found.items() if rows}
    pages = reader.pages([row.page_id for row in first.values()])
    lines = []
    for uid in uids:
        row = first.get(uid)
        if row is None:
            continue
        page = pages.get(row.page_id)
        place = f"{one_line(page.path, 200)}:{row.line}" if page else f"line {row.line}"
        lines.append(f"{uid}\t{place}\t{one_line(row.raw, EVIDENCE_CHARS)}")
    lines = fitting_lines(lines, room, share=SHARE)
    return ["evidence (relation, place, text as written):\n" + fenced("\n".join(lines))] if lines else []
