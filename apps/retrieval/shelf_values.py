"""What a store tells of a candidate and of a winner, and how: the interface of its shelf."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from apps.indexing.models import SLOT_BITS, EmbeddingProfile
from apps.indexing.scope import Scope
from apps.indexing.statements import Fragment, fragment_of, numbers_text
from apps.indexing.stores import get_store
from apps.retrieval.values import Layer, SourceRef, SymbolRef


class Marks(NamedTuple):
    """What front matter says of a document that readers may narrow by, as written."""

    type: str
    status: str
    tags: tuple[str, ...]


class Candidate(NamedTuple):
    """A row of the fused list before it has won: enough to order, collapse and count it. There are hundreds to each
    search, so it is a plain tuple."""

    ref: int
    """Of its chunk; below zero for a row without a chunk of its own."""
    chunk_id: int
    """0 without text."""
    store: str
    document: str
    """Its id, as all ids here as text: of the few that are shown ids are made."""
    source: str
    source_label: str
    title: str
    path: str
    kind: str
    chunk_index: int
    start_line: int
    heading_path: tuple[str, ...]
    copy_hash: str | None
    side: bool
    status: str
    priority: int
    canonical: bool
    symbol: str | None = None
    """Of a row of code."""
    language: str = ""
    """Of code."""
    marks: Marks | None = None
    """Of a document with front matter, canonical page or not."""

    @property
    def document_id(self) -> UUID:
        return UUID(self.document)

    @property
    def node(self) -> UUID | None:
        return UUID(self.symbol) if self.symbol is not None else None


made_candidate: Callable[[tuple[Any, ...]], Candidate] = functools.partial(tuple.__new__, Candidate)
"""As ``Candidate(*values)`` at a fraction of its price."""
Columns = tuple[Sequence[Any], ...]
"""Candidates column by column, in the order of their fields."""


class Found(NamedTuple):
    """A winner with its text and freshness."""

    layer: Layer
    chunk_id: int
    document_id: UUID
    source: SourceRef
    url: str
    heading_path: tuple[str, ...]
    anchor: str
    start_line: int
    end_line: int
    start_byte: int
    end_byte: int
    text: str
    language: str
    version: str
    text_time: datetime.datetime | None
    checked_time: datetime.datetime | None
    stale_since: datetime.datetime | None
    has_vector: bool
    symbol: SymbolRef | None = None
    told_until: int = 0
    """Of a symbol: the last line of its comment and signature."""


def found_without_text(
    document: Any,
    *,
    layer: Layer,
    source: SourceRef,
    url: str,
    language: str,
    version: str,
    text_time: datetime.datetime | None,
    checked_time: datetime.datetime | None = None,
    stale_since: datetime.datetime | None = None,
) -> Found:
    """A document that has no chunk: it was found by its name, and all its lines stand for it."""
    return Found(
        layer=layer,
        chunk_id=0,
        document_id=document.pk,
        source=source,
        url=url,
        heading_path=(),
        anchor="",
        start_line=1,
        end_line=max(document.line_count, 1),
        start_byte=0,
        end_byte=0,
        text="",
        language=language,
        version=version,
        text_time=text_time,
        checked_time=checked_time,
        stale_since=stale_since,
        has_vector=False,
    )


WINNER = (
    "place, store, ref, chunk, document, headings, anchor, start_line, end_line, start_byte, end_byte, text, slug, "
    "source, label, version, written, checked, stale, vector, symbol"
)
"""Columns in which all shelves tell of winners."""


def winner_of(
    row: Sequence[Any],
    *,
    layer: Layer,
    source: SourceRef,
    url: str,
    language: str,
    anchor: str = "",
    symbol: SymbolRef | None = None,
    told_until: int = 0,
) -> Found:
    """A row of ``WINNER`` as a winner; the rest is what its store alone knows."""
    (_, _, _, id, document, headings, _, first, last, start, end, text, _, _, _, version, written, checked, stale,
     vector, _) = row  # fmt: skip
    return Found(
        layer=layer,
        chunk_id=id,
        document_id=document,
        source=source,
        url=url,
        heading_path=tuple(headings),
        anchor=anchor,
        start_line=first,
        end_line=last,
        start_byte=start,
        end_byte=end,
        text=text,
        language=language,
        version=version,
        text_time=written,
        checked_time=checked,
        stale_since=checked if stale else None,
        has_vector=vector,
        symbol=symbol,
        told_until=told_until,
    )


class Shelf(Protocol):
    """How one store shows its rows. All of a search are asked in one statement, so shelves give SELECTs."""

    store: str

    columns: tuple[str, ...]
    """Columns in which this shelf tells of candidates; the first is ``ref``."""

    def candidates(self, scope: Scope, refs: Sequence[int], nodes: Sequence[UUID]) -> Sequence[Fragment]:
        """SELECTs of ``columns`` for the chunks ``refs`` and, in a store of code, the symbols ``nodes``."""
        ...

    def candidates_of(self, columns: Sequence[Sequence[Any]], sources: Sequence[str], labels: Sequence[str]) -> Columns:
        """Their rows, given as columns, with ids and labels of the sources that they are of."""
        ...

    def without_text(self, scope: Scope, wanted: Mapping[UUID, int]) -> Iterable[Candidate]:
        """Documents that have no chunk, by id, under the refs given."""
        ...

    def winners(
        self, place: int, scope: Scope, rows: Sequence[Candidate], profile: EmbeddingProfile | None
    ) -> Sequence[Fragment]:
        """SELECTs of ``WINNER`` for rows that have text."""
        ...

    def winner(self, row: Sequence[Any], source: SourceRef, language: str) -> Found:
        """One row of them as a winner."""
        ...

    def source(self, row: Sequence[Any]) -> SourceRef:
        """The source that a row of ``WINNER`` tells of."""
        ...

    def bare(self, scope: Scope, rows: Sequence[Candidate]) -> Iterable[tuple[int, Found]]:
        """Winners without text, by ref."""
        ...


def among(scope: Scope, store: str, refs: Sequence[int]) -> Fragment | None:
    """The condition that a chunk ``c`` is one of ``refs`` and in scope; None when none of them is. Filters are asked
    again, because not every stream knows them.

    SECURITY: a ref holds the number of its source, so that nothing out of scope is even looked up.
    """
    numbers = set(scope.numbers_of(get_store(store)))
    allowed = [ref for ref in refs if ref >> SLOT_BITS in numbers]
    if not allowed:
        return None
    condition = scope.conditions.get(store)
    if condition is None:
        return Fragment("c.ref = ANY(%s::bigint[])", (numbers_text(allowed),))
    rows: Any = get_store(store).model._default_manager
    inner = fragment_of(rows.filter(condition).values("ref"))
    return Fragment(f"c.ref = ANY(%s::bigint[]) AND c.ref IN ({inner.sql})", (numbers_text(allowed), *inner.params))


def sources_of(scope: Scope, store: str) -> list[UUID]:
    return [source.id for source in scope.sources if source.store == store]


def has_vector(profile: EmbeddingProfile | None) -> Fragment:
    """Whether the text of a chunk ``c`` has a vector."""
    if profile is None:
        return Fragment("false")
    return Fragment(
        "EXISTS (SELECT 1 FROM indexing_vector v "  # noqa: S608
        f"WHERE v.profile_id = %s AND v.number = c.ref >> {SLOT_BITS} AND v.hash = c.embed_hash)",
        (profile.pk,),
    )


def place_in(address: str, anchor: str, first: int, last: int) -> str:
    """The address of the section, or of the lines where there is no heading to go to."""
    if anchor:
        return f"{address}#{anchor}"
    return f"{address}#L{first}-L{last}" if first > 1 else address
