"""Names that resemble one that is asked for: letter triples with the symbols that have them (``retrieval.md`` 5.2).

A row holds the entries of one triple in one *segment*, which is what one batch of a sync added. Similarity is counted
over the packed entries of the triples asked for, so no symbol is looked at that is not among the best, and the answer
does not depend on what extensions the server has. Entries of symbols that are gone stay until their number is large:
nobody finds a symbol by a number that no row bears.
"""

from __future__ import annotations

import uuid
from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np
from django.db import connection

from apps.indexing.copying import copy_values
from apps.indexing.statements import Fragment, fetch
from apps.jobs.running import JobRun
from apps.repos.models import Repository
from apps.repos.models_code import CodeNode, CodeState
from apps.symbols.names import joined, trigrams

LEAST = 0.3
"""Similarity: shared triples by triples of either."""
NUMBER_BITS = 24
"""Of an entry; the eight above them say how many triples the name has, which are at most 201."""
MOST_NUMBERS = 1 << NUMBER_BITS
TIER = 8
"""So many segments of like size become one."""
REBUILD_AT_ONCE = 20_000
MOST_ALIKE = 100_000
"""Of one name, where fewer than are wanted are left of the best."""
_COLUMNS = (("repository_id", "uuid"), ("triple", "text"), ("segment", "int4"), ("entries", "bytea"))


class Alike(NamedTuple):
    """A symbol by its number in its repository. ``similarity`` from ``LEAST`` to 1."""

    similarity: float
    repository_id: uuid.UUID
    number: int


def add(repository: Repository, names: Sequence[Iterable[str]]) -> int:
    """Write one segment: the triples of new symbols. Gives the number of the first; the others follow in order. The
    caller is inside a batch and holds the repository's job."""
    state, _ = CodeState.objects.get_or_create(repository=repository)
    first = state.next_number
    entries: dict[str, array[int]] = defaultdict(lambda: array("I"))
    for number, triples in enumerate(names, first):
        held = set(triples)
        for triple in held:
            entries[triple].append(len(held) << NUMBER_BITS | number)
    if names:
        segment = len(state.segments)
        rows = [(repository.pk, triple, segment, values.tobytes()) for triple, values in sorted(entries.items())]
        copy_values("code_triples", _COLUMNS, rows)
        _keep(state, first + len(names), [*state.segments, len(names)])
    return first


def _keep(state: CodeState, next_number: int, segments: Sequence[int]) -> None:
    CodeState.objects.filter(pk=state.pk).update(next_number=next_number, segments=list(segments))


def settle(run: JobRun, repository: Repository) -> None:
    """Merge small segments into larger ones, and number all symbols anew when most numbers have nobody left."""
    state = CodeState.objects.get(repository=repository)
    rows = CodeNode.objects.filter(repository=repository)
    if state.next_number > 2 * rows.count() + 1000 or rows.filter(number=None).exists():
        with run.batch():
            rebuild(repository)
        return
    sizes = list(state.segments)
    while (first := _first_to_merge(sizes)) is not None:
        with run.batch():
            _merge(repository, first, len(sizes) - 1)
            sizes = [*sizes[:first], sum(sizes[first:])]
            _keep(state, state.next_number, sizes)


def _first_to_merge(sizes: Sequence[int]) -> int | None:
    """Where the last segments begin of which ``TIER`` are of a size, the others smaller: logarithmic merging. A large
    segment is written anew only with others of its kind."""
    limit = TIER
    while limit <= MOST_NUMBERS * TIER:
        last = list(takewhile(limit.__gt__, reversed(sizes)))
        if sum(size * TIER >= limit for size in last) >= TIER:
            return len(sizes) - len(last)
        limit *= TIER
    return None


def _merge(repository: Repository, first: int, last: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "WITH old AS (DELETE FROM code_triples WHERE repository_id = %s AND segment BETWEEN %s AND %s"
            " RETURNING triple, segment, entries)"
            " INSERT INTO code_triples (repository_id, triple, segment, entries)"
            " SELECT %s, triple, %s, string_agg(entries, ''::bytea ORDER BY segment) FROM old GROUP BY triple",
            [repository.pk, first, last, repository.pk, first],
        )


def rebuild(repository: Repository) -> None:
    """Number all symbols from 0 and write their triples anew. The caller is inside a batch."""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM code_triples WHERE repository_id = %s", [repository.pk])
        cursor.execute(
            "UPDATE code_nodes AS n SET number = r.number FROM (SELECT id, row_number() OVER (ORDER BY file_id, id) - 1"
            " AS number FROM code_nodes WHERE repository_id = %s) AS r WHERE n.id = r.id",
            [repository.pk],
        )
        count = cursor.rowcount
    CodeState.objects.filter(repository=repository).update(next_number=0, segments=[])
    for first in range(0, count, REBUILD_AT_ONCE):
        portion = CodeNode.objects.filter(repository=repository, number__range=(first, first + REBUILD_AT_ONCE - 1))
        rows = portion.order_by("number").values_list("name", flat=True)
        add(repository, list(map(trigrams, rows)))


def asked_triples(name: str) -> list[str]:
    """The letter triples by which names like ``name`` are found; none where it has too few."""
    found = sorted(trigrams(joined(name).rsplit(".", 1)[-1]))
    return found if len(found) >= 3 else []


def entries_of(repositories: Fragment, triples: Sequence[str]) -> Fragment:
    """A SELECT of repository_id, triple and entries. ``repositories``: a SELECT of the ids of those looked through."""
    return Fragment(
        "SELECT repository_id, triple, entries FROM code_triples"  # noqa: S608 - the scope is Django's own SQL
        f" WHERE repository_id IN ({repositories.sql}) AND triple = ANY(%s::text[])",
        (*repositories.params, list(triples)),
    )


def alike(repositories: Fragment, name: str, most: int) -> list[Alike]:
    """The symbols whose names resemble ``name``, by a statement of its own: see ``best``."""
    asked = asked_triples(name)
    if not asked:
        return []
    held: dict[str, dict[uuid.UUID, list[bytes]]] = defaultdict(lambda: defaultdict(list))
    for repository_id, triple, entries in fetch(entries_of(repositories, asked), prepare=True):
        held[triple][repository_id].append(entries)
    return best(held, name, most)


def best(entries: Mapping[str, Mapping[uuid.UUID, Sequence[bytes]]], name: str, most: int) -> list[Alike]:
    """The symbols whose names resemble ``name``, best first: ``most`` of them, and all that resemble it as much as the
    last of these. ``entries`` by triple and repository."""
    asked = asked_triples(name)
    held: dict[uuid.UUID, list[bytes]] = defaultdict(list)
    for triple in asked:
        for repository_id, parts in entries.get(triple, {}).items():
            held[repository_id] += parts
    found = [_similar(b"".join(parts), len(asked)) for parts in held.values()]
    if not found:
        return []
    every = np.concatenate([similarities for _, similarities in found])
    least = np.partition(every, len(every) - most)[len(every) - most] if len(every) > most else LEAST
    chosen: list[Alike] = []
    for repository_id, (numbers, similarities) in zip(held, found, strict=True):
        kept = similarities >= least
        pairs = zip(similarities[kept].tolist(), numbers[kept].tolist(), strict=True)
        chosen += [Alike(similarity, repository_id, number) for similarity, number in pairs]
    return sorted(chosen, key=lambda one: (-one.similarity, one.repository_id, one.number))


def _similar(entries: bytes, asked: int) -> tuple[Any, Any]:
    """Numbers and similarities of the symbols that share enough of ``asked`` triples."""
    packed = np.frombuffer(entries, "<u4")
    numbers = packed & (MOST_NUMBERS - 1)
    shared = np.bincount(numbers)
    own = np.zeros(len(shared), np.uint8)
    own[numbers] = packed >> NUMBER_BITS
    # A name that shares fewer than this of those asked for cannot be alike enough, however short it is.
    likely = np.flatnonzero(shared >= LEAST * asked)
    shared = shared[likely]
    similarity = shared / (own[likely] + (asked - shared))
    kept = similarity >= LEAST
    return likely[kept], similarity[kept]
