"""Candidates and winners of all stores and blocks of a search, each by one statement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
import orjson

from apps.indexing.models import SLOT_BITS, EmbeddingProfile
from apps.indexing.scope import Scope
from apps.indexing.statements import Fragment, fetch, union
from apps.retrieval.code_shelf import CodeShelf
from apps.retrieval.rows import Rows
from apps.retrieval.shelf_values import Candidate, Columns, Found, Shelf
from apps.retrieval.shelves import CollectionShelf, RepositoryShelf
from apps.retrieval.values import SourceRef

SHELVES: dict[str, Shelf] = {shelf.store: shelf for shelf in (RepositoryShelf(), CollectionShelf(), CodeShelf())}


def add_shelf(shelf: Shelf) -> None:
    SHELVES[shelf.store] = shelf


def shelves_of(scope: Scope) -> list[Shelf]:
    stores = {source.store for source in scope.sources}
    return [shelf for name, shelf in SHELVES.items() if name in stores]


class Wanted(NamedTuple):
    """What one block asks of the stores: chunks by their refs, symbols by their ids. ``beside`` rides along: a SELECT
    of terms and how many documents have each."""

    scope: Scope
    refs: Sequence[int]
    nodes: Sequence[UUID] = ()
    beside: Fragment | None = None


def _packed(place: int, store: str, columns: Sequence[str], rows: Fragment) -> Fragment:
    """All of ``rows`` as one row of the database, column by column: hundreds of rows cost more to hand over one by one
    than all else that is done with them."""
    lists = ", ".join(f"json_agg(q.{name})" for name in columns)
    return Fragment(
        f"SELECT {place}, '{store}', convert_to(json_build_array({lists})::text, 'UTF8') FROM ({rows.sql}) q",  # noqa: S608
        rows.params,
    )


def candidates_of(asked: Sequence[Wanted]) -> tuple[list[Rows], list[dict[str, int]]]:
    """The candidates of each block, and the counts that each asked for beside."""
    parts: list[Fragment] = []
    for place, wanted in enumerate(asked):
        for shelf in shelves_of(wanted.scope):
            parts += [
                _packed(place, shelf.store, shelf.columns, rows)
                for rows in shelf.candidates(wanted.scope, wanted.refs, wanted.nodes)
            ]
        if wanted.beside is not None:
            parts.append(_packed(place, "", ("term", "chunks"), wanted.beside))
    sources = [
        (
            {source.number: str(source.id) for source in wanted.scope.sources},
            {source.number: source.label for source in wanted.scope.sources},
        )
        for wanted in asked
    ]
    found: list[list[Columns]] = [[] for _ in asked]
    counts: list[dict[str, int]] = [{} for _ in asked]
    for place, store, packed in fetch(union(parts), prepare=True) if parts else ():
        columns = orjson.loads(packed)
        if not columns[0]:
            continue
        if not store:
            counts[place].update(zip(*columns, strict=True))
            continue
        numbers = (np.array(columns[0], np.int64) >> SLOT_BITS).tolist()
        ids, labels = (list(map(known.__getitem__, numbers)) for known in sources[place])
        found[place].append(SHELVES[store].candidates_of(columns, ids, labels))
    return [Rows.joined(columns) for columns in found], counts


_AROUND = (
    "SELECT -1, q.kind, 0::bigint, 0::bigint, NULL::uuid, NULL::text[], '', 0, 0, 0, 0, q.data, '', NULL::uuid, q.key, "
    "'', NULL::timestamptz, NULL::timestamptz, false, false, NULL::text FROM ({sql}) q"
)
Asked = tuple[Scope, Sequence[Candidate], EmbeddingProfile | None]


def winners_of(asked: Sequence[Asked]) -> list[dict[int, Found]]:
    """Text and freshness of rows, by ref, from the scope that found them."""
    return winners_and(asked, None)[0]


def winners_and(
    asked: Sequence[Asked], around: Fragment | None
) -> tuple[list[dict[int, Found]], list[tuple[str, str, str]]]:
    """The same with the rows of ``around``, a SELECT of kind, key and data that rides along."""
    parts: list[Fragment] = []
    besides: list[tuple[str, str, str]] = []
    found: list[dict[int, Found]] = [{} for _ in asked]
    for place, (scope, rows, profile) in enumerate(asked):
        for shelf in shelves_of(scope):
            mine = [row for row in rows if row.store == shelf.store]
            if mine:
                parts += shelf.winners(place, scope, mine, profile)
                if any(not row.chunk_id for row in mine):
                    found[place].update(shelf.bare(scope, mine))
    if around is not None:
        parts.append(Fragment(_AROUND.format(sql=around.sql), around.params))
    languages = [{source.id: source.language for source in scope.sources} for scope, _, _ in asked]
    sources: dict[tuple[Any, ...], SourceRef] = {}
    for row in fetch(union(parts), prepare=True) if parts else ():
        if row[0] < 0:
            besides.append((row[1], row[14], row[11]))
            continue
        shelf = SHELVES[row[1]]
        key = (row[1], row[14])
        source = sources.get(key)
        if source is None or source.id != row[13]:
            source = sources[key] = shelf.source(row)
        found[row[0]][row[2]] = shelf.winner(row, source, languages[row[0]].get(source.id, "english"))
    return found, besides
