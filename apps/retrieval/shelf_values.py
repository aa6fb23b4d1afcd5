"""What a store tells of a candidate and of a winner, and how: the interface of its shelf."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.db.models import BigIntegerField, BooleanField, Exists, F, Func, OuterRef, Q, Value

from apps.indexing.models import SLOT_BITS, EmbeddingProfile, Vector
from apps.indexing.scope import Scope, in_numbers
from apps.indexing.stores import get_store
from apps.retrieval.values import Layer, SourceRef, SymbolRef


@dataclass(frozen=True, slots=True)
class Candidate:
    """A row of the fused list before it has won: enough to order, collapse and count it."""

    ref: int
    """Of its chunk; below zero for a row without a chunk of its own."""
    chunk_id: int
    """0 without text."""
    store: str
    document_id: UUID
    source_id: UUID
    source_label: str
    title: str
    path: str
    kind: str
    chunk_index: int
    start_line: int
    heading_path: tuple[str, ...]
    copy_hash: bytes | None
    side: bool
    status: str
    priority: int
    canonical: bool
    node: UUID | None = None
    """The symbol of a row of code."""


@dataclass(frozen=True, slots=True)
class Found:
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


class Shelf(Protocol):
    """How one store shows its rows."""

    store: str

    def candidates(self, scope: Scope, refs: Sequence[int]) -> Iterable[Candidate]: ...

    def without_text(self, scope: Scope, wanted: Mapping[UUID, int]) -> Iterable[Candidate]:
        """Documents that have no chunk, by id, under the refs given."""
        ...

    def symbols(self, scope: Scope, refs: Sequence[int], nodes: Sequence[UUID]) -> Iterable[Candidate]:
        """Symbols of the chunks ``refs``, and ``nodes``; only a store of code has them."""
        ...

    def hydrate(
        self, scope: Scope, rows: Sequence[Candidate], profile: EmbeddingProfile | None
    ) -> Iterable[tuple[int, Found]]:
        """The winners by ref."""
        ...


def scope_of(scope: Scope, store: str) -> Q:
    """SECURITY: winners are read from the scope that found them, so that nothing slips in between."""
    return in_numbers(scope.numbers_of(get_store(store)))


def within(scope: Scope, store: str, refs: Sequence[int]) -> Q:
    """Chunks of ``refs`` in scope. Filters are asked again, because not every stream knows them."""
    numbers = set(scope.numbers_of(get_store(store)))
    allowed = [ref for ref in refs if ref >> SLOT_BITS in numbers]
    # One bound array: hundreds of single values cost more to compile than the statement takes.
    among = Func(
        F("ref"),
        Value(allowed, output_field=ArrayField(BigIntegerField())),
        template="(%(expressions)s::bigint[]))",
        arg_joiner=" = ANY(",
        output_field=BooleanField(),
    )
    return Q(among) & scope.conditions.get(store, Q())


def sources_of(scope: Scope, store: str) -> list[UUID]:
    return [source.id for source in scope.sources if source.store == store]


def refs_of(rows: Sequence[Candidate]) -> list[int]:
    """Refs of the rows that have a chunk of their own."""
    return [row.ref for row in rows if row.ref >= 0]


def has_vector(profile: EmbeddingProfile | None) -> Any:
    if profile is None:
        return Exists(Vector.objects.none())
    number = Func(OuterRef("ref"), function="", template="(%(expressions)s >> 32)", output_field=BigIntegerField())
    return Exists(Vector.objects.filter(profile_id=profile.pk, hash=OuterRef("embed_hash"), number=number))
