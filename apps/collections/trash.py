"""The trash of a collection: out of every answer at once, and back with the same chunks until it is emptied."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import connection, transaction
from django.utils import timezone

from apps.access import audit
from apps.access.errors import NotFound
from apps.access.grants import drop_all_grants
from apps.access.rules import Right
from apps.collections.documents import STORE, as_cut, locked, profile_of
from apps.collections.models import (
    Asset,
    Collection,
    Document,
    DocumentChunk,
    DocumentLink,
    DocumentVersion,
    JsonObject,
    LinkState,
    StagedEntry,
    Upload,
)
from apps.collections.uploads import follow_up, stage_rechunk
from apps.indexing.chunks import DocumentText, remove_documents, remove_source, store_documents
from apps.indexing.naming import aliases_of
from apps.indexing.observers import DocumentChange, DocumentRef, documents_stored, removing_documents
from apps.indexing.stores import get_store
from apps.jobs.models import Job
from apps.markup.values import Chunk as Cut

if TYPE_CHECKING:
    from apps.access.models import User
    from apps.jobs.running import JobRun

AT_ONCE = 500


def trash_document(*, document: Document, by: User) -> None:
    """Put a document into the trash: from now on it is nowhere, and links to it are broken."""
    with transaction.atomic():
        held = _held(document, by, Right.WRITE)
        held.trashed_at = timezone.now()
        held.shelved_chunks = _shelve(held)
        held.save(update_fields=["trashed_at", "shelved_chunks"])
        remove_documents(get_store(STORE), source_id=held.collection_id, document_ids=[held.pk])
        DocumentLink.objects.filter(target_document=held).update(
            target_document=None, state=LinkState.BROKEN, reason="not found", rule=None, anchor=""
        )
        digest, warnings = bytes(held.content_hash).hex(), _codes(held)
        documents_stored([DocumentChange(_ref(held), "trashed", version_hash=digest, warnings=warnings)])
        follow_up(held.collection, by=by)


def restore_document(*, collection: Collection, document_id: UUID, by: User) -> Document:
    """Take a document back out of the trash, with the chunks and vectors that it had.

    When the collection is cut otherwise by now, they answer until the document has been cut anew.
    """
    with transaction.atomic():
        collection = locked(collection)
        found = (
            Document.objects.in_trash_of(by)
            .filter(collection=collection, pk=document_id)
            .select_for_update(of=("self",))
            .first()
        )
        if found is None:
            raise NotFound
        held: Document = found
        _unshelve(held)
        held.trashed_at, held.shelved_chunks = None, []
        held.save(update_fields=["trashed_at", "shelved_chunks"])
        change = DocumentChange(
            _ref(held),
            "restored",
            version_hash=bytes(held.content_hash).hex(),
            frontmatter=dict(held.frontmatter),
            warnings=_codes(held),
        )
        documents_stored([change])
        follow_up(collection, by=by)
        if held.profile != profile_of(collection):
            stage_rechunk(collection, by=by)
    return held


def _codes(document: Document) -> frozenset[str]:
    return frozenset(warning["code"] for warning in document.warnings)


def purge_document(*, collection: Collection, document_id: UUID, by: User) -> None:
    """Remove a document for good, out of the trash or not; for those who manage the collection."""
    with transaction.atomic():
        Collection.objects.get_for(by, Right.MANAGE, pk=collection.pk)
        held = Document.objects.filter(collection=collection, pk=document_id).select_for_update(of=("self",)).first()
        if held is None:
            raise NotFound
        audit.record(
            audit.Act.SOURCE_CHANGED,
            by=by,
            target=collection,
            before={"document": held.source_key},
            after={"purged": True},
        )
        remove_for_good([held])
        follow_up(collection, by=by)


def remove_for_good(documents: Sequence[Document]) -> None:
    """Delete documents of one collection with all that hangs on them, inside the caller's transaction."""
    if not documents:
        return
    with removing_documents([_ref(document) for document in documents]):
        ids = [document.pk for document in documents]
        DocumentLink.objects.filter(target_document__in=ids).update(
            target_document=None, state=LinkState.BROKEN, reason="not found", rule=None, anchor=""
        )
        remove_documents(get_store(STORE), source_id=documents[0].collection_id, document_ids=ids)
        Document.objects.filter(pk__in=ids).delete()


def purge_older_than(moment: datetime.datetime) -> int:
    """Empty the trash of what was put there before ``moment``; one collection's share at a time. Returns how many."""
    with transaction.atomic():
        # Locked: what a writer takes out of the trash at this moment is either gone before or stays.
        due = list(
            Document.objects.filter(trashed_at__lt=moment)
            .only("id", "collection_id", "source_key")
            .order_by("collection_id")
            .select_for_update(of=("self",))[:AT_ONCE]
        )
        share = [document for document in due if document.collection_id == due[0].collection_id]
        remove_for_good(share)
    return len(share)


def purge_collection(run: JobRun, collection_id: UUID) -> None:
    """The rows of a deleted collection, batch by batch, and the collection itself at the end."""
    total = Document.objects.filter(collection=collection_id).count()
    done = 0
    run.progress("removing", done, total)
    while True:
        batch = list(
            Document.objects.filter(collection=collection_id).only("id", "collection_id", "source_key")[:AT_ONCE]
        )
        if not batch:
            break
        with run.batch():
            remove_for_good(batch)
            done += len(batch)
            run.progress("removing", done, total)
    with run.batch():
        remove_source(get_store(STORE), source_id=collection_id)
        for model in (DocumentLink, DocumentChunk, Asset):
            model._default_manager.filter(collection=collection_id).delete()
        DocumentVersion.objects.filter(document__collection=collection_id).delete()
        StagedEntry.objects.filter(upload__collection=collection_id).delete()
        Upload.objects.filter(collection=collection_id).delete()
        drop_all_grants(Collection(pk=collection_id))
        # Finished jobs of the collection go with it; the purge itself stays for the administrators' list.
        Job.objects.filter(source_kind=Collection.kind, source_id=collection_id).exclude(pk=run.job.pk).delete()
        Collection.objects.filter(pk=collection_id).delete()


def _shelve(document: Document) -> list[JsonObject]:
    """The chunks of a document as JSON: in the trash they are in no table that a search or a count could meet."""
    return [
        {**cut._asdict(), "id": str(chunk.pk), "profile": chunk.profile}
        for chunk, cut in as_cut(DocumentChunk.objects.filter(document=document).order_by("chunk_index"))
    ]


def _unshelve(document: Document) -> None:
    """Index the shelved chunks again and give them back their ids, so that permalinks open as before."""
    shelved = document.shelved_chunks
    profile = str(shelved[0]["profile"]) if shelved else ""
    chunks = [Cut(**{name: _tuple(entry[name]) for name in Cut._fields}) for entry in shelved]
    text = DocumentText(
        document_id=document.pk,
        title=document.title,
        path=document.source_key,
        chunks=chunks,
        language=document.collection.language,
        profile=profile,
        aliases=aliases_of(document.frontmatter),
    )
    store_documents(get_store(STORE), source_id=document.collection_id, documents=[text])
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE md_chunks chunk SET id = old.id FROM unnest(%s::bigint[], %s::int[]) AS old (id, place)"
            " WHERE chunk.document_id = %s AND chunk.chunk_index = old.place",
            [[int(str(entry["id"])) for entry in shelved], [entry["chunk_index"] for entry in shelved], document.pk],
        )


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _held(document: Document, by: User, right: Right) -> Document:
    Collection.objects.get_for(by, right, pk=document.collection_id)
    held = Document.objects.live().filter(pk=document.pk).select_for_update(of=("self",)).first()
    if held is None:
        raise NotFound
    found: Document = held
    return found


def _ref(document: Document) -> DocumentRef:
    return DocumentRef(Collection.kind, document.collection_id, document.pk, document.source_key)
