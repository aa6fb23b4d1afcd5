"""The edges of one node with the places that say so, a part at a time: a hub has thousands."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from apps.access.errors import NotFound
from apps.knowledge_graph.models import GraphSource
from apps.knowledge_graph.reader import Overlay, Reader, Row, SeenEdge, SeenNode, edge_of, json_of, node_of
from apps.knowledge_graph.resolution import evidence_order
from apps.knowledge_graph.storing.rows import evidence_row, occurrence_value
from apps.knowledge_graph.values import EvidenceValue
from apps.knowledge_graph.vocabulary import strength, strength_sql

EVIDENCE = 20
"""Places that are shown of an edge, the strongest first."""


@dataclass(frozen=True, slots=True)
class ShownEvidence:
    """One place that says so. ``raw`` is the text as written, ``section`` the headings above it."""

    path: str
    line: int
    column: int
    raw: str
    provenance: str
    section: tuple[str, ...]
    anchor: str
    label: str
    embed: bool


@dataclass(frozen=True, slots=True)
class Position:
    """Where an edge stands among those of its node: outgoing before incoming, then as walks take them. No two edges of
    a node have the same."""

    outward: bool
    weight: Decimal
    rank: int
    other: str

    def __str__(self) -> str:
        return f"{self.weight},{self.rank},{self.other}"

    @property
    def packed(self) -> list[Any]:
        """For a cursor."""
        return [self.outward, str(self.weight), self.rank, self.other]

    @classmethod
    def unpacked(cls, values: Sequence[Any]) -> Position:
        outward, weight, rank, other = values
        return cls(outward, Decimal(weight), rank, other)


_POSITION = re.compile(r"([01](?:\.[0-9]{1,8})?),([0-9]{1,3}),([a-z0-9-]{1,128})")


def position_in(text: str, *, outward: bool) -> Position | None:
    """The position that an address names; None when it names none."""
    found = _POSITION.fullmatch(text)
    return Position(outward, Decimal(found[1]), int(found[2]), found[3]) if found else None


@dataclass(frozen=True, slots=True)
class ShownEdge:
    edge: SeenEdge
    other: SeenNode
    evidence: tuple[ShownEvidence, ...]
    places: int
    """How many places say so, shown or not."""
    position: Position

    @property
    def by_page_types(self) -> bool:
        """Nobody has written the type: the types of the two pages gave it."""
        return self.edge.type_source == "matrix"


_OF_EDGE = "v.source_id = e.source_id AND v.edge_uid = e.edge_uid AND v.page_id <> ALL(%(laid_over)s)"
_PART = (
    "(SELECT *, {outward} AS outward, e.{other} AS other FROM {{edges}} e WHERE e.source_id = %(source)s"
    " AND e.{at} = %(uid)s{more} ORDER BY e.walk_weight DESC, e.walk_rank, e.{other} LIMIT %(most)s)"
)
_ENDS = {True: ("from_uid", "to_uid"), False: ("to_uid", "from_uid")}
_BEHIND = (
    # Two ranges of the index rather than one condition, so that what comes before is not read.
    " AND e.walk_weight = %(weight)s::numeric AND (e.walk_rank, e.{other}) > (%(rank)s::smallint, %(behind)s::text)",
    " AND e.walk_weight < %(weight)s::numeric",
)
_EDGES = (
    "SELECT e.source_id, e.edge_uid, e.from_uid, e.to_uid, e.edge_type, e.weight, e.provenance, e.type_source,"  # noqa: S608
    " e.payload, e.outward, e.walk_weight, e.walk_rank, e.other, n.node_uid, n.node_type, n.label, n.status,"
    " n.priority, n.page_id, n.dangling,"
    f" (SELECT count(*) FROM kb_evidence v WHERE {_OF_EDGE}) AS places,"
    " (SELECT json_agg(json_build_object('path', p.path, 'line', v.line, 'column', v.\"column\", 'raw', v.raw,"
    " 'provenance', v.provenance, 'stated', v.stated_type, 'section', v.heading_path, 'anchor', v.anchor,"
    f" 'label', v.label, 'embed', v.embed)) FROM (SELECT * FROM kb_evidence v WHERE {_OF_EDGE}"
    f' ORDER BY {strength_sql("stated_type IS NOT NULL")}, v.line, v."column" LIMIT %(places)s) v'
    " JOIN kb_pages p ON p.id = v.page_id) AS evidence"
    " FROM (SELECT * FROM ({parts}) t ORDER BY outward DESC, walk_weight DESC, walk_rank, other LIMIT %(all)s) e"
    " JOIN {{nodes}} n ON n.source_id = e.source_id AND n.node_uid = e.other"
    " ORDER BY e.outward DESC, e.walk_weight DESC, e.walk_rank, e.other"
)


def edges_of_node(
    reader: Reader,
    graph: GraphSource,
    uid: str,
    *,
    directions: Sequence[bool] = (True, False),
    types: Sequence[str] = (),
    after: Position | None = None,
    most: int,
    in_all: int | None = None,
    places: int = EVIDENCE,
) -> list[ShownEdge]:
    """Edges that begin (direction true) and end at a node, by position: those behind ``after``, at most ``most`` of
    each direction and ``in_all`` of both. ``types``: only these; ``places``: evidence of each."""
    typed = " AND e.edge_type = ANY(%(types)s::text[])" if types else ""
    parts = []
    for outward in directions:
        ranges = [""] if after is None or outward < after.outward else list(_BEHIND)
        if after is None or outward <= after.outward:
            at, other = _ENDS[outward]
            parts += [
                _PART.format(outward=outward, at=at, other=other, more=typed + each.format(other=other))
                for each in ranges
            ]
    if not parts:
        return []
    overlay = reader.overlays.get(graph.pk) or Overlay()
    rows = reader.rows(
        _EDGES.format(parts=" UNION ALL ".join(parts)),
        source=graph.pk,
        uid=uid,
        laid_over=list(overlay.pages),
        types=list(types),
        most=most,
        all=in_all or most * len(directions),
        places=places,
        weight=str(after.weight) if after else None,
        rank=after.rank if after else None,
        behind=after.other if after else None,
    )
    laid_over = _laid_over_evidence(reader, graph, overlay)
    return [_shown(row, laid_over.get(row["edge_uid"], ()), places) for row in rows]


DIRECTIONS = {"both": (True, False), "out": (True,), "in": (False,)}


@dataclass(frozen=True, slots=True)
class EdgePage:
    """A part of all edges of a node. ``degrees``: how many of the types asked for begin and end there; ``total``: those
    in the directions asked for."""

    edges: tuple[ShownEdge, ...]
    degrees: tuple[int, int]
    total: int
    more: bool


def page_of_edges(
    reader: Reader,
    graph: GraphSource | None,
    uid: str,
    *,
    direction: str,
    types: Sequence[str],
    after: Position | None,
    limit: int,
    places: int = EVIDENCE,
) -> EdgePage:
    """One page of all edges of a node. Raises NotFound alike for hidden, purged and invented uids that nothing in view
    links."""
    if graph is None or reader.node(graph.pk, uid) is None:
        raise NotFound
    directions = DIRECTIONS[direction]
    found = edges_of_node(
        reader, graph, uid, directions=directions, types=types, after=after,
        most=limit + 1, in_all=limit + 1, places=places,
    )  # fmt: skip
    outgoing, incoming = reader.degrees(graph.pk, uid, types)
    total = sum(outgoing if one else incoming for one in directions)
    return EdgePage(tuple(found[:limit]), (outgoing, incoming), total, len(found) > limit)


def _shown(row: Row, laid_over: Sequence[ShownEvidence], places: int) -> ShownEdge:
    evidence = tuple(laid_over[:places]) or _evidence(json_of(row["evidence"]) or [])
    position = Position(row["outward"], row["walk_weight"], row["walk_rank"], row["other"])
    return ShownEdge(edge_of(row), node_of(row), evidence, len(laid_over) or row["places"], position)


def _evidence(rows: Sequence[Mapping[str, Any]]) -> tuple[ShownEvidence, ...]:
    ordered = sorted(
        rows, key=lambda row: (strength(row["provenance"], row["stated"] is not None), row["line"], row["column"])
    )
    return tuple(
        ShownEvidence(
            row["path"],
            row["line"],
            row["column"],
            row["raw"],
            row["provenance"],
            tuple(row["section"]),
            row["anchor"],
            row["label"],
            row["embed"],
        )
        for row in ordered
    )


def _laid_over_evidence(reader: Reader, graph: GraphSource, overlay: Overlay) -> dict[str, tuple[ShownEvidence, ...]]:
    if not overlay.evidence:
        return {}
    paths = {key: page.path for key, page in reader.pages({page for page, _ in overlay.evidence}).items()}
    groups: dict[str, list[tuple[int, EvidenceValue]]] = {}
    for page_id, value in overlay.evidence:
        if value.edge_uid:
            groups.setdefault(value.edge_uid, []).append((page_id, value))
    found: dict[str, tuple[ShownEvidence, ...]] = {}
    for uid, values in groups.items():
        values.sort(key=lambda pair: evidence_order(pair[1]))
        shown = []
        for page_id, value in values:
            occurrence = occurrence_value(evidence_row(value, source_id=graph.pk, page_id=page_id))
            shown.append(
                ShownEvidence(
                    paths.get(page_id, ""),
                    occurrence.line,
                    occurrence.column,
                    occurrence.raw,
                    occurrence.provenance,
                    occurrence.heading_path,
                    occurrence.anchor,
                    occurrence.label,
                    occurrence.embed,
                )
            )
        found[uid] = tuple(shown)
    return found
