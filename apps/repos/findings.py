"""Findings about the documents of a repository: broken links and anchors, and what parsing found odd."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from apps.indexing.document_findings import RULES, BrokenLink, of_link, of_warning, told_of
from apps.indexing.findings import Finder, Finding, register_finder
from apps.repos.models import (
    LinkState,
    Repository,
    RepositoryDocument,
    RepositoryDocumentLink,
    RepositoryDocumentRedirect,
)

if TYPE_CHECKING:
    from apps.access.sources import Source
    from apps.access.viewers import Viewer

FAULTS = (LinkState.BROKEN, LinkState.ANCHOR_MISSING)


def register() -> None:
    register_finder(Finder("repository documents", RULES, find, frozenset({Repository.kind})))


def find(viewer: Viewer, source: Source) -> Iterator[Finding]:
    """Findings in the reader's scope; what a link leads to stays within its repository, so nothing hidden shows."""
    own: Any = RepositoryDocumentLink.objects.visible_to(viewer).filter(repository=source.pk, state__in=FAULTS)
    rows = list(
        own.order_by("document__path", "id").values_list(
            "document_id", "document__path", "href", "path", "lines", "state", "candidates", "suggestion"
        )
    )
    documents = RepositoryDocument.objects.visible_to(viewer).filter(repository=source.pk)
    texts: dict[Any, str] = {}
    for pk, path, warnings, text in told_of(documents, {row[0] for row in rows}, "path"):
        texts[pk] = text
        for warning in warnings:
            yield of_warning(warning, path, pk)
    yield from _links(viewer, source, rows, texts)


def _links(viewer: Viewer, source: Source, rows: list[Any], texts: dict[Any, str]) -> Iterator[Finding]:
    if not rows:
        return
    lines_of = {pk: text.split("\n") for pk, text in texts.items()}
    moved = dict(
        RepositoryDocumentRedirect.objects.visible_to(viewer)
        .filter(repository=source.pk, document__isnull=False)
        .values_list("path", "document__path")
    )
    for document, path, href, target, lines, state, candidates, suggestion in rows:
        why = f"several files have this name: {', '.join(candidates)}" if candidates else "not found in this repository"
        written = unquote(target or href.partition("#")[0])
        place = posixpath.normpath(posixpath.join(posixpath.dirname(path), written)).lstrip("/")
        for line in lines or [1]:
            texts_of = lines_of.get(document, [])
            yield of_link(
                BrokenLink(
                    document,
                    path,
                    line,
                    href,
                    state == LinkState.ANCHOR_MISSING,
                    why,
                    suggestion,
                    moved.get(place, "") if state == LinkState.BROKEN else "",
                    texts_of[line - 1] if line <= len(texts_of) else "",
                )
            )
