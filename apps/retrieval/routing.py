"""Which sources are about a question: scores from term statistics alone (``retrieval.md`` 11).

No document is read. What a repository says of itself at the top of its README is kept as a row of terms, made anew
after each sync; everything else is in the statistics of the index.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db.models import Value
from django.db.models.functions import Length, Replace

from apps.access.errors import Invalid
from apps.collections.models import Collection
from apps.indexing.analyzer import analyze
from apps.indexing.questions import Question, ask
from apps.indexing.scope import Scope, ScopedSource, visible
from apps.indexing.statements import Fragment, fetch
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
    url: str
    languages: set[str] = field(default_factory=set)
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
    pools = {model.kind: _readable(model, viewer) for model in (Repository, Collection)}
    scopes = [visible(viewer, block="docs"), visible(viewer, block="code")]
    languages = {source.language for scope in scopes for source in scope.sources} | {"english"}
    question = ask(query, languages)
    if question.only_common_words:
        return Routes((), (), only_common_words=True)
    for pool in pools.values():
        for known in pool.values():
            _hold_own_words(known, question)
    _hold_leads(pools[Repository.kind], question)
    for scope in scopes:
        _hold_statistics(pools, scope, question)
    repositories = _scored(pools[Repository.kind], question)
    collections = _scored(pools[Collection.kind], question)
    return Routes(
        tuple(found for found in repositories if found.score > 0)[:top_k],
        tuple(collections[:top_k]),
    )


def _readable(model: Any, viewer: Viewer) -> dict[UUID, _Known]:
    return {
        source.pk: _Known(model.kind, source.pk, source.label, source.description, source.get_absolute_url())
        for source in model.objects.visible_to(viewer).order_by("pk")
    }


def _hold_own_words(known: _Known, question: Question) -> None:
    for name, text in (("name", known.label), ("description", known.description)):
        for language, terms in question.terms.items():
            if terms and text:
                known.hold(name, (terms[term.text] for term in analyze(text, language).terms if term.text in terms))


def _hold_leads(pool: Mapping[UUID, _Known], question: Question) -> None:
    asked = {term: unit for terms in question.terms.values() for term, unit in terms.items()}
    rows = SourceLead.objects.filter(source_id__in=list(pool), terms__overlap=list(asked))
    for source_id, terms in rows.values_list("source_id", "terms"):
        pool[source_id].hold("README", (asked[term] for term in terms if term in asked))


def _hold_statistics(pools: Mapping[str, Mapping[UUID, _Known]], scope: Scope, question: Question) -> None:
    """Terms in headings, texts, symbols and paths, from the statistics of the index: one statement a block."""
    by_number: dict[int, tuple[ScopedSource, bool]] = {}
    for source in scope.sources:
        by_number[source.number] = (source, False)
        if source.names:
            by_number[source.names] = (source, True)
    terms = sorted({term for known in question.terms.values() for term in known})
    if not by_number or not terms:
        return
    rows = fetch(
        Fragment(
            "SELECT number, term, sum(chunks)::bigint, sum(in_heading)::bigint, sum(in_path)::bigint "
            "FROM indexing_posting WHERE term = ANY(%s::text[]) AND number = ANY(%s::int[]) GROUP BY number, term",
            (terms, list(by_number)),
        )
    )
    for number, term, chunks, in_heading, in_path in rows:
        source, is_names = by_number[number]
        unit = question.terms.get(source.language, {}).get(term)
        known = pools[source.kind].get(source.id)
        if unit is None or known is None or chunks <= 0:
            continue
        if scope.block == "code":
            known.hold("symbols", [unit] if in_heading > 0 else [])
            known.hold("paths of code", [unit] if in_path > 0 else [])
        elif is_names or in_heading > 0:
            known.hold("headings", [unit])
        elif source.kind == Collection.kind:
            known.hold("text", [unit])


def _scored(pool: Mapping[UUID, _Known], question: Question) -> list[Route]:
    total = len(pool)
    df = dict.fromkeys(question.asked, 0)
    for known in pool.values():
        for unit in known.units:
            if unit in df:
                df[unit] += 1
    idf = {unit: math.log((total + 1) / (count + 1)) if count else 0.0 for unit, count in df.items()}
    somewhere = [unit for unit, count in df.items() if count]

    def share(units: set[int]) -> float:
        """Of the idf of all terms that are somewhere; of their number where all sources hold all of them."""
        whole = sum(idf[unit] for unit in somewhere)
        if whole:
            return sum(idf[unit] for unit in somewhere if unit in units) / whole
        return sum(unit in units for unit in somewhere) / len(somewhere) if somewhere else 0.0

    def word(unit: int) -> str:
        known = question.units[unit]
        return question.text[known.start : known.end]

    routes = []
    for known in pool.values():
        score = share(known.units) * (1 + LABEL_BONUS * share(known.fields.get("name", set())))
        score = round(min(1.0, score), DECIMALS)
        why = tuple(
            (name, tuple(dict.fromkeys(word(unit) for unit in sorted(units))))
            for name, units in sorted(known.fields.items())
        )
        routes.append(
            Route(known.kind, known.id, known.label, known.description, known.url, score, why, weak=score < WEAK)
        )
    routes.sort(key=lambda one: (-one.score, one.label, str(one.id)))
    return routes


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
