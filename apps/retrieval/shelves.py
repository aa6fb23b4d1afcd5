"""What each store of documents knows of a candidate and of a winner: the only place that knows both rooms."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db.models import OuterRef, Q, Subquery
from django.utils import timezone

from apps.collections.models import Collection
from apps.collections.models import Document as CollectionDocument
from apps.indexing.models import EmbeddingProfile
from apps.indexing.scope import Scope
from apps.indexing.statements import Fragment, fragment_of
from apps.indexing.stores import get_store
from apps.repos.discovery import Kind, is_side
from apps.repos.models import Repository, RepositoryDocument
from apps.retrieval.filters import of_documents
from apps.retrieval.shelf_values import (
    Candidate,
    Columns,
    Found,
    Marks,
    among,
    found_without_text,
    has_vector,
    place_in,
    sources_of,
    winner_of,
)
from apps.retrieval.values import Layer, SourceRef

KIND_OF = {
    Kind.REPO_DOC.value: "doc",
    Kind.EXAMPLE.value: "example",
    Kind.TEST.value: "test",
    Kind.CONFIG.value: "config",
    Kind.WORKFLOW.value: "workflow",
}


_PLAIN = ("", 50, False)


def _front(frontmatter: Mapping[str, Any]) -> tuple[str, int, bool]:
    """Status, priority, and whether the document is a canonical page."""
    canonical = all(isinstance(frontmatter.get(name), str) and frontmatter[name] for name in ("type", "slug"))
    if not canonical:
        return _PLAIN
    status = frontmatter.get("status")
    priority = frontmatter.get("retrieval_priority", 50)
    in_bounds = isinstance(priority, int) and not isinstance(priority, bool) and 0 <= priority <= 100
    return (status.strip().lower() if isinstance(status, str) else ""), priority if in_bounds else 50, True


def _marks(type: Any, status: Any, tags: Any) -> Marks:
    held = tags if isinstance(tags, list) else [tags]
    return Marks(
        type if isinstance(type, str) else "",
        status if isinstance(status, str) else "",
        tuple(dict.fromkeys(tag for tag in held if isinstance(tag, str) and tag)),
    )


_MARKS = ("type", "status", "tags")


def _marks_of(frontmatter: Mapping[str, Any]) -> Marks:
    return _marks(*map(frontmatter.get, _MARKS))


class _DocumentShelf:
    """What the stores of documents have in common."""

    store: str
    layer: Layer
    chunks: str
    """The table of chunks with that of documents, ``c`` and ``d``."""
    told: str
    """Path and kind of a document, under these names."""

    columns: tuple[str, ...] = (
        "ref", "id", "document_id", "title", "path", "kind", "chunk_index", "start_line", "heading_path", "copy_hash",
        "front", "marks",
    )  # fmt: skip

    def candidates(self, scope: Scope, refs: Sequence[int], nodes: Sequence[UUID]) -> Sequence[Fragment]:
        condition = among(scope, self.store, refs)
        if condition is None:
            return ()
        return (
            Fragment(
                f"SELECT c.ref, c.id, c.document_id, d.title, {self.told}, "  # noqa: S608
                "c.chunk_index, c.start_line, c.heading_path, c.copy_hash, "
                "CASE WHEN d.frontmatter ?& ARRAY['type', 'slug'] THEN d.frontmatter END AS front, "
                "CASE WHEN d.frontmatter ?| ARRAY['type', 'status', 'tags'] THEN json_build_array("
                "d.frontmatter->'type', d.frontmatter->'status', d.frontmatter->'tags') END AS marks "
                f"FROM {self.chunks} WHERE {condition.sql}",
                condition.params,
            ),
        )

    def candidates_of(self, columns: Sequence[Sequence[Any]], sources: Sequence[str], labels: Sequence[str]) -> Columns:
        refs, ids, documents, titles, paths, kinds, places, lines, headings, copies, fronts, marks = columns
        count = len(refs)
        told: Iterable[Sequence[Any]] = ([plain] * count for plain in _PLAIN)
        if any(fronts):
            told = zip(*[_front(front) if front else _PLAIN for front in fronts], strict=True)
        return (
            refs, ids, [self.store] * count, documents, sources, labels, titles, paths,
            list(map(KIND_OF.get, kinds, kinds)), places, lines, headings, copies, list(map(is_side, paths)),
            *told, self.symbols_of(documents), [""] * count, [_marks(*one) if one else None for one in marks],
        )  # fmt: skip

    def condition(self, scope: Scope) -> Q:
        """What filters ask of documents that have no chunk to be asked."""
        return of_documents(scope.conditions.get(self.store, Q()), get_store(self.store))

    def symbols_of(self, documents: Sequence[str]) -> Sequence[str | None]:
        return [None] * len(documents)

    def winner(self, row: Sequence[Any], source: SourceRef, language: str) -> Found:
        _, _, _, _, _, _, anchor, first, last, _, _, _, slug, *_ = row
        url = place_in(self.address(source, slug), anchor, first, last)
        return winner_of(row, layer=self.layer, source=source, url=url, language=language, anchor=anchor)

    def ref(self, id: UUID, label: str) -> SourceRef:
        raise NotImplementedError

    def source(self, row: Sequence[Any]) -> SourceRef:
        return self.ref(row[13], row[14])

    def address(self, source: SourceRef, slug: str) -> str:
        raise NotImplementedError


class RepositoryShelf(_DocumentShelf):
    """Documents of repositories."""

    store = "repo_docs"
    layer = "repo_doc"
    chunks = "repo_document_chunks c JOIN repo_documents d ON d.id = c.document_id"
    told = "d.path, d.kind"

    def without_text(self, scope: Scope, wanted: Mapping[UUID, int]) -> Iterable[Candidate]:
        rows = RepositoryDocument.objects.filter(repository_id__in=sources_of(scope, self.store), pk__in=list(wanted))
        rows = rows.filter(self.condition(scope))
        labels = {source.id: source.label for source in scope.sources}
        for one in rows.defer("text", "structure"):
            status, priority, canonical = _front(one.frontmatter)
            yield Candidate(
                wanted[one.pk], 0, self.store, str(one.pk), str(one.repository_id), labels[one.repository_id],
                one.title, one.path, KIND_OF.get(one.kind, one.kind), 0, 1, (), None, is_side(one.path), status,
                priority, canonical, marks=_marks_of(one.frontmatter),
            )  # fmt: skip

    def winners(
        self, place: int, scope: Scope, rows: Sequence[Candidate], profile: EmbeddingProfile | None
    ) -> Sequence[Fragment]:
        condition = among(scope, self.store, [row.ref for row in rows if row.ref >= 0])
        if condition is None:
            return ()
        states, vector = repository_states(), has_vector(profile)
        return (
            Fragment(
                f"SELECT {place}, '{self.store}', c.ref, c.id, c.document_id, c.heading_path, c.section_anchor, "  # noqa: S608
                "c.start_line, c.end_line, c.start_byte, c.end_byte, c.source, d.slug, r.id, r.slug, "
                "COALESCE(NULLIF(r.synced_commit, ''), d.commit), d.committed_at, r.last_checked_at, r.is_stale, "
                f"{vector.sql}, NULL::text FROM {self.chunks} JOIN ({states.sql}) r ON r.id = c.repository_id "
                f"WHERE {condition.sql}",
                (*vector.params, *states.params, *condition.params),
            ),
        )

    def ref(self, id: UUID, label: str) -> SourceRef:
        return repository_ref(id, label)

    def address(self, source: SourceRef, slug: str) -> str:
        return f"{source.url}/docs/{slug}"

    def bare(self, scope: Scope, rows: Sequence[Candidate]) -> Iterable[tuple[int, Found]]:
        refs = {row.document_id: row.ref for row in rows if row.ref < 0}
        state = Repository.objects.with_state().filter(pk=OuterRef("repository_id")).values("is_stale")
        documents = RepositoryDocument.objects.filter(
            repository_id__in=sources_of(scope, self.store), pk__in=list(refs)
        )
        for one in documents.annotate(stale=Subquery(state)).select_related("repository") if refs else ():
            repository = one.repository
            source = repository_ref(repository.pk, repository.slug)
            yield (
                refs[one.pk],
                found_without_text(
                    one,
                    layer=self.layer,
                    source=source,
                    url=self.address(source, one.slug),
                    language=repository.language,
                    version=repository.synced_commit or one.commit,
                    text_time=one.committed_at,
                    checked_time=repository.last_checked_at,
                    stale_since=repository.last_checked_at if one.stale else None,
                ),
            )


class CollectionShelf(_DocumentShelf):
    """Documents of collections."""

    store = "md_collections"
    layer = "collection"
    chunks = "md_chunks c JOIN md_documents d ON d.id = c.document_id"
    told = "d.source_key AS path, 'collection' AS kind"

    def without_text(self, scope: Scope, wanted: Mapping[UUID, int]) -> Iterable[Candidate]:
        rows = CollectionDocument.objects.filter(collection_id__in=sources_of(scope, self.store), pk__in=list(wanted))
        rows = rows.filter(self.condition(scope))
        labels = {source.id: source.label for source in scope.sources}
        for one in rows.defer("text", "parsed"):
            status, priority, canonical = _front(one.frontmatter)
            yield Candidate(
                wanted[one.pk], 0, self.store, str(one.pk), str(one.collection_id), labels[one.collection_id],
                one.title, one.source_key, "collection", 0, 1, (), None, is_side(one.source_key), status, priority,
                canonical, marks=_marks_of(one.frontmatter),
            )  # fmt: skip

    def winners(
        self, place: int, scope: Scope, rows: Sequence[Candidate], profile: EmbeddingProfile | None
    ) -> Sequence[Fragment]:
        condition = among(scope, self.store, [row.ref for row in rows if row.ref >= 0])
        if condition is None:
            return ()
        vector = has_vector(profile)
        return (
            Fragment(
                f"SELECT {place}, '{self.store}', c.ref, c.id, c.document_id, c.heading_path, c.section_anchor, "  # noqa: S608
                "c.start_line, c.end_line, c.start_byte, c.end_byte, c.source, d.id::text, m.id, m.name, "
                "left(encode(d.content_hash, 'hex'), 12), d.changed_at, NULL::timestamptz, false, "
                f"{vector.sql}, NULL::text FROM {self.chunks} JOIN md_collections m ON m.id = c.collection_id "
                f"WHERE {condition.sql}",
                (*vector.params, *condition.params),
            ),
        )

    def ref(self, id: UUID, label: str) -> SourceRef:
        return collection_ref(id, label)

    def address(self, source: SourceRef, slug: str) -> str:
        return f"{source.url}/documents/{slug}"

    def bare(self, scope: Scope, rows: Sequence[Candidate]) -> Iterable[tuple[int, Found]]:
        refs = {row.document_id: row.ref for row in rows if row.ref < 0}
        documents = CollectionDocument.objects.filter(
            collection_id__in=sources_of(scope, self.store), pk__in=list(refs)
        )
        for one in documents.select_related("collection") if refs else ():
            collection = one.collection
            source = collection_ref(collection.pk, collection.name)
            yield (
                refs[one.pk],
                found_without_text(
                    one,
                    layer=self.layer,
                    source=source,
                    url=self.address(source, str(one.pk)),
                    language=collection.language,
                    version=bytes(one.content_hash).hex()[:12],
                    text_time=one.changed_at,
                ),
            )


def repository_ref(id: UUID, slug: str) -> SourceRef:
    return SourceRef(Repository.kind, id, slug, _repository_address(slug))


def collection_ref(id: UUID, name: str) -> SourceRef:
    return SourceRef(Collection.kind, id, name, _collection_address(id))


@functools.lru_cache(maxsize=5_000)
def _collection_address(id: UUID) -> str:
    return Collection(pk=id).get_absolute_url()


@functools.lru_cache(maxsize=5_000)
def _repository_address(slug: str) -> str:
    return Repository(slug=slug).get_absolute_url()


_SOME_DAY = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)


def repository_states() -> Fragment:
    """Repositories with what a row tells of theirs, and whether they are stale now; compiled once."""
    states = _states()
    now = timezone.now()
    return Fragment(
        states.sql,
        tuple(now + (value - _SOME_DAY) if isinstance(value, datetime.datetime) else value for value in states.params),
    )


@functools.cache
def _states() -> Fragment:
    rows = Repository.objects.with_state(_SOME_DAY)
    return fragment_of(rows.values("id", "slug", "synced_commit", "last_checked_at", "is_stale"))
