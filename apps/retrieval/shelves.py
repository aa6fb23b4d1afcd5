"""What each store knows of a candidate and of a winner, in one query each: the only place that knows both rooms."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from django.db.models import BigIntegerField, Exists, F, Func, OuterRef, Q, Subquery

from apps.collections.models import Collection, DocumentChunk
from apps.indexing.models import SLOT_BITS, EmbeddingProfile, Vector
from apps.indexing.scope import Scope, in_numbers
from apps.indexing.stores import get_store
from apps.repos.discovery import Kind, is_side
from apps.repos.models import Repository, RepositoryDocumentChunk
from apps.retrieval.values import Layer, SourceRef

KIND_OF = {
    Kind.REPO_DOC.value: "doc",
    Kind.EXAMPLE.value: "example",
    Kind.TEST.value: "test",
    Kind.CONFIG.value: "config",
    Kind.WORKFLOW.value: "workflow",
}


@dataclass(frozen=True, slots=True)
class Candidate:
    """A row of the fused list before it has won: enough to order, collapse and count it."""

    ref: int
    chunk_id: int
    store: str
    document_id: UUID
    source_id: UUID
    source_label: str
    title: str
    path: str
    kind: str
    chunk_index: int
    start_line: int
    heading_path: tuple[str, ...]
    copy_hash: bytes | None
    side: bool
    status: str
    priority: int
    canonical: bool


@dataclass(frozen=True, slots=True)
class Found:
    """A winner with its text and freshness."""

    layer: Layer
    chunk_id: int
    document_id: UUID
    source: SourceRef
    url: str
    heading_path: tuple[str, ...]
    anchor: str
    start_line: int
    end_line: int
    start_byte: int
    end_byte: int
    text: str
    language: str
    version: str
    text_time: datetime.datetime | None
    checked_time: datetime.datetime | None
    stale_since: datetime.datetime | None
    has_vector: bool


class Shelf(Protocol):
    """How one store shows its rows."""

    store: str

    def candidates(self, scope: Scope, refs: Sequence[int]) -> Iterable[Candidate]: ...

    def hydrate(self, scope: Scope, ids: Sequence[int], profile: EmbeddingProfile | None) -> Iterable[Found]: ...


def _front(frontmatter: Mapping[str, Any]) -> tuple[str, int, bool]:
    """Status, priority, and whether the document is a canonical page."""
    canonical = all(isinstance(frontmatter.get(name), str) and frontmatter[name] for name in ("type", "slug"))
    if not canonical:
        return "", 50, False
    status = frontmatter.get("status")
    priority = frontmatter.get("retrieval_priority", 50)
    in_bounds = isinstance(priority, int) and not isinstance(priority, bool) and 0 <= priority <= 100
    return (status.strip().lower() if isinstance(status, str) else ""), priority if in_bounds else 50, True


def _has_vector(profile: EmbeddingProfile | None) -> Any:
    if profile is None:
        return Exists(Vector.objects.none())
    number = Func(OuterRef("ref"), function="", template="(%(expressions)s >> 32)", output_field=BigIntegerField())
    return Exists(Vector.objects.filter(profile_id=profile.pk, hash=OuterRef("embed_hash"), number=number))


class RepositoryShelf:
    """Documents of repositories."""

    store = "repo_docs"

    def candidates(self, scope: Scope, refs: Sequence[int]) -> Iterable[Candidate]:
        rows = RepositoryDocumentChunk.objects.filter(_within(scope, self.store, refs)).values_list(
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

    def hydrate(self, scope: Scope, ids: Sequence[int], profile: EmbeddingProfile | None) -> Iterable[Found]:
        state = Repository.objects.with_state().filter(pk=OuterRef("repository_id")).values("is_stale")
        rows = (
            RepositoryDocumentChunk.objects.filter(scope_of(scope, self.store), pk__in=ids)
            .annotate(stale=Subquery(state), has_vector=_has_vector(profile), page_slug=F("document__slug"))
            .annotate(committed=F("document__committed_at"), commit=F("document__commit"))
            .select_related("repository")
        )
        languages = {source.number: source.language for source in scope.sources}
        for chunk in rows:
            repository: Repository = chunk.repository
            address = f"{repository.get_absolute_url()}/docs/{chunk.page_slug}"
            yield Found(
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
            )


class CollectionShelf:
    """Documents of collections."""

    store = "md_collections"

    def candidates(self, scope: Scope, refs: Sequence[int]) -> Iterable[Candidate]:
        rows = DocumentChunk.objects.filter(_within(scope, self.store, refs)).values_list(
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

    def hydrate(self, scope: Scope, ids: Sequence[int], profile: EmbeddingProfile | None) -> Iterable[Found]:
        rows = (
            DocumentChunk.objects.filter(scope_of(scope, self.store), pk__in=ids)
            .annotate(has_vector=_has_vector(profile), changed=F("document__changed_at"))
            .annotate(digest=F("document__content_hash"))
            .select_related("collection")
        )
        languages = {source.number: source.language for source in scope.sources}
        for chunk in rows:
            collection: Collection = chunk.collection
            address = f"{collection.get_absolute_url()}/documents/{chunk.document_id}"
            yield Found(
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
            )


SHELVES: Mapping[str, Shelf] = {shelf.store: shelf for shelf in (RepositoryShelf(), CollectionShelf())}


def _place(address: str, chunk: Any) -> str:
    """The address of the section, or of the lines where there is no heading to go to."""
    if chunk.section_anchor:
        return f"{address}#{chunk.section_anchor}"
    return f"{address}#L{chunk.start_line}-L{chunk.end_line}" if chunk.start_line > 1 else address


def scope_of(scope: Scope, store: str) -> Q:
    """SECURITY: winners are read from the scope that found them, so that nothing slips in between."""
    return in_numbers(scope.numbers_of(get_store(store)))


def _within(scope: Scope, store: str, refs: Sequence[int]) -> Q:
    """Chunks of ``refs`` in scope. Filters are asked again, because not every stream knows them."""
    numbers = set(scope.numbers_of(get_store(store)))
    return Q(ref__in=[ref for ref in refs if ref >> SLOT_BITS in numbers]) & scope.conditions.get(store, Q())
