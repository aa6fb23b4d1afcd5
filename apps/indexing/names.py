"""The name stream over a scope: asked in the same statement as the other streams, and one more for the details."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np
import orjson
from numpy.typing import NDArray

from apps.indexing import name_ranking, naming
from apps.indexing.analyzer import analyze, fold
from apps.indexing.fields import ENTRY
from apps.indexing.lexical import LexicalResult, backend
from apps.indexing.models import BLOCK_BITS, SLOT_BITS
from apps.indexing.naming import Asked, Named, NameRow, Section
from apps.indexing.statements import Fragment, fetch, union

if TYPE_CHECKING:
    from apps.indexing.questions import Question
    from apps.indexing.scope import Scope

MAX_DOCUMENTS = 60
"""Documents that are looked at closely: those whose names and headings account for most of the query."""
MAX_TIED = 300
LEAST_SHARE = 0.4


@dataclass(frozen=True, slots=True)
class NameResult:
    """Rows best first. ``drops_side``: a document is named so clearly that side documents leave the answer."""

    rows: tuple[NameRow, ...]
    drops_side: bool = False


def statement(scope: Scope, query: str) -> Fragment | None:
    """Postings of names for the words of ``query`` (kind ``n``) and their statistics (``m``), with the columns of the
    lexical stream. None when nothing can be asked.
    """
    parts = []
    numbers = [source.names for source in scope.sources if source.names]
    if not numbers or not query.strip():
        return None
    parts.append(
        Fragment(
            "SELECT 'm' AS kind, number, 0 AS block, chunks::bigint, 0::bigint, 0::bigint, next_slot::text AS term, "
            "dead AS data FROM indexing_indexedsource WHERE number = ANY(%s::int[])",
            (numbers,),
        )
    )
    for language in scope.languages:
        terms = sorted({term.text for term in analyze(query, language).terms if term.kind != "letter"})
        here = [source.names for source in scope.sources if source.names and source.language == language]
        if terms and here:
            parts.append(
                Fragment(
                    "SELECT 'n', number, block::int, chunks::bigint, 0::bigint, 0::bigint, term, entries "
                    "FROM indexing_posting WHERE term = ANY(%s::text[]) AND number = ANY(%s::int[])",
                    (terms, here),
                )
            )
    return union(parts)


def rank(
    scope: Scope, question: Question, rows: Sequence[tuple[Any, ...]], lexical: LexicalResult | None = None
) -> NameResult:
    """The stream from the rows of ``statement``, by one more statement for the documents that may be meant.

    The lexical stream's result tells how rare words are in texts, and which sections of a named file hold them.
    """
    entries = {source.names: source for source in scope.sources if source.names}
    statistics = {row[1]: row for row in rows if row[0] == "m"}
    documents = sum(row[3] for row in statistics.values())
    df: dict[str, int] = {}
    for row in rows:
        if row[0] == "n":
            df[row[6]] = df.get(row[6], 0) + row[3]

    @functools.cache
    def idf(term: str) -> float:
        return math.log(1 + documents / (1 + df.get(term, 0)))

    common = question.only_common_words
    refs = [] if common else _pool(scope, question.text, rows, statistics, idf)
    found, more = _load(list(entries), refs, fold(question.text.strip()), common)
    df |= {term: count for term, count in more.items() if term not in df}
    idf.cache_clear()
    sources = {number: naming.Source(source.language, source.label) for number, source in entries.items()}
    terms = {
        source.number: {unit: term for term, unit in question.terms.get(source.language, {}).items()}
        for source in scope.sources
    }

    def rare(term: str) -> bool:
        if lexical is None:
            return True
        units = {known[term] for known in question.terms.values() if term in known}
        return sum(lexical.in_bodies(unit) for unit in units) <= max(1, lexical.chunks // 100)

    def own(refs: Sequence[int]) -> dict[int, dict[str, float]]:
        weights = lexical.weights(refs) if lexical is not None else {}
        return {ref: {terms[ref >> SLOT_BITS][unit]: w for unit, w in held.items()} for ref, held in weights.items()}

    ranked = name_ranking.rank(Asked(question.text, idf, rare, common), found, sources, own)
    return NameResult(tuple(ranked), any(row.weight >= 2 for row in ranked))


def search(scope: Scope, question: Question) -> NameResult:
    """The stream alone."""
    used = backend()
    parts = [used.statement(scope, question)] if question.asked else []
    names = statement(scope, question.text)
    rows = fetch(union([*parts, names])) if names is not None else []
    return rank(scope, question, rows, used.rank(scope, question, rows, 1) if parts and rows else None)


def _pool(
    scope: Scope,
    query: str,
    rows: Sequence[tuple[Any, ...]],
    statistics: Mapping[int, tuple[Any, ...]],
    idf: Callable[[str], float],
) -> list[int]:
    """Refs of documents whose names, headings and folders account for enough of the query, and of those spelled."""
    spelled = naming.spelled_tokens(query)
    found: list[tuple[float, int]] = []
    for source in scope.sources:
        mine = [row for row in rows if row[0] == "n" and row[1] == source.names]
        if not mine or source.names not in statistics:
            continue
        wanted = naming.less(naming.words(query, source.language), naming.words(source.label, source.language))
        medium = naming.words(naming.MEDIUM, source.language)
        slots = int(statistics[source.names][6])
        total = sum(idf(term) for term in wanted if term not in medium) or sum(idf(term) for term in wanted) or 1.0
        sums = np.zeros(slots)
        for row in mine:
            if row[6] in wanted and row[7]:
                held = np.frombuffer(row[7], ENTRY)
                keys = held["slot"].astype(np.int64) + (row[2] << BLOCK_BITS)
                sums[keys] += idf(row[6]) * np.where((held["heading"] | held["body"]) > 0, 1.0, 0.5)
        keys = _spelled(spelled, source.language, mine, slots)
        sums[keys] = np.maximum(sums[keys], 2 * total)
        sums[np.frombuffer(statistics[source.names][7] or b"", "<u4").astype(np.int64)] = 0
        found += [
            (float(sums[slot]) / total, source.names << SLOT_BITS | slot)
            for slot in np.flatnonzero(sums >= LEAST_SHARE * total - 1e-9).tolist()
        ]
    found.sort(key=lambda item: -item[0])
    if len(found) > MAX_DOCUMENTS:
        least = found[MAX_DOCUMENTS - 1][0] - 1e-9
        found = [item for item in found if item[0] >= least][:MAX_TIED]
    return [ref for _, ref in found]


def _spelled(tokens: Sequence[str], language: str, rows: Sequence[tuple[Any, ...]], slots: int) -> NDArray[np.int64]:
    """Slots of documents whose path holds every term of a spelled token's file name."""
    marked = np.zeros(slots, bool)
    for token in tokens:
        terms = {term.text for term in analyze(token.rpartition("/")[2], language).terms if term.kind != "letter"}
        count = np.zeros(slots, np.int64)
        for row in rows:
            if row[6] in terms and row[7]:
                held = np.frombuffer(row[7], ENTRY)
                keys = held["slot"].astype(np.int64) + (row[2] << BLOCK_BITS)
                count[keys] += held["path"] > 0
        if terms:
            marked |= count == len(terms)
    return np.flatnonzero(marked)


def _load(numbers: list[int], refs: list[int], query: str, common: bool) -> tuple[list[Named], dict[str, int]]:
    """The documents ``refs`` and files written in capitals that ``query`` mentions (of a query of common words, those
    whose folded name it is), and how many documents of scope hold each term of their names and headings.
    """
    if common:
        condition, bound = "folded @> ARRAY[%s] AND number = ANY(%s::int[])", [query, numbers]
    else:
        condition = "(ref = ANY(%s::bigint[]) OR (capital AND number = ANY(%s::int[]) AND stem = ANY(%s::text[])))"
        bound = [refs, numbers, re.findall(r"\w+", query)]
    rows = fetch(
        Fragment(
            "WITH named AS MATERIALIZED (SELECT number, document_id, path, title, aliases, side, sections, terms, "  # noqa: S608
            "depth <= (SELECT min(o.depth) FROM indexing_nameddocument o "
            "WHERE o.number = d.number AND o.stem = d.stem AND NOT o.side) AS owns_stem FROM indexing_nameddocument d "
            f"WHERE {condition} ORDER BY ref = ANY(%s::bigint[]) DESC, depth, path LIMIT {2 * MAX_TIED}) "
            "SELECT 'd', 0::bigint, '', (to_jsonb(named) - 'terms')::text FROM named UNION ALL "
            "SELECT 't', sum(chunks)::bigint, term, NULL FROM indexing_posting WHERE number = ANY(%s::int[]) "
            "AND term = ANY(ARRAY(SELECT DISTINCT unnest(terms) FROM named)) GROUP BY term",
            (*bound, refs, numbers),
        )
    )
    found = [
        Named(
            row["number"],
            UUID(row["document_id"]),
            row["path"],
            row["title"],
            tuple(row["aliases"]),
            row["side"],
            tuple(Section(tuple(heading), *rest) for heading, *rest in row["sections"]),
            row["owns_stem"] is not False,
        )
        for row in (orjson.loads(text) for kind, _, _, text in rows if kind == "d")
    ]
    return found, {term: int(count) for kind, count, term, _ in rows if kind == "t"}
