"""Reading by name for programs: which collections there are, which document a location means."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db.models import Count, IntegerField, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce

from apps.access.compiled import AFTER_ID, AFTER_TEXT, MARK_OF_ID, ReadablePages, ReadableRows, among
from apps.access.errors import NotFound
from apps.access.querysets import first_or_absent
from apps.access.rest.cursors import Page, page_of_readable, page_of_rows
from apps.collections.models import Collection, Document, DocumentLink
from apps.indexing.outlines import Outlined

if TYPE_CHECKING:
    from apps.access.viewers import Viewer

LONGEST_KEY = 1024
_LINES = re.compile(r":\d+(?:-\d+)?$")


def counted(rows: Any) -> Any:
    """Collections with what every answer about them tells: ``documents_count`` and the owner."""
    return rows.select_related("owner").annotate(documents_count=document_count())


def listed(viewer: Viewer, *, search: str = "") -> QuerySet[Any]:
    """Readable collections, ``counted``."""
    rows: QuerySet[Any] = counted(Collection.objects.visible_to(viewer).matching(search))
    return rows


_LISTED: ReadablePages[Collection] = ReadablePages(
    lambda viewer: listed(viewer), order=("name", "id"), after=(AFTER_TEXT, AFTER_ID)
)


def page_of(viewer: Viewer, *, search: str, question: Mapping[str, Any]) -> Page[Any]:
    """One page of ``listed`` by name. ``question`` as in ``page_of_rows``."""
    if not search:
        return page_of_readable(_LISTED, viewer=viewer, question=question)
    return page_of_rows(listed(viewer, search=search), order=_LISTED.order, viewer=viewer, question=question)


def document_count() -> Any:
    """An annotation of collections: how many documents each has, those in the trash aside."""
    counts = Document.objects.filter(collection=OuterRef("pk"), trashed_at=None).order_by().values("collection")
    return Coalesce(Subquery(counts.annotate(n=Count("pk")).values("n"), output_field=IntegerField()), Value(0))


_BY_ID: ReadableRows[Collection] = ReadableRows(
    lambda viewer, id: Collection.objects.visible_to(viewer).filter(pk=id), MARK_OF_ID
)
_AMONG: ReadableRows[Collection] = ReadableRows(
    lambda viewer, ids: Collection.objects.visible_to(viewer).filter(among("pk", ids)), MARK_OF_ID
)


def collection_at(viewer: Viewer, id: str) -> Collection:
    """By id. Raises NotFound, for what is no id at all too."""
    try:
        key = uuid.UUID(id)
    except ValueError:
        raise NotFound from None
    found = _BY_ID.first(viewer, key)
    if found is None:
        raise NotFound
    return found


def with_ids(viewer: Viewer, ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, Collection]:
    """Those of ``ids`` that the viewer may read."""
    return {row.pk: row for row in _AMONG.all(viewer, list(ids))} if ids else {}


def keys_of(viewer: Viewer) -> list[uuid.UUID]:
    """Ids of all readable collections, in a stable order."""
    return list(Collection.objects.visible_to(viewer).order_by("name", "id").values_list("pk", flat=True))


@dataclass(frozen=True, slots=True)
class Place:
    """A document and, where the location named one, an anchor inside it."""

    document: Document
    anchor: str = ""


def document_at(viewer: Viewer, collection: Collection, location: str) -> Place:
    """What ``location`` means: id, ``source_key``, ``source_key#anchor`` or ``source_key#anchor:start-end``.

    Raises NotFound. SECURITY: the location is compared with rows and used for nothing else.
    """
    if not location or len(location) > 2 * LONGEST_KEY or "\0" in location:
        raise NotFound
    rows = Document.objects.visible_to(viewer).filter(collection=collection)
    bare = _LINES.sub("", location)
    readings = [(location, ""), (bare, "")]
    if "#" in bare:
        key, _, anchor = bare.rpartition("#")
        readings.append((key, anchor))
    for key, anchor in dict.fromkeys(readings):
        document = rows.filter(source_key=key).first()
        if document is not None:
            return Place(document, anchor)
    return Place(first_or_absent(rows, pk=bare.partition("#")[0]), bare.partition("#")[2])


def outlined(viewer: Viewer, collection: Collection, path: str = "") -> list[Outlined]:
    """The documents at or below ``path``."""
    rows = Document.objects.visible_to(viewer).filter(collection=collection)
    if path:
        rows = rows.filter(Q(source_key=path) | Q(source_key__startswith=f"{path}/"))
    columns = rows.order_by("source_key", "id").values_list("id", "source_key", "title", "size", "parsed__heading_tree")
    return [Outlined(id_, key, title, size, headings or ()) for id_, key, title, size, headings in columns]


def texts(viewer: Viewer, ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, str]:
    """The stored texts of documents that the viewer may read."""
    return dict(Document.objects.visible_to(viewer).filter(pk__in=list(ids)).values_list("pk", "text"))


def sizes(viewer: Viewer, ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, int]:
    """The bytes of documents that the viewer may read."""
    return dict(Document.objects.visible_to(viewer).filter(pk__in=list(ids)).values_list("pk", "size"))


def links_of(document: Document) -> list[DocumentLink]:
    """In the order of their first line. The caller has scoped the document."""
    return list(document.links.select_related("target_document").in_order())
