"""One passage with the text around it: what stands behind a permalink."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from apps.access.errors import NotFound
from apps.access.sources import Source
from apps.collections.models import Document as CollectionDocument
from apps.collections.page_body import page_body as collection_body
from apps.indexing.models import Chunk
from apps.indexing.stores import ChunkStore, all_stores
from apps.repos.code.bodies import text_of_file
from apps.repos.models import RepositoryDocument
from apps.repos.models_code import CodeFile
from apps.repos.page_body import page_body
from apps.retrieval.chunk_reading import gone_or_absent, place_of

if TYPE_CHECKING:
    from apps.access.viewers import Viewer

AROUND = 200
"""Lines of the source that are shown before and after the passage."""
QUERY_CHARS = 300
RENDERED_FORMATS = ("markdown", "mdx", "rst")
MAX_ID = 2**63 - 1


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of the source. ``chunk`` is the passage that covers it, if any."""

    number: int
    text: str
    marked: bool
    chunk: int | None


@dataclass(frozen=True, slots=True)
class Passage:
    chunk: Chunk
    document: Any
    source: Source
    path: str
    url: str
    """To the section in the document."""
    html: str
    """The rendered document; empty where only its lines are shown."""
    lines: Sequence[SourceLine]
    first_line: int
    last_line: int
    line_total: int
    previous: int | None
    next: int | None
    number: int
    """Place among the passages of the document, from 1."""
    total: int
    search: str

    @property
    def bytes(self) -> int:
        return self.chunk.end_byte - self.chunk.start_byte

    @property
    def tokens(self) -> int:
        """Estimated as everywhere: three bytes a token."""
        return -(-len(self.chunk.source.encode()) // 3)


def passage_for(viewer: Viewer, chunk_id: int) -> Passage:
    """The passage with this id in any store, inside the viewer's scope. Raises NotFound, or Gone with its successor."""
    if not 0 < chunk_id <= MAX_ID:
        raise NotFound
    for store in all_stores():
        rows: Any = store.model._default_manager
        chunk = (
            rows.visible_to(viewer).select_related(store.document_field, store.source_field).filter(pk=chunk_id).first()
        )
        if chunk is not None:
            return _passage(store, chunk)
    raise gone_or_absent(viewer, chunk_id)


def _passage(store: ChunkStore, chunk: Any) -> Passage:
    document = getattr(chunk, store.document_field)
    source: Source = getattr(chunk, store.source_field)
    siblings = list(
        store.model._default_manager.filter(**{store.document_field: document.pk})
        .order_by("chunk_index", "pk")
        .values_list("pk", "start_line", "end_line")
    )
    at = next((place for place, (pk, _, _) in enumerate(siblings) if pk == chunk.pk), 0)
    path = chunk
    for step in store.path_field.split("__"):
        path = getattr(path, step)
    setattr(document, store.source_field, source)
    text = text_of_file(document) or "" if isinstance(document, CodeFile) else document.text
    text_lines = text.split("\n")
    if text_lines and text_lines[-1] == "":
        text_lines.pop()
    first = max(1, chunk.start_line - AROUND)
    last = min(len(text_lines), chunk.end_line + AROUND)
    html = ""
    if isinstance(document, RepositoryDocument) and document.kind == "repo_doc":
        html = page_body(document, document.links.select_related("target_document").order_by("id")).html
    elif isinstance(document, CollectionDocument) and document.format in RENDERED_FORMATS:
        html = collection_body(document).html
    return Passage(
        chunk=chunk,
        document=document,
        source=source,
        path=str(path),
        url=f"{document.get_absolute_url()}#{place_of(chunk)}",
        html=html,
        lines=_lines(text_lines, first, last, chunk, siblings),
        first_line=first,
        last_line=last,
        line_total=len(text_lines),
        previous=siblings[at - 1][0] if at else None,
        next=siblings[at + 1][0] if at + 1 < len(siblings) else None,
        number=at + 1,
        total=len(siblings),
        search="?" + urlencode({"q": " ".join(chunk.source.split())[:QUERY_CHARS]}),
    )


def _lines(
    texts: Sequence[str], first: int, last: int, chunk: Chunk, siblings: Sequence[tuple[int, int, int]]
) -> list[SourceLine]:
    starts = [start for _, start, _ in siblings]

    def owner(number: int) -> int | None:
        at = bisect_right(starts, number) - 1
        return siblings[at][0] if at >= 0 and siblings[at][2] >= number else None

    return [
        SourceLine(number, texts[number - 1], chunk.start_line <= number <= chunk.end_line, owner(number))
        for number in range(first, last + 1)
    ]
