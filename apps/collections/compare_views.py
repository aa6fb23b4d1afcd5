"""Two versions of a document compared, as a page and as a patch (``portal.md`` 25)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from apps.access.errors import NotFound
from apps.access.pages import answer
from apps.access.viewers import viewer_of
from apps.collections import presentation
from apps.collections.comparing import Comparison, Version, compare_versions, kept_versions
from apps.collections.document_views import RAW_HEADERS, TABS
from apps.collections.lookup import collection_for, document_for
from apps.collections.models import Document
from apps.indexing.chunk_comparison import ChunkChange, counts
from apps.markup.line_diff import Hunk, LineDiff, as_patch

SHOWN_LINES = 2_000
SHOWN_CHUNKS = 500


@dataclass(frozen=True, slots=True)
class Choice:
    """Which two versions were asked for; None where the address names none that is kept."""

    old: int | None
    new: int | None

    @property
    def both(self) -> tuple[int, int] | None:
        return None if self.old is None or self.new is None else (self.old, self.new)


@require_safe
def compare_page(request: HttpRequest, collection_id: UUID, document_id: UUID) -> HttpResponse:
    document, header = _document(request, collection_id, document_id)
    versions = kept_versions(document)
    choice = _choice(request, versions)
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
    if len(versions) > 1 and choice.both is not None and choice.old != choice.new:
        context |= _compared(compare_versions(document, *choice.both))
    return answer(request, "collections/compare.html", context)


@require_safe
def compare_patch(request: HttpRequest, collection_id: UUID, document_id: UUID) -> HttpResponse:
    """The same as unified text, whole."""
    document, _ = _document(request, collection_id, document_id)
    both = _choice(request, kept_versions(document)).both
    if both is None:
        raise NotFound
    compared = compare_versions(document, *both)
    names = [f"{document.source_key} (version {number})" for number in both]
    return HttpResponse(as_patch(compared.lines, *names), content_type="text/plain; charset=utf-8", headers=RAW_HEADERS)


def _document(request: HttpRequest, collection_id: UUID, document_id: UUID) -> tuple[Document, Any]:
    viewer = viewer_of(request)
    collection = collection_for(viewer, collection_id)
    return document_for(viewer, collection, document_id), presentation.header(collection, "documents")


def _choice(request: HttpRequest, versions: Sequence[Version]) -> Choice:
    """``?from=`` and ``?to=``; without them the current version and the one before it."""
    kept = [version.number for version in versions]
    asked = {name: request.GET.get(name, "") for name in ("from", "to")}
    to = _kept(asked["to"], kept) if asked["to"] else next(iter(kept), None)
    before = [number for number in kept if to is not None and number < to]
    return Choice(_kept(asked["from"], kept) if asked["from"] else next(iter(before), to), to)


def _kept(asked: str, kept: Sequence[int]) -> int | None:
    return next((number for number in kept if str(number) == asked), None)


def _compared(compared: Comparison) -> dict[str, Any]:
    tally = counts(compared.chunks)
    changes = [change for change in compared.chunks if change.state != "same" or change.embedded_anew]
    shown = list(_shown(compared.lines.hunks))
    return {
        "compared": compared,
        "sides": (compared.old, compared.new),
        "hunks": shown,
        "left_out": _size(compared.lines) - sum(len(hunk.lines) for hunk in shown),
        "same": tally.get("same", 0),
        "figures": [
            (words, tally.get(name, 0))
            for name, words in (
                ("added", "Added"),
                ("changed", "Changed"),
                ("moved", "Moved"),
                ("gone", "Gone"),
                ("embedded_anew", "Embedded anew"),
            )
        ],
        "changes": [ChunkRow(change, compared) for change in changes[:SHOWN_CHUNKS]],
        "more_changes": max(len(changes) - SHOWN_CHUNKS, 0),
    }


def _size(diff: LineDiff) -> int:
    return sum(len(hunk.lines) for hunk in diff.hunks)


def _shown(hunks: Sequence[Hunk]) -> Iterator[Hunk]:
    left = SHOWN_LINES
    for hunk in hunks:
        if left > 0:
            yield Hunk(hunk.lines[:left])
        left -= len(hunk.lines)


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """A chunk that differs, with what the page says of it."""

    change: ChunkChange
    compared: Comparison

    @property
    def headings(self) -> Sequence[str]:
        either = self.change.new or self.change.old
        return either.heading_path if either else ()

    @property
    def address(self) -> str:
        """The permalink of the chunk where it is a stored one, else empty."""
        id_ = self.compared.new.ids.get(self.change.new.chunk_index) if self.change.new else None
        return f"/chunks/{id_}" if id_ is not None else ""
