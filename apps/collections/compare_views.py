"""Two versions of a document compared, as a page and as a patch (``portal.md`` 25)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from apps.access.errors import NotFound
from apps.access.pages import answer
from apps.access.viewers import viewer_of
from apps.collections import presentation
from apps.collections.comparing import compare_versions, kept_versions
from apps.collections.document_views import RAW_HEADERS, TABS
from apps.collections.lookup import collection_for, document_for
from apps.collections.models import Document
from apps.indexing.comparison import choose, page_values
from apps.markup.line_diff import as_patch


@require_safe
def compare_page(request: HttpRequest, collection_id: UUID, document_id: UUID) -> HttpResponse:
    document, header = _document(request, collection_id, document_id)
    versions = kept_versions(document)
    choice = choose(request.GET, [version.name for version in versions])
    context: dict[str, Any] = {
        "header": header,
        "collection": document.collection,
        "document": document,
        "crumbs": document.source_key.split("/"),
        "tabs": TABS,
        "tab": "compare",
        "notes": (),
        "versions": versions,
        "choice": choice,
        "compared": None,
    }
    if choice.both and choice.differs:
        context |= page_values(compare_versions(document, *choice.both))
        context["patch"] = reverse("collections:compare-raw", args=[collection_id, document_id]) + choice.query
    return answer(request, "collections/compare.html", context)


@require_safe
def compare_patch(request: HttpRequest, collection_id: UUID, document_id: UUID) -> HttpResponse:
    """The same as unified text, whole."""
    document, _ = _document(request, collection_id, document_id)
    both = choose(request.GET, [version.name for version in kept_versions(document)]).both
    if both is None:
        raise NotFound
    compared = compare_versions(document, *both)
    names = [f"{document.source_key} ({side.words})" for side in (compared.old, compared.new)]
    return HttpResponse(as_patch(compared.lines, *names), content_type="text/plain; charset=utf-8", headers=RAW_HEADERS)


def _document(request: HttpRequest, collection_id: UUID, document_id: UUID) -> tuple[Document, Any]:
    viewer = viewer_of(request)
    collection = collection_for(viewer, collection_id)
    return document_for(viewer, collection, document_id), presentation.header(collection, "documents")
