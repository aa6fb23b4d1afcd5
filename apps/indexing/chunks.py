"""Storing and removing the chunks of documents: bulk, inside the caller's transaction, unchanged chunks untouched."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import UUID

import orjson
from django.db import connection, transaction
from django.utils import timezone

from apps.indexing import composition, copying, name_rows, postings, tombstones
from apps.indexing.bulk import collector_paused
from apps.indexing.entries import lock_entries, lock_entry, save_entries
from apps.indexing.models import NAMES_SUFFIX, SLOT_BITS, IndexedDocument, IndexedSource, new_chunk_ids
from apps.indexing.statements import Fragment, beginning_with, fetch, numbers_text

if TYPE_CHECKING:
    from apps.indexing.stores import ChunkStore
    from apps.markup.values import Chunk as CutChunk


@dataclass(frozen=True, slots=True)
class DocumentText:
    """A document as cut: all its chunks, in order. ``side`` marks fixtures and vendored text (``retrieval.md`` 6.7)."""

    document_id: UUID
    title: str
    path: str
    chunks: Sequence[CutChunk]
    language: str = "english"
    side: bool = False
    profile: str = ""
    aliases: tuple[str, ...] = ()
    """Other names of the document, from its front matter."""


@dataclass(frozen=True, slots=True)
class ChunkChanges:
    """Ids of the chunks of one document: as they were, new, gone."""

    document_id: UUID
    kept: tuple[int, ...]
    added: tuple[int, ...]
    removed: tuple[int, ...]


@dataclass(slots=True)
class _Old:
    id: int
    ref: int
    document_id: UUID
    content_hash: bytes
    index_hash: bytes
    place: tuple[Any, ...]


@dataclass(slots=True)
class _Work:
    """What one call will write."""

    rows: list[tuple[Any, ...]] = field(default_factory=list)
    moved: list[tuple[Any, ...]] = field(default_factory=list)
    entered: list[postings.Piece] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    """Refs whose postings go while their rows stay."""
    gone: list[int] = field(default_factory=list)
    """Ids of rows to delete, with their postings."""
    tells: bool = True
    """Whether the documents stay, so that addresses of chunks that are gone lead on."""
    ids_left: list[int] = field(default_factory=list)
    """Random ids not yet given to a chunk."""
    ids: list[list[tuple[int, int]]] = field(default_factory=list)
    """Id and ref of each document's chunks, in the order of the text."""


_PLACE = ("chunk_index", "heading_level", "section_anchor", "start_line", "end_line", "start_byte", "end_byte")
_PLACE_ALL = (*_PLACE, "part", "parts", "flags", "profile")


def lock_source(store: ChunkStore, source_id: UUID) -> IndexedSource:
    """The index entry of a source, made at first use and locked until the transaction ends: one writer at a time."""
    return lock_entry(store.name, store.source_kind, source_id)


def store_documents(store: ChunkStore, *, source_id: UUID, documents: Sequence[DocumentText]) -> list[ChunkChanges]:
    """Makes the chunks of ``documents`` those given, with postings and statistics.

    Chunks with equal text and heading path keep their row and id. Runs in the caller's transaction, or in its own.
    The number of statements does not depend on the number of documents.
    """
    if not documents:
        return []
    # Whoever is inside a transaction gives up all of it when this fails: a savepoint of ours would help nobody.
    with transaction.atomic(savepoint=False), collector_paused():
        language = documents[0].language
        names = [store.name + NAMES_SUFFIX] if store.block == "docs" else []
        entry, *named = lock_entries((store.name, *names), store.source_kind, source_id, language=language)
        if entry.chunks == 0:
            entry.language, entry.analyzer_version = language, postings.ANALYZER_VERSION
        elif entry.language != language or entry.analyzer_version != postings.ANALYZER_VERSION:
            reindex(store, entry, language=language)
            entry, *named = lock_entries((store.name, *names), store.source_kind, source_id)
        ids = [document.document_id for document in documents]
        old, known = _old_chunks(store, ids), _known_documents(entry, named, ids)
        work = _Work(ids_left=new_chunk_ids(sum(len(document.chunks) for document in documents)))
        changes = [
            _compare(store, source_id, entry, document, old[document.document_id], work) for document in documents
        ]
        _write(store, entry, work, known.described)
        copying.replace_indexed_documents(
            entry.number,
            [
                document
                for document in documents
                if known.described.get(document.document_id) != (document.title, document.path, document.side)
            ],
        )
        named = [one for one in named if name_rows.store_names(one, known.named, documents, work.ids)]
        save_entries([entry, *named])
        return changes


def remove_documents(store: ChunkStore, *, source_id: UUID, document_ids: Iterable[UUID]) -> int:
    """Deletes the chunks of the documents with their postings and statistics. Gives how many chunks went.

    Vectors stay for a while, so that what comes back is not embedded again; without a chunk no search finds them.
    """
    ids = list(document_ids)
    if not ids:
        return 0
    with transaction.atomic():
        entry = lock_source(store, source_id)
        if entry.chunks and entry.analyzer_version != postings.ANALYZER_VERSION:
            reindex(store, entry, language=entry.language)
        work = _Work(tells=False)
        for rows in _old_chunks(store, ids).values():
            work.gone.extend(row.id for row in rows)
        _write(store, entry, work, _known_documents(entry, (), ids).described)
        save_entries([entry])
        IndexedDocument.objects.filter(number=entry.number, document_id__in=ids).delete()
        tombstones.forget(source_id, ids)
        name_rows.remove_names(store, source_id, ids)
        return len(work.gone)


def change_language(store: ChunkStore, *, source_id: UUID, language: str) -> None:
    """Index a source anew when what is stored of it was analysed in another language. In the caller's transaction."""
    entry = lock_source(store, source_id)
    if entry.chunks and entry.language != language:
        reindex(store, entry, language=language)


def reindex(store: ChunkStore, entry: IndexedSource, *, language: str) -> None:
    """Makes all postings of a locked source anew: chunks and names."""
    postings.rebuild(store, entry, language=language)
    if store.block == "docs":
        name_rows.rebuild_names(store, entry.source_id, language)


def remove_source(store: ChunkStore, *, source_id: UUID) -> None:
    """Forgets all that the index knows of a source. Its chunks must be deleted by their own room, before or after."""
    stores = (store.name, store.name + NAMES_SUFFIX)
    with transaction.atomic(), connection.cursor() as cursor:
        for entry in IndexedSource.objects.select_for_update().filter(store__in=stores, source_id=source_id):
            for table in (
                "indexing_posting",
                "indexing_vector",
                "indexing_embeddingfailure",
                "indexing_indexeddocument",
                "indexing_nameddocument",
            ):
                cursor.execute(f"DELETE FROM {table} WHERE number = %s", [entry.number])  # noqa: S608
            entry.delete()
        tombstones.forget(source_id)


def _old_chunks(store: ChunkStore, document_ids: Sequence[UUID]) -> dict[UUID, list[_Old]]:
    found: dict[UUID, list[_Old]] = defaultdict(list)
    column = store.document_column
    rows = fetch(
        Fragment(
            f"SELECT id, ref, {column}, content_hash, index_hash, {', '.join(_PLACE_ALL)} "  # noqa: S608 - our own names
            f"FROM {connection.ops.quote_name(store.table)} WHERE {column} = ANY(%s) ORDER BY {column}, chunk_index",
            (list(document_ids),),
        ),
        prepare=True,
    )
    for id_, ref, document_id, content, index, *place in rows:
        found[document_id].append(_Old(id_, ref, document_id, content, index, tuple(place)))
    return found


@dataclass(slots=True)
class _Known:
    """What the index says of documents besides their chunks."""

    described: dict[UUID, tuple[str, str, bool]] = field(default_factory=dict)
    """Title, path and side."""
    named: dict[UUID, name_rows.KnownNames] = field(default_factory=dict)


def _known_documents(entry: IndexedSource, named: Sequence[IndexedSource], document_ids: Sequence[UUID]) -> _Known:
    known = _Known()
    rows = fetch(
        Fragment(
            "SELECT w.id, d.title, d.path, d.side, n.ref, n.path, n.title, n.aliases, n.side, n.sections::text "
            "FROM unnest(%s::uuid[]) AS w(id) "
            "LEFT JOIN indexing_indexeddocument d ON d.number = %s AND d.document_id = w.id "
            "LEFT JOIN indexing_nameddocument n ON n.number = %s AND n.document_id = w.id",
            (list(document_ids), entry.number, named[0].number if named else None),
        ),
        prepare=True,
    )
    for id_, *described, ref, path, title, aliases, side, sections in rows:
        if described[0] is not None:
            known.described[id_] = (described[0], described[1], described[2])
        if ref is not None:
            known.named[id_] = name_rows.KnownNames(ref, path, title, aliases, side, orjson.loads(sections))
    return known


def _compare(
    store: ChunkStore,
    source_id: UUID,
    entry: IndexedSource,
    document: DocumentText,
    old: Sequence[_Old],
    work: _Work,
) -> ChunkChanges:
    waiting: dict[bytes, deque[_Old]] = defaultdict(deque)
    for known in old:
        waiting[known.content_hash].append(known)
    kept: list[int] = []
    added: list[int] = []
    ids: list[tuple[int, int]] = []
    work.ids.append(ids)
    for chunk in document.chunks:
        content = composition.content_digest(chunk.text, chunk.heading_path)
        text = None if chunk.text == chunk.source else chunk.text
        index = composition.index_digest(
            document.title, document.path, str(document.side), chunk.source if text is not None else ""
        )
        place = (
            chunk.chunk_index, chunk.heading_level, chunk.section_anchor, chunk.start_line, chunk.end_line,
            chunk.start_byte, chunk.end_byte, chunk.part, chunk.parts, list(chunk.flags), document.profile,
        )  # fmt: skip
        same = waiting.get(content)
        row = same.popleft() if same else None
        if row is not None and row.index_hash == index:
            kept.append(row.id)
            ids.append((row.id, row.ref))
            if row.place != place:
                work.moved.append((row.id, row.ref, *place, None, None, None, None))
            continue
        ref = entry.number << SLOT_BITS | entry.next_slot
        entry.next_slot += 1
        work.entered.append(
            postings.Piece(
                postings.slot_of(ref), document.title, document.path, document.side, chunk.heading_path, chunk.text
            )
        )
        embed = composition.embed_digest(
            composition.embedded(store.block, document.title, chunk.heading_path, chunk.text)
        )
        if row is not None:
            kept.append(row.id)
            ids.append((row.id, ref))
            work.left.append(row.ref)
            work.moved.append((row.id, ref, *place, chunk.source, text, index, embed))
            continue
        id_ = work.ids_left.pop()
        added.append(id_)
        ids.append((id_, ref))
        work.rows.append(
            (
                id_, ref, *place[:7], list(chunk.heading_path), chunk.source, text, *place[7:],
                content, embed, index, composition.copy_digest(chunk.text), document.document_id, source_id,
            )
        )  # fmt: skip
    removed = [known for queue in waiting.values() for known in queue]
    work.gone.extend(known.id for known in removed)
    return ChunkChanges(document.document_id, tuple(kept), tuple(added), tuple(known.id for known in removed))


def _write(
    store: ChunkStore, entry: IndexedSource, work: _Work, described: Mapping[UUID, tuple[str, str, bool]]
) -> None:
    leaving = _leave(store, work, described)
    copying.update_rows(store, work.moved)
    copying.copy_rows(store, work.rows)
    if work.entered or leaving:
        postings.change(store.block, entry, entered=work.entered, left=leaving)
    entry.version += 1
    entry.changed_at = timezone.now()


def _leave(store: ChunkStore, work: _Work, described: Mapping[UUID, tuple[str, str, bool]]) -> list[postings.Piece]:
    """Deletes the rows that go, with those that are about them, and gives what the postings were made of that leave."""
    if not work.gone and not work.left:
        return []
    gone = numbers_text(work.gone)
    table, document = connection.ops.quote_name(store.table), store.document_column
    parts = [
        Fragment(f"of_{other} AS (DELETE FROM {other} WHERE {column} = ANY(%s::bigint[]))", (gone,))  # noqa: S608
        for other, column in store.dependants
    ]
    parts.append(Fragment(f"gone AS (DELETE FROM {table} WHERE id = ANY(%s::bigint[]) RETURNING *)", (gone,)))  # noqa: S608
    if work.tells:
        buried = tombstones.burying(store)
        parts.append(Fragment(f"buried AS ({buried.sql})", buried.params))
    told = f"SELECT ref, {document}, heading_path, coalesce(text, source) FROM"
    leaving = Fragment(
        f"{told} gone UNION ALL {told} {table} WHERE ref = ANY(%s::bigint[])", (numbers_text(work.left),)
    )
    return [
        postings.Piece(postings.slot_of(ref), *described[document_id], heading_path, text)
        for ref, document_id, heading_path, text in fetch(beginning_with(parts, leaving), prepare=True)
    ]
