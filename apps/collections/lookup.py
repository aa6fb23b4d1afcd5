"""Collections and what hangs on them, fetched for a page by one scoped query each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db.models import Count, Q, QuerySet

from apps.access.compiled import MARK_OF_ID, ReadableRows
from apps.access.errors import Forbidden, NotFound
from apps.access.rules import Right
from apps.collections.models import Asset, Collection, Document

if TYPE_CHECKING:
    from apps.access.viewers import Viewer


def counted(rows: QuerySet[Any]) -> QuerySet[Any]:
    """Adds ``documents_count``: what is not in the trash."""
    found: QuerySet[Any] = rows.annotate(documents_count=Count("documents", filter=Q(documents__trashed_at=None)))
    return found


_WITH_RIGHTS: ReadableRows[Collection] = ReadableRows(
    lambda viewer, id: Collection.objects.visible_to(viewer).select_related("owner").with_rights(viewer).filter(pk=id),
    MARK_OF_ID,
)


def collection_for(viewer: Viewer, collection_id: UUID, *, right: Right = Right.READ) -> Collection:
    """The collection with the rights that the viewer has over it.

    Raises NotFound, absent and hidden alike; Forbidden for one that is readable and whose ``right`` is not held.
    """
    found = _WITH_RIGHTS.first(viewer, collection_id)
    if found is None:
        raise NotFound
    needed = {Right.WRITE: "may_write", Right.MANAGE: "may_manage", Right.ADMINISTER: "may_administer"}.get(right)
    if needed is not None and not getattr(found, needed):
        raise Forbidden
    return found


def document_for(viewer: Viewer, collection: Collection, document_id: UUID) -> Document:
    """A document that is not in the trash. Raises NotFound."""
    rows = Document.objects.visible_to(viewer).filter(collection=collection, pk=document_id)
    found: Document | None = rows.defer("shelved_chunks").select_related("uploaded_by").first()
    if found is None:
        raise NotFound
    found.collection = collection
    return found


def asset_for(viewer: Viewer, collection_id: UUID, asset_id: UUID) -> Asset:
    """Raises NotFound."""
    found: Asset | None = Asset.objects.visible_to(viewer).filter(collection=collection_id, pk=asset_id).first()
    if found is None:
        raise NotFound
    return found
