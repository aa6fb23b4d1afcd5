"""Reading verbs of the graph. Each read begins with ``visible_to(viewer)``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from django.db.models import F, Q
from django.db.models.functions import Coalesce

from apps.access.querysets import ScopedQuerySet

if TYPE_CHECKING:
    from apps.access.sources import Source


class GraphSourceQuerySet(ScopedQuerySet[Any]):
    scope = (("repository", "collection"),)

    def of(self, source: Source) -> Self:
        return self.filter(**{source.kind: source.pk})


class GraphChild(ScopedQuerySet[Any]):
    scope = (("source__repository", "source__collection"),)


class PageQuerySet(GraphChild):
    def kept(self) -> Self:
        """Pages of the present, without those that were pages once."""
        return self.exclude(header_state="former")

    def live(self) -> Self:
        """Not in the trash."""
        return self.filter(Q(document=None) | Q(document__trashed_at=None))

    def trashed(self) -> Self:
        return self.filter(document__trashed_at__isnull=False)

    def of_documents(self, documents: Any) -> Self:
        return self.filter(Q(repository_document__in=documents) | Q(document__in=documents))

    def with_key(self) -> Self:
        """Adds ``key``: the id of the document, of either kind."""
        return self.annotate(key=Coalesce(F("repository_document_id"), F("document_id")))
