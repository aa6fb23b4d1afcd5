"""Findings about the documents of a repository: broken links and anchors, and what parsing found odd."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote
from uuid import UUID

from django.db.models import Exists, F, OuterRef, Q

from apps.indexing.document_findings import RULES, BrokenLink, of_link, of_warning, orphans, told_among, unlinked
from apps.indexing.findings import Finder, Finding, Rows, register_finder
from apps.repos.discovery import Kind
from apps.repos.models import (
    LinkState,
    Repository,
    RepositoryDocument,
    RepositoryDocumentLink,
    RepositoryDocumentRedirect,
)
from apps.repos.models_code import CodeDocumentLink

if TYPE_CHECKING:
    from apps.access.sources import Source
    from apps.access.viewers import Viewer
    from apps.indexing.findings import Lists

FAULTS = (LinkState.BROKEN, LinkState.ANCHOR_MISSING)


def register() -> None:
    register_finder(Finder("repository documents", RULES, find, frozenset({Repository.kind}), lists))


def lists(viewer: Viewer, source: Source) -> Lists:
    """Links that lead nowhere, redirects, documents with something to tell, pages that nothing leads to."""
    own: Any = RepositoryDocumentLink.objects.visible_to(viewer).filter(repository=source.pk, state__in=FAULTS)
    moves: Any = RepositoryDocumentRedirect.objects.visible_to(viewer).filter(
        repository=source.pk, document__isnull=False
    )
    documents = RepositoryDocument.objects.visible_to(viewer).filter(repository=source.pk)
    alone = unlinked(documents, RepositoryDocumentLink.objects.all(), Q(repository=source.pk))
    named: Any = CodeDocumentLink.objects.filter(target_document=OuterRef("pk"))
    return (
        own.in_order().values(*_LINK, "document_id", place=F("document__path")),
        moves.values("path", now=F("document__path")),
        told_among(documents, own.values("document_id")).order_by("path").values("id", "path", "warnings", "told"),
        alone.filter(~Exists(named), kind=Kind.REPO_DOC).order_by("path").values("id", "path"),
    )


def find(viewer: Viewer, source: Source, rows: Rows) -> Iterator[Finding]:
    """Findings in the reader's scope; what a link leads to stays within its repository, so nothing hidden shows."""
    links, redirects, told, led_to_by_none = rows
    moved = {row["path"]: row["now"] for row in redirects}
    texts: dict[UUID, str] = {}
    for one in told:
        pk = UUID(one["id"])
        texts[pk] = one["told"]
        for warning in one["warnings"]:
            yield of_warning(warning, one["path"], pk)
    yield from _links(links, texts, moved)
    yield from orphans(led_to_by_none)


_LINK = ("href", "path", "lines", "state", "candidates", "suggestion")


def _links(rows: Sequence[Mapping[str, Any]], texts: Mapping[UUID, str], moved: Mapping[str, str]) -> Iterator[Finding]:
    """``moved``: paths of before, and where their documents are now."""
    lines_of = {pk: text.split("\n") for pk, text in texts.items()}
    for row in rows:
        document, path = UUID(row["document_id"]), row["place"]
        href, target, lines, state, candidates, suggestion = (row[name] for name in _LINK)
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
