"""Pages from texts, without a database. Loaded by the conftest, which hands it to tests as ``helpers``."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping

from apps.knowledge_graph.projection import project
from apps.knowledge_graph.reading.header import read_header
from apps.knowledge_graph.reading.pages import OlderHeader, PageReading, read_page
from apps.knowledge_graph.values import GraphValue, Page
from apps.markup.decoding import decode
from apps.markup.parsing import parse
from apps.markup.values import Decoded, Limits, ParsedDocument

SPACE = uuid.UUID("6ba7b811-9dad-11d1-80b4-00c04fd430c8")


def parsed(text: str | bytes, path: str) -> ParsedDocument:
    decoded = decode(text.encode() if isinstance(text, str) else text, Limits())
    assert isinstance(decoded, Decoded)
    document = parse(decoded, path, Limits())
    assert isinstance(document, ParsedDocument)
    return document


def reading_of(
    text: str | bytes, path: str = "a.md", *older: str, live: bool = True, document: uuid.UUID | None = None
) -> PageReading:
    """The reading of one document; ``older`` are its earlier versions, newest first."""

    def versions() -> Iterable[OlderHeader]:
        return [OlderHeader(read_header(parsed(each, path)), str(hash(each))) for each in older]

    return read_page(
        parsed(text, path),
        document=document or uuid.uuid5(SPACE, path),
        version_hash=str(hash(text)),
        live=live,
        older=versions,
    )


def pages_of(files: Mapping[str, str | bytes]) -> list[Page]:
    return [page for path, text in files.items() if (page := reading_of(text, path).page) is not None]


def graph_of(files: Mapping[str, str | bytes]) -> GraphValue:
    return project(pages_of(files))


def edges_of(graph: GraphValue) -> dict[tuple[str, str, str], tuple[float, str]]:
    """(from, type, to) -> (weight, provenance)"""
    return {
        (edge.from_uid, edge.edge_type, edge.to_uid): (float(edge.weight), edge.provenance)
        for edge in graph.edges.values()
    }


def page_text(slug: str, body: str = "", *, type: str = "module", status: str = "accepted", **fields: str) -> str:
    lines = [
        f"slug: {slug}",
        f"type: {type}",
        f"status: {status}",
        *(f"{key}: {value}" for key, value in fields.items()),
    ]
    return "---\n" + "\n".join(lines) + f"\n---\n\n{body}\n"


WORKED_EXAMPLE = {
    "decisions/dec-cache-v2.md": (
        "---\nslug: dec-cache-v2\ntype: decision\nstatus: accepted\nsupersedes: [dec-cache-v1]\n---\n"
        "# Cache sessions in Redis\n\nSessions move out of process memory. This binds [[mod-session-store]].\n"
    ),
    "decisions/dec-cache-v1.md": (
        "---\nslug: dec-cache-v1\ntype: decision\nstatus: superseded\n---\n"
        "# Cache sessions in process memory\n\nEach process keeps its own sessions.\n"
    ),
    "modules/mod-session-store.md": (
        '---\nslug: mod-session-store\ntype: module\nstatus: accepted\nrelated: ["[[mod-redis-pool]]"]\n---\n'
        "# Session store\n\nReads and writes sessions.\n"
    ),
    "modules/mod-redis-pool.md": (
        "---\nslug: mod-redis-pool\ntype: module\nstatus: accepted\n---\n# Redis pool\n\nHands out connections.\n"
    ),
}
