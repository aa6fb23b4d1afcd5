"""One document in four tabs, its stored bytes, and the pictures of a collection."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from apps.access.errors import NotFound
from apps.access.pages import answer, paged
from apps.access.viewers import Viewer, viewer_of
from apps.collections import presentation
from apps.collections.lookup import asset_for, collection_for, document_for
from apps.collections.models import Collection, Document, DocumentChunk, DocumentLink, DocumentVersion
from apps.collections.page_body import page_body, source_html
from apps.collections.parse_warnings import sentence, with_place
from apps.indexing.chunk_vectors import chunk_vectors
from apps.jobs.models import Job, JobItem

TABS = (("preview", "Preview"), ("raw", "Raw"), ("metadata", "Metadata"), ("chunks", "Chunks"))
MAX_LINES = 10_000
CHUNKS_AT_ONCE = 512
"""The default cap of a document: `#chunk-<index>` is on the first page of every document that was not given a higher
one."""
STRIP_CHUNKS = 2_000
SHOWN_BACKLINKS = 50
SHOWN_ROWS = 500
JOBS_OF_HISTORY = 20

# SECURITY: what an author uploads is never run in the portal's origin, whatever it claims to be.
RAW_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "X-Content-Type-Options": "nosniff",
}
ASSET_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    "X-Content-Type-Options": "nosniff",
}


@require_safe
def document_page(request: HttpRequest, collection_id: UUID, document_id: UUID) -> HttpResponse:
    viewer = viewer_of(request)
    collection = collection_for(viewer, collection_id)
    document = document_for(viewer, collection, document_id)
    asked = request.GET.get("tab", "")
    tab = asked if asked in dict(TABS) else "preview"
    context: dict[str, Any] = {
        "header": presentation.header(collection, "documents"),
        "collection": collection,
        "document": document,
        "crumbs": document.source_key.split("/"),
        "tabs": TABS,
        "tab": tab,
        "notes": notes_of(document) if tab != "metadata" else [],
        "frontmatter": [(name, _as_text(value)) for name, value in sorted(document.frontmatter.items())],
    }
    values = {"preview": _preview, "raw": _raw, "metadata": _metadata, "chunks": _chunks}[tab]
    context |= values(request, viewer, document)
    return answer(request, f"collections/{tab}.html", context)


def _as_text(value: object) -> str:
    """A front matter value as people write it: lists with commas, the rest as JSON would say it."""
    if isinstance(value, list):
        return ", ".join(_as_text(one) for one in value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def notes_of(document: Document) -> list[str]:
    """What a reader must know before reading: guessed encoding, cut parts, front matter that was not read."""
    notes = []
    if document.truncated_at_line is not None:
        notes.append(
            f"Only the part before line {document.truncated_at_line} can be found by search: the document has more "
            "chunks than the collection takes."
        )
    notes += [with_place(row) for row in document.warnings if row.get("code") != "truncated"]
    return notes


def _preview(request: HttpRequest, viewer: Viewer, document: Document) -> dict[str, Any]:
    backlinks = (
        DocumentLink.objects.visible_to(viewer)
        .filter(target_document=document, document__trashed_at=None)
        .exclude(document=document)
        .order_by("document__source_key", "document_id")
        .values_list("document_id", "document__title", "document__source_key")
        .distinct()[:SHOWN_BACKLINKS]
    )
    return {"body": page_body(document), "backlinks": list(backlinks)}


def _raw(request: HttpRequest, viewer: Viewer, document: Document) -> dict[str, Any]:
    shown, total = document.text, document.line_count
    if total > MAX_LINES:
        shown = "\n".join(shown.split("\n", MAX_LINES)[:MAX_LINES])
    return {
        "html": source_html(shown, document.source_key) if shown else "",
        "line_total": total,
        "shown_lines": min(total, MAX_LINES),
    }


def _metadata(request: HttpRequest, viewer: Viewer, document: Document) -> dict[str, Any]:
    parsed = document.parsed
    links = document.links.select_related("target_document").only(*_LINK_FIELDS).in_order()[:SHOWN_ROWS]
    jobs = (
        Job.objects.visible_to(viewer)
        .of_source(Collection.kind, document.collection_id)
        .filter(kind="upload")
        .order_by("-created_at", "id")
        .values_list("pk", flat=True)[:JOBS_OF_HISTORY]
    )
    return {
        "warnings": [(row.get("line") or 1, row.get("column") or 1, sentence(row)) for row in document.warnings],
        "digest": bytes(document.content_hash).hex(),
        "headings": parsed.get("heading_tree", ())[:SHOWN_ROWS],
        "code_blocks": parsed.get("code_blocks", ())[:SHOWN_ROWS],
        "tables": parsed.get("tables", ())[:SHOWN_ROWS],
        "links": presentation.link_lines(links),
        "versions": document.versions.select_related("uploaded_by").defer("raw").order_by("-number")[:SHOWN_ROWS],
        "history": JobItem.objects.filter(job__in=list(jobs), path=document.source_key)
        .select_related("job")
        .order_by("-job__created_at"),
    }


_LINK_FIELDS = (
    "collection_id", "document_id", "href", "text", "lines", "link_type", "state", "reason", "anchor", "candidates",
    "suggestion", "target_asset_id", "target_document__source_key", "rel_type", "field", "embed",
)  # fmt: skip


def _chunks(request: HttpRequest, viewer: Viewer, document: Document) -> dict[str, Any]:
    text = request.GET.get("q", "").replace("\0", " ").strip()[:200]
    every = DocumentChunk.objects.visible_to(viewer).filter(document=document)
    rows = every.order_by("chunk_index", "id")
    total: int | None = document.chunk_count
    if text:
        rows, total = rows.filter(source__icontains=text), None
    page = paged(rows, request, size=CHUNKS_AT_ONCE, total=total)
    shown = list(page.object_list)
    whole = len(shown) == document.chunk_count
    places = (
        [(chunk.chunk_index, chunk.start_byte, chunk.end_byte) for chunk in shown]
        if whole
        else list(every.order_by("chunk_index").values_list("chunk_index", "start_byte", "end_byte")[:STRIP_CHUNKS])
    )
    return {
        "page": page,
        "lines": presentation.chunk_lines(document, shown, chunk_vectors(shown)),
        "strip": presentation.strip(places, len(document.text.encode("utf-8", "surrogatepass"))),
        "q": text,
    }


@require_safe
def raw(request: HttpRequest, collection_id: UUID, document_id: UUID) -> HttpResponse:
    """The stored bytes of the current version, as a download that no browser runs."""
    viewer = viewer_of(request)
    collection = collection_for(viewer, collection_id)
    document = document_for(viewer, collection, document_id)
    stored = DocumentVersion.objects.filter(document=document, number=document.version).first()
    if stored is None:
        raise NotFound
    name = document.source_key.rsplit("/", 1)[-1]
    return HttpResponse(
        bytes(stored.raw),
        content_type="text/plain",
        headers={**RAW_HEADERS, "Content-Disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}"},
    )


@require_safe
def asset(request: HttpRequest, collection_id: UUID, asset_id: UUID) -> HttpResponse:
    """A picture of a collection, sandboxed, as the type that its name says (``markup.md`` 9.5)."""
    found = asset_for(viewer_of(request), collection_id, asset_id)
    return HttpResponse(bytes(found.data), content_type=found.content_type, headers=dict(ASSET_HEADERS))
