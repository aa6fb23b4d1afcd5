"""The lexical stream: BM25F over the postings of a scope (``retrieval.md`` 3).

PostgreSQL finds and hands over the entries of the asked terms, in one statement with the statistics they need, so both
are of one snapshot; the sum over terms is numpy over whole arrays. Every entry of every asked term is looked at: the
answer is exact, there is no prefix whose cut would have to be mended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from django.conf import settings
from django.utils.module_loading import import_string
from numpy.typing import NDArray

from apps.indexing.analyzer import MAX_QUERY_TERMS
from apps.indexing.scoring import Detail, Entries, Postings, Space, idf
from apps.indexing.statements import Fragment, fetch, fragment_of, numbers_text, union

if TYPE_CHECKING:
    from apps.indexing.questions import Question
    from apps.indexing.scope import Allowed, Scope


@dataclass(frozen=True, slots=True)
class LexicalHit:
    """``fields`` tells for each matched unit of the question where it stands: ``b``ody, ``h``eading, ``p``ath."""

    ref: int
    score: float
    fields: Mapping[int, str]


@dataclass(frozen=True)
class LexicalResult:
    """Hits best first, equal scores in no promised order: whoever knows paths breaks ties. All hits that share the
    last score are given, so there may be more than were asked for.
    """

    refs: NDArray[np.int64]
    scores: NDArray[np.float64]
    chunks: int
    """N: chunks in scope."""
    df: Mapping[int, int]
    """Chunks in scope that hold each unit."""
    idf: Mapping[int, float]
    detail: Detail | None = field(default=None, repr=False, compare=False)

    @cached_property
    def hits(self) -> tuple[LexicalHit, ...]:
        refs = self.refs.tolist()
        fields = self.fields(refs)
        scores = self.scores.tolist()
        return tuple(LexicalHit(ref, score, fields[ref]) for ref, score in zip(refs, scores, strict=True))

    def fields(self, refs: Sequence[int]) -> dict[int, dict[int, str]]:
        """The units that chunks of scope hold, and where."""
        found: dict[int, dict[int, str]] = {ref: {} for ref in refs}
        return found | self.detail.fields(refs) if self.detail is not None and refs else found

    def weights(self, refs: Sequence[int]) -> dict[int, dict[int, float]]:
        """The weight w of each unit in the chunks ``refs``, whether they are among the hits or not."""
        return self.detail.weights(refs, self.idf) if self.detail is not None and refs else {}

    def rarity(self, refs: Sequence[int]) -> NDArray[np.float64]:
        """How much of the rarity of the question each of the chunks ``refs`` holds: the sum of idf of its units."""
        return self.detail.rarity(refs, self.idf) if self.detail is not None and refs else np.zeros(len(refs))

    def in_headings(self, refs: Sequence[int]) -> list[int]:
        """Places among ``refs``, in order, of the chunks that hold a unit in their headings or title."""
        return self.detail.in_headings(refs) if self.detail is not None and refs else []

    def in_bodies(self, unit: int) -> int:
        """Chunks in scope whose body holds the unit."""
        return self.detail.in_bodies(unit) if self.detail is not None else 0


class LexicalBackend(Protocol):
    def limit(self, scope: Scope, question: Question) -> Question: ...

    def statement(self, scope: Scope, question: Question, allowed: Allowed | None = None) -> Fragment: ...

    def rank(self, scope: Scope, question: Question, rows: Sequence[tuple[Any, ...]], limit: int) -> LexicalResult: ...


def backend() -> LexicalBackend:
    """The backend that ``COGRAPH_RETRIEVAL__LEXICAL`` names."""
    made: LexicalBackend = import_string(settings.COGRAPH.retrieval.lexical)()
    return made


def search(scope: Scope, question: Question, limit: int | None = None) -> LexicalResult:
    """The stream alone, by one statement."""
    used = backend()
    limit = limit or settings.COGRAPH.retrieval.candidates
    question = used.limit(scope, question)
    # Conditions may be anything, and the best plan for them depends on their values.
    rows = fetch(used.statement(scope, question), prepare=not scope.conditions)
    return used.rank(scope, question, rows, limit)


class PostgresLexical:
    """Postings in PostgreSQL tables of our own."""

    def limit(self, scope: Scope, question: Question) -> Question:
        """``question`` with at most 64 terms, the rarest in scope. Costs a statement only for longer ones."""
        if len(question.asked) <= MAX_QUERY_TERMS:
            return question
        parts = [
            Fragment(
                "SELECT term, sum(chunks)::bigint, %s::text FROM indexing_posting "
                "WHERE term = ANY(%s::text[]) AND number = ANY(%s::int[]) GROUP BY term",
                (language, list(terms), numbers),
            )
            for language, terms, numbers in _by_language(scope, question)
        ]
        df = dict.fromkeys(question.asked, 0)
        for term, chunks, language in fetch(union(parts)) if parts else ():
            df[question.terms[language][term]] += chunks
        # A word that is nowhere says nothing, so it does not take a place from one that is somewhere.
        rarest = sorted(question.asked, key=lambda unit: (df[unit] == 0, df[unit], unit))
        return question.without(set(rarest[MAX_QUERY_TERMS:]))

    def statement(self, scope: Scope, question: Question, allowed: Allowed | None = None) -> Fragment:
        """One SELECT of statistics (``s``), postings (``p``) and, with conditions, allowed chunks (``f``), in the
        columns of ``REPLY``. ``allowed``: the statement that it becomes part of begins with these.
        """
        parts = [statistics("s", given(scope.numbers))]
        for language, terms, numbers in _by_language(scope, question):
            parts.append(postings("p", language, terms, given(numbers)))
        if scope.conditions:
            for store in scope.stores:
                inner = (
                    Fragment(f"SELECT ref FROM {allowed.names[store.name]}")  # noqa: S608
                    if allowed is not None
                    else fragment_of(scope.chunks_of(store).values("ref"))
                )
                parts.append(
                    Fragment(
                        "SELECT 'f', '', '', NULL::bytea, COALESCE(string_agg(int8send(ref), ''::bytea), ''::bytea) "  # noqa: S608
                        f"FROM ({inner.sql}) a",
                        inner.params,
                    )
                )
        return union(parts)

    def rank(self, scope: Scope, question: Question, rows: Sequence[tuple[Any, ...]], limit: int) -> LexicalResult:
        """Scores every chunk of scope that holds a term; see the module for the formula."""
        counted = next(((head, data) for kind, _, _, head, data in rows if kind == "s"), (None, None))
        space = Space.of(counted, scope.block)
        held = [
            (question.terms[language][term], language, head, data)
            for kind, language, term, head, data in rows
            if kind == "p"
        ]
        # One order of summing, whatever the order in which rows come: equal scores to the last bit.
        held.sort(key=itemgetter(0, 1))
        found = Postings.of(space, [unit for unit, *_ in held], [head for *_, head, _ in held])
        df = dict.fromkeys(question.asked, 0)
        for unit, count in zip(found.units.tolist(), found.changes.tolist(), strict=True):
            df[unit] += count
        weight = {unit: idf(space.chunks, count) for unit, count in df.items() if count > 0}
        entries = Entries.of(space, found, [data for *_, data in held], weight)
        if not len(entries.keys) or limit <= 0:
            return LexicalResult(_NONE, _NO_SCORES, space.chunks, df, weight)
        allowed = space.keys_of([row[4] for row in rows if row[0] == "f"]) if scope.conditions else None
        best, scores = entries.best(space, allowed, limit)
        ranked = np.lexsort((best, -scores))
        best, scores = best[ranked], scores[ranked]
        return LexicalResult(space.refs(best), scores, space.chunks, df, weight, Detail(space, entries))


_NONE = np.zeros(0, np.int64)
_NO_SCORES = np.zeros(0, np.float64)


def given(numbers: Sequence[int]) -> Fragment:
    """Numbers of sources as ``statistics`` and ``postings`` take them. They are hidden in a sub-select: to weigh each
    takes the planner longer than to find them, and there is but one index to take.
    """
    return Fragment("SELECT %s::int[]", (numbers_text(numbers),))


def statistics(kind: str, numbers: Fragment) -> Fragment:
    """What is known of indexed sources, as one row: ``SOURCE`` each, and the slots of their dead chunks."""
    return Fragment(
        f"SELECT '{kind}' AS kind, '' AS language, '' AS term, string_agg(int4send(number) || int4send(chunks) || "  # noqa: S608
        "int8send(heading_length) || int8send(body_length) || int8send(next_slot) || int4send(octet_length(dead)), "
        "''::bytea ORDER BY number) AS head, string_agg(dead, ''::bytea ORDER BY number) AS data "
        f"FROM indexing_indexedsource WHERE number = ANY(({numbers.sql})::int[])",
        numbers.params,
    )


def postings(kind: str, language: str, terms: Sequence[str], numbers: Fragment) -> Fragment:
    """The postings of terms in indexed sources, one row a term: ``ROW`` each, and their entries."""
    return Fragment(
        f"SELECT '{kind}', %s::text, term, string_agg(int4send(number) || int4send(block::int) || int4send(chunks) || "  # noqa: S608
        "int4send(octet_length(entries)), ''::bytea), string_agg(entries, ''::bytea) "
        "FROM indexing_posting WHERE term = ANY((SELECT %s::text[])::text[]) "
        f"AND number = ANY(({numbers.sql})::int[]) GROUP BY term",
        (language, list(terms), *numbers.params),
    )


def _by_language(scope: Scope, question: Question) -> list[tuple[str, list[str], list[int]]]:
    found = []
    for language in scope.languages:
        terms = sorted(question.terms.get(language, ()))
        numbers = [source.number for source in scope.sources if source.language == language]
        if terms and numbers:
            found.append((language, terms, numbers))
    return found
