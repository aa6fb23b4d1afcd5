"""Findings about the documents of a collection: broken links and anchors, and what parsing found odd."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from django.db.models import F, Q

from apps.collections.models import Collection, Document, DocumentLink, LinkState
from apps.collections.page_body import reason_words
from apps.indexing.document_findings import RULES, BrokenLink, of_link, of_warning, orphans, told_of, unlinked
from apps.indexing.findings import Finder, Finding, Rows, register_finder

if TYPE_CHECKING:
    from apps.access.sources import Source
    from apps.access.viewers import Viewer
    from apps.indexing.findings import Lists

FAULTS = (LinkState.BROKEN, LinkState.ANCHOR_MISSING)


def register() -> None:
    register_finder(Finder("collection documents", RULES, find, frozenset({Collection.kind}), lists))


def lists(viewer: Viewer, source: Source) -> Lists:
    """Pages that nothing leads to."""
    documents = Document.objects.visible_to(viewer).filter(collection=source.pk)
    alone = unlinked(documents, DocumentLink.objects.all(), Q(collection=source.pk))
    return (alone.order_by("source_key").values("id", path=F("source_key")),)


def find(viewer: Viewer, source: Source, rows: Rows) -> Iterator[Finding]:
    """Findings in the reader's scope. Links still to be looked at are no findings."""
    yield from orphans(rows[0])
    documents: Any = Document.objects.visible_to(viewer).filter(collection=source.pk)
    own: Any = DocumentLink.objects.filter(document__in=documents.values("pk"), state__in=FAULTS)
    links = list(
        own.in_order().values_list(
            "document_id", "document__source_key", "href", "lines", "state", "reason", "candidates", "suggestion"
        )
    )
    texts: dict[Any, str] = {}
    for pk, key, warnings, text in told_of(documents, {row[0] for row in links}, "source_key"):
        texts[pk] = text
        for warning in warnings:
            yield of_warning(warning, key, pk)
    lines_of = {pk: text.split("\n") for pk, text in texts.items()}
    for document, key, href, lines, state, reason, candidates, suggestion in links:
        for line in lines or [1]:
            texts_of = lines_of.get(document, [])
            yield of_link(
                BrokenLink(
                    document,
                    key,
                    line,
                    href,
                    state == LinkState.ANCHOR_MISSING,
                    reason_words(state, reason, candidates),
                    suggestion,
                    line_text=texts_of[line - 1] if line <= len(texts_of) else "",
                )
            )
