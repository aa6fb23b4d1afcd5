"""What lint looks at and what it finds. Frozen; the rules need no database."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from apps.indexing.findings import Severity

SEVERITY: dict[str, Severity] = {
    "KG101": "error", "KG102": "error", "KG103": "warning", "KG104": "warning", "KG105": "warning", "KG106": "warning",
    "KG107": "warning", "KG108": "error", "KG109": "warning", "KG110": "info", "KG111": "warning", "KG112": "warning",
    "KG113": "info", "KG114": "warning", "KG115": "warning", "KG116": "warning", "KG117": "info", "KG118": "warning",
    "KG119": "warning", "KG120": "info", "KG121": "warning",
}  # fmt: skip
RULES = tuple(SEVERITY)
TITLES: dict[str, str] = {
    "KG101": "Invalid front matter",
    "KG102": "Two documents with one slug",
    "KG103": "An alias that leads to two pages, or is another page's slug",
    "KG104": "Pages, but no project page",
    "KG105": "A link to a page that does not exist",
    "KG106": "A name that leads nowhere or to several pages",
    "KG107": "A link to a page that is out of force",
    "KG108": "A circle of pages that supersede each other",
    "KG109": "Status and supersession disagree",
    "KG110": "Not reachable from a project page",
    "KG111": "A page without any link",
    "KG112": "Contradictory edges",
    "KG113": "Type and folder differ",
    "KG114": "Almost a known word",
    "KG115": "A bad value in front matter",
    "KG116": "A link to a heading that does not exist",
    "KG117": "A link to its own page",
    "KG118": "A fence without closing line",
    "KG119": "Another project than the source's",
    "KG120": "A value was normalised, or the status is absent",
    "KG121": "A limit was reached",
}


@dataclass(frozen=True, slots=True)
class Place:
    path: str
    line: int | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class GraphFinding:
    """One finding. ``names`` is what it is about, for the fingerprint: rule, path and names, without the line."""

    rule: str
    severity: Severity
    message: str
    path: str = ""
    line: int | None = None
    column: int | None = None
    hint: str = ""
    names: str = ""
    related: tuple[Place, ...] = ()
    document_id: UUID | None = None
    page_id: int | None = None
    fix: tuple[str, str] | None = None
    """What stands at line and column, and what to put there."""

    @property
    def fingerprint(self) -> str:
        text = "\0".join((self.rule, self.path, self.names))
        return hashlib.sha256(text.encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class LintPage:
    """A live page. ``bears``: it has its slug in this view."""

    id: int
    document: UUID
    path: str
    uid: str
    node_type: str
    label: str
    status: str
    bears: bool
    aliases: tuple[str, ...]
    project: str
    project_line: int
    problems: Sequence[Mapping[str, Any]]
    anchors: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class LintNode:
    uid: str
    node_type: str
    label: str
    status: str
    page: int | None
    deleted: bool = False
    """Its page lies in the trash: told by the stored graph only."""


@dataclass(frozen=True, slots=True)
class LintEdge:
    uid: str
    from_uid: str
    to_uid: str
    edge_type: str


@dataclass(frozen=True, slots=True)
class LintEvidence:
    page: int
    outcome: str
    edge_uid: str | None
    target: str
    raw: str
    line: int
    column: int
    anchor: str
    mode: str
    weight: float | None
    rivals: tuple[str, ...]
    problem: str


@dataclass(slots=True)
class LintInput:
    """One view of the graph of one source: the stored one, or a reader's."""

    source_names: tuple[str, ...]
    pages: list[LintPage] = field(default_factory=list)
    nodes: dict[str, LintNode] = field(default_factory=dict)
    edges: list[LintEdge] = field(default_factory=list)
    evidence: list[LintEvidence] = field(default_factory=list)
    plain: list[GraphFinding] = field(default_factory=list)
    """Findings of documents that are no pages."""
    plain_paths: list[str] = field(default_factory=list)
    former: dict[str, str] = field(default_factory=dict)
    """Slug of the past -> slug that its page has now."""
