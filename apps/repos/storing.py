"""Writing documents: rows, chunks, links and addresses of one batch, inside the caller's transaction."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from operator import not_
from typing import Any

from django.utils import timezone

from apps.access.cursors import binary_cursor
from apps.indexing.arrays import upsert_values
from apps.indexing.chunks import ChunkChanges, DocumentText, store_documents
from apps.indexing.copying import copy_values
from apps.indexing.naming import aliases_of
from apps.indexing.observers import Act, DocumentChange, DocumentRef, documents_stored
from apps.markup.values import Chunk
from apps.repos.discovery import is_side
from apps.repos.git.values import CommitInfo, Entry, raw_or_none
from apps.repos.links import copy_links
from apps.repos.models import (
    DocumentState,
    Repository,
    RepositoryDocument,
    RepositoryDocumentChunk,
    RepositoryDocumentRedirect,
)
from apps.repos.plan import KnownDocument, Taken, Versions
from apps.repos.reading import FileRead
from apps.repos.slugs import free_slug
from apps.repos.stores import STORE

_COLUMNS = (
    ("id", "uuid"),
    ("repository_id", "uuid"),
    ("path", "text"),
    ("raw_path", "bytea"),
    ("kind", "text"),
    ("title", "text"),
    ("slug", "text"),
    ("state", "text"),
    ("blob", "text"),
    ("size", "int8"),
    ("content_hash", "text"),
    ("parser_version", "text"),
    ("chunk_profile", "text"),
    ("encoding", "text"),
    ("text", "text"),
    ("frontmatter", "jsonb"),
    ("structure", "jsonb"),
    ("anchors", "text[]"),
    ("warnings", "jsonb"),
    ("word_count", "int4"),
    ("line_count", "int4"),
    ("chunk_count", "int4"),
    ("redacted_count", "int4"),
    ("commit", "text"),
    ("committed_at", "timestamptz"),
    ("absence", "text"),
    ("absent_commit", "text"),
    ("absent_since", "timestamptz"),
    ("created_at", "timestamptz"),
    ("updated_at", "timestamptz"),
)
_KEPT = frozenset({"id", "repository_id", "created_at"})
"""What a document keeps when it is read anew."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A file that was read. ``known`` is the document that it continues, under this path or (``moved``) another."""

    taken: Taken
    read: FileRead
    known: KnownDocument | None
    moved: bool = False

    @property
    def act(self) -> Act:
        if self.known is None:
            return "created"
        return "moved" if self.moved else "replaced"


@dataclass(frozen=True, slots=True)
class Stored:
    """What became of one file of a batch."""

    document_id: uuid.UUID
    outcome: Outcome
    changes: ChunkChanges


class Writer:
    """Stores the documents of one sync. Knows the addresses in use, so that no batch asks for them again."""

    def __init__(
        self,
        repository: Repository,
        *,
        versions: Versions,
        commit: CommitInfo,
        changed_in: Mapping[bytes, CommitInfo],
        documents: Iterable[KnownDocument],
    ) -> None:
        self.repository = repository
        self.versions = versions
        self.commit = commit
        self.changed_in = changed_in
        self.slugs: dict[str, uuid.UUID] = {known.slug: known.id for known in documents}
        self.newcomers: dict[uuid.UUID, str] = {}
        """Documents that got their address in this run, with their paths."""
        self._fresh_slugs: set[str] = set()
        self._redirects: list[KnownDocument] = []
        """Documents of the batch under way that leave an old address behind."""

    def store(self, outcomes: Sequence[Outcome]) -> list[Stored]:
        """Store what was read, in path order. The caller is inside a batch."""
        ids = [outcome.known.id if outcome.known else uuid.uuid4() for outcome in outcomes]
        rows = [self._row(id_, outcome) for id_, outcome in zip(ids, outcomes, strict=True)]
        fresh = [outcome.known is None for outcome in outcomes]
        copy_values("repo_documents", _COLUMNS, list(compress(rows, fresh)))
        upsert_values("repo_documents", _COLUMNS, list(compress(rows, map(not_, fresh))), keeps=_KEPT)
        self._write_addresses()
        changes = store_documents(
            STORE,
            source_id=self.repository.pk,
            documents=[
                self._text(
                    id_, outcome.taken.entry.path, outcome.read.title, outcome.read.chunks, outcome.read.frontmatter
                )
                for id_, outcome in zip(ids, outcomes, strict=True)
            ],
        )
        self._links(ids, outcomes)
        documents_stored(
            [
                DocumentChange(
                    ref=self._ref(id_, outcome.taken.entry.path),
                    act=outcome.act,
                    old_path=outcome.known.path if outcome.moved and outcome.known else None,
                    version_hash=outcome.read.content_hash,
                    frontmatter=outcome.read.frontmatter,
                    warnings=frozenset(warning.code for warning in outcome.read.warnings),
                )
                for id_, outcome in zip(ids, outcomes, strict=True)
            ]
        )
        return [Stored(*both) for both in zip(ids, outcomes, changes, strict=True)]

    def move(self, moves: Sequence[tuple[KnownDocument, Entry]]) -> list[ChunkChanges]:
        """Give documents another path and address; text, chunks and ids stay. The caller is inside a batch."""
        ids = [known.id for known, _ in moves]
        documents = {
            document.id: document
            for document in RepositoryDocument.objects.filter(pk__in=ids).only(
                "id",
                "title",
                "slug",
                "frontmatter",
                "content_hash",
                "kind",
                "path",
                "commit",
                "committed_at",
                "warnings",
            )
        }
        texts: list[DocumentText] = []
        changes: list[DocumentChange] = []
        chunks = _stored_chunks(ids)
        for known, entry in moves:
            document = documents[known.id]
            if known.title == known.path.rsplit("/", 1)[-1]:
                document.title = entry.path.rsplit("/", 1)[-1]
            document.slug = self._new_slug(known, entry.path)
            document.path, document.raw_path = entry.path, raw_or_none(entry.path, entry.raw_path)
            info = self.changed_in.get(entry.raw_path)
            if info is not None:
                document.commit, document.committed_at = info.commit, info.committed_at
            document.absence, document.absent_commit, document.absent_since = "", "", None
            document.updated_at = timezone.now()
            texts.append(self._text(known.id, entry.path, document.title, chunks[known.id], document.frontmatter))
            changes.append(
                DocumentChange(
                    ref=self._ref(known.id, entry.path),
                    act="moved",
                    old_path=known.path,
                    version_hash=document.content_hash,
                    frontmatter=document.frontmatter,
                    warnings=frozenset(warning["code"] for warning in document.warnings),
                )
            )
        RepositoryDocument.objects.bulk_update(
            documents.values(),
            [
                "title",
                "slug",
                "path",
                "raw_path",
                "commit",
                "committed_at",
                "absence",
                "absent_commit",
                "absent_since",
                "updated_at",
            ],
        )
        self._write_addresses()
        stored = store_documents(STORE, source_id=self.repository.pk, documents=texts)
        documents_stored(changes)
        return stored

    def settle_slugs(self) -> int:
        """Addresses that newcomers could not have because a page removed in this run still held them. Gives how many
        changed: as after a fresh clone, a suffix stays only where two living pages want the same address."""
        changed: list[RepositoryDocument] = []
        rows = RepositoryDocument.objects.filter(pk__in=self.newcomers).only("id", "slug", "path").order_by("path")
        for document in rows:
            self.slugs.pop(document.slug, None)
            wanted = free_slug(document.path, document.id, self.slugs)
            self.slugs[wanted] = document.id
            if wanted != document.slug:
                document.slug = wanted
                changed.append(document)
        for at in range(0, len(changed), 500):
            RepositoryDocument.objects.bulk_update(changed[at : at + 500], ["slug"])
        self._drop_redirects({document.slug for document in changed})
        return len(changed)

    def forget(self, known: Iterable[KnownDocument]) -> None:
        """These documents were removed: their addresses are free."""
        for one in known:
            self.slugs.pop(one.slug, None)

    def _row(self, id_: uuid.UUID, outcome: Outcome) -> tuple[Any, ...]:
        """The values of ``_COLUMNS``."""
        entry, read, known = outcome.taken.entry, outcome.read, outcome.known
        info = self.changed_in.get(entry.raw_path, self.commit)
        if known is None:
            slug = self._take_slug(id_, entry.path)
        elif outcome.moved:
            slug = self._new_slug(known, entry.path)
        else:
            slug = known.slug
        state = DocumentState.EMPTY if read.empty else DocumentState.INDEXED
        warnings = [
            {"code": warning.code, "line": warning.line, "column": warning.column, "message": warning.message}
            for warning in read.warnings
        ]
        now = timezone.now()
        return (
            id_, self.repository.pk, entry.path, raw_or_none(entry.path, entry.raw_path), outcome.taken.kind.value,
            read.title, slug, state.value, entry.blob, entry.size or 0, read.content_hash, self.versions.parser,
            self.versions.profile, read.encoding, read.text, read.frontmatter, read.structure, read.anchors, warnings,
            read.word_count, read.line_count, len(read.chunks), read.redacted, info.commit, info.committed_at,
            "", "", None, now, now,
        )  # fmt: skip

    def _take_slug(self, id_: uuid.UUID, path: str) -> str:
        slug = free_slug(path, id_, self.slugs)
        self.slugs[slug] = id_
        self.newcomers[id_] = path
        self._fresh_slugs.add(slug)
        return slug

    def _new_slug(self, known: KnownDocument, path: str) -> str:
        self.slugs.pop(known.slug, None)
        slug = self._take_slug(known.id, path)
        if slug != known.slug:
            self._redirects.append(known)
        return slug

    def _write_addresses(self) -> None:
        """Old addresses of the batch lead on; a living page wins over an old address."""
        if self._redirects:
            RepositoryDocumentRedirect.objects.bulk_create(
                [
                    RepositoryDocumentRedirect(
                        repository=self.repository,
                        slug=known.slug,
                        path=known.path,
                        title=known.title,
                        document_id=known.id,
                        commit=self.commit.commit,
                    )
                    for known in self._redirects
                ],
                update_conflicts=True,
                unique_fields=["repository", "slug"],
                update_fields=["path", "title", "document", "commit", "created_at"],
            )
        self._drop_redirects(self._fresh_slugs)
        self._redirects, self._fresh_slugs = [], set()

    def _drop_redirects(self, slugs: set[str]) -> None:
        if slugs:
            RepositoryDocumentRedirect.objects.filter(repository=self.repository, slug__in=slugs).delete()

    def _text(
        self, id_: uuid.UUID, path: str, title: str, chunks: Sequence[Chunk], frontmatter: Mapping[str, Any]
    ) -> DocumentText:
        return DocumentText(
            document_id=id_,
            title=title,
            path=path,
            chunks=chunks,
            language=self.repository.language,
            side=is_side(path),
            profile=self.versions.profile,
            aliases=aliases_of(frontmatter),
        )

    def _ref(self, id_: uuid.UUID, path: str) -> DocumentRef:
        return DocumentRef(self.repository.kind, self.repository.pk, id_, path)

    def _links(self, ids: Sequence[uuid.UUID], outcomes: Sequence[Outcome]) -> None:
        old = [id_ for id_, outcome in zip(ids, outcomes, strict=True) if outcome.known is not None]
        if old:
            with binary_cursor(prepare=True) as cursor:
                cursor.execute("DELETE FROM repo_document_links WHERE document_id = ANY(%s)", [old])
        copy_links(
            self.repository,
            ((id_, use) for id_, outcome in zip(ids, outcomes, strict=True) for use in outcome.read.links),
        )


def _stored_chunks(ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, list[Chunk]]:
    """The chunks of documents as the chunkers gave them."""
    found: dict[uuid.UUID, list[Chunk]] = defaultdict(list)
    rows: Any = RepositoryDocumentChunk.objects.filter(document__in=ids).order_by("document", "chunk_index")
    for row in rows.iterator(chunk_size=1000):
        found[row.document_id].append(
            Chunk(
                chunk_index=row.chunk_index,
                heading_path=tuple(row.heading_path),
                heading_level=row.heading_level,
                section_anchor=row.section_anchor,
                start_line=row.start_line,
                end_line=row.end_line,
                start_byte=row.start_byte,
                end_byte=row.end_byte,
                source=row.source,
                text=row.searched,
                part=row.part,
                parts=row.parts,
                flags=tuple(row.flags),
            )
        )
    return found
