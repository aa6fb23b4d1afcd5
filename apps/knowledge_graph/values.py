"""Values of the graph: what is read from pages, and what is projected from them. Frozen, without a database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal
from uuid import UUID

from apps.knowledge_graph.vocabulary import DEFAULT_PRIORITY, Provenance

Mode = Literal["name", "owner", "address"]
OutcomeName = Literal["edge", "self", "ambiguous", "unresolved", "document", "metadata", "withheld"]
TypeSource = Literal["authored", "matrix", "inferred"]
HeaderState = Literal["current", "stale_header"]

RAW_CHARACTERS = 500


@dataclass(frozen=True, slots=True)
class Problem:
    """Something to tell about one place of a document; lint makes a finding of it."""

    rule: str
    severity: Literal["error", "warning", "info"]
    line: int
    column: int
    message: str
    hint: str = ""
    names: str = ""
    """What the problem is about, for its fingerprint: stable when lines move."""
    written: str = ""
    replacement: str = ""
    """Where both are given: what stands at line and column, and what to put there."""


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One place in a page that names another page. Lines and columns count from 1, front matter included."""

    provenance: Provenance
    mode: Mode
    target: str
    line: int
    column: int
    raw: str
    stated: str | None = None
    """Edge type as written; None when the matrix decides."""
    field: str = ""
    """Front matter key; empty in the body."""
    heading_path: tuple[str, ...] = ()
    anchor: str = ""
    label: str = ""
    embed: bool = False
    weight: Decimal | None = None
    problem: Literal["", "unknown_type"] = ""
    """``unknown_type``: a word before ``::`` that is no edge type; the occurrence makes no edge."""

    @property
    def in_header(self) -> bool:
        return bool(self.field)


@dataclass(frozen=True, slots=True)
class CrossReference:
    """``[[source:slug]]``: a page of another source, looked up by each reader anew."""

    raw: str
    line: int
    source_kind: str | None
    source: str
    slug: str
    stated: str | None = None
    label: str = ""
    field: str = ""


@dataclass(frozen=True, slots=True)
class Header:
    """What the front matter of a page says, with the defaults for what it does not."""

    uid: str
    node_type: str
    status: str
    priority: int = DEFAULT_PRIORITY
    title: str = ""
    summary: str = ""
    aliases: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    identifier: str = ""
    project: str = ""
    others: Mapping[str, object] = field(default_factory=dict)
    occurrences: tuple[Occurrence, ...] = ()
    references: tuple[CrossReference, ...] = ()
    problems: tuple[Problem, ...] = ()
    project_line: int = 0


@dataclass(frozen=True, slots=True)
class Body:
    """What the text below the front matter says."""

    heading: str = ""
    """First level-1 heading."""
    occurrences: tuple[Occurrence, ...] = ()
    references: tuple[CrossReference, ...] = ()
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """A canonical document. ``document`` is its id; ``live`` is false in the trash."""

    document: UUID
    path: str
    header: Header
    body: Body
    live: bool = True
    header_state: HeaderState = "current"
    version_hash: str = ""
    header_hash: str = ""
    """Version that the header comes from."""
    problems: tuple[Problem, ...] = ()
    """Of the document as such: a header that does not parse."""

    @property
    def uid(self) -> str:
        return self.header.uid

    @property
    def label(self) -> str:
        return self.header.title or self.body.heading or self.header.uid

    @property
    def occurrences(self) -> tuple[Occurrence, ...]:
        return (*self.header.occurrences, *self.body.occurrences)

    @property
    def references(self) -> tuple[CrossReference, ...]:
        return (*self.header.references, *self.body.references)

    @property
    def all_problems(self) -> tuple[Problem, ...]:
        return (*self.problems, *self.header.problems, *self.body.problems)


@dataclass(frozen=True, slots=True, order=True)
class Meaning:
    """What a name leads to. The type is part of it: a page that changes its type retypes the links to it."""

    uid: str
    node_type: str


@dataclass(frozen=True, slots=True)
class NodeValue:
    uid: str
    node_type: str
    label: str
    status: str
    priority: int
    document: UUID | None
    payload: Mapping[str, object]

    @property
    def dangling(self) -> bool:
        return self.document is None


@dataclass(frozen=True, slots=True)
class EdgeValue:
    from_uid: str
    to_uid: str
    edge_type: str
    weight: Decimal
    provenance: str
    type_source: TypeSource
    document: UUID | None

    @property
    def uid(self) -> str:
        return f"{self.from_uid}>{self.edge_type}>{self.to_uid}"


@dataclass(frozen=True, slots=True)
class EvidenceValue:
    """An occurrence and what became of it. ``edge_uid`` only where the outcome is an edge."""

    document: UUID
    occurrence: Occurrence
    outcome: OutcomeName
    edge_uid: str | None
    wanted: tuple[str, ...]
    fallback_uid: str | None
    version_hash: str = ""
    rivals: tuple[str, ...] = ()
    """Uids of the pages that an ambiguous name leads to."""


@dataclass(frozen=True, slots=True)
class GraphValue:
    """A whole graph of one source."""

    nodes: Mapping[str, NodeValue]
    edges: Mapping[str, EdgeValue]
    evidence: Mapping[UUID, tuple[EvidenceValue, ...]]
    winners: Mapping[str, UUID]
