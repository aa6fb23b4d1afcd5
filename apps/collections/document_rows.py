"""Rows of documents, versions and staged files by binary COPY.

Measured with documents of 10 KB: as values of an INSERT their bytes are spelled out by the client and read again by the
server's parser, which costs more than storing them; as model instances they cost the client more than to pack them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter
from typing import Any
from uuid import UUID

from apps.indexing.arrays import update_values
from apps.indexing.copying import copy_values

_DOCUMENT = (
    ("id", "uuid"),
    ("collection_id", "uuid"),
    ("source_key", "text"),
    ("title", "text"),
    ("title_override", "text"),
    ("state", "text"),
    ("state_reason", "text"),
    ("content_hash", "bytea"),
    ("size", "int4"),
    ("version", "int4"),
    ("format", "text"),
    ("encoding", "text"),
    ("encoding_guessed", "bool"),
    ("replaced_characters", "int4"),
    ("text", "text"),
    ("frontmatter", "jsonb"),
    ("parsed", "jsonb"),
    ("warnings", "jsonb"),
    ("truncated_at_line", "int4"),
    ("word_count", "int4"),
    ("line_count", "int4"),
    ("chunk_count", "int4"),
    ("profile", "text"),
    ("created_at", "timestamptz"),
    ("changed_at", "timestamptz"),
    ("uploaded_by_id", "uuid"),
    ("trashed_at", "timestamptz"),
    ("shelved_chunks", "jsonb"),
)
_NEVER_CHANGED = frozenset({"collection_id", "source_key", "created_at"})
_AGAIN = tuple(column for column in _DOCUMENT if column[0] not in _NEVER_CHANGED)
_CUT = frozenset(
    {"parsed", "warnings", "state", "truncated_at_line", "chunk_count", "profile", "frontmatter", "title", "text"}
)
_RECHUNKED = tuple(column for column in _DOCUMENT if column[0] == "id" or column[0] in _CUT)
"""What cutting a document anew may change; its content and version are those it had."""
_VERSION = (
    ("document_id", "uuid"),
    ("number", "int4"),
    ("content_hash", "bytea"),
    ("raw", "bytea"),
    ("uploaded_at", "timestamptz"),
    ("uploaded_by_id", "uuid"),
)
_STAGED = (
    ("upload_id", "uuid"),
    ("position", "int4"),
    ("source_key", "text"),
    ("title", "text"),
    ("asset_type", "text"),
    ("raw", "bytea"),
    ("content_hash", "bytea"),
    ("size", "int8"),
    ("error_code", "text"),
    ("error_message", "text"),
)


@dataclass(slots=True)
class DocumentRow:
    """A row of ``md_documents`` to be written. JSON columns take what orjson takes."""

    id: UUID
    collection_id: UUID
    source_key: str
    title_override: str
    content_hash: bytes
    size: int
    version: int
    profile: str
    created_at: datetime
    changed_at: datetime
    uploaded_by_id: UUID | None
    title: str = ""
    state: str = ""
    state_reason: str = ""
    format: str = "text"
    encoding: str = ""
    encoding_guessed: bool = False
    replaced_characters: int = 0
    text: str = ""
    frontmatter: dict[str, Any] = field(default_factory=dict)
    parsed: dict[str, Any] = field(default_factory=dict)
    warnings: list[dict[str, Any]] = field(default_factory=list)
    truncated_at_line: int | None = None
    word_count: int = 0
    line_count: int = 0
    chunk_count: int = 0
    trashed_at: datetime | None = None
    shelved_chunks: tuple[()] = ()


@dataclass(frozen=True, slots=True)
class VersionRow:
    """A row of ``md_document_versions``."""

    document_id: UUID
    number: int
    content_hash: bytes
    raw: bytes
    uploaded_at: datetime
    uploaded_by_id: UUID | None


@dataclass(frozen=True, slots=True)
class StagedRow:
    """One file of an upload: its bytes, or why it was refused."""

    source_key: str
    size: int
    raw: bytes | None = None
    content_hash: bytes | None = None
    title: str = ""
    asset_type: str = ""
    error_code: str = ""
    error_message: str = ""


_values_of_document = attrgetter(*(name for name, _ in _DOCUMENT))
_values_again = attrgetter(*(name for name, _ in _AGAIN))
_values_rechunked = attrgetter(*(name for name, _ in _RECHUNKED))
_values_of_version = attrgetter(*(name for name, _ in _VERSION))
_values_of_staged = attrgetter(*(name for name, _ in _STAGED[2:]))


def write_documents(rows: Sequence[DocumentRow], *, replaced: Collection[UUID], rechunk: bool) -> None:
    """Insert rows, or put them in place of those that the caller has locked (``replaced``). Caller's transaction."""
    copy_values("md_documents", _DOCUMENT, [_values_of_document(row) for row in rows if row.id not in replaced])
    again = _values_again if not rechunk else _values_rechunked
    update_values("md_documents", _RECHUNKED if rechunk else _AGAIN, [again(row) for row in rows if row.id in replaced])


def copy_versions(rows: Sequence[VersionRow]) -> None:
    copy_values("md_document_versions", _VERSION, [_values_of_version(row) for row in rows])


def copy_staged(upload: UUID, first: int, rows: Sequence[StagedRow]) -> None:
    """Rows of one upload; ``first`` is the position of the first of them."""
    values = [(upload, position, *_values_of_staged(row)) for position, row in enumerate(rows, first)]
    copy_values("md_staged_entries", _STAGED, values)
