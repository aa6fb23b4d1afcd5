"""What the streams give for one question, block by block: all of them in one statement, each failing alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.db.models import Q

from apps.indexing import dense, lexical, names
from apps.indexing.analyzer import stop_words
from apps.indexing.embedding.backends import EmbedderUnavailable
from apps.indexing.models import EmbeddingProfile
from apps.indexing.names import NameResult, Pending
from apps.indexing.questions import Question as Terms
from apps.indexing.questions import ask
from apps.indexing.scope import Allowed, Riders
from apps.indexing.scoring import idf
from apps.indexing.statements import Fragment, beginning_with, fetch, fragment_of, union
from apps.repos.code import symbol_stream
from apps.repos.code.searching import MOST as MOST_SYMBOLS
from apps.repos.code.symbol_stream import Match, SymbolStream
from apps.repos.models_code import CodeNode
from apps.repos.stores import CODE_STORE
from apps.retrieval.filters import of_symbols
from apps.retrieval.values import Degraded

if TYPE_CHECKING:
    from apps.indexing.lexical import LexicalResult
    from apps.indexing.scope import Scope
    from apps.indexing.stores import Block


Mode = Literal["hybrid", "lexical", "dense"]


@dataclass(slots=True)
class Streams:
    """What the streams gave for one question inside one scope. Keys are refs, those of symbols their ids."""

    scope: Scope
    terms: Terms
    lexical: LexicalResult | None = None
    dense: dense.DenseHits = dense.NO_HITS
    pending: Pending | None = None
    """The name stream before it knows how rare some words are: that rides with the next statement, if there is one."""
    _names: NameResult | None = None
    symbols: Sequence[Match] = ()
    profile: EmbeddingProfile | None = None
    degraded: list[Degraded] = dataclasses.field(default_factory=list)
    capped: bool = False
    vector: Any = None
    """Of the query, where it was embedded."""

    @property
    def block(self) -> Block:
        return self.scope.block

    @property
    def names(self) -> NameResult:
        if self._names is None:
            self._names = self.pending.alone() if self.pending is not None else NameResult(())
        return self._names

    @property
    def open_names(self) -> Pending | None:
        """The name stream while it still waits for an answer."""
        return self.pending if self._names is None else None

    def name(self, df: Mapping[str, int]) -> None:
        """Closes the name stream with the answer that it waited for."""
        if self.pending is not None:
            self._names = self.pending.result(df)


def run_streams(scope: Scope, query: str) -> Streams:
    """The streams of the documents of one scope."""
    return run_blocks([scope], query)[0]


def run_blocks(
    scopes: Sequence[Scope],
    query: str,
    *,
    only: Mode = "hybrid",
    profile: EmbeddingProfile | None = None,
) -> list[Streams]:
    """Words, meaning and names of all blocks in one statement; when it fails, each stream under its own savepoint, a
    failing one left out. ``only`` leaves streams out and ``profile`` takes the place of the one that serves: for
    measuring.
    """
    limit = settings.COGRAPH.retrieval.candidates
    backend = lexical.backend()
    blocks = [Streams(scope, backend.limit(scope, ask(query, scope.languages))) for scope in scopes]
    symbols = [_symbols(streams, query) for streams in blocks]
    vector: Any = None
    looks: list[dense.Look | None] = [None for _ in blocks]
    if only != "lexical":
        vector, looks = _vector(blocks, query, limit, profile)
    try:
        with _undone_if_it_fails():
            parts: list[Fragment] = []
            named_first: list[Fragment] = []
            pools: list[names.Pool | None] = []
            for place, (streams, look, by_symbol) in enumerate(zip(blocks, looks, symbols, strict=True)):
                named = any(source.names for source in streams.scope.sources)
                by_name = streams.block == "docs" and only != "dense" and named
                pools.append(names.pool(streams.scope, streams.terms) if by_name else None)
                allowed = Allowed.of(streams.scope)
                named_first += dense.with_clause(look, allowed)
                parts += [
                    Fragment(f"SELECT {place}, q.* FROM ({part.sql}) q", part.params)  # noqa: S608
                    for part in _parts(streams, look, pools[-1], by_symbol, vector, limit, only, allowed)
                ]
            for look in looks:
                if look is not None:
                    look.prepare()
            rows = fetch(beginning_with(named_first, union(parts))) if parts else []
        for place, (streams, look, by_symbol) in enumerate(zip(blocks, looks, symbols, strict=True)):
            mine = [row[1:] for row in rows if row[0] == place]
            _rank(streams, mine, limit, only)
            if by_symbol is not None:
                streams.symbols = by_symbol.found(mine)
            if (pool := pools[place]) is not None:
                streams.pending = names.rank(streams.scope, streams.terms, pool, mine, streams.lexical)
            if look is not None and streams.profile is not None:
                found = dense.rank(streams.profile, mine, limit)
                streams.dense = dense.completed(found, streams.scope, streams.profile, vector, limit)
    except DatabaseError:
        for streams, by_symbol in zip(blocks, symbols, strict=True):
            _one_by_one(streams, by_symbol, limit)
    for streams in blocks:
        full = streams.lexical is not None and len(streams.lexical.refs) >= limit
        streams.capped = full or len(streams.dense) >= limit or len(streams.symbols) >= MOST_SYMBOLS
    return blocks


@contextmanager
def _undone_if_it_fails() -> Iterator[None]:
    """A savepoint where there is a transaction that a failing statement would break."""
    with transaction.atomic() if connection.in_atomic_block else nullcontext():
        yield


def _parts(
    streams: Streams,
    look: dense.Look | None,
    pool: names.Pool | None,
    by_symbol: SymbolStream | None,
    vector: Any,
    limit: int,
    only: Mode,
    allowed: Allowed | None,
) -> list[Fragment]:
    """What one block asks in the joint statement."""
    parts = []
    if pool is not None:
        parts.append(names.statement(streams.scope, streams.terms, pool))
    if by_symbol is not None and (resembling := by_symbol.statement()) is not None:
        parts.append(resembling)
    # Nothing but stop words can still be the exact name of a document, and nothing else.
    if streams.terms.only_common_words:
        return parts
    if streams.terms.asked and only != "dense":
        parts.append(lexical.backend().statement(streams.scope, streams.terms, allowed))
    if look is not None and streams.profile is not None:
        parts.append(dense.statement(streams.scope, streams.profile, vector, limit, look, allowed))
    return parts


def _vector(
    blocks: Sequence[Streams], query: str, limit: int, profile: EmbeddingProfile | None
) -> tuple[Any, list[dense.Look | None]]:
    """The vector of the query and how to look; nothing, and a word about it, when there is no embedder that answers."""
    nothing: list[dense.Look | None] = [None for _ in blocks]
    if all(streams.terms.only_common_words for streams in blocks):
        return None, nothing
    profile = profile or blocks[0].scope.profile
    if profile is None:
        return None, nothing
    for streams in blocks:
        streams.profile = profile
    try:
        vector = dense.embed_query(profile, query)
    except EmbedderUnavailable as problem:
        blocks[0].degraded.append(Degraded("vectors", f"not used ({problem})"))
        return None, nothing
    for streams in blocks:
        streams.vector = vector
    return vector, [
        None if streams.terms.only_common_words else dense.choose(streams.scope, profile, limit) for streams in blocks
    ]


def _rank(streams: Streams, rows: Sequence[tuple[Any, ...]], limit: int, only: Mode) -> None:
    if streams.terms.asked and not streams.terms.only_common_words and only != "dense":
        streams.lexical = lexical.backend().rank(streams.scope, streams.terms, rows, limit)


def riders_of(query: str, blocks: Collection[Block], conditions: Mapping[str, Q]) -> Riders:
    """What the streams of ``blocks`` ask along with the query of a scope."""
    riders = names.riding(query) if "docs" in blocks else Riders(query, (), ())
    if "code" in blocks:
        riders = symbol_stream.riding(riders, _small(names.known_languages()), _among(conditions))
    return riders


def _symbols(streams: Streams, query: str) -> SymbolStream | None:
    """The symbol stream: nothing is asked for a natural question (``retrieval.md`` 5.1), nor where no code is."""
    scope = streams.scope
    if streams.block != "code" or not any(source.chunks for source in scope.sources):
        return None
    try:
        with _undone_if_it_fails():
            return SymbolStream(
                query,
                {source.id for source in scope.sources},
                _small(scope.languages),
                _among(scope.conditions),
                scope.riders,
            )
    except DatabaseError as error:
        streams.degraded.append(Degraded("symbol", type(error).__name__))
        return None


def _small(languages: Iterable[str]) -> frozenset[str]:
    return frozenset().union(*map(stop_words, languages))


def _among(conditions: Mapping[str, Q]) -> Fragment | None:
    """The symbols that the conditions on code leave; None where there is no condition."""
    condition = conditions.get(CODE_STORE.name)
    if condition is None:
        return None
    return fragment_of(CodeNode.objects.filter(of_symbols(condition)).values("pk"))


def _one_by_one(streams: Streams, by_symbol: SymbolStream | None, limit: int) -> None:
    if not streams.terms.only_common_words:
        _alone(streams, "lexical", limit)
        _alone(streams, "dense", limit)
    if streams.block == "docs":
        _alone(streams, "name", limit)
    if by_symbol is not None:
        _alone(streams, "symbol", limit, by_symbol)


def _alone(streams: Streams, name: str, limit: int, by_symbol: SymbolStream | None = None) -> None:
    try:
        with transaction.atomic():
            if name == "lexical" and streams.terms.asked:
                streams.lexical = lexical.search(streams.scope, streams.terms, limit)
            elif name == "dense" and streams.vector is not None and streams.profile is not None:
                streams.dense = dense.search(streams.scope, streams.profile, streams.vector, limit)
            elif name == "name":
                streams._names = names.search(streams.scope, streams.terms)
            elif by_symbol is not None:
                streams.symbols = by_symbol.alone()
    except DatabaseError as error:
        streams.degraded.append(Degraded(name, type(error).__name__))


def asked_words(terms: Terms) -> dict[str, list[int]]:
    """The words of the query as typed, each with its units; wholes stand for their words and are left out."""
    words: dict[str, list[int]] = {}
    for unit in terms.asked:
        known = terms.units[unit]
        if not known.whole:
            words.setdefault(terms.text[known.start : known.end], []).append(unit)
    return words


def all_absent(streams: Streams) -> bool:
    """Whether no word of the query stands anywhere in scope, or it holds none at all: signs, an emoji."""
    if not streams.terms.asked:
        return not streams.terms.only_common_words
    if streams.lexical is None:
        return False
    return len(absent_words(streams)) == len(asked_words(streams.terms))


def absent_words(streams: Streams) -> list[str]:
    """Words of the query that stand nowhere in scope."""
    if streams.lexical is None:
        return []
    df = streams.lexical.df
    return [word for word, units in asked_words(streams.terms).items() if not any(df.get(unit, 0) for unit in units)]


def rarity(blocks: Sequence[Streams]) -> Mapping[tuple[int, int, bool], float]:
    """idf of the query's terms that stand in any of the blocks, chunks of all blocks counted together.

    Terms are known by their stretch of the query, because blocks may differ in their languages.
    """
    chunks = sum(streams.lexical.chunks for streams in blocks if streams.lexical)
    df: dict[tuple[int, int, bool], int] = {}
    for streams in blocks:
        for unit, count in (streams.lexical.df if streams.lexical else {}).items():
            known = streams.terms.units[unit]
            key = (known.start, known.end, known.whole)
            df[key] = df.get(key, 0) + count
    return {key: idf(chunks, count) for key, count in df.items() if count > 0}
