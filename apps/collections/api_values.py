"""How collections look to programs: input and output of the REST endpoints, and the functions that shape answers."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.access.rest.strict import Boolean, Choice, Integer, Listed, ListQuery, StrictSerializer, Text
from apps.access.rules import Visibility
from apps.collections.documents import Outcome
from apps.collections.keys import MAX_KEY_CHARS
from apps.collections.models import Document, DocumentLink, DocumentState
from apps.indexing.vectors import EmbedStatus
from apps.jobs.models import Job

VISIBILITIES = list(Visibility.values)


class Content(serializers.CharField):
    """The text of a document: taken as it is, NUL and outer blanks included; parsing replaces and reports NUL."""

    def __init__(self, **options: Any) -> None:
        super().__init__(trim_whitespace=False, allow_blank=True, **options)
        self.validators = [one for one in self.validators if type(one).__name__ != "ProhibitNullCharactersValidator"]

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return str(data)


class CollectionQuery(ListQuery):
    """Filters of the list of collections."""

    q = Text(max_length=200, default="", query_text=True, help_text="Part of the name or description.")


class CollectionInput(StrictSerializer):
    """A new collection."""

    name = Text(min_length=1, max_length=255)
    description = Text(max_length=10_000, default="")
    visibility = Choice(VISIBILITIES, default="private")
    language = Text(min_length=1, max_length=20, default="english")


class CollectionChanges(StrictSerializer):
    """What of a collection changes; absent fields stay."""

    name = Text(min_length=1, max_length=255, required=False)
    description = Text(max_length=10_000, required=False)
    visibility = Choice(VISIBILITIES, required=False)
    language = Text(min_length=1, max_length=20, required=False)
    query_log_opt_out = Boolean(required=False)


class DocumentQuery(ListQuery):
    """Filters of the list of documents."""

    q = Text(max_length=200, default="", query_text=True, help_text="Part of the key or title.")
    state = Choice(["", *DocumentState.values], default="")


class DocumentInput(StrictSerializer):
    """One document as JSON."""

    source_key = Text(max_length=MAX_KEY_CHARS * 2)
    content = Content()
    title = Text(max_length=1000, required=False, allow_null=True)


class BatchInput(StrictSerializer):
    """Several documents as JSON."""

    documents = Listed(child=DocumentInput(), max_length=100_000)


class PurgeQuery(StrictSerializer):
    """Whether a document goes for good."""

    purge = Integer(min_value=0, max_value=1, default=0)


class EmbedStatusOutput(serializers.Serializer[Any]):
    """Counts of chunks; ``documents_truncated`` counts documents that were cut off for their size."""

    total = serializers.IntegerField()
    embedded = serializers.IntegerField()
    pending = serializers.IntegerField()
    failed = serializers.IntegerField()
    truncated = serializers.IntegerField()
    documents_truncated = serializers.IntegerField()
    is_ready = serializers.BooleanField()
    profile = serializers.CharField()
    next_profile = serializers.CharField()


class CollectionOutput(serializers.Serializer[Any]):
    """A collection."""

    id = serializers.CharField()
    name = serializers.CharField()
    slug = serializers.CharField()
    description = serializers.CharField()
    visibility = serializers.CharField()
    owner = serializers.CharField(allow_null=True)
    language = serializers.CharField()
    documents = serializers.IntegerField()
    chunking = serializers.DictField()
    query_log_opt_out = serializers.BooleanField()
    created_at = serializers.DateTimeField()
    changed_at = serializers.DateTimeField()


class JobRef(serializers.Serializer[Any]):
    """A job by its id."""

    id = serializers.CharField()
    kind = serializers.CharField()
    status = serializers.CharField()


class UploadOutput(serializers.Serializer[Any]):
    """What became of one document."""

    source_key = serializers.CharField()
    state = serializers.CharField()
    document_id = serializers.CharField()
    title_updated = serializers.BooleanField()
    document_state = serializers.CharField()
    truncated_at_line = serializers.IntegerField(allow_null=True)
    chunks = serializers.IntegerField(allow_null=True)
    warnings = serializers.ListField(child=serializers.DictField())
    jobs = JobRef(many=True)


class StagedOutput(serializers.Serializer[Any]):
    """The job that works on a batch."""

    job = JobRef()
    files = serializers.IntegerField()


class DocumentLine(serializers.Serializer[Any]):
    """A document in a list."""

    id = serializers.CharField()
    source_key = serializers.CharField()
    title = serializers.CharField()
    state = serializers.CharField()
    reason = serializers.CharField()
    size = serializers.IntegerField()
    version = serializers.IntegerField()
    content_hash = serializers.CharField()
    words = serializers.IntegerField()
    lines = serializers.IntegerField()
    chunks = serializers.IntegerField()
    warnings = serializers.IntegerField()
    changed_at = serializers.DateTimeField()


class DocumentOutput(DocumentLine):
    """A document with its text and what parsing found."""

    text = serializers.CharField()
    format = serializers.CharField()
    encoding = serializers.CharField()
    frontmatter = serializers.DictField()
    structure = serializers.DictField()
    links = serializers.ListField(child=serializers.DictField())
    parse_warnings = serializers.ListField(child=serializers.DictField())
    truncated_at_line = serializers.IntegerField(allow_null=True)


def present_collection(collection: Any) -> dict[str, Any]:
    """``collection`` is annotated with ``documents_count``."""
    return {
        "id": str(collection.pk),
        "name": collection.name,
        "slug": collection.slug,
        "description": collection.description,
        "visibility": collection.visibility,
        "owner": collection.owner.get_username() if collection.owner else None,
        "language": collection.language,
        "documents": collection.documents_count,
        "chunking": {
            "max_chars": collection.max_chars,
            "min_chars": collection.min_chars,
            "max_chunks": collection.max_chunks,
        },
        "query_log_opt_out": collection.query_log_opt_out,
        "created_at": collection.created_at,
        "changed_at": collection.changed_at,
    }


def present_embed_status(status: EmbedStatus, documents_truncated: int) -> dict[str, Any]:
    return {
        "total": status.total,
        "embedded": status.embedded,
        "pending": status.pending,
        "failed": status.failed,
        "truncated": status.truncated,
        "documents_truncated": documents_truncated,
        "is_ready": status.is_ready,
        "profile": status.profile,
        "next_profile": status.next_profile,
    }


def present_job(job: Job) -> dict[str, Any]:
    return {"id": str(job.pk), "kind": job.kind, "status": job.status}


def present_outcome(outcome: Outcome, jobs: tuple[Job, ...]) -> dict[str, Any]:
    return {
        "source_key": outcome.source_key,
        "state": outcome.state,
        "document_id": str(outcome.document_id),
        "title_updated": outcome.title_updated,
        "document_state": outcome.document_state,
        "truncated_at_line": outcome.truncated_at_line,
        "chunks": outcome.chunks,
        "warnings": list(outcome.warnings),
        "jobs": [present_job(job) for job in jobs],
    }


def present_line(document: Document) -> dict[str, Any]:
    return {
        "id": str(document.pk),
        "source_key": document.source_key,
        "title": document.title,
        "state": document.state,
        "reason": document.state_reason,
        "size": document.size,
        "version": document.version,
        "content_hash": bytes(document.content_hash).hex(),
        "words": document.word_count,
        "lines": document.line_count,
        "chunks": document.chunk_count,
        "warnings": getattr(document, "warning_count", None) or 0,
        "changed_at": document.changed_at,
    }


def present_document(document: Document, links: list[DocumentLink]) -> dict[str, Any]:
    return {
        **present_line(document),
        "warnings": len(document.warnings),
        "text": document.text,
        "format": document.format,
        "encoding": document.encoding,
        "frontmatter": document.frontmatter,
        "structure": document.parsed,
        "links": [present_link(link) for link in links],
        "parse_warnings": document.warnings,
        "truncated_at_line": document.truncated_at_line,
    }


def present_link(link: DocumentLink) -> dict[str, Any]:
    return {
        "type": link.link_type,
        "href": link.href,
        "text": link.text,
        "lines": link.lines,
        "rel_type": link.rel_type,
        "field": link.field,
        "embed": link.embed,
        "state": link.state,
        "reason": link.reason,
        "rule": link.rule,
        "target": str(link.target_document_id) if link.target_document_id else None,
        "anchor": link.anchor,
        "candidates": link.candidates,
        "suggestion": link.suggestion,
    }
