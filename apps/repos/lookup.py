"""Repositories and what hangs on them, fetched for a page by one scoped query each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from apps.access.compiled import MARK_OF_ID, ReadableRows
from apps.access.errors import Forbidden, Gone, NotFound
from apps.repos.models import Repository, RepositoryDocument, RepositoryDocumentRedirect

if TYPE_CHECKING:
    from apps.access.viewers import Viewer


def with_document_total(rows: QuerySet[Any]) -> QuerySet[Any]:
    """Adds ``document_total``, counted beside the rows: a join would multiply every column that is fetched."""
    counted = (
        RepositoryDocument.objects.filter(repository=OuterRef("pk"))
        .order_by()
        .values("repository")
        .annotate(number=Count("pk"))
        .values("number")
    )
    found: QuerySet[Any] = rows.annotate(document_total=Coalesce(Subquery(counted), 0))
    return found


def repository_for(viewer: Viewer, slug: str) -> Repository:
    """The repository at ``slug`` with its state and the viewer's rights. Raises NotFound: absent and hidden alike."""
    rows = Repository.objects.visible_to(viewer).with_state().with_rights(viewer)
    found: Repository | None = rows.filter(slug__iexact=slug).first()
    if found is None:
        raise NotFound
    return found


_WITH_RIGHTS: ReadableRows[Repository] = ReadableRows(
    lambda viewer, id: Repository.objects.visible_to(viewer).with_rights(viewer).filter(pk=id).order_by(), MARK_OF_ID
)


def writable_for(viewer: Viewer, repository_id: UUID) -> Repository:
    """The repository as it stands. Raises NotFound, absent and hidden alike; Forbidden for who may only read it."""
    found = _WITH_RIGHTS.first(viewer, repository_id)
    if found is None:
        raise NotFound
    if not getattr(found, "may_write", False):
        raise Forbidden
    return found


def document_for(repository: Repository, slug: str) -> RepositoryDocument | str:
    """The page at ``slug``, or the slug that it moved to.

    Raises Gone with the commit for a page that was removed, NotFound for one that never was.
    """
    found: RepositoryDocument | None = repository.documents.filter(slug=slug).first()
    if found is not None:
        found.repository = repository
        return found
    old: RepositoryDocumentRedirect | None = repository.redirects.filter(slug=slug).select_related("document").first()
    if old is None:
        raise NotFound
    if old.document is not None:
        return old.document.slug
    raise Gone(
        f"{old.path} was removed from {repository.slug}"
        + (f" by commit {old.commit[:12]}." if old.commit else ".")
        + " Its text is no longer indexed here; the history of the repository still holds it."
    )
