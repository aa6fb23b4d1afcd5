"""The lexical stream: BM25F over the postings of a scope (``retrieval.md`` 3).

PostgreSQL finds and hands over the entries of the asked terms, in one statement with the statistics they need, so both
are of one snapshot; the sum over terms is numpy over whole arrays. Every entry of every asked term is looked at: the
answer is exact, there is no prefix whose cut would have to be mended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from django.conf import settings
from django.utils.module_loading import import_string

from apps.indexing.analyzer import MAX_QUERY_TERMS
from apps.indexing.scoring import Detail, Entries, Space, idf
from apps.indexing.statements import Fragment, fetch, fragment_of, union

if TYPE_CHECKING:
    from apps.indexing.questions import Question
    from apps.indexing.scope import Scope


@dataclass(frozen=True, slots=True)
class LexicalHit:
    """``fields`` tells for each matched unit of the question where it stands: ``b``ody, ``h``eading, ``p``ath."""

    ref: int
    score: float
    fields: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class LexicalResult:
    """Hits best first, equal scores in no promised order: whoever knows paths breaks ties. All hits that share the
    last score are given, so there may be more than were asked for.
    """

    hits: tuple[LexicalHit, ...]
    chunks: int
    """N: chunks in scope."""
    df: Mapping[int, int]
    """Chunks in scope that hold each unit."""
    idf: Mapping[int, float]
    detail: Detail | None = field(default=None, repr=False, compare=False)

    def weights(self, refs: Sequence[int]) -> dict[int, dict[int, float]]:
        """The weight w of each unit in the chunks ``refs``, whether they are among the hits or not."""
        return self.detail.weights(refs, self.idf) if self.detail is not None and refs else {}

    def in_bodies(self, unit: int) -> int:
        """Chunks in scope whose body holds the unit."""
        return self.detail.in_bodies(unit) if self.detail is not None else 0


class LexicalBackend(Protocol):
    def limit(self, scope: Scope, question: Question) -> Question: ...

    def statement(self, scope: Scope, question: Question) -> Fragment: ...

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
    return used.rank(scope, question, fetch(used.statement(scope, question)), limit)


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

    def statement(self, scope: Scope, question: Question) -> Fragment:
        """One SELECT of statistics (``s``), postings (``p``) and, with conditions, allowed chunks (``f``)."""
        parts = [
            Fragment(
                "SELECT 's' AS kind, number, 0 AS block, chunks::bigint, heading_length, body_length, "
                "next_slot::text AS term, dead AS data "
                "FROM indexing_indexedsource WHERE number = ANY(%s::int[])",
                (scope.numbers,),
            )
        ]
        for language, terms, numbers in _by_language(scope, question):
            parts.append(
                Fragment(
                    "SELECT 'p', number, block::int, chunks::bigint, 0::bigint, 0::bigint, term, entries "
                    "FROM indexing_posting WHERE term = ANY(%s::text[]) AND number = ANY(%s::int[])",
                    (terms, numbers),
                )
            )
            del language
        if scope.conditions:
            for store in scope.stores:
                inner = fragment_of(scope.chunks_of(store).values("ref"))
                packed = "COALESCE(string_agg(int8send(ref), ''::bytea), ''::bytea)"
                columns = f"'f', 0, 0, 0::bigint, 0::bigint, 0::bigint, '', {packed}"
                parts.append(Fragment(f"SELECT {columns} FROM ({inner.sql}) allowed", inner.params))  # noqa: S608
        return union(parts)

    def rank(self, scope: Scope, question: Question, rows: Sequence[tuple[Any, ...]], limit: int) -> LexicalResult:
        """Scores every chunk of scope that holds a term; see the module for the formula."""
        space = Space.of([row for row in rows if row[0] == "s"])
        postings = [row for row in rows if row[0] == "p" and row[1] in space.base]
        languages = {source.number: source.language for source in scope.sources}
        units = [question.terms[languages[row[1]]][row[6]] for row in postings]
        df = dict.fromkeys(question.asked, 0)
        for unit, row in zip(units, postings, strict=True):
            df[unit] += row[3]
        weight = {unit: idf(space.chunks, count) for unit, count in df.items() if count > 0}
        # One order of summing, whatever the order in which rows come: equal scores to the last bit.
        order = sorted(
            (place for place, row in enumerate(postings) if row[7] and units[place] in weight), key=lambda p: units[p]
        )
        if not order or limit <= 0:
            return LexicalResult((), space.chunks, df, weight)
        found = Entries.of(space, [postings[place] for place in order], [units[place] for place in order], weight)
        allowed = space.keys_of([row[7] for row in rows if row[0] == "f"]) if scope.conditions else None
        best, scores = found.best(space, allowed, limit)
        fields = found.fields(best)
        refs = space.refs(best)
        ranked = np.lexsort((best, -scores))
        hits = tuple(LexicalHit(int(refs[p]), float(scores[p]), fields[p]) for p in ranked.tolist())
        return LexicalResult(hits, space.chunks, df, weight, Detail(space, found))


def _by_language(scope: Scope, question: Question) -> list[tuple[str, list[str], list[int]]]:
    found = []
    for language in scope.languages:
        terms = sorted(question.terms.get(language, ()))
        numbers = [source.number for source in scope.sources if source.language == language]
        if terms and numbers:
            found.append((language, terms, numbers))
    return found
