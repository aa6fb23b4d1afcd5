"""Collections as a person reads them: the header of every page, cards, shares of bars, vectors and links in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from uuid import UUID

from django.urls import is_valid_path

from apps.access.shares import Share, shares
from apps.collections.models import Collection, Document, DocumentChunk, DocumentLink, LinkState
from apps.collections.page_body import reason_words
from apps.indexing import composition
from apps.jobs.models import Job, Status
from apps.jobs.presentation import JobLine

if TYPE_CHECKING:
    from apps.access.viewers import Viewer
    from apps.indexing.chunk_vectors import ChunkVector
    from apps.indexing.vectors import EmbedStatus


@dataclass(frozen=True, slots=True)
class Tab:
    name: str
    words: str
    href: str


@dataclass(frozen=True, slots=True)
class SourceHeader:
    """What stands above every page of a collection."""

    collection: Collection
    current: str
    tabs: Sequence[Tab]
    may_write: bool
    may_manage: bool
    may_administer: bool
    heading: bool = False
    """Whether the name of the collection is the heading of the page."""


def header(collection: Collection, current: str, *, heading: bool = False) -> SourceHeader:
    may_write = bool(getattr(collection, "may_write", False))
    base = collection.get_absolute_url()
    tabs = [Tab("documents", "Documents", base), Tab("links", "Links", f"{base}/links")]
    # Pages of higher rooms: a room that is not joined to the site shows no entry.
    for name, words, href in (
        ("lint", "Findings", f"{base}/lint"),
        ("graph", "Graph", f"/graph/collection/{collection.pk}"),
    ):
        if is_valid_path(href):
            tabs.append(Tab(name, words, href))
    tabs.append(Tab("jobs", "Jobs", f"/docs/jobs?source=collection:{collection.pk}"))
    if may_write:
        tabs += [Tab("trash", "Trash", f"{base}/trash"), Tab("settings", "Settings", f"{base}/settings")]
    return SourceHeader(
        collection=collection,
        current=current,
        tabs=tuple(tabs),
        may_write=may_write,
        may_manage=bool(getattr(collection, "may_manage", False)),
        may_administer=bool(getattr(collection, "may_administer", False)),
        heading=heading,
    )


# -- cards


@dataclass(frozen=True, slots=True)
class Card:
    """A collection in the list. ``vectors`` says in words how far search by meaning goes."""

    collection: Collection
    vectors: str
    vectors_class: str
    live: JobLine | None


def cards(collections: Sequence[Collection], viewer: Viewer) -> list[Card]:
    """With the newest job of each kind, in one query however many there are."""
    rows = (
        Job.objects.visible_to(viewer)
        .filter(source_kind=Collection.kind, source_id__in=[collection.pk for collection in collections])
        .filter(kind__in=("embed", "upload"))
        .order_by("source_id", "kind", "-created_at", "id")
        .distinct("source_id", "kind")
    )
    newest: dict[UUID, dict[str, Job]] = {}
    for job in rows:
        if job.source_id is not None:
            newest.setdefault(job.source_id, {})[job.kind] = job
    return [_card(collection, newest.get(collection.pk, {})) for collection in collections]


def _card(collection: Collection, jobs: Mapping[str, Job]) -> Card:
    embed = jobs.get("embed")
    words, style = "", ""
    if embed is not None and embed.is_live:
        words, style = "embedding", "info"
    elif embed is not None and embed.status == Status.SUCCESS:
        words, style = "embedded", "ok"
    elif embed is not None:
        words, style = "vectors missing", "warn"
    upload = jobs.get("upload")
    return Card(collection, words, style, JobLine(upload, collection) if upload and upload.is_live else None)


# -- bars


def coverage(status: EmbedStatus) -> list[Share]:
    return shares(
        (
            ("embedded", status.embedded, "fill-ok"),
            ("waiting", status.pending, "fill-6"),
            ("failed", status.failed, "fill-bad"),
        )
    )


# -- chunks and links of a document


@dataclass(frozen=True, slots=True)
class ChunkLine:
    """A chunk with what was made of it. ``embedded`` is exactly the string that is embedded."""

    chunk: DocumentChunk
    embedded: str
    vectors: Sequence[ChunkVector]
    characters: int

    @property
    def tokens(self) -> int | None:
        return next((vector.tokens for vector in self.vectors if vector.tokens is not None), None)

    @property
    def is_cut(self) -> bool:
        return any(vector.truncated for vector in self.vectors)


def chunk_lines(
    document: Document, chunks: Sequence[DocumentChunk], vectors: Mapping[int, Sequence[ChunkVector]]
) -> list[ChunkLine]:
    return [
        ChunkLine(
            chunk,
            composition.embedded("docs", document.title, chunk.heading_path, chunk.searched).text,
            vectors.get(chunk.pk, ()),
            len(chunk.source),
        )
        for chunk in chunks
    ]


def strip(places: Sequence[tuple[int, int, int]], size: int) -> list[Share]:
    """(index, first byte, end byte) of each chunk → where it lies in a source of ``size`` bytes."""
    whole = max(size, max((end for _, _, end in places), default=0), 1)
    return [
        Share(
            f"Chunk {index}: bytes {start} to {end}",
            end - start,
            round(100 * start / whole, 3),
            round(max(100 * (end - start) / whole, 0.15), 3),
            "fill-1" if index % 2 == 0 else "fill-3",
        )
        for index, start, end in places
    ]


@dataclass(frozen=True, slots=True)
class LinkLine:
    """A link row in words; ``target`` is where it leads, empty when it leads nowhere."""

    link: DocumentLink
    target: str
    target_words: str
    style: str

    @property
    def reason(self) -> str:
        if self.link.state in (LinkState.RESOLVED, LinkState.ASSET, LinkState.EXTERNAL):
            return ""
        return reason_words(self.link.state, self.link.reason, self.link.candidates, "")


_STYLES = {
    LinkState.RESOLVED: "ok",
    LinkState.ASSET: "ok",
    LinkState.EXTERNAL: "",
    LinkState.ANCHOR_MISSING: "warn",
    LinkState.BROKEN: "bad",
    LinkState.PENDING: "info",
}


def link_lines(links: Iterable[Any]) -> list[LinkLine]:
    """``links`` with ``target_document`` fetched (key only)."""
    found = []
    for link in links:
        target = words = ""
        if link.target_document_id:
            target = f"/docs/{link.collection_id}/documents/{link.target_document_id}"
            target += f"#{quote(link.anchor)}" if link.anchor else ""
            words = link.target_document.source_key + (f"#{link.anchor}" if link.anchor else "")
        elif link.target_asset_id:
            target, words = f"/docs/{link.collection_id}/assets/{link.target_asset_id}", "image"
        found.append(LinkLine(link, target, words, _STYLES[LinkState(link.state)]))
    return found
