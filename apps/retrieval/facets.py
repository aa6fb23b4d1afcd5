"""Facets: exact counts over the rows of the fused list, inside the scope and the current filters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar
from uuid import UUID

from apps.retrieval.shelf_values import Candidate
from apps.retrieval.values import Facet, FacetValue, Filters

K = TypeVar("K", bound=Any)

SHOWN = 12
KIND_LABELS = {
    "doc": "Documents",
    "collection": "Collections",
    "code": "Code",
    "example": "Examples",
    "test": "Tests",
    "config": "Configuration",
    "workflow": "Workflows",
}
_SOURCE_KIND = {"repo_docs": "repository", "md_collections": "collection", "code": "repository"}


def facets_of(
    rows: Sequence[Candidate], filters: Filters, sources: Sequence[tuple[str, UUID]] = ()
) -> tuple[Facet, ...]:
    """Source, kind, folder and status, each with the values that occur, most frequent first."""
    by_source: Counter[tuple[str, str]] = Counter()
    kinds: Counter[str] = Counter()
    folders: Counter[str] = Counter()
    statuses: Counter[str] = Counter()
    for row in rows:
        by_source[f"{_SOURCE_KIND[row.store]}:{row.source_id}", row.source_label] += 1
        kinds[row.kind] += 1
        folder, slash, _ = row.path.partition("/")
        if slash:
            folders[f"{folder}/"] += 1
        if row.status:
            statuses[row.status] += 1
    chosen = {f"{kind}:{id}" for kind, id in sources}
    found = (
        Facet(
            "source",
            "Source",
            tuple(
                FacetValue(value, label, count, value in chosen) for (value, label), count in _top(by_source.items())
            ),
        ),
        Facet(
            "kind",
            "Kind",
            tuple(
                FacetValue(kind, KIND_LABELS[kind], count, kind in filters.kinds) for kind, count in _top(kinds.items())
            ),
        ),
        Facet(
            "path",
            "Folder",
            tuple(FacetValue(name, name, count, name == filters.path) for name, count in _top(folders.items())),
        ),
        Facet(
            "status",
            "Status",
            tuple(FacetValue(name, name, count, name == filters.status) for name, count in _top(statuses.items())),
        ),
    )
    return tuple(facet for facet in found if facet.values)


def _top(counts: Iterable[tuple[K, int]]) -> list[tuple[K, int]]:
    return sorted(counts, key=lambda entry: (-entry[1], entry[0]))[:SHOWN]
