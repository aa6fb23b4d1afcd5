"""Symbols around a symbol: a walk of one or two steps over code edges, its fan-out bounded in SQL."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from django.db import connection

from apps.repos.models_code import CodeNode, EdgeKind

Direction = Literal["both", "callers", "callees"]
DIRECTIONS: tuple[Direction, ...] = ("both", "callers", "callees")
FAN_OUT = 200
"""Edges of one node that a first step looks at; a second step looks at a tenth of that for each."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A relation between two symbols, or (``target`` None) to a name that leads nowhere in the repository."""

    id: int
    kind: str
    source: uuid.UUID
    target: uuid.UUID | None
    name: str
    path: str
    line: int
    column: int
    confidence: int


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """``nodes`` without the one that was asked about, nearest first; ``truncated``: there is more."""

    nodes: tuple[CodeNode, ...]
    edges: tuple[Edge, ...]
    truncated: bool


_STEP = """
SELECT e.id, e.kind, e.source_id, e.target_id, e.qualifier, e.name, f.path, e.line, e."column", e.confidence
FROM unnest(%s::uuid[]) AS start(id) CROSS JOIN LATERAL (
    SELECT e.* FROM code_edges e JOIN code_files ef ON ef.id = e.file_id
    WHERE e.{near} = start.id AND e.kind = ANY(%s){known}
    ORDER BY e.confidence DESC, ef.path COLLATE "C", e.line, e."column", e.id LIMIT %s
) AS e JOIN code_files f ON f.id = e.file_id
ORDER BY e.confidence DESC, f.path COLLATE "C", e.line, e."column", e.id
"""


def neighbours(
    node: CodeNode,
    *,
    depth: int = 1,
    direction: Direction = "both",
    kinds: Collection[str] = (),
    limit: int = 50,
    unresolved: bool = False,
) -> Neighbourhood:
    """Up to ``limit`` symbols within ``depth`` (1 or 2) steps. ``callers``: against the edges; ``callees``: along."""
    wanted = list(kinds) or EdgeKind.values
    frontier: list[uuid.UUID] = [node.pk]
    order: list[uuid.UUID] = []
    seen = {node.pk}
    edges: dict[int, Edge] = {}
    truncated = False
    for step in range(depth):
        fan = FAN_OUT if step == 0 else FAN_OUT // 10
        found = list(_step(frontier, direction, wanted, fan, unresolved=unresolved and step == 0))
        truncated = truncated or len(found) >= fan * len(frontier)
        following: list[uuid.UUID] = []
        for edge in found:
            edges.setdefault(edge.id, edge)
            for end in (edge.source, edge.target):
                if end is not None and end not in seen:
                    seen.add(end)
                    following.append(end)
        order += following
        frontier = following[:limit]
        if not frontier:
            break
    truncated = truncated or len(order) > limit
    kept = order[:limit]
    rows = CodeNode.objects.filter(pk__in=kept).select_related("file").defer("search_keys").in_bulk()
    shown = {node.pk, *kept}
    return Neighbourhood(
        nodes=tuple(rows[pk] for pk in kept if pk in rows),
        edges=tuple(
            edge for edge in edges.values() if edge.source in shown and (edge.target is None or edge.target in shown)
        ),
        truncated=truncated,
    )


def _step(
    frontier: Sequence[uuid.UUID], direction: Direction, kinds: Sequence[str], fan: int, *, unresolved: bool
) -> Iterable[Edge]:
    sides = {"both": ("source_id", "target_id"), "callees": ("source_id",), "callers": ("target_id",)}[direction]
    for near in sides:
        known = "" if unresolved else " AND e.target_id IS NOT NULL"
        with connection.cursor() as cursor:
            cursor.execute(_STEP.format(near=near, known=known), [list(frontier), list(kinds), fan])
            rows: list[Any] = cursor.fetchall()
        for id_, kind, source, target, qualifier, name, path, line, column, confidence in rows:
            written = ".".join(part for part in (qualifier, name) if part)
            yield Edge(id_, kind, source, target, written, path, line, column, confidence)


def counts(node: CodeNode) -> dict[str, int]:
    """How many different symbols call a symbol and are called by it."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT (SELECT count(DISTINCT source_id) FROM code_edges WHERE target_id = %s AND kind = 'calls'),"
            " (SELECT count(DISTINCT target_id) FROM code_edges WHERE source_id = %s AND kind = 'calls')",
            [node.pk, node.pk],
        )
        callers, callees = cursor.fetchone()
    return {"callers": callers, "callees": callees}
