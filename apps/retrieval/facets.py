"""Facets: exact counts over the rows of the fused list, inside the scope and the current filters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any
from uuid import UUID

from apps.retrieval.rows import Rows
from apps.retrieval.values import Facet, FacetValue, Filters

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
    """Source, kind, folder, language of code, and what front matter says: tag, type and status. Each with the values
    that occur, most frequent first."""

    def column(name: str) -> Iterable[Any]:
        return chain.from_iterable(rows.column(name) for rows in blocks)

    chosen = {f"{kind}:{id}" for kind, id in sources}
    by_source: dict[str, tuple[str, int]] = {}
    named = dict(zip(column("source"), zip(column("store"), column("source_label"), strict=True), strict=True))
    for id_, count in Counter(column("source")).items():
        store, label = named[id_]
        by_source[f"{_SOURCE_KIND[store]}:{id_}"] = (label, count)
    marks = [one for one in column("marks") if one]
    found = (
        Facet(
            "source",
            "Source",
            tuple(
                FacetValue(value, label, count, value in chosen)
                for value, label, count in _top((value, label, count) for value, (label, count) in by_source.items())
            ),
        ),
        _facet("kind", "Kind", Counter(column("kind")), filters.kinds, labels=KIND_LABELS),
        _facet("path", "Folder", Counter(path[: path.find("/") + 1] for path in column("path")), {filters.path}),
        _facet("language", "Language", Counter(column("language")), {filters.language.lower()}),
        _facet("tag", "Tag", Counter(chain.from_iterable(one.tags for one in marks)), {filters.tag}),
        _facet("type", "Type", _caseless(one.type for one in marks), {filters.type.lower()}),
        _facet("status", "Status", _caseless(one.status for one in marks), {filters.status.lower()}),
    )
    return tuple(facet for facet in found if facet.values)


def _facet(
    name: str, label: str, counts: Counter[str], active: Collection[str], *, labels: Mapping[str, str] | None = None
) -> Facet:
    labelled = ((value, labels[value] if labels else value, count) for value, count in counts.items() if value)
    return Facet(
        name,
        label,
        tuple(FacetValue(value, label, count, value in active) for value, label, count in _top(labelled)),
    )


def _caseless(values: Iterable[str]) -> Counter[str]:
    """The filters compare without case, so their values are counted so."""
    return Counter(map(str.lower, values))


def _top(counts: Iterable[tuple[str, str, int]]) -> list[tuple[str, str, int]]:
    """The most frequent of (value, label, count)."""
    return sorted(counts, key=lambda entry: (-entry[2], entry[1], entry[0]))[:SHOWN]
