"""Taking documents out of every store, and what stays behind: an address that says which commit removed the page."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction

from apps.access.grants import drop_all_grants
from apps.indexing.chunks import remove_documents as remove_chunks
from apps.indexing.chunks import remove_source
from apps.indexing.observers import DocumentRef, removing_documents
from apps.jobs.kinds import SourceKey
from apps.jobs.running import JobRun
from apps.repos import remotes
from apps.repos.models import (
    LinkState,
    Repository,
    RepositoryDocument,
    RepositoryDocumentChunk,
    RepositoryDocumentLink,
    RepositoryDocumentRedirect,
    RepositoryFile,
    SyncReport,
    WebhookDelivery,
)
from apps.repos.models_code import (
    ChunkMention,
    ChunkNames,
    CodeChunk,
    CodeCoverage,
    CodeDeparture,
    CodeDocumentLink,
    CodeEdge,
    CodeFile,
    CodeNode,
)
from apps.repos.plan import KnownDocument
from apps.repos.stores import CODE_STORE, STORE

BATCH = 200
PURGE_ROWS = 2000
OWN_ROWS: tuple[Any, ...] = (RepositoryFile, RepositoryDocumentRedirect, WebhookDelivery, SyncReport)
CODE_ROWS: tuple[Any, ...] = (
    ChunkMention,
    ChunkNames,
    CodeDocumentLink,
    CodeEdge,
    CodeChunk,
    CodeNode,
    CodeFile,
    CodeDeparture,
    CodeCoverage,
)
"""In this order, so that no row that is deleted drags others behind it."""


@transaction.atomic
def remove(repository: Repository, documents: Sequence[KnownDocument], commits: Mapping[uuid.UUID, str]) -> None:
    """Delete documents with their chunks and links; each leaves a 410 at its address with the commit of ``commits``."""
    ids = [document.id for document in documents]
    refs = [DocumentRef(repository.kind, repository.pk, document.id, document.path) for document in documents]
    with removing_documents(refs):
        remove_chunks(STORE, source_id=repository.pk, document_ids=ids)
        RepositoryDocumentLink.objects.filter(target_document__in=ids).update(
            target_document=None, state=LinkState.BROKEN, reason="not found", anchor="", rule=None
        )
        older: list[Any] = list(RepositoryDocumentRedirect.objects.filter(document__in=ids))
        for redirect in older:
            redirect.commit, redirect.document_id = commits.get(redirect.document_id, redirect.commit), None
        RepositoryDocumentRedirect.objects.bulk_update(older, ["commit", "document"], batch_size=500)
        RepositoryDocumentRedirect.objects.bulk_create(
            [
                RepositoryDocumentRedirect(
                    repository=repository,
                    slug=document.slug,
                    path=document.path,
                    title=document.title,
                    commit=commits.get(document.id, ""),
                )
                for document in documents
            ],
            update_conflicts=True,
            unique_fields=["repository", "slug"],
            update_fields=["path", "title", "document", "commit", "created_at"],
        )
        RepositoryDocument.objects.filter(pk__in=ids).delete()


def purge(run: JobRun, source: SourceKey) -> None:
    """This room's part of the ``purge`` job: all rows of a deleted repository in batches, its mirror, its own row."""
    _, source_id = source
    repository = Repository.objects.filter(pk=source_id).first()
    if repository is None:
        return
    for model in CODE_ROWS:
        _purge_rows(run, model, source_id)
    while True:
        with run.batch():
            ids = list(RepositoryDocument.objects.filter(repository=source_id).values_list("pk", flat=True)[:BATCH])
            paths = dict(RepositoryDocument.objects.filter(pk__in=ids).values_list("pk", "path"))
            refs = [DocumentRef(repository.kind, repository.pk, id_, path) for id_, path in paths.items()]
            with removing_documents(refs):
                RepositoryDocumentChunk.objects.filter(document__in=ids).delete()
                RepositoryDocument.objects.filter(pk__in=ids).delete()
        if not ids:
            break
    with run.batch():
        remove_source(STORE, source_id=repository.pk)
        remove_source(CODE_STORE, source_id=repository.pk)
    for model in OWN_ROWS:
        _purge_rows(run, model, source_id)
    others = Repository.objects.live().filter(git_url=repository.git_url, depth=repository.depth).exists()
    if not others:
        remotes.mirror(repository).remove()
    with run.batch():
        drop_all_grants(repository)
        Repository.objects.filter(pk=source_id).delete()


def _purge_rows(run: JobRun, model: Any, source_id: uuid.UUID) -> None:
    while True:
        with run.batch():
            ids = list(model.objects.filter(repository=source_id).values_list("pk", flat=True)[:PURGE_ROWS])
            model.objects.filter(pk__in=ids).delete()
        if not ids:
            return
