"""Documents of either kind of source as the projection needs them, with their older versions."""

from __future__ import annotations

from collections.abc import Collection as Some
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Case, F, Q, QuerySet, TextField, Value, When
from django.db.models.functions import Cast

from apps.access.cursors import prepared_cursor
from apps.collections.models import Document, DocumentVersion
from apps.knowledge_graph.naming import PAGE_ENDINGS
from apps.knowledge_graph.reading.header import read_front
from apps.knowledge_graph.reading.pages import OlderHeader, PageReading, read_page
from apps.knowledge_graph.storing import history
from apps.markup.decoding import decode
from apps.markup.front_matter import read_front_matter
from apps.markup.parsing import parse
from apps.markup.values import Decoded, Limits, Skipped
from apps.repos.models import RepositoryDocument

OLDER_VERSIONS = 50


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A kept document. ``version_hash`` names its text; ``number`` is its version in a collection, 0 elsewhere."""

    kind: str
    source_id: UUID
    id: UUID
    path: str
    text: str
    version_hash: str
    live: bool
    number: int = 0

    @property
    def state(self) -> tuple[str, str, bool]:
        """What a projection depends on: another value means that it must be read again."""
        return (self.path, self.version_hash, self.live)


_ONE = {
    "repository": "SELECT repository_id, id, path, text, content_hash, true, 0 FROM repo_documents WHERE id = %s",
    "collection": (
        "SELECT collection_id, id, source_key, text, encode(content_hash, 'hex'), trashed_at IS NULL, version"
        " FROM md_documents WHERE id = %s"
    ),
}


def load_document(kind: str, document_id: UUID) -> StoredDocument | None:
    with prepared_cursor() as cursor:
        cursor.execute(_ONE[kind], (document_id,))
        row = cursor.fetchone()
    return StoredDocument(kind, *row) if row else None


def load_documents(kind: str, documents: Iterable[UUID]) -> Iterator[StoredDocument]:
    wanted = list(documents)
    for start in range(0, len(wanted), 500):
        part = wanted[start : start + 500]
        if kind == "repository":
            rows = RepositoryDocument.objects.filter(pk__in=part).values_list(
                "repository_id", "id", "path", "text", "content_hash"
            )
            for source_id, id_, path, text, digest in rows:
                yield StoredDocument(kind, source_id, id_, path, text, digest, True)
        else:
            fields = ("collection_id", "id", "source_key", "text", "content_hash", "trashed_at", "version")
            for source_id, id_, path, text, digest, trashed, number in Document.objects.filter(pk__in=part).values_list(
                *fields
            ):
                yield StoredDocument(kind, source_id, id_, path, text, bytes(digest).hex(), trashed is None, number)


def states(kind: str, source_id: UUID) -> dict[UUID, tuple[str, str, bool]]:
    """The state of every kept document that may be a page (`with_header`). Costs no text."""
    rows = _with_header(kind).filter(**{kind: source_id})
    if kind == "repository":
        return {id_: (path, digest, True) for id_, path, digest in rows.values_list("id", "path", "content_hash")}
    return {
        id_: (path, bytes(digest).hex(), trashed is None)
        for id_, path, digest, trashed in rows.values_list("id", "source_key", "content_hash", "trashed_at")
    }


def with_header(kind: str, documents: Iterable[UUID]) -> set[UUID]:
    """Those of ``documents`` that may be pages: with one of our two keys, or with a header that does not parse."""
    return set(_with_header(kind).filter(pk__in=list(documents)).values_list("id", flat=True))


def _with_header(kind: str) -> Any:
    return _markdown(kind).filter(_header())


def _markdown(kind: str) -> Any:
    """The documents whose names end as those of pages do; ``header_text`` can be asked for."""
    name = "path" if kind == "repository" else "source_key"
    model: Any = RepositoryDocument if kind == "repository" else Document
    ending = Q()
    for each in PAGE_ENDINGS:
        ending |= Q(**{f"{name}__iendswith": each})
    return model.objects.alias(header_text=Cast("frontmatter", TextField())).filter(ending)


BROKEN_HEADER = frozenset({"front_matter_error", "front_matter_unclosed", "front_matter_near_miss"})
"""Codes of warnings of a header that does not parse."""


def _header() -> Q:
    # In any spelling; a key further in does no harm.
    header = Q(header_text__iregex=r'"\s*(type|slug)\s*"\s*:')
    for code in sorted(BROKEN_HEADER):
        header |= Q(warnings__contains=[{"code": code}])
    return header


@dataclass(frozen=True, slots=True)
class PlainDocument:
    """A live markdown document that is no page. ``text`` is there if its header may be meant for one, else empty."""

    id: UUID
    path: str
    warnings: Sequence[Mapping[str, Any]]
    text: str


def plain_rows(kind: str, source_id: UUID, pages: QuerySet[Any, Any]) -> QuerySet[Any, Any]:
    """The documents of a source but ``pages``, a queryset of their ids: rows of values for ``plain_document``."""
    name = "path" if kind == "repository" else "source_key"
    rows = _markdown(kind).filter(**{kind: source_id}).exclude(pk__in=pages)
    if kind == "collection":
        rows = rows.live()
    text = Case(When(_header(), then="text"), default=Value(""), output_field=TextField())
    found: QuerySet[Any, Any] = rows.order_by("pk").values("pk", "warnings", place=F(name), told=text)
    return found


def plain_document(row: Mapping[str, Any]) -> PlainDocument:
    """From a row of ``plain_rows`` as JSON has it."""
    return PlainDocument(UUID(row["pk"]), row["place"], row["warnings"], row["told"])


def lock_documents(kind: str, documents: Some[UUID]) -> set[UUID]:
    """Keep these rows from being deleted until the end of the transaction; returns those that exist."""
    table = "repo_documents" if kind == "repository" else "md_documents"
    with prepared_cursor() as cursor:
        cursor.execute(
            f"SELECT id FROM {table} WHERE id = ANY(%s) ORDER BY id FOR KEY SHARE",  # noqa: S608 - of two constants
            [list(documents)],
        )
        return {row[0] for row in cursor.fetchall()}


def read_document(document: StoredDocument) -> PageReading:
    """The page of a document, from its stored text; its older versions are asked when its header is broken.

    The text was parsed within its limits when it was stored, so parsing it again needs no child process.
    """
    parsed = parse(Decoded(document.text, "utf-8"), document.path, settings.COGRAPH.markup)
    if isinstance(parsed, Skipped):
        return PageReading(None)
    return read_page(
        parsed,
        document=document.id,
        version_hash=document.version_hash,
        live=document.live,
        older=lambda: older_headers(document),
    )


def older_headers(document: StoredDocument) -> Iterator[OlderHeader]:
    """Headers of earlier versions, newest first: stored ones in a collection, commits of the path in a repository."""
    bounds = settings.COGRAPH.markup
    if document.kind == "repository":
        texts: Iterable[tuple[str, str]] = history.earlier_texts(document.source_id, document.path, OLDER_VERSIONS)
    else:
        texts = _versions(document, bounds)
    for text, digest in texts:
        front = read_front_matter(text, document.path, bounds)
        yield OlderHeader(read_front(text, front.metadata, front.values, front.warnings), digest)


def _versions(document: StoredDocument, bounds: Limits) -> Iterator[tuple[str, str]]:
    rows = (
        DocumentVersion.objects.filter(document=document.id, number__lt=document.number)
        .order_by("-number")
        .values_list("raw", "content_hash")[:OLDER_VERSIONS]
    )
    for raw, digest in rows.iterator(chunk_size=5):
        decoded = decode(bytes(raw), bounds)
        if isinstance(decoded, Decoded):
            yield decoded.text, bytes(digest).hex()
