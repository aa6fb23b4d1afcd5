"""What the store of code knows of its rows: symbols, spoken for by a piece of their body."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db.models import F, OuterRef, Subquery

from apps.indexing.models import EmbeddingProfile
from apps.indexing.scope import Scope
from apps.indexing.statements import Fragment, fetch, fragment_of, union
from apps.repos.models import Repository
from apps.repos.models_code import CodeChunk, CodeNode
from apps.retrieval.shelf_values import Candidate, Found, has_vector, scope_of, sources_of, within
from apps.retrieval.values import SourceRef, SymbolRef

_COLUMNS = (
    "c.ref, c.id, n.id, n.file_id, n.repository_id, n.qualified_name, f.path, n.test OR f.test, c.chunk_index, "
    "c.start_line, c.copy_hash, n.side OR f.side, c.section_anchor = n.id::text"
)


class CodeShelf:
    """Symbols of repositories."""

    store = "code"

    def candidates(self, scope: Scope, refs: Sequence[int]) -> Iterable[Candidate]:
        return self.symbols(scope, refs, ())

    def without_text(self, scope: Scope, wanted: Mapping[UUID, int]) -> Iterable[Candidate]:
        return ()

    def symbols(self, scope: Scope, refs: Sequence[int], nodes: Sequence[UUID]) -> Iterable[Candidate]:
        """One row for each chunk of ``refs``, and one for each of ``nodes``: by its first chunk, or by that of the
        symbol that holds it."""
        parts = []
        if refs:
            chunks = CodeChunk.objects.filter(within(scope, self.store, refs))
            inner = fragment_of(chunks.values("ref", "id", "chunk_index", "start_line", "copy_hash", "section_anchor"))
            parts.append(
                Fragment(
                    f"SELECT {_COLUMNS} FROM ({inner.sql}) c JOIN code_nodes n ON n.id = c.section_anchor::uuid "  # noqa: S608
                    "JOIN code_files f ON f.id = n.file_id",
                    inner.params,
                )
            )
        if nodes:
            condition = scope.conditions.get(self.store)
            allowed = fragment_of(CodeChunk.objects.filter(condition).values("file_id")) if condition else None
            parts.append(
                Fragment(
                    f"SELECT {_COLUMNS} FROM code_nodes n JOIN code_files f ON f.id = n.file_id "  # noqa: S608
                    "JOIN LATERAL (SELECT * FROM code_chunks c WHERE c.file_id = n.file_id "
                    "ORDER BY c.section_anchor = n.id::text DESC, "
                    "c.start_line <= n.start_line AND c.end_line >= n.start_line DESC, c.chunk_index "
                    "LIMIT 1) c ON true "
                    "WHERE n.id = ANY(%s::uuid[]) AND n.repository_id = ANY(%s::uuid[])"
                    + (f" AND n.file_id IN ({allowed.sql})" if allowed else ""),
                    (list(nodes), sources_of(scope, self.store), *(allowed.params if allowed else ())),
                )
            )
        labels = {source.id: source.label for source in scope.sources}
        rows = fetch(union(parts)) if parts else []
        for place, (ref, id, node, file, source, name, path, test, index, line, copy, side, own) in enumerate(rows):
            yield Candidate(
                ref=ref if own else -1 - place,
                chunk_id=id,
                store=self.store,
                document_id=file,
                source_id=source,
                source_label=labels[source],
                title=name,
                path=path,
                kind="test" if test else "code",
                chunk_index=index,
                start_line=line,
                heading_path=(),
                copy_hash=bytes(copy) if own and copy is not None else None,
                side=side,
                status="",
                priority=50,
                canonical=False,
                node=node,
            )

    def hydrate(
        self, scope: Scope, rows: Sequence[Candidate], profile: EmbeddingProfile | None
    ) -> Iterable[tuple[int, Found]]:
        state = Repository.objects.with_state().filter(pk=OuterRef("repository_id")).values("is_stale")
        chunks: dict[int, Any] = {
            chunk.pk: chunk
            for chunk in CodeChunk.objects.filter(
                scope_of(scope, self.store), pk__in={row.chunk_id for row in rows}
            ).annotate(has_vector=has_vector(profile))
        }
        nodes: dict[UUID, Any] = {
            node.pk: node
            for node in CodeNode.objects.filter(
                repository_id__in=sources_of(scope, self.store), pk__in={row.node for row in rows}
            )
            .annotate(stale=Subquery(state), language_of=F("repository__language"))
            .select_related("repository")
            .defer("search_keys", "key")
        }
        for row in rows:
            chunk, node = chunks.get(row.chunk_id), nodes.get(row.node) if row.node else None
            if chunk is None or node is None:
                continue
            repository: Repository = node.repository
            signature = node.signature.rstrip()
            yield (
                row.ref,
                Found(
                    layer="code",
                    chunk_id=chunk.pk,
                    document_id=row.document_id,
                    source=SourceRef(Repository.kind, repository.pk, repository.slug, repository.get_absolute_url()),
                    url=node.get_absolute_url(),
                    heading_path=(),
                    anchor="",
                    start_line=chunk.start_line,
                    end_line=chunk.end_line,
                    start_byte=chunk.start_byte,
                    end_byte=chunk.end_byte,
                    text=chunk.source,
                    language=repository.language,
                    version=repository.synced_commit,
                    text_time=None,
                    checked_time=repository.last_checked_at,
                    stale_since=repository.last_checked_at if node.stale else None,
                    has_vector=chunk.has_vector,
                    symbol=SymbolRef(
                        node.pk, node.kind, node.name, node.qualified_name, signature, node.doc.partition("\n")[0]
                    ),
                    told_until=node.start_line + signature.count("\n"),
                ),
            )
