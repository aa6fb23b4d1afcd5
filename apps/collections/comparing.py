"""Two versions of a document side by side: its lines, and its chunks as the collection cuts them today."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from apps.access.errors import NotFound
from apps.collections.documents import Incoming, as_cut, profile_of, title_of
from apps.collections.models import Document, DocumentChunk, DocumentState, DocumentVersion
from apps.collections.reading import read_one
from apps.indexing.chunk_comparison import ChunkChange, CutText, compare_chunks
from apps.markup.line_diff import LineDiff, line_diff
from apps.markup.values import Skipped


@dataclass(frozen=True, slots=True)
class Version:
    """A version whose bytes are kept. ``by``: name of who uploaded it, empty when the account is gone."""

    number: int
    uploaded_at: datetime
    by: str


@dataclass(frozen=True, slots=True)
class Side:
    """One version as read. ``unread``: why there is no text, in words; ``ids``: chunk index → id, where stored."""

    number: int
    text: str = ""
    cut: CutText = field(default_factory=lambda: CutText("", ()))
    unread: str = ""
    ids: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Comparison:
    old: Side
    new: Side
    lines: LineDiff
    chunks: Sequence[ChunkChange]


def kept_versions(document: Document) -> list[Version]:
    """The newest first; one query."""
    rows = document.versions.order_by("-number").values_list("number", "uploaded_at", "uploaded_by__username")
    return [Version(number, uploaded_at, by or "") for number, uploaded_at, by in rows]


def compare_versions(document: Document, old: int, new: int) -> Comparison:
    """``document`` with its collection fetched. Raises NotFound for a version that is not kept."""
    raws = {
        version.number: bytes(version.raw)
        for version in DocumentVersion.objects.filter(document=document, number__in={old, new})
    }
    if not {old, new} <= set(raws):
        raise NotFound
    left, right = (_side(document, number, raws[number]) for number in (old, new))
    return Comparison(left, right, line_diff(left.text, right.text), compare_chunks(left.cut, right.cut))


def _side(document: Document, number: int, raw: bytes) -> Side:
    if number == document.version and document.profile == profile_of(document.collection):
        return _stored(document)
    reading = read_one(Incoming(document.source_key, raw), document.collection)
    if isinstance(reading, Skipped):
        return Side(number, unread=reading.message)
    title = title_of(document.title_override, reading.parsed.title, document.source_key)
    return Side(number, reading.parsed.text, CutText(title, reading.chunked.chunks))


def _stored(document: Document) -> Side:
    """The version that search knows: neither parsed nor cut again."""
    if document.state == DocumentState.SKIPPED:
        words = [str(row.get("message", "")) for row in document.warnings]
        return Side(document.version, unread=words[0] if words else document.state_reason)
    cut = as_cut(DocumentChunk.objects.filter(document=document).order_by("chunk_index"))
    ids = {chunk.chunk_index: chunk.pk for chunk, _ in cut}
    return Side(document.version, document.text, CutText(document.title, [piece for _, piece in cut]), ids=ids)
