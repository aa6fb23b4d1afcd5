"""Collections that pages of a repository name, or that name pages of it (``portal.md`` 2, overview of a repository)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from django.db.models import F
from django.db.models.functions import Lower

from apps.collections.models import Collection
from apps.knowledge_graph.crossing import cross_links
from apps.knowledge_graph.models import CrossSourceReference

if TYPE_CHECKING:
    from apps.access.viewers import Viewer
    from apps.repos.models import Repository

MOST_REFERENCES = 500
"""Of each direction that are looked at, the oldest first."""


@dataclass(frozen=True, slots=True)
class Related:
    """``links``: how many references lead from one to the other, either way."""

    collection: Collection
    links: int


def related_collections(viewer: Viewer, repository: Repository) -> list[Related]:
    """Those that the viewer may read, the most linked first. Only links that lead to one page for this viewer count."""
    slug = repository.slug.lower()
    rows = (
        CrossSourceReference.objects.visible_to(viewer)
        .filter(page__document__trashed_at=None)
        .annotate(named=Lower("wanted_source"), collection=F("source__collection"))
        .order_by("pk")
        .values("raw", "line", "wanted_kind", "wanted_source", "wanted_slug", "stated_type", "collection")
    )
    named = rows.filter(named__in={slug, slug.rpartition("/")[2]}).exclude(collection=None)[:MOST_REFERENCES]
    naming = rows.filter(source__repository=repository)[:MOST_REFERENCES]
    references = [*named, *naming]
    links: Counter[UUID] = Counter()
    for reference, link in zip(references, cross_links(viewer, references), strict=True):
        if reference["collection"] is None:
            if isinstance(link.source, Collection):
                links[link.source.pk] += 1
        elif link.source == repository:
            links[reference["collection"]] += 1
    collections = Collection.objects.visible_to(viewer).in_bulk(list(links))
    found = [Related(collections[pk], count) for pk, count in links.items() if pk in collections]
    return sorted(found, key=lambda one: (-one.links, one.collection.name.lower(), str(one.collection.pk)))
