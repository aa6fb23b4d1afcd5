"""The symbol stream of a search without statements of its own (``retrieval.md`` 1.8 and 5).

Names ride with the query of the scope, those that only resemble them with the statement of the other streams.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import orjson

from apps.indexing.naming import option_of
from apps.indexing.scope import SCOPED, Riders
from apps.indexing.statements import Fragment, beginning_with, fetch, union
from apps.repos.code import alike
from apps.repos.code.searching import CLASSES, MOST, SURE, Where, asked_for, named, resembling

MOST_RESEMBLED = 3
"""Names of a query for which like ones are looked for."""
_NAMED = "named_symbols"
_READABLE = Fragment(f"SELECT source_id FROM {SCOPED} WHERE store = 'code'")  # noqa: S608


class Match(NamedTuple):
    """A symbol that the query names: ``Found`` without what only its own page shows."""

    node_id: uuid.UUID
    name: str
    qualified_name: str
    evidence: float

    @property
    def matched(self) -> str:
        return CLASSES.get(self.evidence, "trigrams")


def names_in(query: str, small: Collection[str]) -> list[str]:
    """What is asked for ``query``: nothing for a natural question, nor for an option, which is no symbol's name."""
    if option_of(query):
        return []
    return [name for name in asked_for(query[:2000].replace("\0", " "), small=small) if name]


def riding(riders: Riders, small: Collection[str], among: Fragment | None) -> Riders:
    """``riders`` and the first step of this stream. ``small`` are stop words, ``among`` a SELECT of the ids of the
    symbols that may be found."""
    wanted = names_in(riders.text, small)
    if not wanted:
        return riders
    begun, parts = _first(wanted, Where.of(_READABLE, among))
    return riders.and_(begun, parts)


def _first(wanted: Sequence[str], where: Where) -> tuple[Fragment, list[Fragment]]:
    """Symbols so named (``y``), and where none is surely meant, the symbols of the letter triples (``z``), in the
    columns of ``REPLY``; with what their WITH clause begins with. The names that were asked come along with the first.
    """
    rows = named(where, wanted, MOST)
    triples = sorted(set().union(*map(alike.asked_triples, wanted[:MOST_RESEMBLED])))
    begun = Fragment(
        f"{_NAMED} AS MATERIALIZED (SELECT n.id, n.name, n.qualified_name, n.evidence, "  # noqa: S608
        "row_number() OVER () AS place "
        f"FROM ({rows.sql}) n)",
        rows.params,
    )
    parts = [
        Fragment(
            "SELECT 'y', '', %s::text, NULL::bytea, convert_to(COALESCE(json_agg(json_build_array("  # noqa: S608
            f"id, name, qualified_name, evidence) ORDER BY place)::text, '[]'), 'UTF8') FROM {_NAMED}",
            (_spelled(wanted),),
        )
    ]
    if triples:
        held = alike.entries_of(where.repositories, triples)
        parts.append(
            Fragment(
                f"SELECT 'z', repository_id::text, triple, NULL::bytea, entries FROM ({held.sql}) t "  # noqa: S608
                f"WHERE (SELECT count(*) FILTER (WHERE evidence >= {SURE}) = 0 AND count(*) < {MOST} FROM {_NAMED})",
                held.params,
            )
        )
    return begun, parts


def _spelled(wanted: Sequence[str]) -> str:
    return orjson.dumps(wanted).decode()


class SymbolStream:
    """The stream for one query inside the repositories of a scope."""

    def __init__(
        self,
        query: str,
        repositories: Collection[uuid.UUID],
        small: Collection[str],
        among: Fragment | None,
        riders: Riders | None,
    ) -> None:
        """``riders``: what rode with the query of the scope, if anything did; else the first step is a statement."""
        self._wanted = names_in(query, small)
        self._is_narrowed = among is not None
        # SECURITY: repositories of a scope are those that its viewer may read.
        self._where = Where.of(Fragment("SELECT unnest(%s::uuid[])", (list(repositories),)), among)
        self._named: list[Match] = []
        self._alike: list[tuple[str, list[alike.Alike]]] = []
        if self._wanted:
            self._begin(riders.rows if riders is not None else ())

    def _begin(self, rows: Sequence[tuple[Any, ...]]) -> None:
        spelled = _spelled(self._wanted)
        if not any(kind == "y" and term == spelled for kind, _, term, _, _ in rows):
            begun, parts = _first(self._wanted, self._where)
            rows = fetch(beginning_with([begun], union(parts)), prepare=True)
        self._named = [one for kind, *_, data in rows if kind == "y" for one in _matches(data)]
        held: dict[str, dict[uuid.UUID, list[bytes]]] = defaultdict(lambda: defaultdict(list))
        for kind, repository, triple, _, entries in rows:
            if kind == "z":
                held[triple][uuid.UUID(repository)].append(entries)
        # Filters may leave few of the best: then all that resemble the name are asked for at once.
        most = alike.MOST_ALIKE if self._is_narrowed else MOST
        for name in self._wanted[:MOST_RESEMBLED] if held else ():
            if close := alike.best(held, name, most):
                self._alike.append((name, close))

    def statement(self) -> Fragment | None:
        """Symbols that resemble what is asked (``x``), in the columns of ``REPLY``; None where none is wanted."""
        parts = [self._resembling(name, close) for name, close in self._alike]
        return union(parts) if parts else None

    def _resembling(self, name: str, close: Sequence[alike.Alike]) -> Fragment:
        rows = resembling(self._where, name, close, MOST)
        return Fragment(
            "SELECT 'x', '', %s::text, NULL::bytea, convert_to(COALESCE(json_agg(json_build_array("  # noqa: S608
            "id, name, qualified_name, evidence) ORDER BY place)::text, '[]'), 'UTF8') "
            f"FROM (SELECT n.*, row_number() OVER () AS place FROM ({rows.sql}) n) q",
            (name, *rows.params),
        )

    def found(self, rows: Sequence[tuple[Any, ...]]) -> list[Match]:
        """The symbols, best first, from the rows of ``statement``."""
        known = {one.node_id: one for one in self._named}
        like: dict[uuid.UUID, Match] = {}
        told = {term: _matches(data) for kind, _, term, _, data in rows if kind == "x"}
        for name, close in self._alike:
            here = told.get(name, [])
            if len(here) < MOST <= len(close) and not self._is_narrowed:
                # Symbols that are gone took places among the best.
                here = self._all_like(name)
            for one in here:
                like.setdefault(one.node_id, one)
        best = sorted(like.values(), key=lambda one: -one.evidence)
        return [*self._named, *(one for one in best if one.node_id not in known)][:MOST]

    def _all_like(self, name: str) -> list[Match]:
        close = alike.alike(self._where.repositories, name, alike.MOST_ALIKE)
        return [one for *_, data in fetch(self._resembling(name, close)) for one in _matches(data)]

    def alone(self) -> list[Match]:
        """By statements of its own."""
        asked = self.statement()
        return self.found(fetch(asked) if asked is not None else ())


def _matches(data: bytes) -> list[Match]:
    return [
        Match(uuid.UUID(id_), name, qualified_name, round(evidence, 6))
        for id_, name, qualified_name, evidence in orjson.loads(data)
    ]
