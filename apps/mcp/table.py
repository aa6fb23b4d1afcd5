"""The one table of tools: name, description, arguments, function. Everything else of the server loops over it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from apps.knowledge_graph.vocabulary import EDGE_TYPES
from apps.mcp.arguments import Argument, choice, flag, number, schema_of, text, words
from apps.mcp.replies import Call, Reply
from apps.mcp.tools import code, files, graphs, outlines, packs, pages, routes, searching, sources

STATES = ("any", "ready", "syncing", "stale", "error", "never_synced", "empty", "not_found_upstream")
CURSOR = text("next_cursor of the answer before, to go on.", high=500, default="")
REPOSITORY = "Slug of a repository: host/owner/name."
COLLECTION = "Id of a collection."


@dataclass(frozen=True)
class Tool:
    """``logged``: the argument that holds the question, for tools that write a row of the query log."""

    name: str
    description: str
    arguments: Mapping[str, Argument]
    run: Callable[[Call], Reply]
    exactly_one: tuple[str, ...] = ()
    logged: str = ""

    @cached_property
    def schema(self) -> dict[str, Any]:
        return schema_of(self.arguments, self.exactly_one)


def _query(most: int = 2000) -> Argument:
    return text("The question, in plain words; there is no query syntax.", high=most, low=1, required=True, query=True)


def _repository(*, required: bool = False) -> Argument:
    about = REPOSITORY if required else REPOSITORY + " Left out: everything you can read."
    return text(about, high=255, low=1 if required else 0, required=required, default=None if required else "")


def _collection(*, required: bool = False) -> Argument:
    about = COLLECTION if required else COLLECTION + " Left out: all you can read."
    return text(about, high=64, low=1 if required else 0, required=required, default=None if required else "")


TOOLS: tuple[Tool, ...] = (
    Tool(
        "cograph_repositories",
        "Lists the repositories that you can read, with branch, commit, freshness and counts. "
        "Use it when you need the slug of a repository or want to know how fresh it is. "
        "Not for finding the right repository for a question: cograph_route does that.",
        {
            "search": text("Part of a slug or description.", high=200, default=""),
            "state": choice("Only repositories in this state.", "any", *STATES),
            "limit": number("Entries a page.", 50, 1, 100, sizes=True),
            "cursor": CURSOR,
        },
        sources.repositories,
    ),
    Tool(
        "cograph_collections",
        "Lists the collections of uploaded documents that you can read, with their ids and when they changed. "
        "Use it when you need the id of a collection. "
        "Not for searching in them: cograph_collection_search does that.",
        {
            "search": text("Part of a name or description.", high=200, default=""),
            "limit": number("Entries a page.", 50, 1, 100, sizes=True),
            "cursor": CURSOR,
        },
        sources.list_collections,
    ),
    Tool(
        "cograph_route",
        "Scores the repositories and collections that you can read for a question and says which words speak for each. "
        "Use it when you do not know where to look. "
        "Not for the answers themselves: cograph_context and cograph_retrieve give those.",
        {"query": _query(512), "top_k": number("Sources of each kind.", 3, 1, 10, sizes=True)},
        routes.route_question,
        logged="query",
    ),
    Tool(
        "cograph_context",
        "Packs the sections of the documentation that a task needs into one answer under a budget of tokens, with "
        "pointers to what surrounds them and what was cut. "
        "Use it when you begin any piece of work. "
        "Not for one fact (cograph_retrieve) and not for a symbol (cograph_search_code).",
        {
            "task": text("What you are about to do, in plain words.", high=4000, low=1, required=True, query=True),
            "max_tokens": number("Budget of the pack.", 8000, 500, 24000, sizes=True),
            "repository": _repository(),
            "collection": _collection(),
        },
        packs.context_pack,
        logged="task",
    ),
    Tool(
        "cograph_outline",
        "Shows the tree of one repository or collection: folders, documents, headings with their anchors, and what "
        "each costs to read in tokens. "
        "Use it when you want the lie of the land before you read. "
        "Not for the text itself: cograph_doc_page reads a page of a repository, cograph_collection_document an "
        "uploaded document.",
        {
            "repository": text(REPOSITORY, high=255, default=""),
            "collection": text(COLLECTION, high=64, default=""),
            "path": text("A folder or document to begin at.", high=1024, default=""),
            "depth": number("Levels of folders, documents and headings.", 2, 1, 4),
            "limit": number("Lines a page.", 100, 1, 200, sizes=True),
            "cursor": CURSOR,
        },
        outlines.outline,
        exactly_one=("repository", "collection"),
    ),
    Tool(
        "cograph_repository_readme",
        "Reads the README nearest the root of a repository, verbatim; without one, the index page of its docs. "
        "Use it at the first meeting with a repository. "
        "Not for other pages: cograph_doc_page reads those.",
        {
            "repository": _repository(required=True),
            "max_chars": number("Characters a page.", 6000, 500, 20000, sizes=True),
            "cursor": CURSOR,
        },
        pages.repository_readme,
    ),
    Tool(
        "cograph_retrieve",
        "Finds ranked passages of documentation and code, each with its location, the reason why it was found, and "
        "its text. "
        "Use it for a question about a repository: what it does, why it is so, or how it works; for example “how are "
        "failed jobs retried?”. Docs answer what and why, code answers how. "
        "Not for uploaded documents alone (cograph_collection_search) and not for exact names of symbols "
        "(cograph_search_code).",
        {
            "query": _query(),
            "repository": _repository(),
            "mode": choice("Documentation, code or both; wiki means docs.", "mixed", "mixed", "docs", "code", "wiki"),
            "top_k": number("Passages a page.", 10, 1, 25, sizes=True),
            "snippet_chars": number("Characters of each passage.", 600, 80, 4000, sizes=True),
            "path": text("Only below this path, or a glob.", high=1000, default=""),
            "since": text("Only text changed on or after this day.", high=10, day=True),
            "until": text("Only text changed on or before this day.", high=10, day=True),
            "explain": flag("Adds ranks and scores of every stream.", default=False),
            "cursor": CURSOR,
        },
        searching.retrieve,
        logged="query",
    ),
    Tool(
        "cograph_search_code",
        "Finds symbols by name, part of a name or meaning, with kind, signature, place and the first line of their "
        "comment. "
        "Use it when you know a name or want a definition. "
        "Not for prose: cograph_retrieve with mode docs finds that.",
        {
            "query": _query(),
            "repository": _repository(),
            "kind": text("Only this kind, such as function, method or class.", high=40, default=""),
            "language": text("Only this language, such as python.", high=40, default=""),
            "path": text("Only below this path, or a glob.", high=1000, default=""),
            "top_k": number("Symbols a page.", 10, 1, 50, sizes=True),
            "cursor": CURSOR,
        },
        code.search_code,
        logged="query",
    ),
    Tool(
        "cograph_collection_search",
        "Finds ranked passages of uploaded collections, each with its collection, document and text. "
        "Use it for requirements, decisions, glossaries and runbooks. "
        "Not for documentation that is checked into repositories: cograph_retrieve finds that.",
        {
            "query": _query(),
            "collection": _collection(),
            "top_k": number("Passages a page.", 10, 1, 50, sizes=True),
            "snippet_chars": number("Characters of each passage.", 600, 80, 4000, sizes=True),
            "explain": flag("Adds ranks and scores of every stream.", default=False),
            "cursor": CURSOR,
        },
        searching.collection_search,
        logged="query",
    ),
    Tool(
        "cograph_read_node",
        "Reads one symbol in full: its lines verbatim, signature, comment, sections of the docs that name it, and how "
        "many call it. "
        "Use it after a hit on a symbol. "
        "Not for whole files: cograph_read_file_range reads those.",
        {
            "repository": _repository(required=True),
            "node": text("Id or qualified name of the symbol.", high=1000, low=1, required=True),
            "context_lines": number("Lines before and after.", 0, 0, 50),
            "include_docs": flag("Names sections of the docs that discuss it.", default=True),
            "cursor": CURSOR,
        },
        code.read_node,
    ),
    Tool(
        "cograph_read_file_range",
        "Reads lines of any indexed text file, verbatim with their numbers. "
        "Use it when you must quote or check exact text, configuration files too. "
        "Not for finding the place: cograph_retrieve does that.",
        {
            "repository": _repository(required=True),
            "path": text("Path of the file, or a location path#anchor:start-end.", high=4096, low=1, required=True),
            "start_line": number("First line, from 1.", 1, 1, 100_000_000),
            "end_line": number("Last line; left out: 200 lines. At most 1000 lines.", None, 1, 100_000_000, sizes=True),
            "cursor": CURSOR,
        },
        files.read_file_range,
    ),
    Tool(
        "cograph_doc_page",
        "Reads one page that is checked into a repository, whole or one section of it, verbatim, with its sections, "
        "neighbours and links. "
        "Use it after a hit in the docs, or when you know the path. "
        "Not for uploaded documents: cograph_collection_document reads those.",
        {
            "repository": _repository(required=True),
            "page": text("Slug, path or path#anchor of the page.", high=4096, low=1, required=True),
            "section": text("Anchor or heading of one section.", high=500, default=""),
            "cursor": CURSOR,
        },
        pages.doc_page,
    ),
    Tool(
        "cograph_collection_document",
        "Reads one uploaded document, whole or one section of it, verbatim, with front matter, sections and links. "
        "Use it after a hit in a collection. "
        "Not for pages of repositories: cograph_doc_page reads those.",
        {
            "collection": _collection(required=True),
            "document": text("Id, source_key or source_key#anchor of the document.", high=2048, low=1, required=True),
            "section": text("Anchor or heading of one section.", high=500, default=""),
            "cursor": CURSOR,
        },
        pages.collection_document,
    ),
    Tool(
        "cograph_read_chunk",
        "Reads the exact unit that was indexed: its text, heading path, lines, bytes and the state of its vector. "
        "Use it to see why something was found, or why it was not. "
        "Not for reading on: cograph_doc_page reads the whole page.",
        {
            "chunk": text("Id of the chunk.", high=20, low=1, required=True),
            "neighbours": number("Chunks before and after.", 0, 0, 2, sizes=True),
        },
        files.read_chunk,
    ),
    Tool(
        "cograph_related",
        "Lists the symbols around a symbol: callers, callees, imports, bases and members, with the line of each "
        "relation. "
        "Use it to see what a change would touch. "
        "Not for relations of decisions and other pages: cograph_graph shows those.",
        {
            "repository": _repository(required=True),
            "node": text("Id or qualified name of the symbol.", high=1000, low=1, required=True),
            "depth": number("Steps.", 1, 1, 2),
            "direction": choice("Against the relations, along them, or both.", "both", "both", "callers", "callees"),
            "kinds": words("Only these kinds of relation.", "calls", "imports", "inherits", "declares"),
            "limit": number("Symbols.", 50, 1, 100, sizes=True),
        },
        code.related,
    ),
    Tool(
        "cograph_graph",
        "Shows typed relations of canonical pages (decisions, modules, runbooks and others) with the text that states "
        "them, what superseded what, the way between two pages, and findings. "
        "Use it to learn which decision holds, and what depends on what. "
        "Not for calls in code (cograph_related) and not for plain documents (cograph_retrieve).",
        {
            "repository": text(REPOSITORY, high=255, default=""),
            "collection": text(COLLECTION, high=64, default=""),
            "node": text("Uid, alias or path of a page; needed for every view but lint.", high=1024, default=""),
            "view": choice(
                "neighbourhood: what surrounds it; node: all of its relations; chain: oldest to current; path: the way "
                "to another page; lint: findings.",
                "neighbourhood",
                *graphs.VIEWS,
            ),
            "to": text("The other page, for the view path.", high=1024, default=""),
            "depth": number("Steps.", 1, 1, 3),
            "direction": choice("Along relations, against them, or both.", "both", "both", "out", "in"),
            "types": words("Only these types of relation.", *EDGE_TYPES),
            "limit": number("Pages, relations or findings.", 50, 1, 200, sizes=True),
            "cursor": CURSOR,
        },
        graphs.graph,
        exactly_one=("repository", "collection"),
    ),
)

BY_NAME: Mapping[str, Tool] = {tool.name: tool for tool in TOOLS}
