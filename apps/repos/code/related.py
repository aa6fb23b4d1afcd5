"""What belongs together: passages that discuss a symbol, symbols that a passage names, code that names a document.

All of one repository, so who sees the one sees the other. Each function answers for many at once, by one query.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

MOST_RELATED = 10
PAGE_SYMBOLS = 20
SNIPPET_CHARS = 600


@dataclass(frozen=True, slots=True)
class RelatedChunk:
    """A passage that names a symbol. Lines count from 1; ``line`` is that of the first mention."""

    chunk_id: int
    document_id: uuid.UUID
    path: str
    title: str
    kind: str
    heading_path: tuple[str, ...]
    anchor: str
    start_line: int
    end_line: int
    line: int
    snippet: str
    address: str
    confidence: int
    form: int
    count: int


@dataclass(frozen=True, slots=True)
class RelatedSymbol:
    """A symbol that a passage or page names."""

    node_id: uuid.UUID
    kind: str
    name: str
    qualified_name: str
    path: str
    start_line: int
    end_line: int
    confidence: int
    count: int
    address: str


@dataclass(frozen=True, slots=True)
class NamingLiteral:
    """A string literal in code that names a document."""

    node_id: uuid.UUID
    qualified_name: str
    path: str
    line: int
    column: int
    written: str
    anchor: str
    state: str


CHUNKS = """
WITH named AS (
    SELECT m.node_id, m.chunk_id, m.document_id, m.confidence, m.form, m.count, m.first_line,
        d.path, d.title, d.kind, d.slug, r.slug AS repository, c.chunk_index,
        row_number() OVER (PARTITION BY m.node_id, m.document_id
            ORDER BY m.confidence DESC, m.count DESC, c.chunk_index, c.id) AS nth
    FROM repo_document_chunk_mentions m
    JOIN repo_document_chunks c ON c.id = m.chunk_id
    JOIN repo_documents d ON d.id = m.document_id
    JOIN repositories r ON r.id = m.repository_id
    WHERE m.node_id = ANY(%s::uuid[])
), ranked AS (
    SELECT *, row_number() OVER (PARTITION BY node_id ORDER BY nth, confidence DESC, kind <> 'repo_doc', count DESC,
        path COLLATE "C", chunk_index, chunk_id) AS place FROM named
)
SELECT k.node_id, k.chunk_id, k.document_id, k.path, k.title, k.kind, c.heading_path, c.section_anchor, c.start_line,
    c.end_line, c.start_line + k.first_line AS line, c.source, k.repository, k.slug, k.confidence, k.form, k.count,
    k.place
FROM ranked k JOIN repo_document_chunks c ON c.id = k.chunk_id WHERE k.place <= %s ORDER BY k.node_id, k.place
"""
SYMBOLS = """
WITH named AS (
    SELECT {key} AS key, m.node_id, max(m.confidence) AS confidence, sum(m.count) AS count
    FROM repo_document_chunk_mentions m WHERE {key} = ANY(%s::{type}[]) GROUP BY 1, 2
), ranked AS (
    SELECT a.*, n.kind, n.name, n.qualified_name, f.path, n.start_line, n.end_line, r.slug,
        row_number() OVER (PARTITION BY a.key ORDER BY a.confidence DESC, f.path COLLATE "C", n.start_line, n.id)
            AS place,
        count(*) OVER (PARTITION BY a.key) AS total
    FROM named a JOIN code_nodes n ON n.id = a.node_id JOIN code_files f ON f.id = n.file_id
    JOIN repositories r ON r.id = n.repository_id
)
SELECT key, total, node_id, kind, name, qualified_name, path, start_line, end_line, confidence, count, slug, place
FROM ranked
WHERE place <= %s ORDER BY key, place
"""
_LITERALS = """
    SELECT l.target_document_id, l.node_id, n.qualified_name, f.path, l.line, l."column", l.written, l.anchor, l.state
    FROM code_document_links l JOIN code_nodes n ON n.id = l.node_id JOIN code_files f ON f.id = l.file_id
    WHERE l.target_document_id = ANY(%s) ORDER BY f.path COLLATE "C", l.line, l."column"
"""


def related_chunks(nodes: Collection[uuid.UUID], limit: int = 3) -> dict[uuid.UUID, tuple[RelatedChunk, ...]]:
    """Up to ``limit`` (0 to 10) passages for each of ``nodes``: by confidence, prose before other kinds, count, path
    and place; one of each document before a second of any (``repository-documents.md`` 8.5)."""
    found: dict[uuid.UUID, list[RelatedChunk]] = defaultdict(list)
    if nodes and limit > 0:
        with connection.cursor() as cursor:
            cursor.execute(CHUNKS, [list(nodes), min(limit, MOST_RELATED)])
            rows = cursor.fetchall()
        for *row, _ in rows:
            found[row[0]].append(chunk_of(row))
    return {node: tuple(chunks) for node, chunks in found.items()}


def chunk_of(row: Sequence[Any]) -> RelatedChunk:
    """A row of ``CHUNKS`` but its place; ids may be texts."""
    _, chunk, document, path, title, kind, headings, anchor, start, end, line, source, *rest = row
    repository, slug, confidence, form, count = rest
    return RelatedChunk(
        chunk_id=chunk,
        document_id=_uuid(document),
        path=path,
        title=title,
        kind=kind,
        heading_path=tuple(headings),
        anchor=anchor,
        start_line=start,
        end_line=end,
        line=min(line, end),
        snippet=_snippet(source, line - start),
        address=f"/repos/{repository}/docs/{slug}" + (f"#{anchor}" if anchor else ""),
        confidence=confidence,
        form=form,
        count=count,
    )


def symbol_of(row: Sequence[Any]) -> RelatedSymbol:
    """A row of ``SYMBOLS`` but its place; ids may be texts."""
    _, _, node, kind, name, qualified, path, start, end, confidence, count, slug = row
    address = f"/repos/{slug}/code/{node}"
    return RelatedSymbol(_uuid(node), kind, name, qualified, path, start, end, confidence, int(count), address)


def _uuid(value: uuid.UUID | str) -> uuid.UUID:
    return value if isinstance(value, uuid.UUID) else uuid.UUID(value)


def _snippet(source: str, line: int) -> str:
    """An exact slice of the passage that begins at the line of the mention, or before it where that fits."""
    if len(source) <= SNIPPET_CHARS:
        return source
    at = 0
    for _ in range(max(line, 0)):
        following = source.find("\n", at) + 1
        if not following:
            break
        at = following
    return source[at : at + SNIPPET_CHARS]


def related_symbols(chunks: Collection[int], limit: int = 5) -> dict[int, tuple[RelatedSymbol, ...]]:
    """Up to ``limit`` symbols that each of ``chunks`` names, by confidence, path and line."""
    return {key: symbols for key, (symbols, _) in _named("m.chunk_id", "bigint", chunks, limit).items()}


def code_on_page(document: uuid.UUID, limit: int = PAGE_SYMBOLS) -> tuple[tuple[RelatedSymbol, ...], int]:
    """Symbols that a document names, once each, and how many more there are (``repository-documents.md`` 9.2)."""
    symbols, total = _named("m.document_id", "uuid", [document], limit).get(document, ((), 0))
    return symbols, total - len(symbols)


def _named(
    column: str, kind: str, keys: Collection[Any], limit: int
) -> dict[Any, tuple[tuple[RelatedSymbol, ...], int]]:
    if not keys or limit <= 0:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(SYMBOLS.format(key=column, type=kind), [list(keys), limit])
        rows = cursor.fetchall()
    found: dict[Any, list[RelatedSymbol]] = defaultdict(list)
    totals: dict[Any, int] = {}
    for *row, _ in rows:
        totals[row[0]] = row[1]
        found[row[0]].append(symbol_of(row))
    return {key: (tuple(symbols), totals[key]) for key, symbols in found.items()}


def naming_literals(documents: Sequence[uuid.UUID]) -> dict[uuid.UUID, tuple[NamingLiteral, ...]]:
    """String literals in code that name each of ``documents``, by path and line."""
    found: dict[uuid.UUID, list[NamingLiteral]] = defaultdict(list)
    if documents:
        with connection.cursor() as cursor:
            cursor.execute(_LITERALS, [list(documents)])
            for document, *row in cursor.fetchall():
                found[document].append(NamingLiteral(*row))
    return {document: tuple(literals) for document, literals in found.items()}
