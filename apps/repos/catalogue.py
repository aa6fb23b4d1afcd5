"""Reading by name for programs: which repositories there are, which document a location means, where the README is.

Every function begins with what the viewer may read; a place that is hidden is as absent as one that never was.
"""

from __future__ import annotations

import datetime
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db.models import Count, Q, QuerySet
from django.utils import timezone

from apps.access.compiled import (
    AFTER_ID,
    AFTER_TEXT,
    MARK_OF_ID,
    MARK_OF_NOW,
    MARK_OF_TEXT,
    ReadablePages,
    ReadableRows,
    among,
)
from apps.access.errors import NotFound
from apps.access.querysets import first_or_absent
from apps.access.rest.cursors import Page, page_of_readable, page_of_rows
from apps.indexing.outlines import Outlined
from apps.repos import statistics
from apps.repos.lookup import document_for
from apps.repos.models import Repository, RepositoryDocument, RepositoryDocumentLink, RepositoryFile
from apps.repos.models_code import CodeNode
from apps.repos.querysets import overdue_before
from apps.repos.ranges import LONGEST_PATH, NotIndexed

if TYPE_CHECKING:
    from apps.access.viewers import Viewer

README = re.compile(r"(?:^|/)readme(?:\.(?:md|mdx|markdown|rst|txt|adoc))?$", re.IGNORECASE)
_LINES = re.compile(r":\d+(?:-\d+)?$")


def counted(rows: Any, now: datetime.datetime | None = None) -> Any:
    """Repositories with what every answer about them tells: their state, ``documents_count`` and the owner."""
    return rows.with_state(now).select_related("owner").annotate(documents_count=statistics.document_count())


def narrowed(rows: Any, *, search: str = "", host: str = "") -> Any:
    """Those with ``search`` in slug or description, on ``host``."""
    if search:
        rows = rows.filter(Q(slug__icontains=search) | Q(description__icontains=search))
    return rows.filter(slug__istartswith=f"{host}/") if host else rows


def listed(viewer: Viewer, *, search: str = "", state: str = "", host: str = "", visibility: str = "") -> QuerySet[Any]:
    """Readable repositories, ``counted``."""
    rows: Any = Repository.objects.visible_to(viewer)
    if state:
        rows = rows.in_state(state)
    rows = narrowed(rows, search=search, host=host)
    if visibility:
        rows = rows.filter(visibility=visibility)
    found: QuerySet[Any] = counted(rows)
    return found


_LISTED: ReadablePages[Repository] = ReadablePages(
    lambda viewer, *_: counted(Repository.objects.visible_to(viewer), MARK_OF_NOW),
    *overdue_before(MARK_OF_NOW),
    order=("slug", "id"),
    after=(AFTER_TEXT, AFTER_ID),
)


def page_of(viewer: Viewer, *, question: Mapping[str, Any], **narrowed: str) -> Page[Any]:
    """One page of ``listed`` by slug. ``question`` as in ``page_of_rows``."""
    if not any(narrowed.values()):
        return page_of_readable(_LISTED, *overdue_before(timezone.now()), viewer=viewer, question=question)
    return page_of_rows(listed(viewer, **narrowed), order=_LISTED.order, viewer=viewer, question=question)


def symbol_counts(repositories: Iterable[Repository]) -> dict[uuid.UUID, int]:
    """How many symbols each holds; those without any are left out."""
    rows = CodeNode.objects.filter(repository__in=list(repositories)).order_by().values_list("repository")
    return dict(rows.annotate(n=Count("pk")))


def with_state(viewer: Viewer, ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, Repository]:
    """Those of ``ids`` that the viewer may read, with their state."""
    rows = _AMONG.all(viewer, list(ids), *overdue_before(timezone.now())) if ids else []
    return {row.pk: row for row in rows}


_BY_SLUG: ReadableRows[Repository] = ReadableRows(
    lambda viewer, slug, *_: Repository.objects.visible_to(viewer).with_state(MARK_OF_NOW).filter(slug__iexact=slug),
    MARK_OF_TEXT,
    *overdue_before(MARK_OF_NOW),
)
_AMONG: ReadableRows[Repository] = ReadableRows(
    lambda viewer, ids, *_: Repository.objects.visible_to(viewer).with_state(MARK_OF_NOW).filter(among("pk", ids)),
    MARK_OF_ID,
    *overdue_before(MARK_OF_NOW),
)


def repository_at(viewer: Viewer, slug: str) -> Repository:
    """By slug, in any case, with its state. Raises NotFound."""
    found = _BY_SLUG.first(viewer, slug, *overdue_before(timezone.now()))
    if found is None:
        raise NotFound
    return found


@dataclass(frozen=True, slots=True)
class Place:
    """A document and, where the location named one, an anchor inside it."""

    document: RepositoryDocument
    anchor: str = ""


def document_at(viewer: Viewer, repository: Repository, location: str) -> Place:
    """What ``location`` means: id, slug, ``path``, ``path#anchor`` or ``path#anchor:start-end``, as answers write it.

    Raises NotFound; Gone for the address of a page that was removed.
    SECURITY: the location is compared with rows and used for nothing else.
    """
    if not location or len(location) > LONGEST_PATH or "\0" in location:
        raise NotFound
    rows = RepositoryDocument.objects.visible_to(viewer).filter(repository=repository)
    for place, anchor in _readings(location):
        document = rows.filter(path=place).first()
        if document is not None:
            document.repository = repository
            return Place(document, anchor)
    if _is_id(location):
        document = first_or_absent(rows, pk=location)
        document.repository = repository
        return Place(document)
    slug, _, anchor = location.partition("#")
    found = document_for(repository, slug)
    if isinstance(found, str):
        found = document_for(repository, found)
    if isinstance(found, str):
        raise NotFound
    return Place(found, _LINES.sub("", anchor))


def _readings(location: str) -> list[tuple[str, str]]:
    """(path, anchor) in the order in which they are tried; a path may itself hold a ``#``."""
    bare = _LINES.sub("", location)
    found = [(location, ""), (bare, "")]
    if "#" in bare:
        path, _, anchor = bare.rpartition("#")
        found.append((path, anchor))
    return list(dict.fromkeys(found))


def path_of(location: str) -> tuple[str, tuple[int, int] | None]:
    """The path of a location and the lines that it names, if any."""
    match = _LINES.search(location)
    if match is None:
        return location.rpartition("#")[0] if "#" in location else location, None
    start, _, end = match.group()[1:].partition("-")
    path = location[: match.start()]
    return path.rpartition("#")[0] if "#" in path else path, (int(start), int(end or start))


def _is_id(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text.lower()
    except ValueError:
        return False


def readme_of(viewer: Viewer, repository: Repository) -> RepositoryDocument:
    """The README nearest the root, then the first by path; without one the page that opens the documents.

    Raises NotIndexed when there is neither.
    """
    rows = RepositoryDocument.objects.visible_to(viewer).filter(repository=repository)
    paths = rows.filter(path__icontains="readme").values_list("path", flat=True)
    readmes = sorted((path for path in paths if README.search(path)), key=lambda path: (path.count("/"), path))
    if not readmes:
        openings = rows.filter(path__iregex=r"(^|/)(index|_index|overview)\.(md|mdx|rst)$").values_list(
            "path", flat=True
        )
        readmes = sorted(openings, key=lambda path: (path.count("/"), path))
    if not readmes:
        skipped = RepositoryFile.objects.filter(repository=repository, path__iregex=r"^readme(\.[a-z]+)?$").first()
        reason = f" {skipped.path} is tracked, its text is not: {skipped.message or skipped.reason}." if skipped else ""
        raise NotIndexed(f"{repository.slug} has no README and no index page that is indexed.{reason}")
    found: RepositoryDocument = rows.get(path=readmes[0])
    found.repository = repository
    return found


def outlined(viewer: Viewer, repository: Repository, path: str = "") -> list[Outlined]:
    """The documents at or below ``path``."""
    rows = RepositoryDocument.objects.visible_to(viewer).filter(repository=repository)
    if path:
        rows = rows.filter(Q(path=path) | Q(path__startswith=f"{path}/"))
    columns = rows.order_by("path", "id").values_list("id", "path", "title", "size", "structure__headings")
    return [Outlined(id_, place, title, size, headings or ()) for id_, place, title, size, headings in columns]


def texts(viewer: Viewer, ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, str]:
    """The stored texts of documents that the viewer may read."""
    return dict(RepositoryDocument.objects.visible_to(viewer).filter(pk__in=list(ids)).values_list("pk", "text"))


def sizes(viewer: Viewer, ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, int]:
    """The bytes of documents that the viewer may read."""
    return dict(RepositoryDocument.objects.visible_to(viewer).filter(pk__in=list(ids)).values_list("pk", "size"))


def links_of(document: RepositoryDocument) -> list[RepositoryDocumentLink]:
    """In the order of their first line. The caller has scoped the document."""
    return list(document.links.in_order())


def tracked(repository: Repository, path: str) -> bool:
    """Whether the synced commit holds ``path`` or anything below it."""
    return RepositoryFile.objects.filter(
        Q(path=path) | Q(path__startswith=f"{path.rstrip('/')}/"), repository=repository
    ).exists()
