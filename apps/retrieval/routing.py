"""Which sources are about a question: scores from term statistics alone (``retrieval.md`` 11).

No document is read. What a repository says of itself at the top of its README is kept as a row of terms, made anew
after each sync; everything else is in the statistics of the index.
"""

from __future__ import annotations

import functools
import heapq
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db.models import Value
from django.db.models.functions import Length, Replace

from apps.access.compiled import readable_ids
from apps.access.errors import Invalid
from apps.collections.models import Collection
from apps.indexing.analyzer import analyze
from apps.indexing.questions import Question, ask
from apps.indexing.scope import Scope, ScopedSource, visible_blocks
from apps.indexing.statements import Fragment, fetch, union
from apps.repos.models import Repository, RepositoryDocument
from apps.retrieval.models import SourceLead

if TYPE_CHECKING:
    from apps.access.viewers import Viewer
    from apps.jobs.running import JobRun

LEAD_CHARS = 2000
MAX_QUERY_CHARS = 512
MAX_TOP_K = 10
WEAK = 0.3
LABEL_BONUS = 0.5
DECIMALS = 6


@dataclass(frozen=True, slots=True)
class Route:
    """A source with its score, 0 to 1, and the fields that hold words of the question."""

    kind: str
    id: UUID
    label: str
    description: str
    url: str
    score: float
    why: tuple[tuple[str, tuple[str, ...]], ...]
    """(field, words as typed) pairs."""
    weak: bool


@dataclass(frozen=True, slots=True)
class Routes:
    repositories: tuple[Route, ...]
    collections: tuple[Route, ...]
    only_common_words: bool = False


@dataclass(slots=True)
class _Known:
    """One source and what it holds of the question: units by field."""

    kind: str
    id: UUID
    label: str
    description: str
    fields: dict[str, set[int]] = field(default_factory=dict)

    @property
    def units(self) -> set[int]:
        return set().union(*self.fields.values()) if self.fields else set()

    def hold(self, name: str, units: Iterable[int]) -> None:
        found = set(units)
        if found:
            self.fields.setdefault(name, set()).update(found)


def route(*, viewer: Viewer, query: str, top_k: int = 3) -> Routes:
    """The best sources of each pool. Raises Invalid for an empty or over-long query and a ``top_k`` out of bounds."""
    query = query.replace("\0", " ").strip()
    if not query:
        raise Invalid("Ask something: the query is empty.", code="required", field="query")
    if len(query) > MAX_QUERY_CHARS:
        raise Invalid(f"A query has at most {MAX_QUERY_CHARS} characters here.", code="out_of_range", field="query")
    if not 1 <= top_k <= MAX_TOP_K:
        raise Invalid(f"top_k is 1 to {MAX_TOP_K}.", code="out_of_range", field="top_k")
    pools = _readable(viewer)
    scopes = visible_blocks(viewer, blocks={"docs": None, "code": None})
    languages = {source.language for scope in scopes for source in scope.sources} | {"english"}
    question = ask(query, languages)
    if question.only_common_words:
        return Routes((), (), only_common_words=True)
    for pool in pools.values():
        for known in pool.values():
            _hold_own_words(known, question)
    _hold_statistics(pools, scopes, question)
    repositories = _best(pools[Repository.kind], question, top_k)
    collections = _best(pools[Collection.kind], question, top_k)
    return Routes(tuple(found for found in repositories if found.why), tuple(collections))


def _readable(viewer: Viewer) -> dict[str, dict[UUID, _Known]]:
    """The sources that the viewer may read, by kind, those without any text too; one statement for both kinds."""
    models: tuple[tuple[Any, str], ...] = ((Repository, "slug"), (Collection, "name"))
    parts = []
    for model, label in models:
        readable, params = readable_ids(model, viewer)
        columns = f"'{model.kind}', m.id, m.{label}::text, m.description"
        parts.append(Fragment(f"SELECT {columns} FROM {model._meta.db_table} m WHERE m.id IN ({readable})", params))  # noqa: S608
    pools: dict[str, dict[UUID, _Known]] = {model.kind: {} for model, _ in models}
    for kind, id_, text, description in fetch(union(parts)):
        pools[kind][id_] = _Known(kind, id_, text, description)
    return pools


def _hold_own_words(known: _Known, question: Question) -> None:
    for name, text in (("name", known.label), ("description", known.description)):
        for language, terms in question.terms.items():
            if terms and text:
                known.hold(name, [terms[term] for term in terms.keys() & _terms_of(text, language)])


@functools.lru_cache(maxsize=4096)
def _terms_of(text: str, language: str) -> frozenset[str]:
    """The terms of a label or description. To find them takes most of the time of a route, and they seldom change."""
    return frozenset(term.text for term in analyze(text, language).terms)


def _hold_statistics(pools: Mapping[str, Mapping[UUID, _Known]], scopes: Sequence[Scope], question: Question) -> None:
    """Terms in headings, texts, symbols and paths, and in what repositories say of themselves: one statement over the
    statistics of the index and the words of READMEs."""
    by_number: dict[int, tuple[ScopedSource, str]] = {}
    for scope in scopes:
        for source in scope.sources:
            by_number[source.number] = (source, scope.block)
            if source.names:
                by_number[source.names] = (source, "names")
    asked = {term: unit for terms in question.terms.values() for term, unit in terms.items()}
    if not asked:
        return
    rows = fetch(
        union(
            (
                Fragment(
                    "SELECT number, NULL::uuid, term, sum(chunks)::bigint, sum(in_heading)::bigint, "
                    "sum(in_path)::bigint FROM indexing_posting "
                    "WHERE term = ANY(%s::text[]) AND number = ANY(%s::int[]) GROUP BY number, term",
                    (sorted(asked), list(by_number)),
                ),
                Fragment(
                    "SELECT 0, l.source_id, t.term, 0::bigint, 0::bigint, 0::bigint FROM source_leads l "
                    "JOIN unnest(%s::text[]) AS t(term) ON t.term = ANY(l.terms) "
                    "WHERE l.source_id = ANY(%s::uuid[]) AND l.source_kind = %s",
                    (sorted(asked), list(pools[Repository.kind]), Repository.kind),
                ),
            )
        )
    )
    for number, lead, term, chunks, in_heading, in_path in rows:
        if lead is not None:
            pools[Repository.kind][lead].hold("README", [asked[term]])
            continue
        source, what = by_number[number]
        unit = question.terms.get(source.language, {}).get(term)
        known = pools[source.kind].get(source.id)
        if unit is None or known is None or chunks <= 0:
            continue
        if what == "code":
            known.hold("symbols", [unit] if in_heading > 0 else [])
            known.hold("paths of code", [unit] if in_path > 0 else [])
        elif what == "names" or in_heading > 0:
            known.hold("headings", [unit])
        elif source.kind == Collection.kind:
            known.hold("text", [unit])


def _best(pool: Mapping[UUID, _Known], question: Question, top_k: int) -> list[Route]:
    total = len(pool)
    df = dict.fromkeys(question.asked, 0)
    for known in pool.values():
        for unit in known.units:
            if unit in df:
                df[unit] += 1
    idf = {unit: math.log((total + 1) / (count + 1)) if count else 0.0 for unit, count in df.items()}
    somewhere = [unit for unit, count in df.items() if count]
    whole = sum(idf[unit] for unit in somewhere)

    def share(units: set[int]) -> float:
        """Of the idf of all terms that are somewhere; of their number where all sources hold all of them."""
        if whole:
            return sum(idf[unit] for unit in somewhere if unit in units) / whole
        return sum(unit in units for unit in somewhere) / len(somewhere) if somewhere else 0.0

    def score(known: _Known) -> float:
        worth = share(known.units) * (1 + LABEL_BONUS * share(known.fields.get("name", set())))
        return round(min(1.0, worth), DECIMALS)

    scored = [(-score(known), known.label, str(known.id), known) for known in pool.values()]
    return [_route(known, -worth, question) for worth, _, _, known in heapq.nsmallest(top_k, scored)]


def _route(known: _Known, score: float, question: Question) -> Route:
    def word(unit: int) -> str:
        asked = question.units[unit]
        return question.text[asked.start : asked.end]

    why = tuple(
        (name, tuple(dict.fromkeys(word(unit) for unit in sorted(units))))
        for name, units in sorted(known.fields.items())
    )
    made = Repository(pk=known.id, slug=known.label) if known.kind == Repository.kind else Collection(pk=known.id)
    url = made.get_absolute_url()
    return Route(known.kind, known.id, known.label, known.description, url, score, why, weak=score < WEAK)


# -- what a repository says of itself


def refresh_lead(run: JobRun) -> None:
    """Keep the words of a repository's own introduction: the opening of the README nearest the root."""
    kind, source_id = run.source_key
    repository = run.source
    readme = (
        RepositoryDocument.objects.filter(repository=source_id, path__iregex=r"(^|/)readme\.(md|mdx|rst)$")
        .annotate(folders=Length("path") - Length(Replace("path", Value("/"))))
        .order_by("folders", "path")
        .values_list("text", flat=True)
        .first()
    )
    language = getattr(repository, "language", "english")
    terms = sorted({term.text for term in analyze((readme or "")[:LEAD_CHARS], language).terms})
    with run.batch():
        SourceLead.objects.update_or_create(source_kind=kind, source_id=source_id, defaults={"terms": terms})


def remove_lead(run: JobRun, source: tuple[str, UUID]) -> None:
    with run.batch():
        SourceLead.objects.filter(source_kind=source[0], source_id=source[1]).delete()
