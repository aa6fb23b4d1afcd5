"""One step from many nodes at once, in the database; and the chain of supersession (``knowledge-graph.md`` 9)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from apps.knowledge_graph.reader import Reader, SeenNode, node_of
from apps.knowledge_graph.vocabulary import EDGE_TYPES, PROVENANCES, TYPE_RANK, strength

Key = tuple[int, str]
"""A node: graph row of its source, uid."""

STRENGTH_SQL = (
    "CASE e.provenance WHEN 'frontmatter_supersedes' THEN 0 WHEN 'frontmatter_superseded_by' THEN 1"
    " WHEN 'frontmatter_typed' THEN 2 WHEN 'wikilink' THEN CASE WHEN e.type_source = 'authored' THEN 3 ELSE 5 END"
    " WHEN 'frontmatter_related' THEN 4 ELSE 6 END"
)
WEIGHT_SQL = (
    "(CASE WHEN e.provenance = 'inferred' THEN round(e.weight * COALESCE((e.payload ->> 'confidence')::numeric, 1), 4)"
    " ELSE e.weight END)"
)
_FACTOR_SQL = "CASE n.status WHEN 'review' THEN 0.9 WHEN 'draft' THEN 0.6 WHEN 'deprecated' THEN 0.3 ELSE 1 END"

_ENDS = {
    "out": (("e.from_uid", "e.to_uid", "true"),),
    "in": (("e.to_uid", "e.from_uid", "false"),),
    "both": (("e.from_uid", "e.to_uid", "true"), ("e.to_uid", "e.from_uid", "false")),
}


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
    """A node at the end of a step, with the document behind it."""

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


def steps(reader: Reader, frontier: Iterable[Key], filters: Filters, *, cap: int, fan: int) -> list[tuple[Step, Met]]:
    """The best ``cap`` neighbours of each node of ``frontier``, by the best edge to each. One statement.

    Of each node at most ``fan`` edges a direction are looked at, the heaviest; ten times ``cap`` is always enough,
    since two nodes have at most ten edges that way.
    """
    keys = list(frontier)
    if not keys:
        return []
    readable = (
        " AND NOT n.dangling AND n.status <> 'archived' AND n.node_type <> 'rejected-approach'"
        if filters.readable_only
        else ""
    )
    factor = _FACTOR_SQL if filters.readable_only else "1"
    status = " AND n.status = ANY(%(status)s::text[])" if filters.status else ""
    provenance = filters.provenance or [name for name in PROVENANCES if name != "inferred" or filters.inferred]
    # The index gives the edges of a node by weight, so that of a hub only the heaviest that lead somewhere are read.
    parts = [
        f"SELECT f.source_id, f.at, s.*, {outward} AS outward FROM frontier f CROSS JOIN LATERAL ("  # noqa: S608
        f"SELECT {other} AS other, e.edge_type, {WEIGHT_SQL} AS weight, e.provenance, e.type_source,"
        f" array_position(%(ranks)s::text[], e.edge_type::text) AS type_rank, {STRENGTH_SQL} AS strength,"
        " n.node_uid, n.node_type, n.label, n.status, n.priority, n.page_id, n.dangling"
        f" FROM {{edges}} e JOIN {{nodes}} n ON n.source_id = e.source_id AND n.node_uid = {other}"
        f" WHERE e.source_id = f.source_id AND {at} = f.at AND e.edge_type = ANY(%(types)s::text[])"
        f" AND e.provenance = ANY(%(provenance)s::text[]){readable}{status}"
        f" ORDER BY e.weight DESC, {other}, e.edge_type LIMIT %(fan)s) s"
        for at, other, outward in _ENDS[filters.direction]
    ]
    rows = reader.rows(
        "WITH frontier AS MATERIALIZED (SELECT * FROM unnest(%(fs)s::bigint[], %(fu)s::text[]) AS f (source_id, at)),"  # noqa: S608
        f" steps AS ({' UNION ALL '.join(parts)}),"
        # Parallel edges count as the best of them.
        " best AS (SELECT DISTINCT ON (source_id, at, other) * FROM steps"
        " ORDER BY source_id, at, other, weight DESC, type_rank, strength, outward DESC),"
        " ranked AS (SELECT n.*,"
        f" row_number() OVER (PARTITION BY n.source_id, n.at ORDER BY n.weight * {factor} DESC, n.type_rank,"
        " n.strength, n.node_type = 'project', n.priority DESC, n.node_uid) AS place FROM best n)"
        " SELECT r.*, p.path, COALESCE(p.repository_document_id, p.document_id) AS document FROM ranked r"
        " LEFT JOIN kb_pages p ON p.id = r.page_id WHERE r.place <= %(cap)s"
        " ORDER BY r.source_id, r.at, r.place",
        fan=fan,
        fs=[source for source, _ in keys],
        fu=[uid for _, uid in keys],
        ranks=list(EDGE_TYPES),
        types=list(filters.types or EDGE_TYPES),
        provenance=list(provenance),
        status=list(filters.status),
        cap=cap,
    )
    return [(_step(row), _met(row)) for row in rows]


def _step(row: Mapping[str, Any]) -> Step:
    source = row["source_id"]
    return Step(
        (source, row["at"]),
        (source, row["other"]),
        row["edge_type"],
        float(row["weight"]),
        row["provenance"],
        row["type_source"],
        row["outward"],
    )


def _met(row: Mapping[str, Any]) -> Met:
    return Met(node_of(row), row["document"], row["path"] or "")


@dataclass(frozen=True, slots=True)
class Newest:
    """What has taken the place of a page. ``ends`` are the newest pages; none in a cycle."""

    ends: tuple[Met, ...]
    cycle: bool


_CHAIN = """
WITH RECURSIVE chain (source_id, origin, uid) AS (
  SELECT o.source_id, o.uid, o.uid FROM unnest(%(fs)s::bigint[], %(fu)s::text[]) AS o (source_id, uid)
  UNION
  SELECT c.source_id, c.origin, s.uid FROM chain c CROSS JOIN LATERAL (SUCCESSORS) s
)
SELECT c.source_id, c.origin, n.*, p.path, COALESCE(p.repository_document_id, p.document_id) AS document, c.uid AS at,
  EXISTS (SELECT FROM (SUCCESSORS) s) AS onward
FROM chain c JOIN {nodes} n ON n.source_id = c.source_id AND n.node_uid = c.uid
LEFT JOIN kb_pages p ON p.id = n.page_id
""".replace(
    "SUCCESSORS",
    "SELECT t.uid FROM (SELECT e.from_uid AS uid FROM {edges} e WHERE e.source_id = c.source_id AND e.to_uid = c.uid"
    " AND e.edge_type = 'supersedes' AND e.provenance <> 'inferred'"
    " UNION ALL SELECT e.to_uid FROM {edges} e WHERE e.source_id = c.source_id AND e.from_uid = c.uid"
    " AND e.edge_type = 'invalidated_by' AND e.provenance <> 'inferred') t"
    " JOIN {nodes} m ON m.source_id = c.source_id AND m.node_uid = t.uid"
    " WHERE NOT m.dangling AND m.status NOT IN ('draft', 'archived')",
)


def newest(reader: Reader, keys: Collection[Key]) -> dict[Key, Newest]:
    """For each page of ``keys`` that has been superseded, by either declaration, the ends of its chain. One statement.

    Successors that are drafts or archived do not count. A page that nothing has superseded is not in the answer.
    """
    if not keys:
        return {}
    wanted = sorted(keys)
    rows = reader.rows(_CHAIN, fs=[source for source, _ in wanted], fu=[uid for _, uid in wanted])
    ends: dict[Key, list[Met]] = {}
    superseded: set[Key] = set()
    for row in rows:
        origin = (row["source_id"], row["origin"])
        if row["at"] == row["origin"]:
            if row["onward"]:
                superseded.add(origin)
        elif not row["onward"]:
            ends.setdefault(origin, []).append(_met(row))
    return {
        key: Newest(tuple(sorted(ends.get(key, ()), key=lambda met: met.node.uid)), cycle=key not in ends)
        for key in superseded
    }
