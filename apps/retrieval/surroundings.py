"""Whole documents of a scope, and what stands around them: targets of their links, neighbours in their folder."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection as Some
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Case, F, Func, JSONField, Q, TextField, Value, When
from django.db.models.expressions import RawSQL

from apps.collections.models import Collection, DocumentLink
from apps.collections.models import Document as CollectionDocument
from apps.indexing.scope import Scope
from apps.indexing.stores import get_store
from apps.repos.models import LinkState, Repository, RepositoryDocument, RepositoryDocumentLink
from apps.retrieval.sections import SectionUnit, text_of
from apps.retrieval.shelf_values import Candidate
from apps.retrieval.values import SourceRef

MOST_AROUND = 400
"""Links, and documents of one store, looked at around one set of seeds: a folder of thousands is counted no further."""


_NOT_AROUND = {"repo_docs": ("text", "structure"), "md_collections": ("text", "parsed", "frontmatter")}
"""Columns, by store, of documents that are only named."""


@dataclass(frozen=True, slots=True)
class Document:
    """A document of either room as packs read it. ``text``, ``lines`` and ``structure`` are empty where the document is
    only named."""

    id: UUID
    store: str
    source: SourceRef
    title: str
    path: str
    text: str
    lines: tuple[str, ...]
    structure: Mapping[str, Any]
    version: str
    url: str
    bytes: int
    line_count: int
    changed: Sequence[Sequence[int]] = ()
    """First and last lines of passages that no longer read as the index has them; where the text was read."""

    def is_as_indexed(self, unit: SectionUnit) -> bool:
        return not any(first <= unit.end and unit.start <= last for first, last in self.changed)

    def address(self, anchor: str) -> str:
        return f"{self.url}#{anchor}" if anchor else self.url

    def whole(self) -> SectionUnit:
        return SectionUnit("", (self.title,), 1, max(self.line_count, 1))

    def size(self, unit: SectionUnit) -> int:
        """UTF-8 bytes of a unit; of the whole file when its text was not read."""
        return len(text_of(self.lines, unit).encode()) if self.lines else self.bytes


def documents_of(scope: Scope, rows: Sequence[Candidate]) -> dict[UUID, Document]:
    """The documents of ``rows`` with their texts, from the scope that found them; one statement a store."""
    wanted: dict[str, set[UUID]] = defaultdict(set)
    for row in rows:
        wanted[row.store].add(row.document_id)
    found: dict[UUID, Document] = {}
    for store, readable, shape in (
        ("repo_docs", _repository_documents(scope), _of_repository),
        ("md_collections", _collection_documents(scope), _of_collection),
    ):
        if wanted.get(store):
            for document in readable.filter(pk__in=wanted[store]).annotate(changed=_changed(store)):
                found[document.pk] = shape(document, with_text=True)
    return found


def _changed(store: str) -> RawSQL:
    """Lines of the passages of a document whose bytes are not those of its text; in the statement that reads the text,
    so that both are of one snapshot."""
    chunks = get_store(store)
    documents = chunks.model._meta.get_field(chunks.document_field).related_model._meta.db_table  # type: ignore[union-attr]
    return RawSQL(  # noqa: S611 - names of our own tables
        "SELECT COALESCE(jsonb_agg(jsonb_build_array(c.start_line, c.end_line)), '[]'::jsonb) "  # noqa: S608
        f"FROM (SELECT convert_to({documents}.text, 'UTF8') AS bytes OFFSET 0) t, {chunks.table} c "
        f"WHERE c.{chunks.document_column} = {documents}.id AND convert_to(c.source, 'UTF8') <> "
        "substring(t.bytes FROM c.start_byte + 1 FOR greatest(c.end_byte - c.start_byte, 0))",
        (),
        output_field=JSONField(),
    )


def around(
    scope: Scope, seeds: Sequence[Document], pairs: Sequence[tuple[UUID, UUID]]
) -> tuple[dict[UUID, list[Document]], dict[UUID, list[Document]]]:
    """Of each seed the targets of its links, which ``pairs`` are, and the other documents in its folder; both inside
    the scope. One statement a store."""
    targets = {target for _, target in pairs}
    documents: list[Document] = []
    for store, rows, field, path, shape in (
        ("repo_docs", _repository_documents(scope), "repository", "path", _of_repository),
        ("md_collections", _collection_documents(scope), "collection", "source_key", _of_collection),
    ):
        mine = {(seed.source.id, _folder(seed.path)) for seed in seeds if seed.store == store}
        if not mine:
            continue
        near = Q(pk__in=())
        for source_id, folder in mine:
            near |= Q(**{field: source_id, "folder": folder})
        folder_of = Func(F(path), Value(r"/?[^/]*$"), Value(""), function="regexp_replace", output_field=TextField())
        linked = Case(When(pk__in=targets, then=0), default=1)
        found = rows.annotate(folder=folder_of).filter(near | Q(pk__in=targets)).defer(*_NOT_AROUND[store])
        documents += [shape(row) for row in found.order_by(linked, path, "pk")[: 2 * MOST_AROUND]]
    by_id = {document.id: document for document in documents}
    linked_from: dict[UUID, list[Document]] = defaultdict(list)
    for source, target in pairs:
        if target in by_id and target != source:
            linked_from[source].append(by_id[target])
    in_folder: dict[tuple[UUID, str], list[Document]] = defaultdict(list)
    for document in sorted(documents, key=lambda document: document.path):
        in_folder[_place(document)].append(document)
    beside = {seed.id: [one for one in in_folder.get(_place(seed), ()) if one.id != seed.id] for seed in seeds}
    return linked_from, beside


@dataclass(frozen=True, slots=True)
class LinksOut:
    """Links of some documents: ``pairs`` of (document, target), each once, and the ``files`` of each document that are
    tracked and no documents, by path."""

    pairs: Sequence[tuple[UUID, UUID]]
    files: Mapping[UUID, Sequence[str]]


def links_from(documents: Some[UUID]) -> LinksOut:
    """By one statement. A link stays within its source, so only documents of the stores that these are from are among
    the targets."""
    ids = list(documents)
    models: tuple[Any, ...] = (RepositoryDocumentLink.objects, DocumentLink.objects)
    repository, collection = (
        rows.filter(document__in=ids, target_document__isnull=False)
        .order_by("document_id", "target_document_id")
        .values_list("document_id", "target_document_id", Value(""))
        .distinct()[:MOST_AROUND]
        for rows in models
    )
    files = (
        RepositoryDocumentLink.objects.filter(
            document__in=ids,
            target_document__isnull=True,
            image=False,
            state__in=(LinkState.RESOLVED, LinkState.ASSET),
        )
        .exclude(target_path="")
        .order_by()
        .values_list("document_id", "target_document_id", "target_path")
    )
    pairs: list[tuple[UUID, UUID]] = []
    paths: dict[UUID, list[str]] = defaultdict(list)
    for document, target, path in repository.union(collection, files):
        if target is not None:
            pairs.append((document, target))
        else:
            paths[document].append(path)
    return LinksOut(pairs, {document: sorted(found) for document, found in paths.items()})


def _place(document: Document) -> tuple[UUID, str]:
    return document.source.id, _folder(document.path)


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _source_ids(scope: Scope, store: str) -> list[UUID]:
    name = get_store(store).name
    return [source.id for source in scope.sources if source.store == name]


def _repository_documents(scope: Scope) -> Any:
    rows = RepositoryDocument.objects.filter(repository__in=_source_ids(scope, "repo_docs"))
    return rows.select_related("repository")


def _collection_documents(scope: Scope) -> Any:
    rows: Any = CollectionDocument.objects.live().filter(collection__in=_source_ids(scope, "md_collections"))
    return rows.defer("shelved_chunks", "warnings").select_related("collection")


def _of_repository(row: Any, *, with_text: bool = False) -> Document:
    repository: Repository = row.repository
    text = row.text if with_text else ""
    return Document(
        row.pk,
        "repo_docs",
        SourceRef(Repository.kind, repository.pk, repository.slug, repository.get_absolute_url()),
        row.title,
        row.path,
        text,
        tuple(text.split("\n")) if with_text else (),
        row.structure if with_text else {},
        repository.synced_commit,
        row.get_absolute_url(),
        row.size,
        row.line_count,
        row.changed if with_text else (),
    )


def _of_collection(row: Any, *, with_text: bool = False) -> Document:
    collection: Collection = row.collection
    text = row.text if with_text else ""
    return Document(
        row.pk,
        "md_collections",
        SourceRef(Collection.kind, collection.pk, collection.name, collection.get_absolute_url()),
        row.title,
        row.source_key,
        text,
        tuple(text.split("\n")) if with_text else (),
        row.parsed if with_text else {},
        bytes(row.content_hash).hex(),
        row.get_absolute_url(),
        row.size,
        row.line_count,
        row.changed if with_text else (),
    )
