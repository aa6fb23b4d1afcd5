"""What the store of code knows of its rows: symbols, spoken for by a piece of their body."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

import orjson

from apps.indexing.models import EmbeddingProfile
from apps.indexing.scope import Scope
from apps.indexing.statements import Fragment
from apps.retrieval.shelf_values import Candidate, Columns, Found, among, has_vector, sources_of, winner_of
from apps.retrieval.shelves import repository_ref, repository_states
from apps.retrieval.values import SourceRef, SymbolRef

_COLUMNS = (
    "c.ref, c.id, n.file_id, n.qualified_name, f.path, CASE WHEN n.test OR f.test THEN 'test' ELSE 'code' END AS kind, "
    "c.chunk_index, c.start_line, c.copy_hash, n.side OR f.side AS side, n.id AS node, "
    "c.section_anchor = n.id::text AS own, f.language"
)


class CodeShelf:
    """Symbols of repositories."""

    store = "code"
    columns: tuple[str, ...] = (
        "ref", "id", "file_id", "qualified_name", "path", "kind", "chunk_index", "start_line", "copy_hash", "side",
        "node", "own", "language",
    )  # fmt: skip

    def candidates(self, scope: Scope, refs: Sequence[int], nodes: Sequence[UUID]) -> Sequence[Fragment]:
        """One row for each chunk of ``refs``, and one for each of ``nodes``: by its first chunk, or by that of the
        symbol that holds it."""
        parts = []
        if chunks := among(scope, self.store, refs):
            parts.append(
                Fragment(
                    f"SELECT {_COLUMNS} FROM code_chunks c "  # noqa: S608
                    "JOIN code_nodes n ON n.id = c.section_anchor::uuid JOIN code_files f ON f.id = n.file_id "
                    f"WHERE {chunks.sql}",
                    chunks.params,
                )
            )
        if nodes:
            parts.append(
                Fragment(
                    f"SELECT {_COLUMNS} FROM code_nodes n "  # noqa: S608
                    "JOIN code_files f ON f.id = n.file_id "
                    "JOIN LATERAL (SELECT * FROM code_chunks c WHERE c.file_id = n.file_id "
                    "ORDER BY c.section_anchor = n.id::text DESC, "
                    "c.start_line <= n.start_line AND c.end_line >= n.start_line DESC, c.chunk_index "
                    "LIMIT 1) c ON true "
                    "WHERE n.id = ANY(%s::uuid[]) AND n.repository_id = ANY(%s::uuid[])",
                    (list(nodes), sources_of(scope, self.store)),
                )
            )
        return parts

    def candidates_of(self, columns: Sequence[Sequence[Any]], sources: Sequence[str], labels: Sequence[str]) -> Columns:
        """A row whose chunk is that of a symbol around it has no chunk of its own: its ref is told by its symbol."""
        refs, ids, files, names, paths, kinds, places, lines, copies, sides, nodes, owns, languages = columns
        count = len(refs)
        if not all(owns):
            refs = [
                ref if own else -1 - (UUID(node).int >> 66) for ref, node, own in zip(refs, nodes, owns, strict=True)
            ]
            copies = [copy if own else None for copy, own in zip(copies, owns, strict=True)]
        return (
            refs, ids, [self.store] * count, files, sources, labels, names, paths, kinds, places, lines, [()] * count,
            copies, sides, [""] * count, [50] * count, [False] * count, nodes, languages, [None] * count,
        )  # fmt: skip

    def without_text(self, scope: Scope, wanted: Mapping[UUID, int]) -> Iterable[Candidate]:
        return ()

    def winners(
        self, place: int, scope: Scope, rows: Sequence[Candidate], profile: EmbeddingProfile | None
    ) -> Sequence[Fragment]:
        states, vector = repository_states(), has_vector(profile)
        wanted = [(row.ref, row.chunk_id, row.node) for row in rows if row.node is not None]
        if not wanted:
            return ()
        return (
            Fragment(
                f"SELECT {place}, '{self.store}', w.ref, c.id, n.file_id, ARRAY[]::text[], '', c.start_line, "  # noqa: S608
                "c.end_line, c.start_byte, c.end_byte, c.source, '', r.id, r.slug, r.synced_commit, "
                f"f.committed_at, r.last_checked_at, r.is_stale, {vector.sql}, "
                "json_build_array(n.id, n.kind, n.name, n.qualified_name, n.signature, n.doc, n.start_line)::text "
                "FROM unnest(%s::bigint[], %s::bigint[], %s::uuid[]) AS w(ref, chunk, node) "
                f"JOIN code_chunks c ON c.id = w.chunk JOIN code_nodes n ON n.id = w.node "
                "JOIN code_files f ON f.id = n.file_id "
                f"JOIN ({states.sql}) r ON r.id = n.repository_id "
                "WHERE n.repository_id = ANY(%s::uuid[]) AND c.repository_id = ANY(%s::uuid[])",
                (*vector.params, *map(list, zip(*wanted, strict=True)), *states.params)
                + (sources_of(scope, self.store),) * 2,
            ),
        )

    def source(self, row: Sequence[Any]) -> SourceRef:
        return repository_ref(row[13], row[14])

    def winner(self, row: Sequence[Any], source: SourceRef, language: str) -> Found:
        node, kind, name, qualified_name, signature, doc, line = orjson.loads(row[-1])
        signature = signature.rstrip()
        return winner_of(
            row,
            layer="code",
            source=source,
            url=f"{source.url}/code/{node}",
            language=language,
            symbol=SymbolRef(UUID(node), kind, name, qualified_name, signature, doc.partition("\n")[0]),
            told_until=line + signature.count("\n"),
        )

    def bare(self, scope: Scope, rows: Sequence[Candidate]) -> Iterable[tuple[int, Found]]:
        return ()
