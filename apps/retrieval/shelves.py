"""What each store knows of a candidate and of a winner, in one query each: the only place that knows both rooms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db.models import F, OuterRef, Subquery

from apps.collections.models import Collection, DocumentChunk
from apps.collections.models import Document as CollectionDocument
from apps.indexing.models import SLOT_BITS, EmbeddingProfile
from apps.indexing.scope import Scope
from apps.repos.discovery import Kind, is_side
from apps.repos.models import Repository, RepositoryDocument, RepositoryDocumentChunk
from apps.retrieval.code_shelf import CodeShelf
from apps.retrieval.shelf_values import (
    Candidate,
    Found,
    Shelf,
    found_without_text,
    has_vector,
    refs_of,
    scope_of,
    sources_of,
    within,
)
from apps.retrieval.values import SourceRef

KIND_OF = {
    Kind.REPO_DOC.value: "doc",
    Kind.EXAMPLE.value: "example",
    Kind.TEST.value: "test",
    Kind.CONFIG.value: "config",
    Kind.WORKFLOW.value: "workflow",
}


def _front(frontmatter: Mapping[str, Any]) -> tuple[str, int, bool]:
    """Status, priority, and whether the document is a canonical page."""
    canonical = all(isinstance(frontmatter.get(name), str) and frontmatter[name] for name in ("type", "slug"))
    if not canonical:
        return "", 50, False
    status = frontmatter.get("status")
    priority = frontmatter.get("retrieval_priority", 50)
    in_bounds = isinstance(priority, int) and not isinstance(priority, bool) and 0 <= priority <= 100
    return (status.strip().lower() if isinstance(status, str) else ""), priority if in_bounds else 50, True


class RepositoryShelf:
    """Documents of repositories."""

    store = "repo_docs"

    def candidates(self, scope: Scope, refs: Sequence[int]) -> Iterable[Candidate]:
        rows = RepositoryDocumentChunk.objects.filter(within(scope, self.store, refs)).values_list(
            "ref", "id", "document_id", "repository_id", "document__title", "document__path", "document__kind",
            "chunk_index", "start_line", "heading_path", "copy_hash", "document__frontmatter",
        )  # fmt: skip
        labels = {source.number: source.label for source in scope.sources}
        for ref, id, document, source, title, path, kind, index, line, headings, copy, frontmatter in rows:
            status, priority, canonical = _front(frontmatter)
            yield Candidate(
                ref, id, self.store, document, source, labels.get(ref >> SLOT_BITS, ""), title, path,
                KIND_OF.get(kind, kind), index, line, tuple(headings), bytes(copy) if copy is not None else None,
                is_side(path), status, priority, canonical,
            )  # fmt: skip

    def without_text(self, scope: Scope, wanted: Mapping[UUID, int]) -> Iterable[Candidate]:
        rows = RepositoryDocument.objects.filter(repository_id__in=sources_of(scope, self.store), pk__in=list(wanted))
        labels = {source.id: source.label for source in scope.sources}
        for one in rows.defer("text", "structure"):
            status, priority, canonical = _front(one.frontmatter)
            yield Candidate(
                wanted[one.pk], 0, self.store, one.pk, one.repository_id, labels[one.repository_id], one.title,
                one.path, KIND_OF.get(one.kind, one.kind), 0, 1, (), None, is_side(one.path), status, priority,
                canonical,
            )  # fmt: skip

    def symbols(self, scope: Scope, refs: Sequence[int], nodes: Sequence[UUID]) -> Iterable[Candidate]:
        return ()

    def hydrate(
        self, scope: Scope, rows: Sequence[Candidate], profile: EmbeddingProfile | None
    ) -> Iterable[tuple[int, Found]]:
        state = Repository.objects.with_state().filter(pk=OuterRef("repository_id")).values("is_stale")
        found = (
            RepositoryDocumentChunk.objects.filter(scope_of(scope, self.store), ref__in=refs_of(rows))
            .annotate(stale=Subquery(state), has_vector=has_vector(profile), page_slug=F("document__slug"))
            .annotate(committed=F("document__committed_at"), commit=F("document__commit"))
            .select_related("repository")
        )
        languages = {source.number: source.language for source in scope.sources}
        for chunk in found:
            repository: Repository = chunk.repository
            address = f"{repository.get_absolute_url()}/docs/{chunk.page_slug}"
            yield (
                chunk.ref,
                Found(
                    layer="repo_doc",
                    chunk_id=chunk.pk,
                    document_id=chunk.document_id,
                    source=SourceRef(Repository.kind, repository.pk, repository.slug, repository.get_absolute_url()),
                    url=_place(address, chunk),
                    heading_path=tuple(chunk.heading_path),
                    anchor=chunk.section_anchor,
                    start_line=chunk.start_line,
                    end_line=chunk.end_line,
                    start_byte=chunk.start_byte,
                    end_byte=chunk.end_byte,
                    text=chunk.source,
                    language=languages.get(chunk.number, "english"),
                    version=repository.synced_commit or chunk.commit,
                    text_time=chunk.committed,
                    checked_time=repository.last_checked_at,
                    stale_since=repository.last_checked_at if chunk.stale else None,
                    has_vector=chunk.has_vector,
                ),
            )
        bare = {row.document_id: row.ref for row in rows if row.ref < 0}
        documents = RepositoryDocument.objects.filter(
            repository_id__in=sources_of(scope, self.store), pk__in=list(bare)
        )
        for one in documents.annotate(stale=Subquery(state)).select_related("repository") if bare else ():
            repository = one.repository
            yield (
                bare[one.pk],
                found_without_text(
                    one,
                    layer="repo_doc",
                    source=SourceRef(Repository.kind, repository.pk, repository.slug, repository.get_absolute_url()),
                    url=f"{repository.get_absolute_url()}/docs/{one.slug}",
                    language=repository.language,
                    version=repository.synced_commit or one.commit,
                    text_time=one.committed_at,
                    checked_time=repository.last_checked_at,
                    stale_since=repository.last_checked_at if one.stale else None,
                ),
            )


class CollectionShelf:
    """Documents of collections."""

    store = "md_collections"

    def candidates(self, scope: Scope, refs: Sequence[int]) -> Iterable[Candidate]:
        rows = DocumentChunk.objects.filter(within(scope, self.store, refs)).values_list(
            "ref", "id", "document_id", "collection_id", "document__title", "document__source_key", "chunk_index",
            "start_line", "heading_path", "copy_hash", "document__frontmatter",
        )  # fmt: skip
        labels = {source.number: source.label for source in scope.sources}
        for ref, id, document, source, title, path, index, line, headings, copy, frontmatter in rows:
            status, priority, canonical = _front(frontmatter)
            yield Candidate(
                ref, id, self.store, document, source, labels.get(ref >> SLOT_BITS, ""), title, path, "collection",
                index, line, tuple(headings), bytes(copy) if copy is not None else None, is_side(path), status,
                priority, canonical,
            )  # fmt: skip

    def without_text(self, scope: Scope, wanted: Mapping[UUID, int]) -> Iterable[Candidate]:
        rows = CollectionDocument.objects.filter(collection_id__in=sources_of(scope, self.store), pk__in=list(wanted))
        labels = {source.id: source.label for source in scope.sources}
        for one in rows.defer("text", "parsed"):
            status, priority, canonical = _front(one.frontmatter)
            yield Candidate(
                wanted[one.pk], 0, self.store, one.pk, one.collection_id, labels[one.collection_id], one.title,
                one.source_key, "collection", 0, 1, (), None, is_side(one.source_key), status, priority, canonical,
            )  # fmt: skip

    def symbols(self, scope: Scope, refs: Sequence[int], nodes: Sequence[UUID]) -> Iterable[Candidate]:
        return ()

    def hydrate(
        self, scope: Scope, rows: Sequence[Candidate], profile: EmbeddingProfile | None
    ) -> Iterable[tuple[int, Found]]:
        found = (
            DocumentChunk.objects.filter(scope_of(scope, self.store), ref__in=refs_of(rows))
            .annotate(has_vector=has_vector(profile), changed=F("document__changed_at"))
            .annotate(digest=F("document__content_hash"))
            .select_related("collection")
        )
        languages = {source.number: source.language for source in scope.sources}
        for chunk in found:
            collection: Collection = chunk.collection
            address = f"{collection.get_absolute_url()}/documents/{chunk.document_id}"
            yield (
                chunk.ref,
                Found(
                    layer="collection",
                    chunk_id=chunk.pk,
                    document_id=chunk.document_id,
                    source=SourceRef(Collection.kind, collection.pk, collection.name, collection.get_absolute_url()),
                    url=_place(address, chunk),
                    heading_path=tuple(chunk.heading_path),
                    anchor=chunk.section_anchor,
                    start_line=chunk.start_line,
                    end_line=chunk.end_line,
                    start_byte=chunk.start_byte,
                    end_byte=chunk.end_byte,
                    text=chunk.source,
                    language=languages.get(chunk.number, "english"),
                    version=bytes(chunk.digest).hex()[:12],
                    text_time=chunk.changed,
                    checked_time=None,
                    stale_since=None,
                    has_vector=chunk.has_vector,
                ),
            )
        bare = {row.document_id: row.ref for row in rows if row.ref < 0}
        documents = CollectionDocument.objects.filter(
            collection_id__in=sources_of(scope, self.store), pk__in=list(bare)
        )
        for one in documents.select_related("collection") if bare else ():
            collection = one.collection
            yield (
                bare[one.pk],
                found_without_text(
                    one,
                    layer="collection",
                    source=SourceRef(Collection.kind, collection.pk, collection.name, collection.get_absolute_url()),
                    url=f"{collection.get_absolute_url()}/documents/{one.pk}",
                    language=collection.language,
                    version=bytes(one.content_hash).hex()[:12],
                    text_time=one.changed_at,
                ),
            )


SHELVES: dict[str, Shelf] = {shelf.store: shelf for shelf in (RepositoryShelf(), CollectionShelf(), CodeShelf())}


def add_shelf(shelf: Shelf) -> None:
    SHELVES[shelf.store] = shelf


def _place(address: str, chunk: Any) -> str:
    """The address of the section, or of the lines where there is no heading to go to."""
    if chunk.section_anchor:
        return f"{address}#{chunk.section_anchor}"
    return f"{address}#L{chunk.start_line}-L{chunk.end_line}" if chunk.start_line > 1 else address
