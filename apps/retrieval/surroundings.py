"""Whole documents of a scope, and what stands around them: targets of their links, neighbours in their folder."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection as Some
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import JSONField
from django.db.models.expressions import RawSQL

from apps.collections.models import Collection
from apps.collections.models import Document as CollectionDocument
from apps.indexing.scope import Scope
from apps.indexing.statements import Fragment, fetch, numbers_text, union
from apps.indexing.stores import get_store
from apps.repos.models import LinkState, Repository, RepositoryDocument
from apps.retrieval.sections import SectionUnit, text_of
from apps.retrieval.shelf_values import Candidate, sources_of
from apps.retrieval.shelves import CollectionShelf, RepositoryShelf, collection_ref, repository_ref
from apps.retrieval.values import SourceRef

MOST_LINKS = 400
"""Links of one store that are followed from one set of seeds."""


@dataclass(frozen=True, slots=True)
class Document:
    """A document of either room as packs read it. ``text``, ``lines``, ``structure`` and ``version`` are empty where
    the document is only named."""

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
                found[document.pk] = shape(document)
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


class Near(NamedTuple):
    """Documents around a seed; of ``others`` there are so many more, that nobody looked at."""

    documents: Sequence[Document]
    others: int = 0


def around(
    scope: Scope, seeds: Sequence[Document], pairs: Sequence[tuple[UUID, UUID]], told: Some[str], most: int
) -> tuple[dict[UUID, Near], dict[UUID, Near]]:
    """Of each seed the targets of its links, which ``pairs`` are, and the other documents in its folder, by path; both
    inside the scope, by one statement. Of a folder those whose id, as text, is in ``told`` and the first ``most``
    others: the rest is only counted, since folders hold thousands.
    """
    linked = [target for _, target in pairs]
    ids = {*told, *map(str, linked), *(str(seed.id) for seed in seeds)}
    parts = [
        _named(scope, store, [seed for seed in seeds if seed.store == store], linked, ids, most)
        for store in sorted({seed.store for seed in seeds})
    ]
    labels = {source.id: source.label for source in scope.sources}
    targets: dict[UUID, Document] = {}
    folders: dict[tuple[UUID, str], tuple[list[Document], int]] = {}
    for store, place, total, id_, source_id, slug, title, path, size, lines in fetch(union(parts)) if parts else ():
        shelf = _SHELVES[store]
        source = shelf.ref(source_id, labels[source_id])
        url = shelf.address(source, slug)
        document = Document(id_, store, source, title, path, "", (), {}, "", url, size, lines)
        if place:
            folders.setdefault(_place(document), ([], total))[0].append(document)
        else:
            targets[id_] = document
    linked_from: dict[UUID, list[Document]] = defaultdict(list)
    for source_of, target in pairs:
        if target in targets and target != source_of:
            linked_from[source_of].append(targets[target])
    beside: dict[UUID, Near] = {}
    for seed in seeds:
        found, total = folders.get(_place(seed), ((), 0))
        near = sorted((one for one in found if one.id != seed.id), key=lambda one: one.path)
        beside[seed.id] = Near(near, max(total - len(found), 0))
    return {seed: Near(documents) for seed, documents in linked_from.items()}, beside


_COLUMNS = {
    "repo_docs": ("repo_documents", "repository_id", "path", "d.slug::text", ""),
    "md_collections": ("md_documents", "collection_id", "source_key", "d.id::text", " AND d.trashed_at IS NULL"),
}
"""Of each store: table of documents, columns of source and path, what addresses a document, and which are live."""
_SHELVES = {shelf.store: shelf for shelf in (RepositoryShelf(), CollectionShelf())}
_LAST = chr(0x10FFFF)


def _named(
    scope: Scope, store: str, seeds: Sequence[Document], targets: Sequence[UUID], told: Some[str], most: int
) -> Fragment:
    """Documents of one store as they are named: those beside ``seeds`` with the place and size of their folder, and
    ``targets`` with place 0. In the C collation "a0" follows on all that begins with "a/"."""
    table, source, path, slug, live = _COLUMNS[store]
    folders = sorted({_place(seed) for seed in seeds})
    begins = [f"{folder}/" if folder else "" for _, folder in folders]
    ends = [f"{folder}0" if folder else _LAST for _, folder in folders]
    return Fragment(
        "WITH near AS MATERIALIZED (SELECT id, place, told, count(*) OVER (PARTITION BY place) AS total, "  # noqa: S608
        "row_number() OVER (PARTITION BY place, told ORDER BY path, id) AS rank "
        f'FROM (SELECT d.id, f.place, d.id = ANY(%s::uuid[]) AS told, d.{path} COLLATE "C" AS path '
        "FROM unnest(%s::uuid[], %s::text[], %s::text[]) WITH ORDINALITY f(source, begin, behind, place) "
        f'JOIN {table} d ON d.{source} = f.source AND d.{path} >= f.begin COLLATE "C" '
        f"AND d.{path} < f.behind COLLATE \"C\" AND strpos(substr(d.{path}, length(f.begin) + 1), '/') = 0{live}) p) "
        f"SELECT '{store}', n.place, n.total, d.id, d.{source}, {slug}, d.title, d.{path}, d.size::bigint, "
        "d.line_count "
        "FROM (SELECT id, place, total FROM near WHERE told OR rank <= %s UNION ALL "
        f"SELECT d.id, 0, 0 FROM {table} d WHERE d.id = ANY(%s::uuid[]) AND d.{source} = ANY(%s::uuid[]){live}) n "
        f"JOIN {table} d ON d.id = n.id",
        (
            numbers_text(told),
            [id_ for id_, _ in folders],
            begins,
            ends,
            most,
            numbers_text(map(str, targets)),
            sources_of(scope, store),
        ),
    )


@dataclass(frozen=True, slots=True)
class LinksOut:
    """Links of some documents: ``pairs`` of (document, target), each once, and the ``files`` of each document that are
    tracked and no documents, by path."""

    pairs: Sequence[tuple[UUID, UUID]]
    files: Mapping[UUID, Sequence[str]]


def links_from(documents: Some[UUID]) -> LinksOut:
    """By one statement. A link stays within its source, so only documents of the stores that these are from are among
    the targets."""
    ids = (numbers_text(map(str, documents)),)
    found = [
        Fragment(
            f"SELECT DISTINCT document_id, target_document_id, '' FROM {table} "  # noqa: S608
            "WHERE document_id = ANY(%s::uuid[]) AND target_document_id IS NOT NULL "
            f"ORDER BY document_id, target_document_id LIMIT {MOST_LINKS}",
            ids,
        )
        for table in ("repo_document_links", "md_links")
    ]
    files = Fragment(
        "SELECT DISTINCT document_id, NULL::uuid, target_path FROM repo_document_links "
        "WHERE document_id = ANY(%s::uuid[]) AND target_document_id IS NULL AND NOT image AND state = ANY(%s::text[]) "
        "AND target_path <> ''",
        (*ids, [LinkState.RESOLVED.value, LinkState.ASSET.value]),
    )
    pairs: list[tuple[UUID, UUID]] = []
    paths: dict[UUID, list[str]] = defaultdict(list)
    for document, target, path in fetch(union([*found, files])):
        if target is not None:
            pairs.append((document, target))
        else:
            paths[document].append(path)
    return LinksOut(pairs, {document: sorted(found) for document, found in paths.items()})


def _place(document: Document) -> tuple[UUID, str]:
    return document.source.id, _folder(document.path)


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _repository_documents(scope: Scope) -> Any:
    rows = RepositoryDocument.objects.filter(repository__in=sources_of(scope, "repo_docs"))
    return rows.select_related("repository")


def _collection_documents(scope: Scope) -> Any:
    rows: Any = CollectionDocument.objects.live().filter(collection__in=sources_of(scope, "md_collections"))
    return rows.defer("shelved_chunks", "warnings").select_related("collection")


def _of_repository(row: Any) -> Document:
    repository: Repository = row.repository
    return Document(
        row.pk,
        "repo_docs",
        repository_ref(repository.pk, repository.slug),
        row.title,
        row.path,
        row.text,
        tuple(row.text.split("\n")),
        row.structure,
        repository.synced_commit,
        row.get_absolute_url(),
        row.size,
        row.line_count,
        row.changed,
    )


def _of_collection(row: Any) -> Document:
    collection: Collection = row.collection
    return Document(
        row.pk,
        "md_collections",
        collection_ref(collection.pk, collection.name),
        row.title,
        row.source_key,
        row.text,
        tuple(row.text.split("\n")),
        row.parsed,
        bytes(row.content_hash).hex(),
        row.get_absolute_url(),
        row.size,
        row.line_count,
        row.changed,
    )
