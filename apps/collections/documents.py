"""Storing documents of a collection: rows, versions, chunks, links, all of a batch in one transaction."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from apps.access.compiled import MARK_OF_ID, Rows
from apps.access.cursors import binary_cursor
from apps.access.errors import NotFound
from apps.collections import link_rows
from apps.collections.document_rows import DocumentRow, VersionRow, copy_versions, write_documents
from apps.collections.models import (
    Collection,
    Document,
    DocumentChunk,
    DocumentState,
    JsonObject,
)
from apps.indexing.chunks import DocumentText, store_documents
from apps.indexing.naming import aliases_of
from apps.indexing.observers import Act, DocumentChange, DocumentRef, documents_stored
from apps.indexing.statements import Fragment, fetch
from apps.indexing.stores import get_store
from apps.markup.ingest import Ingested
from apps.markup.values import Chunk as Cut
from apps.markup.values import ParsedDocument, Skipped

if TYPE_CHECKING:
    from apps.access.models import User

STORE = "md_collections"


@dataclass(frozen=True, slots=True)
class Incoming:
    """One text as it came in. ``title``: None leaves the override as it is, an empty one removes it."""

    source_key: str
    raw: bytes
    title: str | None = None

    @property
    def content_hash(self) -> bytes:
        return hashlib.sha256(self.raw).digest()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one text. ``state``: created, replaced, unchanged, or error with code and message."""

    source_key: str
    state: str
    document_id: UUID | None = None
    title_updated: bool = False
    document_state: str = ""
    reason: str = ""
    truncated_at_line: int | None = None
    chunks: int | None = None
    warnings: tuple[JsonObject, ...] = ()
    code: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Standing:
    """A document that is there already, as far as an upload must know it."""

    id: UUID
    content_hash: bytes
    version: int
    profile: str
    title_override: str
    trashed: bool

    def is_current(self, content_hash: bytes, profile: str) -> bool:
        return not self.trashed and self.content_hash == content_hash and self.profile == profile


@dataclass(slots=True)
class _Batch:
    rows: list[DocumentRow] = field(default_factory=list)
    versions: list[VersionRow] = field(default_factory=list)
    texts: list[DocumentText] = field(default_factory=list)
    links: list[link_rows.Row] = field(default_factory=list)
    changes: list[DocumentChange] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    replaced: list[UUID] = field(default_factory=list)
    """Documents that were there before, in the trash or not."""


def profile_of(collection: Collection) -> str:
    """What a document was cut and parsed with; another value means that it must be done again."""
    from apps.markup.ingest import INGEST_VERSION

    return f"{collection.profile_id}/{INGEST_VERSION}"


def standing_of(collection: Collection, keys: Sequence[str], *, lock: bool = False) -> dict[str, Standing]:
    """The documents under ``keys``, trashed ones included, by key; one query."""
    statement = (
        "SELECT source_key, id, content_hash, version, profile, title_override, trashed_at IS NOT NULL"
        " FROM md_documents WHERE collection_id = %s AND source_key = ANY(%b::text[]) ORDER BY source_key"
    )
    values = (collection.pk, list(keys))
    rows = fetch(Fragment(f"{statement} FOR NO KEY UPDATE" if lock else statement, values), prepare=True)
    return {key: Standing(*standing) for key, *standing in rows}


_LOCKED: Rows[Collection] = Rows(
    lambda key: Collection.objects.select_for_update(no_key=True).filter(pk=key, deleted_at=None), MARK_OF_ID
)


class ProfileChanged(Exception):
    """The collection is cut otherwise now than when its texts were read: read them again."""


def locked(collection: Collection) -> Collection:
    """The collection as it stands, its row held until the transaction ends. Taken before rows of its documents.

    Raises NotFound when it was deleted meanwhile.
    """
    found = _LOCKED.first(collection.pk)
    if found is None:
        raise NotFound
    return found


@transaction.atomic
def store(
    collection: Collection,
    readings: Sequence[tuple[Incoming, Ingested | Skipped]],
    *,
    by: User | None,
    rechunk: bool = False,
) -> list[Outcome]:
    """Store what was read, one row a document, and say what became of each. Keys are unique within one call.

    With ``rechunk`` the content is that of the current version: no new version is made and no state changes but the
    chunks. The number of statements does not depend on the number of documents. ``collection`` is that for which the
    texts were read; raises ProfileChanged when another profile holds by now.
    """
    read_for, collection = collection, locked(collection)
    if collection.profile_id != read_for.profile_id:
        raise ProfileChanged
    known = standing_of(collection, [incoming.source_key for incoming, _ in readings], lock=True)
    batch = _Batch()
    now = timezone.now()
    profile = profile_of(collection)
    for incoming, reading in readings:
        old = known.get(incoming.source_key)
        digest = incoming.content_hash
        if rechunk and (old is None or old.trashed or old.content_hash != digest):
            continue  # replaced or removed meanwhile: its new version brings its own chunks
        if old is not None and old.is_current(digest, profile) and not rechunk:
            batch.outcomes.append(_unchanged(old, incoming))
            continue
        _prepare(batch, collection, incoming, reading, old, digest=digest, profile=profile, by=by, now=now)
    _write(collection, batch, rechunk=rechunk)
    return batch.outcomes


def retitle(collection: Collection, titles: Mapping[UUID, str]) -> int:
    """Give documents another title override. Only texts that contain the title are indexed and embedded anew."""
    changed = 0
    rows = Document.objects.live().filter(collection=collection, pk__in=titles)
    for document in rows.select_for_update(no_key=True):
        override = titles[document.pk]
        if document.title_override == override:
            continue
        document.title_override = override
        document.title = title_of(override, str(document.parsed.get("title") or ""), document.source_key)
        document.save(update_fields=["title_override", "title"])
        cut = as_cut(DocumentChunk.objects.filter(document=document).order_by("chunk_index"))
        text = DocumentText(
            document_id=document.pk,
            title=document.title,
            path=document.source_key,
            chunks=[piece for _, piece in cut],
            language=collection.language,
            profile=cut[0][0].profile if cut else collection.profile_id,
            aliases=aliases_of(document.frontmatter),
        )
        store_documents(get_store(STORE), source_id=collection.pk, documents=[text])
        changed += 1
    return changed


def _unchanged(old: Standing, incoming: Incoming) -> Outcome:
    updated = incoming.title is not None and incoming.title != old.title_override
    return Outcome(incoming.source_key, "unchanged", old.id, title_updated=updated)


def _prepare(
    batch: _Batch,
    collection: Collection,
    incoming: Incoming,
    reading: Ingested | Skipped,
    old: Standing | None,
    *,
    digest: bytes,
    profile: str,
    by: User | None,
    now: datetime,
) -> None:
    same_bytes = old is not None and old.content_hash == digest
    version = 1 if old is None else old.version if same_bytes else old.version + 1
    override = incoming.title if incoming.title is not None else (old.title_override if old else "")
    row = DocumentRow(
        id=old.id if old else uuid4(),
        collection_id=collection.pk,
        source_key=incoming.source_key,
        title_override=override,
        content_hash=digest,
        size=len(incoming.raw),
        version=version,
        profile=profile,
        created_at=now,
        changed_at=now,
        uploaded_by_id=by.pk if by else None,
    )
    if isinstance(reading, Skipped):
        row.state, row.state_reason = DocumentState.SKIPPED.value, reading.reason
        row.title = title_of(override, "", incoming.source_key)
        row.warnings = [{"code": reading.reason, "line": 1, "column": 1, "message": reading.message}]
        chunks: tuple[Any, ...] = ()
    else:
        chunks = _describe(row, reading)
        batch.links += link_rows.rows_of(collection.pk, row.id, reading.parsed)
    batch.rows.append(row)
    if not same_bytes:
        batch.versions.append(VersionRow(row.id, version, digest, incoming.raw, now, row.uploaded_by_id))
    batch.texts.append(
        DocumentText(
            document_id=row.id,
            title=row.title,
            path=row.source_key,
            chunks=chunks,
            language=collection.language,
            profile=collection.profile_id,
            aliases=aliases_of(row.frontmatter),
        )
    )
    if old is not None:
        batch.replaced.append(row.id)
    act: Act = "created" if old is None else "restored" if old.trashed else "replaced"
    ref = DocumentRef(Collection.kind, collection.pk, row.id, row.source_key)
    batch.changes.append(
        DocumentChange(
            ref,
            act,
            version_hash=row.content_hash.hex(),
            frontmatter=dict(row.frontmatter),
            warnings=frozenset(warning["code"] for warning in row.warnings),
        )
    )
    batch.outcomes.append(
        Outcome(
            incoming.source_key,
            "created" if old is None else "replaced",
            row.id,
            document_state=row.state,
            reason=row.state_reason,
            truncated_at_line=row.truncated_at_line,
            chunks=row.chunk_count,
            warnings=tuple(row.warnings),
        )
    )


def _describe(row: DocumentRow, reading: Ingested) -> tuple[Any, ...]:
    parsed, chunked = reading.parsed, reading.chunked
    row.text = parsed.text
    row.format, row.encoding = parsed.format, parsed.encoding
    row.encoding_guessed, row.replaced_characters = parsed.encoding_guessed, parsed.replaced_characters
    row.title = title_of(row.title_override, parsed.title, row.source_key)
    row.frontmatter = dict(parsed.frontmatter)
    row.parsed = structure(parsed)
    row.word_count, row.line_count = parsed.word_count, parsed.line_count
    row.truncated_at_line = chunked.truncated_at_line
    row.warnings = _plain((*parsed.warnings, *chunked.warnings))
    row.state = (
        DocumentState.EMPTY
        if parsed.empty
        else DocumentState.TRUNCATED
        if chunked.truncated_at_line is not None
        else DocumentState.INDEXED
    ).value
    row.chunk_count = len(chunked.chunks)
    return chunked.chunks


def structure(parsed: ParsedDocument) -> dict[str, Any]:
    """The parsed fields that pages and programs read, as JSON."""
    return {
        "title": parsed.title,
        "frontmatter_span": parsed.frontmatter_span,
        "heading_tree": _plain(parsed.heading_tree),
        "code_blocks": _plain(parsed.code_blocks),
        "tables": _plain(parsed.tables),
        "assets": _plain(parsed.assets),
        "items": _plain(parsed.items),
        "code_refs": _plain(parsed.code_refs),
        "anchors": parsed.anchors,
    }


def _plain(values: Sequence[Any]) -> list[JsonObject]:
    """Named tuples as JSON objects."""
    return [value._asdict() for value in values]


def title_of(override: str, parsed: str | None, key: str) -> str:
    """The title given at upload, else that of the text, else the last segment of the key (``collections.md`` 2.3)."""
    return override or parsed or key.rsplit("/", 1)[-1]


def _write(collection: Collection, batch: _Batch, *, rechunk: bool) -> None:
    if not batch.rows:
        return
    write_documents(batch.rows, replaced=set(batch.replaced), rechunk=rechunk)
    copy_versions(batch.versions)
    _prune_versions(batch.versions)
    store_documents(get_store(STORE), source_id=collection.pk, documents=batch.texts)
    link_rows.write(batch.links, replaced=batch.replaced)
    _touch(collection)
    if not rechunk:
        documents_stored(batch.changes)


def _touch(collection: Collection) -> None:
    with binary_cursor(prepare=True) as cursor:
        cursor.execute("UPDATE md_collections SET changed_at = %s WHERE id = %s", [timezone.now(), collection.pk])


def _prune_versions(versions: Sequence[VersionRow]) -> None:
    keep = settings.COGRAPH.collections.versions
    documents = [version.document_id for version in versions if version.number - keep > 1]
    if documents:
        with connection.cursor() as cursor:
            cursor.execute(
                "DELETE FROM md_document_versions old USING md_documents document"
                " WHERE old.document_id = ANY(%s) AND document.id = old.document_id"
                " AND old.number < document.version - %s",
                [documents, keep],
            )


def as_cut(chunks: Iterable[DocumentChunk]) -> list[tuple[DocumentChunk, Cut]]:
    """Stored chunks beside the form in which they were cut, to index them again."""
    return [
        (
            chunk,
            Cut(
                chunk.chunk_index,
                tuple(chunk.heading_path),
                chunk.heading_level,
                chunk.section_anchor,
                chunk.start_line,
                chunk.end_line,
                chunk.start_byte,
                chunk.end_byte,
                chunk.source,
                chunk.searched,
                chunk.part,
                chunk.parts,
                tuple(chunk.flags),
            ),
        )
        for chunk in chunks
    ]
