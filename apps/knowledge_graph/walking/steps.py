"""One step from many nodes at once, in the database; and the chain of supersession (``knowledge-graph.md`` 9)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from apps.knowledge_graph.reader import Reader, SeenNode, node_of
from apps.knowledge_graph.vocabulary import EDGE_TYPES, PROJECT, TYPE_RANK, strength

Key = tuple[int, str]
"""A node: graph row of its source, uid."""

FACTORS = {"accepted": 1.0, "review": 0.9, "draft": 0.6, "deprecated": 0.3, "superseded": 0.3}
"""What a page's own status makes of its score; archived pages have none."""

_ENDS = {
    "out": (("e.from_uid", "e.to_uid", "true"),),
    "in": (("e.to_uid", "e.from_uid", "false"),),
    "both": (("e.from_uid", "e.to_uid", "true"), ("e.to_uid", "e.from_uid", "false")),
}
FAN = 200
"""Edges a direction that one step looks at, shared among the nodes that it goes out from."""
SPARE = 32
"""Edges of each node that are looked at beyond those needed: for parallel edges, and to choose among equals."""
EQUALS = 40
"""Steps beyond those needed whose nodes are looked up, to choose among equals by what their pages say."""
MOST_PARALLEL = len(EDGE_TYPES)
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class Step:
    """One edge as it is walked, from ``at`` to ``other``; ``outward`` when the edge points that way."""

    at: Key
    other: Key
    edge_type: str
    weight: float
    provenance: str
    type_source: str
    outward: bool

    @property
    def rank(self) -> tuple[int, int]:
        """Type rank and strength, the smaller the better."""
        return TYPE_RANK[self.edge_type], strength(self.provenance, self.type_source == "authored")

    @property
    def words(self) -> str:
        left, right = (self.at[1], self.other[1]) if self.outward else (self.other[1], self.at[1])
        return f"{left} {self.edge_type} {right}"


@dataclass(frozen=True, slots=True)
class Met:
    """A node at the end of a step; with the document behind it where only readable ones are asked for."""

    node: SeenNode
    document: UUID | None
    path: str

    @property
    def key(self) -> Key:
        return self.node.source, self.node.uid


@dataclass(frozen=True, slots=True)
class Filters:
    """Which edges may be walked and which nodes met; empty means all."""

    types: Sequence[str] = ()
    provenance: Sequence[str] = ()
    status: Sequence[str] = ()
    inferred: bool = False
    direction: str = "both"
    readable_only: bool = False
    """Leave out dangling, archived and rejected nodes in the database, so that nothing is spent on them."""

    @property
    def edges_sql(self) -> str:
        """Conditions on an edge ``e``; what asks for all is left out, since planning it costs more than a walk."""
        found = " AND e.edge_type = ANY(%(types)s::text[])" if self.types else ""
        if self.provenance:
            return f"{found} AND e.provenance = ANY(%(provenance)s::text[])"
        return found if self.inferred else f"{found} AND e.provenance <> 'inferred'"

    @property
    def edges_params(self) -> dict[str, list[str]]:
        return {"types": list(self.types), "provenance": list(self.provenance)}


@dataclass(frozen=True, slots=True)
class Departure:
    """A node that is walked from. What a step is worth is ``value`` times the weight of its edge; edges lighter than
    ``least`` are passed over."""

    key: Key
    value: float = 1.0
    least: float = 0.0


def departures_from(values: Mapping[Key, float], floor: float) -> list[Departure]:
    """Where to go out from, when nothing worth less than ``floor`` is asked for."""
    return [
        Departure(key, value, max(floor, 0.0) / value if value else 0.0)
        for key, value in values.items()
        if value >= floor
    ]


def steps(
    reader: Reader, departures: Sequence[Departure], filters: Filters, *, needed: int, cap: int
) -> list[tuple[Step, Met]]:
    """Steps to the ``cap`` neighbours of greatest worth, each by the best edge from every departure, best first for
    each. With ``readable_only`` worth contains the factor of the neighbour's status, and superseded neighbours, which
    give way to others, have a ``cap`` of their own.

    One statement reads the first edges of each departure, in their order (weight, rank, uid), and the nodes of the best
    of them. It is asked again, for more, only when ``needed`` neighbours are not found to be as good as all that was
    left unread. So the result is exact but for what decides among equals where these are too many: there the uid does.
    """
    if not departures:
        return []
    most = MOST_PARALLEL * needed
    fan = max(needed + SPARE, min(most, FAN // len(departures)))
    limit = cap + EQUALS
    early = bool(filters.status)
    found, unread = _read_steps(reader, departures, filters, fan=fan, limit=limit, early=early)
    if unread and _worth_of(found, needed) < unread - _ROUNDING:
        found, _ = _read_steps(reader, departures, filters, fan=most, limit=MOST_PARALLEL * limit, early=True)
    return [(each.step, each.met) for each in _capped(found, cap)]


@dataclass(frozen=True, slots=True)
class _Found:
    step: Step
    met: Met
    worth: float
    apart: bool
    """It gives way to others."""

    @property
    def order(self) -> tuple[Any, ...]:
        node = self.met.node
        return (-round(self.worth, 6), self.step.rank, node.node_type == PROJECT, -node.priority, node.uid)


def _worth_of(found: Sequence[_Found], needed: int) -> float:
    """What the last of the ``needed`` best neighbours is worth, 0 when there are not so many."""
    best: dict[Key, float] = {}
    for each in found:
        if not each.apart:
            best[each.met.key] = max(each.worth, best.get(each.met.key, 0.0))
    return sorted(best.values(), reverse=True)[needed - 1] if len(best) >= needed else 0.0


def _capped(found: Sequence[_Found], cap: int) -> list[_Found]:
    ordered = sorted(found, key=lambda each: (*each.order, each.step.at))
    kept: dict[bool, set[Key]] = {True: set(), False: set()}
    for each in ordered:
        if len(kept[each.apart]) < cap:
            kept[each.apart].add(each.met.key)
    return sorted((each for each in ordered if each.met.key in kept[each.apart]), key=lambda each: each.step.at)


def _read_steps(
    reader: Reader, departures: Sequence[Departure], filters: Filters, *, fan: int, limit: int, early: bool
) -> tuple[list[_Found], float]:
    """The best ``limit`` steps among the first ``fan`` edges of each departure and direction, and the most that one can
    be worth which was left unread. ``early``: nodes that are filtered out do not count as read."""
    nodes = ""
    if filters.readable_only:
        nodes = " AND NOT n.dangling AND n.status <> 'archived' AND n.node_type <> 'rejected-approach'"
    if filters.status:
        nodes += " AND n.status = ANY(%(status)s::text[])"
    # The indexes hold the edges of a node in the order asked for, with all columns named here. Worth and rank are one
    # number, of which the largest is the best.
    parts = [
        "SELECT s.*, f.source_id, f.number, 1000 * round(1e6 * f.value * s.walk_weight)::bigint - s.walk_rank AS worth,"  # noqa: S608
        f" {outward} AS outward FROM departures f CROSS JOIN LATERAL (SELECT {other} AS other, e.edge_type,"
        " e.walk_weight, e.walk_rank, e.provenance, e.type_source FROM {edges} e"
        + (f" JOIN {{nodes}} n ON n.source_id = e.source_id AND n.node_uid = {other}{nodes}" if early else "")
        + f" WHERE e.source_id = f.source_id AND {at} = f.at AND e.walk_weight >= f.least{filters.edges_sql}"
        f" ORDER BY e.walk_weight DESC, e.walk_rank, {other} LIMIT %(fan)s) s"
        for at, other, outward in _ENDS[filters.direction]
    ]
    paths = ("", "")
    if filters.readable_only:
        paths = (
            ", p.path, COALESCE(p.repository_document_id, p.document_id) AS document",
            " LEFT JOIN kb_pages p ON p.id = n.page_id",
        )
    rows = reader.rows(
        "WITH departures AS MATERIALIZED (SELECT * FROM unnest(%(fs)s::bigint[], %(fu)s::text[], %(fv)s::float8[],"  # noqa: S608
        " %(fl)s::numeric[]) WITH ORDINALITY AS f (source_id, at, value, least, number))"
        " SELECT b.number, b.other, b.edge_type, b.walk_weight AS weight, b.provenance, b.type_source, b.outward,"
        f" n.*{paths[0]} FROM (SELECT * FROM ({' UNION ALL '.join(parts)}) t"
        " ORDER BY t.worth DESC, t.other, t.number, t.outward DESC LIMIT %(limit)s) b"
        f" LEFT JOIN {{nodes}} n ON n.source_id = b.source_id AND n.node_uid = b.other{nodes}{paths[1]}",
        fan=fan,
        limit=limit,
        fs=[each.key[0] for each in departures],
        fu=[each.key[1] for each in departures],
        fv=[each.value for each in departures],
        fl=[each.least for each in departures],
        status=list(filters.status),
        **filters.edges_params,
    )
    found: dict[tuple[Key, Key], _Found] = {}
    read: defaultdict[tuple[Key, bool], list[float]] = defaultdict(list)
    for row in rows:
        departure = departures[row["number"] - 1]
        step = _step(departure.key, row)
        worth = departure.value * step.weight
        read[departure.key, step.outward].append(worth)
        if row["node_uid"] is not None:
            one = _found(step, _met(row), worth, filters)
            known = found.get((step.at, step.other))
            # Parallel edges count as the best of them.
            if known is None or one.order < known.order:
                found[step.at, step.other] = one
    # Of a departure with fewer rows everything has come, or what has not is worth no more than the last row of all.
    unread = [min(worths) for worths in read.values() if len(worths) >= fan]
    if len(rows) >= limit:
        unread.append(min(worth for worths in read.values() for worth in worths))
    return list(found.values()), max(unread, default=0.0)


def _found(step: Step, met: Met, worth: float, filters: Filters) -> _Found:
    if not filters.readable_only:
        return _Found(step, met, worth, apart=False)
    apart = met.node.status == "superseded"
    return _Found(step, met, worth * (1.0 if apart else FACTORS.get(met.node.status, 1.0)), apart)


def _step(at: Key, row: Mapping[str, Any]) -> Step:
    return Step(
        at,
        (at[0], row["other"]),
        row["edge_type"],
        float(row["weight"]),
        row["provenance"],
        row["type_source"],
        row["outward"],
    )


def _met(row: Mapping[str, Any]) -> Met:
    return Met(node_of(row), row.get("document"), row.get("path") or "")


@dataclass(frozen=True, slots=True)
class Newest:
    """What has taken the place of a page. ``ends`` are the newest pages; none in a cycle."""

    ends: tuple[Met, ...]
    cycle: bool


_CHAIN = """
WITH RECURSIVE chain (source_id, origin, at, uid) AS (
  SELECT o.source_id, o.uid, NULL::text, o.uid FROM unnest(%(fs)s::bigint[], %(fu)s::text[]) AS o (source_id, uid)
  UNION
  SELECT c.source_id, c.origin, c.uid, s.uid FROM chain c CROSS JOIN LATERAL (
    SELECT m.node_uid::text AS uid FROM (
      SELECT e.from_uid AS uid FROM {edges} e WHERE e.source_id = c.source_id AND e.to_uid = c.uid
        AND e.edge_type = 'supersedes' AND e.provenance <> 'inferred'
      UNION ALL SELECT e.to_uid FROM {edges} e WHERE e.source_id = c.source_id AND e.from_uid = c.uid
        AND e.edge_type = 'invalidated_by' AND e.provenance <> 'inferred') t
    JOIN {nodes} m ON m.source_id = c.source_id AND m.node_uid = t.uid
    WHERE NOT m.dangling AND m.status NOT IN ('draft', 'archived') LIMIT %(most)s) s
)
SELECT c.origin, c.at, n.*, p.path, COALESCE(p.repository_document_id, p.document_id) AS document
FROM chain c CROSS JOIN LATERAL (
  SELECT n.* FROM {nodes} n WHERE n.source_id = c.source_id AND n.node_uid = c.uid LIMIT 1) n
LEFT JOIN kb_pages p ON p.id = n.page_id WHERE c.at IS NOT NULL
"""
MOST_SUCCESSORS = 200
"""Pages that have taken the place of one page directly; more are passed over."""


def newest(reader: Reader, keys: Collection[Key]) -> dict[Key, Newest]:
    """For each page of ``keys`` that has been superseded, by either declaration, the ends of its chain. One statement.

    Successors that are drafts or archived do not count. A page that nothing has superseded is not in the answer.
    """
    if not keys:
        return {}
    wanted = sorted(keys)
    rows = reader.rows(_CHAIN, fs=[source for source, _ in wanted], fu=[uid for _, uid in wanted], most=MOST_SUCCESSORS)
    superseded = {((row["source_id"], row["origin"]), row["at"]) for row in rows}
    ends: dict[Key, dict[str, Met]] = {(source, origin): {} for (source, origin), at in superseded if at == origin}
    for row in rows:
        origin = (row["source_id"], row["origin"])
        if (origin, row["node_uid"]) not in superseded:
            ends[origin][row["node_uid"]] = _met(row)
    return {key: Newest(tuple(found[uid] for uid in sorted(found)), cycle=not found) for key, found in ends.items()}
