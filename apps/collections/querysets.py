"""Reading verbs of collections. Each read begins with ``visible_to(viewer)``; the trash hides from all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from django.db.models import F, Q

from apps.access.querysets import ScopedQuerySet, SourceQuerySet

if TYPE_CHECKING:
    from apps.access.rules import Right
    from apps.access.viewers import Viewer


class CollectionQuerySet(SourceQuerySet[Any]):
    """Collections. Those of an evaluation set are in no listing."""

    def visible_to(self, viewer: Viewer) -> Self:
        return super().visible_to(viewer).filter(evaluation=False)

    def of_evaluation(self, viewer: Viewer) -> Self:
        return super().visible_to(viewer).filter(evaluation=True)

    def matching(self, text: str) -> Self:
        """Name or description holds ``text``; ``%`` and ``_`` mean themselves."""
        return self.filter(Q(name__icontains=text) | Q(description__icontains=text)) if text else self


class CollectionDocumentQuerySet(ScopedQuerySet[Any]):
    scope = ("collection",)

    def having(self, right: Right | str, viewer: Viewer) -> Self:
        return super().having(right, viewer).live()

    def live(self) -> Self:
        """Not in the trash."""
        return self.filter(trashed_at=None)

    def in_trash_of(self, viewer: Viewer) -> Self:
        """What a writer may restore."""
        return super().having("write", viewer).exclude(trashed_at=None)

    def without_text(self) -> Self:
        """For lists: the wide columns stay in the database."""
        return self.defer("text", "parsed", "frontmatter", "warnings", "shelved_chunks")


class ChildOfCollection(ScopedQuerySet[Any]):
    scope = ("collection",)


class LinkQuerySet(ScopedQuerySet[Any]):
    scope = ("collection",)

    def having(self, right: Right | str, viewer: Viewer) -> Self:
        return super().having(right, viewer).filter(document__trashed_at=None)

    def annotate_source_key(self) -> Self:
        """Adds ``source_key``: the key of the document that holds the link."""
        return self.annotate(source_key=F("document__source_key"))

    def in_order(self) -> Self:
        """By the document that holds them, the lines where they stand, and their address: the same at every reading."""
        return self.order_by("document__source_key", "lines", "href", "link_type")


class DocumentChild(ScopedQuerySet[Any]):
    scope = ("document__collection",)

    def having(self, right: Right | str, viewer: Viewer) -> Self:
        return super().having(right, viewer).filter(document__trashed_at=None)


class UploadChild(ScopedQuerySet[Any]):
    scope = ("upload__collection",)
