"""``[[source:slug]]`` as one reader may follow it: resolved at each read, never stored (``knowledge-graph.md`` 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db.models import Q

from apps.access.sources import Source
from apps.collections.models import Collection
from apps.knowledge_graph.models import CanonicalPage
from apps.knowledge_graph.vocabulary import RELATED_TO
from apps.repos.models import Repository

if TYPE_CHECKING:
    from apps.access.viewers import Viewer


@dataclass(frozen=True, slots=True)
class CrossLink:
    """One reference as written. ``target`` is None when it leads nowhere for this reader: then it is plain text."""

    raw: str
    line: int
    edge_type: str
    target: CanonicalPage | None
    source: Source | None


def cross_links(viewer: Viewer, references: Sequence[Mapping[str, Any]]) -> tuple[CrossLink, ...]:
    """Each of the rows of ``CrossSourceReference``: a link when exactly one page in sources that the viewer may read
    bears the names; no match, a hidden source and two matches give the same."""
    if not references:
        return ()
    names = {str(row["wanted_source"]).lower() for row in references}
    slugs = {row["wanted_slug"] for row in references}
    by_name = Q(pk__in=())
    for name in names:
        by_name |= Q(slug__iexact=name) | Q(slug__iendswith=f"/{name}")
    in_repository = Q(source__repository__in=Repository.objects.visible_to(viewer).filter(by_name))
    in_collection = Q(
        source__collection__in=Collection.objects.visible_to(viewer).filter(
            Q(slug__in=names) | Q(pk__in=[name for name in names if _is_uuid(name)])
        )
    )
    pages = list(
        CanonicalPage.objects.filter(in_repository | in_collection, bears=True, uid__in=slugs)
        .kept()
        .live()
        .with_key()
        .select_related("source__repository", "source__collection")
    )
    found: list[CrossLink] = []
    for row in references:
        matches = [page for page in pages if page.uid == row["wanted_slug"] and _named(page.source.owner, row)]
        target = matches[0] if len(matches) == 1 else None
        edge_type = row["stated_type"] or RELATED_TO
        found.append(CrossLink(row["raw"], row["line"], edge_type, target, target.source.owner if target else None))
    return tuple(found)


def _named(source: Source, row: Mapping[str, Any]) -> bool:
    kind, name = row["wanted_kind"], str(row["wanted_source"]).lower()
    slug = str(getattr(source, "slug", "")).lower()
    if source.kind == "repository":
        return kind in ("", "repo") and name in (slug, slug.rpartition("/")[2])
    return kind in ("", "collection") and name in (slug, str(source.pk))


def _is_uuid(text: str) -> bool:
    from uuid import UUID

    try:
        UUID(text)
    except ValueError:
        return False
    return True
