"""What stands around a page in the reader: tree, siblings, the pages before and after, and who links here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from apps.repos.models import Repository, RepositoryDocument, RepositoryDocumentLink
from apps.repos.tree import Entry, Tree, build

if TYPE_CHECKING:
    from apps.access.viewers import Viewer

MOST_BACKLINKS = 50


@dataclass(frozen=True, slots=True)
class Surroundings:
    """``backlinks`` are links of other documents, one for each of them."""

    previous: Entry | None
    following: Entry | None
    siblings: Sequence[Entry]
    backlinks: Sequence[RepositoryDocumentLink]


def tree_of(viewer: Viewer, repository: Repository) -> Tree:
    rows = (
        RepositoryDocument.objects.visible_to(viewer)
        .filter(repository=repository)
        .values_list("id", "path", "title", "slug", "kind", "state", "absence")
    )
    return build(Entry(*row) for row in rows)


def around(viewer: Viewer, tree: Tree, document: RepositoryDocument) -> Surroundings:
    """The neighbours of ``document`` in ``tree``; one query for the links that lead to it."""
    order = list(tree.order)
    at = next((place for place, entry in enumerate(order) if entry.id == document.pk), None)
    folder = document.path.rpartition("/")[0]
    return Surroundings(
        previous=order[at - 1] if at else None,
        following=order[at + 1] if at is not None and at + 1 < len(order) else None,
        siblings=[entry for entry in order if entry.folder == folder] if at is not None else [],
        backlinks=backlinks_of(viewer, document),
    )


def backlinks_of(viewer: Viewer, document: RepositoryDocument) -> list[RepositoryDocumentLink]:
    """Links of other documents that lead here, one for each of them."""
    links = (
        RepositoryDocumentLink.objects.visible_to(viewer)
        .filter(target_document=document)
        .exclude(document=document)
        .select_related("document")
        .in_order()[:MOST_BACKLINKS]
    )
    return list({link.document_id: link for link in links}.values())
