"""What a search takes and gives: frozen values that every face shows in its own way.

Pages, REST and MCP receive the same values, so that the same question gives the same rows in the same order on each
door (``retrieval.md`` 1.7).
"""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from apps.repos.code.related import NamingLiteral, RelatedSymbol
from apps.retrieval.beside_values import NearPage, PageName, RejectedApproach
from apps.retrieval.snippets import DEFAULT_CHARS, Snippet

Mode = Literal["docs", "code", "mixed"]
BlockName = Literal["docs", "code"]
Layer = Literal["repo_doc", "collection", "code", "signature"]
StreamName = Literal["lexical", "dense", "symbol", "name"]

MAX_QUERY_CHARS = 2000
MAX_QUERY_TERMS = 64


@dataclass(frozen=True, slots=True)
class SourceRef:
    """A source as a reader knows it."""

    kind: str
    """``repository`` or ``collection``."""
    id: uuid.UUID
    label: str
    url: str


@dataclass(frozen=True, slots=True)
class Filters:
    """What narrows a search. Empty means all; filters work inside the candidate queries, never after the cut."""

    path: str = ""
    """Prefix or glob of the path."""
    kinds: frozenset[str] = frozenset()
    """Of doc, code, collection, example, test, config, workflow."""
    language: str = ""
    tag: str = ""
    type: str = ""
    status: str = ""
    since: datetime.date | None = None
    until: datetime.date | None = None

    @property
    def active(self) -> dict[str, str]:
        """The filters in force, by name, as text."""
        named = {
            "path": self.path,
            "kinds": ", ".join(sorted(self.kinds)),
            "language": self.language,
            "tag": self.tag,
            "type": self.type,
            "status": self.status,
            "since": self.since.isoformat() if self.since else "",
            "until": self.until.isoformat() if self.until else "",
        }
        return {name: value for name, value in named.items() if value}


class Found(NamedTuple):
    """A row's place in one stream. ``rank`` from 1; None when the stream did not find it, and ``state`` says why."""

    rank: int | None
    score: float | None
    state: Literal["found", "not found", "no vector yet", "not asked"]
    weight: float = 1.0


class MatchedTerm(NamedTuple):
    word: str
    """As the reader typed it."""
    fields: tuple[str, ...]
    """Of title, heading, path, text."""


@dataclass(frozen=True, slots=True)
class SymbolRef:
    """The symbol that a row of code is about."""

    id: uuid.UUID
    kind: str
    name: str
    qualified_name: str
    signature: str
    doc_line: str


@dataclass(frozen=True, slots=True)
class RelatedPassage:
    """A passage of a document that names a symbol."""

    chunk_id: int
    document_id: uuid.UUID
    title: str
    path: str
    heading_path: tuple[str, ...]
    anchor: str
    start_line: int
    end_line: int
    url: str
    snippet: str


class Hit(NamedTuple):
    """One row of an answer: a chunk with its place, its freshness and the reasons why it was found. A tuple, like all
    that hits are made of: a frozen object of so many fields takes twice as long to make."""

    layer: Layer
    chunk_id: int
    """0 for a document without text of its own."""
    document_id: uuid.UUID
    """Of code: the file."""
    source: SourceRef
    title: str
    path: str
    kind: str
    """doc, code, collection, example, test, config or workflow."""
    heading_path: tuple[str, ...]
    anchor: str
    start_line: int
    end_line: int
    start_byte: int
    end_byte: int
    url: str
    """To the section itself."""
    chunk_url: str
    snippet: Snippet
    tokens: int
    """Estimated as bytes / 3, rounded up."""
    version: str
    """Commit of a repository, version of an uploaded document."""
    text_time: datetime.datetime | None
    """When the text was written: commit date, or time of the upload."""
    checked_time: datetime.datetime | None
    """When the source was last found to be current."""
    stale_since: datetime.datetime | None
    streams: Mapping[StreamName, Found]
    matched: tuple[MatchedTerm, ...]
    fused: float
    page: float
    factor: float
    final: float
    also_in: tuple[SourcePlace, ...] = ()
    also_in_more: int = 0
    name_class: str = ""
    evidence: float = 0.0
    """How surely the query names the row, 0 to 1: of the name stream, or of the symbol stream."""
    symbol: SymbolRef | None = None
    related: tuple[RelatedPassage, ...] = ()
    """Passages of documents that name the symbol."""
    code: tuple[RelatedSymbol, ...] = ()
    """Symbols that a passage of a repository's document names, the surest first."""
    literals: tuple[NamingLiteral, ...] = ()
    """String literals in code that name the document."""
    status: str = ""
    """Of a canonical page."""
    replaced_by: tuple[PageName, ...] = ()
    """The newest pages that have taken the place of a canonical page, whatever its status says."""

    @property
    def block(self) -> BlockName:
        return "code" if self.layer in ("code", "signature") else "docs"

    @property
    def location(self) -> str:
        """``path#anchor:start-end``, which every reading tool takes."""
        anchor = f"#{self.anchor}" if self.anchor else ""
        return f"{self.path}{anchor}:{self.start_line}-{self.end_line}"


class SourcePlace(NamedTuple):
    """Where an equal text stands too."""

    source: SourceRef
    path: str
    url: str


@dataclass(frozen=True, slots=True)
class FacetValue:
    value: str
    label: str
    count: int
    active: bool = False


@dataclass(frozen=True, slots=True)
class Facet:
    """Exact counts inside the scope and the current filters; values with zero are left out."""

    name: str
    label: str
    values: tuple[FacetValue, ...]


@dataclass(frozen=True, slots=True)
class Degraded:
    """A stream that took no part, and why: shown to the reader, never an error."""

    stream: str
    reason: str


@dataclass(frozen=True, slots=True)
class NearHeading:
    title: str
    heading_path: tuple[str, ...]
    url: str


@dataclass(frozen=True, slots=True)
class Empty:
    """Why an answer has no rows, and what to try."""

    reason: Literal[
        "nothing_readable",
        "not_indexed",
        "stale",
        "only_common_words",
        "words_absent",
        "filters_too_narrow",
        "nothing_matched",
    ]
    message: str
    words: tuple[str, ...] = ()
    filter: str = ""


@dataclass(frozen=True, slots=True)
class BlockAnswer:
    """One of the blocks of an answer, the better one first."""

    name: BlockName
    strength: float
    """E: how much of the question its best rows hold, and how surely they are named by it; 0 to 1."""
    total: int
    capped: bool


@dataclass(frozen=True, slots=True)
class Answer:
    query: str
    hits: tuple[Hit, ...]
    total: int
    """Rows of the fused list, inside what the reader may see, copies collapsed."""
    capped: bool
    """A stream reached its limit of candidates, so that more may exist."""
    next_cursor: str | None
    previous_cursor: str | None = None
    """None on the first two pages: the second leads back to the address without a cursor."""
    facets: tuple[Facet, ...] = ()
    degraded: tuple[Degraded, ...] = ()
    empty: Empty | None = None
    nearest: tuple[NearHeading, ...] = ()
    absent_words: tuple[str, ...] = ()
    dropped_terms: int = 0
    """Query terms over the limit that took no part."""
    profile: str = ""
    """Embedding profile that was asked; empty without vectors."""
    milliseconds: float = 0.0
    notes: tuple[str, ...] = field(default=())
    blocks: tuple[BlockAnswer, ...] = ()
    neighbours: tuple[NearPage, ...] = ()
    """Pages near the hits in the graph; on the first page only, as the next."""
    already_rejected: tuple[RejectedApproach, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """A search as asked, bounds checked by :func:`apps.retrieval.search.search`."""

    query: str
    mode: Mode = "mixed"
    sources: tuple[tuple[str, uuid.UUID], ...] = ()
    """(kind, id) of named sources; empty: every readable one."""
    filters: Filters = Filters()
    limit: int = 10
    cursor: str | None = None
    snippet_chars: int = DEFAULT_CHARS
    explain: bool = False
    related: int = 3
    """Passages of documents that a row of code brings along, 0 to 10."""
