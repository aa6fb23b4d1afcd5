"""Two versions of a document side by side: its lines, and its chunks as the collection cuts them today."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from apps.access.errors import NotFound
from apps.collections.documents import Incoming, as_cut, profile_of, title_of
from apps.collections.models import Document, DocumentChunk, DocumentState, DocumentVersion
from apps.collections.reading import read_one
from apps.indexing.chunk_comparison import CutText
from apps.indexing.comparison import Comparison, Side, compare
from apps.markup.values import Skipped


@dataclass(frozen=True, slots=True)
class Version:
    """A version whose bytes are kept. ``by``: name of who uploaded it, empty when the account is gone."""

    number: int
    uploaded_at: datetime
    by: str

    @property
    def name(self) -> str:
        return str(self.number)


def kept_versions(document: Document) -> list[Version]:
    """The newest first; one query."""
    rows = document.versions.order_by("-number").values_list("number", "uploaded_at", "uploaded_by__username")
    return [Version(number, uploaded_at, by or "") for number, uploaded_at, by in rows]


def compare_versions(document: Document, *names: str) -> Comparison:
    """The older and the newer of two versions, by name; ``document`` with its collection fetched. Raises NotFound for
    one that is not kept."""
    old, new = map(int, names)
    raws = {
        version.number: bytes(version.raw)
        for version in DocumentVersion.objects.filter(document=document, number__in={old, new})
    }
    if not {old, new} <= set(raws):
        raise NotFound
    return compare(*(_side(document, number, raws[number]) for number in (old, new)))


def _side(document: Document, number: int, raw: bytes) -> Side:
    if number == document.version and document.profile == profile_of(document.collection):
        return _stored(document)
    reading = read_one(Incoming(document.source_key, raw), document.collection)
    if isinstance(reading, Skipped):
        return Side(_words(number), unread=reading.message)
    title = title_of(document.title_override, reading.parsed.title, document.source_key)
    return Side(_words(number), reading.parsed.text, CutText(title, reading.chunked.chunks))


def _words(number: int) -> str:
    return f"version {number}"


def _stored(document: Document) -> Side:
    """The version that search knows: neither parsed nor cut again."""
    if document.state == DocumentState.SKIPPED:
        words = [str(row.get("message", "")) for row in document.warnings]
        return Side(_words(document.version), unread=words[0] if words else document.state_reason)
    cut = as_cut(DocumentChunk.objects.filter(document=document).order_by("chunk_index"))
    ids = {chunk.chunk_index: chunk.pk for chunk, _ in cut}
    return Side(_words(document.version), document.text, CutText(document.title, [piece for _, piece in cut]), ids=ids)
