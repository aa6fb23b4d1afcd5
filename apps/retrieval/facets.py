"""Facets: exact counts over the rows of the fused list, inside the scope and the current filters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, TypeVar
from uuid import UUID

from apps.retrieval.rows import Rows
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


def facets_of(blocks: Sequence[Rows], filters: Filters, sources: Sequence[tuple[str, UUID]] = ()) -> tuple[Facet, ...]:
    """Source, kind, folder and status, each with the values that occur, most frequent first."""

    def column(name: str) -> Iterable[Any]:
        return chain.from_iterable(rows.column(name) for rows in blocks)

    by_source: Counter[tuple[str, str]] = Counter()
    named = dict(zip(column("source"), zip(column("store"), column("source_label"), strict=True), strict=True))
    for id_, count in Counter(column("source")).items():
        store, label = named[id_]
        by_source[f"{_SOURCE_KIND[store]}:{id_}", label] += count
    kinds = Counter(column("kind"))
    folders = Counter(path[: path.find("/") + 1] for path in column("path"))
    del folders[""]
    statuses = Counter(column("status"))
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
