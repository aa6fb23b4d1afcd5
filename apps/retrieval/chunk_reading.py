"""One chunk of any store with its neighbours, or word of what became of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from apps.access.errors import Gone, NotFound
from apps.access.sources import Source
from apps.indexing.chunk_states import VectorState, vector_states
from apps.indexing.models import Chunk, ChunkTombstone
from apps.indexing.stores import ChunkStore, all_stores, stores_of
from apps.repos.models_code import CodeChunk

if TYPE_CHECKING:
    from apps.access.viewers import Viewer

MAX_ID = 2**63 - 1
MOST_NEIGHBOURS = 2


class ChunkGone(Gone):
    """A chunk that its document no longer has; ``successor`` is the chunk that stands in its place, if any."""

    def __init__(
        self, message: str, *, heading_path: Sequence[str], document_url: str, successor: int | None, title: str
    ) -> None:
        super().__init__(message)
        self.title = title
        self.heading_path = tuple(heading_path)
        self.document_url = document_url
        self.successor = successor


@dataclass(frozen=True, slots=True)
class ChunkView:
    """``around`` are the chunks before and after in their order, without the chunk itself."""

    chunk: Any
    document: Any
    source: Source
    path: str
    around: Sequence[Any]
    vectors: Mapping[int, VectorState]

    @property
    def url(self) -> str:
        """To the section in the document."""
        return f"{self.document.get_absolute_url()}#{place_of(self.chunk)}"


def place_of(chunk: Any) -> str:
    """Where a chunk stands in the page of its document: the anchor of its section, or its lines. In a chunk of code
    the field holds the symbol, which is no anchor of the file."""
    if chunk.section_anchor and not isinstance(chunk, CodeChunk):
        anchor: str = chunk.section_anchor
        return anchor
    return f"L{chunk.start_line}-L{chunk.end_line}"


def read_chunk(viewer: Viewer, chunk_id: int, *, neighbours: int = 0) -> ChunkView:
    """The chunk with this id, inside the viewer's scope.

    Raises NotFound alike for hidden and absent ones, ChunkGone for one that a readable document has lost.
    """
    if not 0 < chunk_id <= MAX_ID:
        raise NotFound
    for store in all_stores():
        rows: Any = store.model._default_manager
        chunk = rows.visible_to(viewer).select_related(*_related(store)).filter(pk=chunk_id).first()
        if chunk is not None:
            return _view(store, chunk, neighbours)
    raise gone_or_absent(viewer, chunk_id)


def gone_or_absent(viewer: Viewer, chunk_id: int) -> Gone | NotFound:
    """What to answer for an id that no chunk in scope has."""
    stone = ChunkTombstone.objects.visible_to(viewer).filter(pk=chunk_id).first()
    if stone is None:
        return NotFound()
    for store in stores_of(stone.source_kind):
        document_model: Any = store.model._meta.get_field(store.document_field).related_model
        document = document_model._default_manager.visible_to(viewer).filter(pk=stone.document_id).first()
        if document is None:
            continue
        successor = _successor(store, stone)
        place = f"{document.get_absolute_url()}#{place_of(successor)}" if successor else ""
        section = " > ".join(stone.heading_path) or "its beginning"
        where = (
            f"Chunk {successor.pk} stands in its place ({place})."
            if successor
            else f"The document is at {document.get_absolute_url()}."
        )
        return ChunkGone(
            f"This chunk of “{document.title}”, section “{section}”, was replaced when the document changed. {where}",
            heading_path=stone.heading_path,
            document_url=document.get_absolute_url(),
            successor=successor.pk if successor else None,
            title=document.title,
        )
    return NotFound()


def _successor(store: ChunkStore, stone: ChunkTombstone) -> Chunk | None:
    """The chunk of the same section nearest to the old place, else of the nearest section above it that still is."""
    chunks: Any = store.model._default_manager.filter(**{store.document_field: stone.document_id})
    best: tuple[int, int, int] | None = None
    found: Chunk | None = None
    for chunk in chunks.only("pk", "chunk_index", "heading_path", "section_anchor", "start_line", "end_line").order_by(
        "chunk_index"
    ):
        shared = 0
        for old, new in zip(stone.heading_path, chunk.heading_path, strict=False):
            if old != new:
                break
            shared += 1
        same = chunk.heading_path == stone.heading_path
        key = (int(same), shared, -abs(chunk.chunk_index - stone.chunk_index))
        if (same or shared) and (best is None or key > best):
            best, found = key, chunk
    return found


def _related(store: ChunkStore) -> tuple[str, ...]:
    return (store.document_field, store.source_field)


def _view(store: ChunkStore, chunk: Any, neighbours: int) -> ChunkView:
    around: list[Any] = []
    if neighbours:
        near: Any = store.model._default_manager.filter(
            **{store.document_field: getattr(chunk, f"{store.document_field}_id")},
            chunk_index__range=(chunk.chunk_index - neighbours, chunk.chunk_index + neighbours),
        )
        around = list(near.exclude(pk=chunk.pk).order_by("chunk_index"))
    document = getattr(chunk, store.document_field)
    source = getattr(chunk, store.source_field)
    setattr(document, store.source_field, source)
    path: Any = chunk
    for step in store.path_field.split("__"):
        path = getattr(path, step)
    return ChunkView(chunk, document, source, str(path), around, vector_states([chunk, *around]))
