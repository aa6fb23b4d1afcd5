"""The graph's blocks beside the hits (``retrieval.md`` 8.1): neighbours, and what was already rejected.

Nothing is asked where no canonical page is among the candidates, so that a source without pages is searched as if the
graph did not exist. Otherwise at most 2 + 2 x hops statements: the pages, each hop with its successors, the passages.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.conf import settings

from apps.indexing.dense import vector_text
from apps.indexing.models import SLOT_BITS
from apps.indexing.statements import Fragment, fetch, fragment_of, union
from apps.knowledge_graph.vocabulary import REJECTED
from apps.knowledge_graph.walks import (
    LEAST_COSINE,
    Expansion,
    Found,
    Met,
    Neighbour,
    RejectedPage,
    already_rejected,
    find_pages,
    moved,
    walk,
)
from apps.repos.models import Repository
from apps.retrieval.beside_values import GraphBlocks, NearPage, PageName, PagePlace, RejectedApproach
from apps.retrieval.values import SourceRef

if TYPE_CHECKING:
    from apps.access.viewers import Viewer
    from apps.indexing.scope import Scope
    from apps.indexing.stores import ChunkStore
    from apps.knowledge_graph.models import GraphSource
    from apps.retrieval.ordering import Fused
    from apps.retrieval.shelf_values import Candidate
    from apps.retrieval.streams import Streams
    from apps.retrieval.values import Filters

PRIMARY = 10
"""Rows of the docs block whose neighbours are shown."""


class Beside:
    """What the graph adds to one answer. ``set_aside`` comes first, while the list of hits is made."""

    def __init__(self, viewer: Viewer, filters: Filters) -> None:
        self._viewer = viewer
        # Who asks for rejected approaches gets them as ordinary hits.
        wants_rejected = filters.type.strip().lower().replace("_", "-") == REJECTED
        self._is_on = settings.COGRAPH.graph.expansion_enabled and not wants_rejected
        self._found: Found | None = None
        self._streams: Streams | None = None
        self._cosines: Mapping[UUID, float] = {}
        self.moved: frozenset[UUID] = frozenset()
        """Documents that have left the hits for the block of rejected approaches."""

    def set_aside(self, streams: Streams, fused: Fused) -> Fused:
        """The docs block without the rejected approaches among its primary hits; other blocks as they are. At most one
        statement."""
        if not self._is_on or streams.block != "docs":
            return fused
        copies = [copy for copies in fused.copies.values() for copy in copies]
        if not any(fused.order.column("canonical")) and not any(copy.canonical for copy in copies):
            return fused
        rows = [*fused.order, *copies]
        seeds = _seeds(fused)
        self._streams, self._cosines = streams, _cosines(rows, fused)
        near = {document: cosine for document, cosine in self._cosines.items() if cosine >= LEAST_COSINE}
        if not seeds and not near:
            return fused
        self._found = find_pages(self._viewer, seeds, near)
        self.moved = frozenset(seed.met.document for seed in moved(self._found) if seed.met.document is not None)
        if not self.moved:
            return fused
        left = set(map(str, self.moved))
        kept = [at for at, document in enumerate(fused.order.column("document")) if document not in left]
        return dataclasses.replace(fused, order=fused.order.at(kept))

    def blocks(self) -> GraphBlocks:
        """Neighbours and rejected approaches, in the order in which every face shows them."""
        if self._found is None or self._streams is None:
            return GraphBlocks()
        expansion = walk(self._found)
        rejected = already_rejected(self._found, expansion, self._cosines)
        places = _Places(self._streams, _sources(self._found, expansion, rejected))
        return GraphBlocks(
            tuple(_neighbour(one, place) for one in expansion.neighbours if (place := places.of(one)) is not None),
            tuple(
                RejectedApproach(place, one.cosine, places.names(one.successors))
                for one in rejected
                if (place := places.of(one)) is not None
            ),
            {document: named for document, ends in expansion.replaced.items() if (named := places.names(ends))},
        )


def _seeds(fused: Fused) -> dict[UUID, float]:
    """Documents of the primary hits that may be pages, with their best fused score of the best of all."""
    index = fused.standings.index
    best = max((float(fused.standings.fused[index[ref]]) for ref in fused.order.column("ref")), default=0.0)
    seeds: dict[UUID, float] = {}
    for row in fused.order[:PRIMARY]:
        if row.canonical and best:
            score = fused.standings[row.ref].fused / best
            seeds[row.document_id] = max(score, seeds.get(row.document_id, 0.0))
    return seeds


def _cosines(rows: Sequence[Candidate], fused: Fused) -> dict[UUID, float]:
    """The best cosine of each document that may be a page; a document further away than every candidate has none."""
    found: dict[UUID, float] = {}
    for row in rows:
        near = fused.places.get(row.ref, {}).get("dense")
        if row.canonical and near is not None:
            found[row.document_id] = max(near[1], found.get(row.document_id, near[1]))
    return found


def _sources(found_pages: Found, expansion: Expansion, rejected: Sequence[RejectedPage]) -> dict[UUID, GraphSource]:
    """The source of each document that is shown or named."""
    shown: list[Neighbour | RejectedPage] = [*expansion.neighbours, *rejected]
    found = {one.document: one.source for one in shown}
    for page in rejected:
        found.update((met.document, page.source) for met in page.successors if met.document is not None)
    for ends in expansion.replaced.values():
        graphs = found_pages.reader.graphs
        found.update((met.document, graphs[met.node.source]) for met in ends if met.document is not None)
    return found


def _neighbour(one: Neighbour, place: PagePlace) -> NearPage:
    others = tuple(", ".join(step.words for step in steps) for steps in one.other_paths)
    return NearPage(place, one.score, one.hops, one.words, one.label, others)


class _Places:
    """The passages that stand for pages: the nearest in meaning, else by words, else the first. One statement."""

    def __init__(self, streams: Streams, sources: Mapping[UUID, GraphSource]) -> None:
        self._sources = sources
        self._rows = {row[0]: row[1:] for row in _passages(streams, sources)} if sources else {}
        self._is_narrowed = bool(streams.scope.conditions)

    def of(self, page: Neighbour | RejectedPage) -> PagePlace | None:
        """None for a page that the question's filters leave out."""
        row = self._rows.get(page.document)
        if row is None or (row[1] is None and self._is_narrowed):
            return None
        _, chunk, headings, anchor, first, last, size = row
        owner: Any = page.source.owner
        url = self._address(page.document, page.source)
        if chunk is not None:
            url += f"#{anchor}" if anchor else f"#L{first}-L{last}" if first > 1 else ""
        version = owner.synced_commit if page.source.kind == Repository.kind else ""
        shown = PagePlace(
            source=SourceRef(page.source.kind, owner.pk, owner.label, owner.get_absolute_url()),
            document_id=page.document,
            uid=page.node.uid,
            node_type=page.node.node_type,
            title=page.node.label,
            status=page.node.status,
            path=page.path,
            version=version,
            url=url,
        )
        if chunk is None:
            return shown
        return dataclasses.replace(
            shown,
            chunk_id=chunk,
            heading_path=tuple(headings),
            anchor=anchor,
            start_line=first,
            end_line=last,
            tokens=math.ceil(size / 3),
        )

    def names(self, pages: Iterable[Met]) -> tuple[PageName, ...]:
        return tuple(
            PageName(met.node.uid, met.node.label, self._address(met.document, self._sources[met.document]))
            for met in pages
            if met.document is not None and met.document in self._rows
        )

    def _address(self, document: UUID, source: GraphSource) -> str:
        owner: Any = source.owner
        slug = self._rows[document][0]
        home = owner.get_absolute_url()
        return f"{home}/docs/{slug}" if source.kind == Repository.kind else f"{home}/documents/{document}"


def _passages(streams: Streams, sources: Mapping[UUID, GraphSource]) -> Iterable[tuple[Any, ...]]:
    by_kind: dict[str, list[UUID]] = {}
    for document, source in sources.items():
        by_kind.setdefault(source.kind, []).append(document)
    parts = [
        _of_store(streams, store, by_kind[store.source_kind])
        for store in streams.scope.stores
        if store.source_kind in by_kind
    ]
    return fetch(union(parts)) if parts else ()


def _of_store(streams: Streams, store: ChunkStore, documents: Sequence[UUID]) -> Fragment:
    """SECURITY: documents and passages are those of the scope's sources, whatever the graph may have named."""
    scope = streams.scope
    chunks = fragment_of(
        scope.chunks_of(store)
        .filter(**{f"{store.document_field}__in": documents})
        .values(
            "ref",
            "id",
            f"{store.document_field}_id",
            "chunk_index",
            "heading_path",
            "section_anchor",
            "start_line",
            "end_line",
            "embed_hash",
            "source",
        )
    )
    model: Any = store.model._meta.get_field(store.document_field).related_model
    slug = "d.slug" if store.source_kind == Repository.kind else "''"
    hits = streams.lexical.hits if streams.lexical else ()
    profile, vector = streams.profile, streams.vector
    compares = profile is not None and vector is not None
    asked = vector_text(vector) if compares else None
    numbers, generations = _numbers(scope, store)
    return Fragment(
        f"SELECT d.id, {slug}::text, b.id, b.heading_path, b.section_anchor, b.start_line, b.end_line, b.size "  # noqa: S608
        f"FROM {model._meta.db_table} d LEFT JOIN LATERAL (SELECT c.*, octet_length(c.source) AS size "
        f"FROM ({chunks.sql}) c "
        f"LEFT JOIN unnest(%s::int[], %s::smallint[]) AS s(number, generation) ON s.number = c.ref >> {SLOT_BITS} "
        "LEFT JOIN indexing_vector v ON v.profile_id = %s::bigint AND v.number = s.number "
        "AND v.generation = s.generation AND v.hash = c.embed_hash "
        "LEFT JOIN unnest(%s::bigint[], %s::float8[]) AS w(ref, score) ON w.ref = c.ref "
        f"WHERE c.{store.document_field}_id = d.id "
        "ORDER BY v.embedding <=> %s::halfvec NULLS LAST, w.score DESC NULLS LAST, c.chunk_index LIMIT 1) b ON true "
        f"WHERE d.id = ANY(%s::uuid[]) AND d.{store.source_field}_id = ANY(%s::uuid[])",
        (
            *chunks.params,
            numbers,
            generations,
            profile.pk if profile is not None and compares else None,
            [hit.ref for hit in hits],
            [hit.score for hit in hits],
            asked,
            list(documents),
            [source.id for source in scope.sources if source.store == store.name],
        ),
    )


def _numbers(scope: Scope, store: ChunkStore) -> tuple[list[int], list[int]]:
    pairs = [(source.number, source.generation) for source in scope.sources if source.store == store.name]
    return [number for number, _ in pairs], [generation for _, generation in pairs]
