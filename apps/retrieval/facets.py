"""Facets: exact counts over the rows of the fused list, inside the scope and the current filters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any, TypeVar
from uuid import UUID

from apps.retrieval.shelf_values import Candidate
from apps.retrieval.values import Facet, FacetValue, Filters

K = TypeVar("K", bound=Any)

SHOWN = 12
_SOURCE: Callable[[Candidate], tuple[str, str, int]] = attrgetter("store", "source_label", "source_id.int")
_KIND: Callable[[Candidate], str] = attrgetter("kind")
_PATH: Callable[[Candidate], str] = attrgetter("path")
_STATUS: Callable[[Candidate], str] = attrgetter("status")
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
    # Ids hash slowly, their numbers do not.
    for (store, label, id_), count in Counter(map(_SOURCE, rows)).items():
        by_source[f"{_SOURCE_KIND[store]}:{UUID(int=id_)}", label] += count
    kinds = Counter(map(_KIND, rows))
    paths = Counter(map(_PATH, rows))
    folders: Counter[str] = Counter()
    for path, count in paths.items():
        folder, slash, _ = path.partition("/")
        if slash:
            folders[f"{folder}/"] += count
    statuses = Counter(map(_STATUS, rows))
    del statuses[""]
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
