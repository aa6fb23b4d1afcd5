"""Symbols: by name, in full, and what surrounds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from apps.access.rest.cursors import page_of_list
from apps.mcp.bounds import beside, fenced, fitting_lines, one_line, tokens_of
from apps.mcp.errors import ToolError
from apps.mcp.freshness import line_of
from apps.mcp.replies import Call, Reply, list_within
from apps.mcp.tools.searching import answer_of, freshness_of
from apps.mcp.tools.texts import text_page
from apps.repos import catalogue as repos
from apps.repos.code.bodies import body_of
from apps.repos.code.lookup import nodes_named
from apps.repos.code.neighbours import counts, neighbours
from apps.repos.code.related import related_chunks
from apps.repos.code.searching import Found, search
from apps.retrieval.values import Filters, Question

CANDIDATES = 5
NAMES = 0.6
"""Evidence from which on a symbol is called like the query; below it only resembles it."""
LINKED_SECTIONS = 3
SIGNATURE_CHARS = 400


def search_code(call: Call) -> Reply:
    sources = [call.repository()] if call["repository"] else []
    asked: dict[str, Any] = {
        "viewer": call.viewer,
        "query": call["query"],
        "repository": sources[0] if sources else None,
        "kind": call["kind"],
        "language": call["language"].lower(),
        "path": call["path"],
    }
    found = search(**asked) or search(**asked, whole=True)
    if not call["kind"] and not any(one.evidence >= NAMES for one in found):
        by_meaning = _by_meaning(call, sources)
        if by_meaning.meta["returned"]:
            return by_meaning
    state = [f"{one.node_id}" for one in found[:50]]
    question = call.question(cursor=call["cursor"], state=state)

    def fetch(limit: int) -> tuple[list[Found], int, str | None]:
        page = page_of_list(found, viewer=call.viewer, question={**question, "limit": limit})
        return page.items, page.total, page.next_cursor

    listed = list_within(call.room, call["top_k"], fetch, _symbol_block)
    shown = list(dict.fromkeys(("repository", one.repository_id) for one in listed.items))
    if not listed.items:
        return _no_symbols(call, sources)
    return Reply(
        freshness=freshness_of(call, sources, shown),
        blocks=listed.blocks,
        closing=[f"{len(listed.items)} of {listed.total} symbols."],
        next_cursor=listed.next_cursor,
        sources=[("repository", one.repository_id) for one in listed.items],
        meta={
            "returned": len(listed.items),
            "total": listed.total,
            "items": [
                {
                    "node": str(one.node_id),
                    "qualified_name": one.qualified_name,
                    "repository": one.repository,
                    "location": f"{one.path}:{one.start_line}-{one.end_line}",
                    "score": one.evidence,
                    "matched": one.matched,
                }
                for one in listed.items
            ],
        },
    )


def _by_meaning(call: Call, sources: Sequence[Any]) -> Reply:
    """Nothing is called like this: what is said in code is searched as everywhere."""
    question = Question(
        query=call["query"],
        mode="code",
        sources=tuple((source.kind, source.pk) for source in sources),
        filters=Filters(path=call["path"], language=call["language"].lower()),
        cursor=call["cursor"] or None,
    )
    return answer_of(call, question, call["top_k"], sources)


def _symbol_block(one: Found) -> str:
    lines = [
        f"{one_line(one.qualified_name, 300)} · {one.kind} · {one.language}",
        f"{one_line(one.path, 300)}:{one.start_line}-{one.end_line} · {one.repository} · node {one.node_id}",
        f"why: {one.matched} · score {one.evidence:.4f}",
    ]
    if one.doc_line:
        lines.append(f"doc: {one_line(one.doc_line, 200)}")
    return "\n".join(lines) + ("\n" + fenced(one.signature[:SIGNATURE_CHARS], one.language) if one.signature else "")


def _no_symbols(call: Call, sources: Sequence[Any]) -> Reply:
    filters = [name for name in ("kind", "language", "path") if call[name]]
    if filters:
        told = f"filters_too_narrow: no symbol of that name is left by the filter {filters[0]}."
    elif not repos.listed(call.viewer).exists():
        told = "nothing_readable: there is no repository that you can read."
    else:
        told = "words_absent: no symbol that you can read has a name like this; try cograph_retrieve with mode code."
    return Reply(
        freshness=freshness_of(call, sources, []),
        closing=[f"0 symbols. reason: {told}"],
        meta={"returned": 0, "total": 0, "items": [], "reason": told.partition(":")[0], "filter": "".join(filters[:1])},
    )


def _one_node(call: Call, repository: Any) -> Any:
    """The symbol that the call names. Raises ToolError ``ambiguous`` with up to five candidates, NotFound."""
    found = nodes_named(call.viewer, repository, call["node"])
    if len(found) > 1:
        shown = "; ".join(
            f"{one_line(node.qualified_name, 120)} ({node.kind}) {one_line(node.file.path, 120)}:{node.start_line}"
            f" node {node.pk}"
            for node in found[:CANDIDATES]
        )
        more = f" (+{len(found) - CANDIDATES} more)" if len(found) > CANDIDATES else ""
        raise ToolError("ambiguous", f"{len(found)} symbols have this name; give the id of one: {shown}{more}")
    return found[0]


def read_node(call: Call) -> Reply:
    repository = call.repository()
    node = _one_node(call, repository)
    body = body_of(node, context_lines=call["context_lines"])
    head = [
        f"{one_line(node.qualified_name, 300)} · {node.kind} · {node.language} · node {node.pk}",
        f"{one_line(node.file.path, 300)}:{node.start_line}-{node.end_line}",
    ]
    if body is None:
        raise ToolError("not_indexed", f"{node.file.path} is tracked, its text is not stored")
    around = counts(node)
    linked: Sequence[Any] = ()
    extras: list[str] = []
    if not call["cursor"]:
        if node.signature:
            extras.append("signature:\n" + fenced(node.signature[:2000], node.language))
        if node.doc:
            extras.append("doc comment:\n" + fenced(node.doc[:4000]))
        extras.append(f"{around['callers']} callers, {around['callees']} callees (cograph_related lists them)")
        if call["include_docs"]:
            linked = related_chunks([node.pk], LINKED_SECTIONS).get(node.pk, ())
            if linked:
                extras.append("documentation that names it:")
                extras += [_section_line(one) for one in linked]
    page = text_page(
        call,
        body.text,
        bound_to={"node": str(node.pk), "commit": repository.synced_commit},
        label=node.language,
        room=beside(call.room, extras),
        first_line=body.start_line,
        advice="Read parts of it with cograph_read_file_range.",
    )
    head.append(f"lines {body.start_line}-{body.end_line} of {body.total_lines} · {tokens_of(body.text)} tokens")
    closing = [*page.notes, *extras]
    return Reply(
        freshness=[line_of(repository, call.now)],
        blocks=["\n".join(head) + "\n" + page.block],
        closing=closing,
        next_cursor=page.next_cursor,
        meta={
            "node": str(node.pk),
            "qualified_name": node.qualified_name,
            "path": node.file.path,
            "commit": repository.synced_commit,
            **around,
            "docs": [str(one.chunk_id) for one in linked],
            **page.meta,
        },
    )


def _section_line(one: Any) -> str:
    anchor = f"#{one.anchor}" if one.anchor else ""
    trail = " › ".join(one_line(part, 80) for part in one.heading_path)
    return f"- {one_line(one.path, 200)}{anchor}:{one.start_line}-{one.end_line} · {trail or one_line(one.title)}"


def related(call: Call) -> Reply:
    repository = call.repository()
    node = _one_node(call, repository)
    around = neighbours(
        node,
        depth=call["depth"],
        direction=call["direction"],
        kinds=call["kinds"] or (),
        limit=call["limit"],
    )
    names: Mapping[Any, Any] = {one.pk: one for one in (node, *around.nodes)}
    head = f"{one_line(node.qualified_name, 300)} · {node.kind} · {one_line(node.file.path, 200)}:{node.start_line}"
    nodes = [
        f"- {one_line(one.qualified_name, 200)} · {one.kind} · {one_line(one.file.path, 200)}"
        f":{one.start_line}-{one.end_line} · node {one.pk}"
        for one in around.nodes
    ]
    edges = [
        f"- {one_line(names[edge.source].qualified_name, 120)} {edge.kind}"
        f" {one_line(names[edge.target].qualified_name, 120)} at {one_line(edge.path, 160)}:{edge.line}"
        for edge in around.edges
        if edge.target is not None
    ]
    nodes_shown = fitting_lines(nodes, call.room, share=2)
    edges_shown = fitting_lines(edges, call.room, share=2)
    truncated = around.truncated or len(nodes_shown) < len(nodes) or len(edges_shown) < len(edges)
    blocks = [head]
    if nodes:
        blocks.append("\n".join([f"symbols ({len(nodes)}):", *nodes_shown]))
    if edges:
        blocks.append("\n".join([f"relations ({len(edges)}):", *edges_shown]))
    closing = ["Nothing of this kind surrounds it."] if not nodes else []
    if truncated:
        closing.append("truncated: there is more; narrow with kinds or direction, or raise limit.")
    return Reply(
        freshness=[line_of(repository, call.now)],
        blocks=blocks,
        closing=closing,
        meta={
            "node": str(node.pk),
            "returned": len(nodes_shown),
            "total": len(nodes),
            "truncated": truncated,
            "items": [{"node": str(one.pk), "qualified_name": one.qualified_name} for one in around.nodes],
            "edges": len(edges),
        },
    )
