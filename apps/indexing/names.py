"""The name stream over a scope: its postings ride with the query of the scope, its documents with the other streams."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
from numpy.typing import NDArray

from apps.indexing import naming
from apps.indexing.analyzer import DEFAULT_LANGUAGE, analyze, fold
from apps.indexing.fields import ENTRY
from apps.indexing.lexical import LexicalResult, backend, given, postings, statistics
from apps.indexing.models import BLOCK_BITS, NAMES_SUFFIX, SLOT_BITS
from apps.indexing.name_ranking import Judgement
from apps.indexing.naming import Asked, Named, NameRow
from apps.indexing.scope import SCOPED, Riders
from apps.indexing.scoring import Postings, Space
from apps.indexing.statements import Fragment, fetch, numbers_text, union

if TYPE_CHECKING:
    from apps.indexing.questions import Question
    from apps.indexing.scope import Scope, ScopedSource

MAX_DOCUMENTS = 60
"""Documents that are looked at closely: those whose names and headings account for most of the query, and of these
those whose names alone do, the shortest names first."""
MAX_TIED = 120
"""The same with those that equal the last of them, the nearest to the root first."""
MAX_EQUAL = 1_000
"""Documents among which the nearest are looked for."""
MAX_CAPITAL = 60
"""Files written in capitals that are looked at besides, the nearest to the root first."""
LEAST_SHARE = 0.4


@dataclass(frozen=True, slots=True)
class NameResult:
    """Rows best first. ``drops_side``: a document is named so clearly that side documents leave the answer."""

    rows: tuple[NameRow, ...]
    drops_side: bool = False


_languages: set[str] = {DEFAULT_LANGUAGE}
"""Languages that scopes have had: what is asked along with the query of a scope must guess them."""


def known_languages() -> tuple[str, ...]:
    return tuple(sorted(_languages))


def riding(query: str) -> Riders:
    """What this stream asks along with the query of a scope, so that it costs no statement of its own."""
    languages = known_languages()
    is_names = f"right(store, {len(NAMES_SUFFIX)}) = '{NAMES_SUFFIX}'"
    numbers = f"SELECT ARRAY(SELECT number FROM {SCOPED} WHERE {is_names}"  # noqa: S608
    parts = [statistics("m", Fragment(numbers + ")"))]
    for language in languages:
        if terms := _asked(query, language):
            mine = Fragment(numbers + " AND language = %s)", (language,))
            parts.append(postings("n", language, terms, mine))
    return Riders(query, languages, tuple(parts))


def first_rows(scope: Scope, query: str) -> Sequence[tuple[Any, ...]]:
    """Postings of names for the words of ``query`` (kind ``n``) and their statistics (``m``), in the columns of
    ``REPLY``; by no statement where they came with the scope.
    """
    riders = scope.riders
    _languages.update(scope.languages)
    if riders is not None and riders.text == query and set(scope.languages) <= set(riders.languages):
        return riders.rows
    numbers = [source.names for source in scope.sources if source.names]
    parts = [statistics("m", given(numbers))]
    for language in scope.languages:
        here = [source.names for source in scope.sources if source.names and source.language == language]
        terms = _asked(query, language)
        if terms and here:
            parts.append(postings("n", language, terms, given(here)))
    return fetch(union(parts)) if numbers else []


def _asked(query: str, language: str) -> list[str]:
    return sorted({term.text for term in analyze(query, language).terms if term.kind != "letter"})


def refs_in(rows: Sequence[tuple[Any, ...]], most: int) -> list[int]:
    """Documents that hold a term in a name or heading, folders left aside, at most ``most``: those of the first rows.
    ``rows`` are postings of names: term, number of the source, block, entries."""
    refs: dict[int, None] = {}
    for _, number, block, entries in rows:
        held = np.frombuffer(entries or b"", ENTRY)
        named = held[(held["heading"] | held["body"]) > 0]
        base = number << SLOT_BITS | block << BLOCK_BITS
        refs.update(dict.fromkeys((named["slot"].astype(np.int64) + base).tolist()))
        if len(refs) >= most:
            break
    return list(refs)[:most]


@dataclass(slots=True)
class Pool:
    """Documents that may be meant, and how rare the words of the query are among names."""

    refs: list[int]
    documents: int
    df: dict[str, int]
    sure: int = 0
    """Of so many of ``refs``, the first, all are looked at; the others have equal claims."""

    def idf(self, term: str) -> float:
        return math.log(1 + self.documents / (1 + self.df.get(term, 0)))


def pool(scope: Scope, question: Question) -> Pool:
    """Documents whose names, headings and folders account for enough of the query, and those spelled."""
    rows = first_rows(scope, question.text)
    space = Space.of(next(((head, data) for kind, _, _, head, data in rows if kind == "m"), (None, None)))
    # Riders know of all blocks and kinds: only names of sources in this scope count.
    entries = {source.names: source for source in scope.sources if source.names}
    mine = np.isin(space.numbers, np.array(list(entries), np.int64))
    held = [(language, term, head, data) for kind, language, term, head, data in rows if kind == "n"]
    found = Postings.of(space, list(range(len(held))), [head for *_, head, _ in held])
    counted = np.where(mine[found.places], found.changes, 0) if len(mine) else found.changes
    df: dict[str, int] = {}
    for at, count in zip(found.units.tolist(), counted.tolist(), strict=True):
        df[held[at][1]] = df.get(held[at][1], 0) + count
    made = Pool([], int(space.documents[mine].sum()), df)
    if question.only_common_words or not held or not len(space.numbers):
        return made
    wanted, totals = _wanted(question.text, [entries.get(number) for number in space.numbers.tolist()], made.idf)
    data = np.frombuffer(b"".join(data for *_, data in held), ENTRY)
    row = np.repeat(np.arange(len(found.sizes)), found.sizes)
    keys = (space.bases[found.places] + (found.blocks << BLOCK_BITS))[row] + data["slot"]
    worth = [
        made.idf(held[at][1]) if known and held[at][1] in wanted[place] else 0.0
        for at, place, known in zip(found.units.tolist(), found.places.tolist(), found.known.tolist(), strict=True)
    ]
    weights = np.array(worth)[row]
    named = np.where((data["heading"] | data["body"]) > 0, 1.0, 0.5)
    sums = np.bincount(keys, weights=weights * named, minlength=space.size)
    ends = np.append(space.bases[1:], space.size)
    total = np.repeat(np.where(mine, totals, np.inf), ends - space.bases)
    for token in naming.spelled_tokens(question.text):
        for language in scope.languages:
            # Documents whose path holds every term of the file name that is spelled.
            terms = set(_asked(token.rpartition("/")[2], language))
            which = np.array([of == language and term in terms for of, term, *_ in held])[found.units][row]
            count = np.bincount(keys[which & (data["path"] > 0)], minlength=space.size)
            sums = np.where((count == len(terms)) & bool(terms), np.maximum(sums, 2 * total), sums)
    sums[space.dead] = 0
    near = np.flatnonzero((sums >= LEAST_SHARE * total - 1e-9) & np.isfinite(total))
    shares = sums[near] / total[near]
    refs = space.refs(near)
    if len(near) > MAX_DOCUMENTS:
        by_names = np.bincount(keys, weights=weights * (data["heading"] > 0), minlength=space.size)
        lengths = np.zeros(space.size)
        lengths[keys] = data["heading_length"]
        worse = np.stack((-shares, -by_names[near] / total[near], lengths[near])).round(9)
        labels = {source.names: place for place, source in enumerate(scope.sources)}
        by_label = np.array([labels[number] for number in (refs >> SLOT_BITS).tolist()], np.int64)
        order = np.lexsort((refs, by_label, *worse[::-1]))
        equal = (worse[:, order] == worse[:, order[MAX_DOCUMENTS - 1], None]).all(axis=0)
        made.sure = int(equal.argmax())
        refs = refs[order[: made.sure + min(int(equal.sum()), MAX_EQUAL)]]
    else:
        made.sure = len(refs)
    made.refs = refs.tolist()
    return made


def _wanted(
    query: str, sources: Sequence[ScopedSource | None], idf: Callable[[str], float]
) -> tuple[list[frozenset[str]], NDArray[np.float64]]:
    """The words of the query as each source reads it, and what they weigh together."""
    wanted: list[frozenset[str]] = []
    totals: list[float] = []
    weighed: dict[tuple[str, frozenset[str]], float] = {}
    for source in sources:
        if source is None:
            wanted.append(frozenset())
            totals.append(np.inf)
            continue
        language = source.language
        here = naming.less(naming.words(query, language), naming.words(source.label, language))
        if (language, here) not in weighed:
            medium = naming.words(naming.MEDIUM, language)
            telling = sum(idf(term) for term in sorted(here - medium))
            weighed[language, here] = telling or sum(idf(term) for term in sorted(here)) or 1.0
        wanted.append(here)
        totals.append(weighed[language, here])
    return wanted, np.array(totals, np.float64)


class Pending:
    """The stream but for the rarity of some ``terms``: ``refs`` are the chunks that may become its rows."""

    def __init__(self, found: Pool, judgement: Judgement, numbers: Sequence[int]) -> None:
        self._pool, self._judgement, self._numbers = found, judgement, numbers
        self.refs = judgement.refs

    @property
    def statement(self) -> Fragment | None:
        """How many documents of scope hold each of the terms; None where nothing is left to ask."""
        terms = sorted(self._judgement.terms - self._pool.df.keys())
        if not terms:
            return None
        return Fragment(
            "SELECT term, sum(chunks)::bigint AS chunks FROM indexing_posting "
            "WHERE term = ANY((SELECT %s::text[])::text[]) AND number = ANY((SELECT %s::int[])::int[]) GROUP BY term",
            (terms, numbers_text(self._numbers)),
        )

    def result(self, df: Mapping[str, int]) -> NameResult:
        self._pool.df.update(df)
        rows = self._judgement.rows(functools.cache(self._pool.idf))
        return NameResult(tuple(rows), any(row.weight >= 2 for row in rows))

    def alone(self) -> NameResult:
        """By a statement of its own, if it needs any."""
        asked = self.statement
        return self.result(dict(fetch(asked)) if asked is not None else {})


def rank(
    scope: Scope,
    question: Question,
    found: Pool,
    rows: Sequence[tuple[Any, ...]],
    lexical: LexicalResult | None = None,
) -> Pending:
    """The stream from its pool and the rows of ``statement``. The lexical stream's result tells how rare words are in
    texts, and which sections of a named file hold them.
    """
    documents = [_named(one) for kind, _, _, _, data in rows if kind == "nd" for one in orjson.loads(data)]
    sources = {s.names: naming.Source(s.language, s.label) for s in scope.sources if s.names}
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

    def headed(refs: Sequence[int]) -> Sequence[int]:
        if lexical is None or question.left_out:  # words that the lexical stream did not ask may be in headings too
            return range(len(refs))
        return lexical.in_headings(refs)

    of_query = frozenset[str]().union(*(_asked(question.text, language) for language in scope.languages))
    everywhere = math.log(1 + found.documents / (1 + found.documents))
    idf = functools.cache(found.idf)

    @functools.cache
    def least(term: str) -> float:
        return idf(term) if term in of_query else everywhere

    asked = Asked(question.text, idf, least, rare, question.only_common_words)
    return Pending(found, Judgement(asked, documents, sources, own, headed), list(sources))


def search(scope: Scope, question: Question) -> NameResult:
    """The stream alone."""
    used = backend()
    found = pool(scope, question)
    parts = [statement(scope, question, found)]
    if question.asked:
        parts.append(used.statement(scope, question))
    rows = fetch(union(parts))
    lexical = used.rank(scope, question, rows, 1) if question.asked else None
    return rank(scope, question, found, rows, lexical).alone()


def statement(scope: Scope, question: Question, found: Pool) -> Fragment:
    """The documents of the pool and files written in capitals that the query mentions (of a query of common words,
    those whose folded name it is), as one row of kind ``nd`` in the columns of ``REPLY``.
    """
    numbers = numbers_text(source.names for source in scope.sources if source.names)
    nearest = "ORDER BY pooled DESC, depth, path LIMIT {}"
    rows = "SELECT d.*, {} AS pooled FROM indexing_nameddocument d "
    if question.only_common_words:
        which = Fragment(
            rows.format(0) + "WHERE folded @> ARRAY[%s] AND number = ANY(%s::int[]) " + nearest.format(MAX_TIED),
            (fold(question.text.strip()), numbers),
        )
    else:
        # Sub-selects hide lists from the planner, who weighs each value that it knows: with hundreds of documents that
        # takes longer than to find them.
        refs = numbers_text(found.refs)
        stems = re.findall(r"\w+", fold(question.text.strip()))
        parts = [
            Fragment(
                rows.format(0) + "WHERE capital AND number = ANY(%s::int[]) AND stem = ANY(%s::text[]) "
                "AND NOT ref = ANY((SELECT %s::bigint[])::bigint[]) " + nearest.format(MAX_CAPITAL),
                (numbers, stems, refs),
            )
        ]
        if found.refs:
            parts.append(
                Fragment(
                    rows.format(f"CASE WHEN p.place <= {found.sure} THEN 2 ELSE 1 END")
                    + "JOIN unnest(%s::bigint[]) WITH ORDINALITY p(ref, place) ON d.ref = p.ref "
                    + nearest.format(MAX_TIED),
                    (refs,),
                )
            )
        which = union(parts)
    return Fragment(
        "SELECT 'nd', '', '', NULL::bytea, convert_to(COALESCE(json_agg(n.told)::text, '[]'), 'UTF8') FROM ("  # noqa: S608
        "SELECT json_build_array(number, document_id, path, title, aliases, side, sections, COALESCE("
        "depth <= (SELECT min(o.depth) FROM indexing_nameddocument o "
        "WHERE o.number = d.number AND o.stem = d.stem AND NOT o.side), true)) AS told "
        f"FROM ({which.sql}) d ORDER BY pooled DESC, depth, path) n",
        which.params,
    )


def _named(row: Sequence[Any]) -> Named:
    number, document, path, title, aliases, side, sections, owns_stem = row
    return Named(number, document, path, title, tuple(aliases), side, sections, owns_stem)
