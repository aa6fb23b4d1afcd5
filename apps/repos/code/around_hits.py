"""What stands around the hits of one search, as one SELECT that rides along with another statement: passages that name
a symbol, symbols that a passage names, literals in code that name a document (``retrieval.md`` 8.2).

All of one repository, so who sees the hit sees what is around it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

import orjson

from apps.indexing.statements import Fragment, numbers_text, union
from apps.repos.code.related import (
    CHUNKS,
    MOST_RELATED,
    SYMBOLS,
    NamingLiteral,
    RelatedChunk,
    RelatedSymbol,
    chunk_of,
    symbol_of,
)

MOST_SYMBOLS = 5
MOST_LITERALS = 5
_LITERALS = """
SELECT * FROM (
    SELECT l.target_document_id, l.node_id, n.qualified_name, f.path, l.line, l."column", l.written, l.anchor, l.state,
        row_number() OVER (PARTITION BY l.target_document_id ORDER BY f.path COLLATE "C", l.line, l."column") AS place
    FROM code_document_links l JOIN code_nodes n ON n.id = l.node_id JOIN code_files f ON f.id = l.file_id
    WHERE l.target_document_id = ANY(%s::uuid[])
) ranked WHERE place <= %s
"""


@dataclass(frozen=True, slots=True)
class Around:
    passages: Mapping[UUID, tuple[RelatedChunk, ...]] = field(default_factory=dict)
    """By symbol."""
    symbols: Mapping[int, tuple[RelatedSymbol, ...]] = field(default_factory=dict)
    """By chunk."""
    literals: Mapping[UUID, tuple[NamingLiteral, ...]] = field(default_factory=dict)
    """By document."""


def statement(
    *,
    nodes: Collection[UUID],
    chunks: Collection[int],
    documents: Collection[UUID],
    passages: int,
    symbols: int = MOST_SYMBOLS,
    literals: int = MOST_LITERALS,
) -> Fragment | None:
    """A SELECT of kind, key and data, texts all; None where nothing is asked. ``passages``: the most of a symbol;
    ``symbols`` of a chunk; ``literals`` of a document."""
    parts = []
    if nodes and passages > 0:
        parts.append(_packed("passages", "node_id", CHUNKS, (list(nodes), min(passages, MOST_RELATED))))
    if chunks:
        asked = SYMBOLS.format(key="m.chunk_id", type="bigint")
        parts.append(_packed("symbols", "key", asked, (numbers_text(chunks), symbols)))
    if documents:
        parts.append(_packed("literals", "target_document_id", _LITERALS, (list(documents), literals)))
    return union(parts) if parts else None


def _packed(kind: str, key: str, sql: str, params: tuple[object, ...]) -> Fragment:
    columns = f"SELECT '{kind}'::text AS kind, q.{key}::text AS key, row_to_json(q)::text AS data"
    return Fragment(f"{columns} FROM ({sql}) q", params)


def read(rows: Iterable[tuple[str, str, str]]) -> Around:
    """The rows of ``statement``."""
    found: dict[str, dict[str, list[tuple[int, list[object]]]]] = {
        kind: defaultdict(list) for kind in ("passages", "symbols", "literals")
    }
    for kind, key, data in rows:
        *values, place = orjson.loads(data).values()
        found[kind][key].append((place, values))
    in_order = {
        kind: {key: [values for _, values in sorted(rows, key=lambda row: row[0])] for key, rows in by_key.items()}
        for kind, by_key in found.items()
    }
    return Around(
        {UUID(key): tuple(chunk_of(row) for row in rows) for key, rows in in_order["passages"].items()},
        {int(key): tuple(symbol_of(row) for row in rows) for key, rows in in_order["symbols"].items()},
        {
            UUID(key): tuple(NamingLiteral(UUID(str(node)), *rest) for _, node, *rest in rows)  # type: ignore[arg-type]
            for key, rows in in_order["literals"].items()
        },
    )
