"""The words of the graph: node and edge types, weights, statuses, the matrix of types (``knowledge-graph.md`` 3)."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Literal

from apps.markup.edge_types import EDGE_TYPES

__all__ = ["EDGE_TYPES"]

PROJECT = "project"
UNKNOWN = "unknown"
REJECTED = "rejected-approach"
RELATED_TO = "related_to"
SUPERSEDES = "supersedes"
INVALIDATED_BY = "invalidated_by"

FOLDERS: dict[str, str] = {
    "module": "modules",
    "decision": "decisions",
    "runbook": "runbooks",
    "standard": "standards",
    "incident": "incidents",
    "integration": "integrations",
    "domain-concept": "domain-concepts",
    REJECTED: "rejected",
}
"""The folder in which a page of a type is expected; a project page stands in none of them."""

NODE_TYPES: tuple[str, ...] = (PROJECT, *FOLDERS)
TYPE_ALIASES = {"project-index": PROJECT, "module-kb": "module"}

STATUSES = ("draft", "review", "accepted", "superseded", "deprecated", "archived")
OUT_OF_FORCE = frozenset({"superseded", "deprecated", "archived"})

TYPE_RANK = {name: rank for rank, name in enumerate(EDGE_TYPES)}
DEFAULT_WEIGHTS: dict[str, Decimal] = {
    "implements": Decimal("1.0"),
    SUPERSEDES: Decimal("1.0"),
    "decision_for": Decimal("1.0"),
    "depends_on": Decimal("0.8"),
    "uses": Decimal("0.8"),
    "affects": Decimal("0.8"),
    INVALIDATED_BY: Decimal("0.7"),
    "documented_by": Decimal("0.7"),
    "owned_by": Decimal("0.7"),
    RELATED_TO: Decimal("0.5"),
}

MATRIX: dict[tuple[str, str], str] = {
    ("decision", "module"): "decision_for",
    ("decision", "integration"): "decision_for",
    ("module", "module"): "depends_on",
    ("module", "integration"): "uses",
    ("module", "runbook"): "documented_by",
    ("integration", "runbook"): "documented_by",
    ("incident", "module"): "affects",
    ("incident", "integration"): "affects",
}
"""Only where one reading is nearly certain; every other pair is a loose tie."""

Provenance = Literal[
    "frontmatter_supersedes",
    "frontmatter_superseded_by",
    "frontmatter_typed",
    "wikilink",
    "frontmatter_related",
    "inferred",
]
PROVENANCES: tuple[Provenance, ...] = (
    "frontmatter_supersedes",
    "frontmatter_superseded_by",
    "frontmatter_typed",
    "wikilink",
    "frontmatter_related",
    "inferred",
)

LINK_FIELDS: dict[str, tuple[str | None, Provenance]] = {
    "related": (None, "frontmatter_related"),
    SUPERSEDES: (SUPERSEDES, "frontmatter_supersedes"),
    "superseded_by": (INVALIDATED_BY, "frontmatter_superseded_by"),
    "owners": ("owned_by", "frontmatter_typed"),
    **{name: (name, "frontmatter_typed") for name in EDGE_TYPES if name != SUPERSEDES},
}
"""Front matter keys that name pages: the edge type they state, and where an edge from them says it comes from."""

PLAIN_FIELDS = (
    "slug",
    "type",
    "status",
    "retrieval_priority",
    "title",
    "summary",
    "aliases",
    "tags",
    "id",
    "project",
)
KNOWN_KEYS = (*PLAIN_FIELDS, *LINK_FIELDS)
DEFAULT_PRIORITY = 50


def matrix_type(from_type: str, to_type: str) -> str:
    """The type of a link that states none."""
    return MATRIX.get((from_type, to_type), RELATED_TO)


def strength(provenance: str, stated: bool) -> int:
    """Rank of evidence, 0 the strongest: what an edge shows is that of its strongest evidence."""
    if provenance == "wikilink":
        return 3 if stated else 5
    return {
        "frontmatter_supersedes": 0,
        "frontmatter_superseded_by": 1,
        "frontmatter_typed": 2,
        "frontmatter_related": 4,
    }.get(provenance, 6)


def normal_type(text: str) -> str:
    """A node type as it may be written: case, outer blanks and ``_`` for ``-`` do not matter."""
    plain = text.strip().lower().replace("_", "-")
    return TYPE_ALIASES.get(plain, plain)


def normal_word(text: str) -> str:
    """A key, an edge type or a status: case, outer blanks and ``-`` for ``_`` do not matter."""
    return text.strip().lower().replace("-", "_")


def near(word: str, known: Iterable[str]) -> str | None:
    """The known word at most two edits away. In short words fewer edits count: ``uid`` is no slip of ``id``."""
    best: tuple[int, str] | None = None
    for candidate in known:
        allowed = min(2, (len(candidate) - 1) // 2)
        if abs(len(candidate) - len(word)) > allowed:
            continue
        distance = _distance(word, candidate, allowed)
        if distance <= allowed and (best is None or (distance, candidate) < best):
            best = (distance, candidate)
    return best[1] if best and best[0] else None


def _distance(left: str, right: str, limit: int) -> int:
    """Edits (insert, drop, change, swap of neighbours) between two words; anything above ``limit`` is as good."""
    before: list[int] = []
    row = list(range(len(right) + 1))
    for place, letter in enumerate(left, start=1):
        older, before, row = before, row, [place]
        for other, wanted in enumerate(right, start=1):
            cost = min(before[other] + 1, row[other - 1] + 1, before[other - 1] + (letter != wanted))
            if place > 1 and other > 1 and letter == right[other - 2] and left[place - 2] == wanted:
                cost = min(cost, older[other - 2] + 1)
            row.append(cost)
        if min(row) > limit:
            return limit + 1
    return row[-1]


def walk_rank(edge_type: str, provenance: str, type_source: str) -> int:
    """Type rank, then strength, as one number; of two edges of equal weight a walk takes the smaller first."""
    return 10 * TYPE_RANK[edge_type] + strength(provenance, type_source == "authored")


_STRENGTHS = {name: strength(name, stated=False) for name in PROVENANCES}


def strength_sql(stated: str) -> str:
    """`strength` for the database; ``stated`` is the condition that a type is written."""
    ranks = " ".join(f"WHEN '{name}' THEN {rank}" for name, rank in _STRENGTHS.items())
    return f"CASE WHEN provenance = 'wikilink' AND {stated} THEN 3 ELSE CASE provenance {ranks} END END"


WALK_RANK_SQL = (
    "10 * CASE edge_type "
    + " ".join(f"WHEN '{name}' THEN {rank}" for name, rank in TYPE_RANK.items())
    + " END + "
    + strength_sql("type_source = 'authored'")
)
"""`walk_rank` for the database, over the columns of an edge."""
