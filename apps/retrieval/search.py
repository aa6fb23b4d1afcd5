"""One search for page, API and agents (``retrieval.md`` 1.7): scope first, shape last.

Nothing that is computed here is kept for another request: what one reader may see is never another's answer.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from django.conf import settings
from django.db import DatabaseError, transaction

from apps.access.errors import BadRequest, Invalid
from apps.access.rest.cursors import read_cursor, write_cursor
from apps.indexing import dense, lexical, names
from apps.indexing.analyzer import analyze
from apps.indexing.embedding.backends import EmbedderUnavailable
from apps.indexing.models import EmbeddingProfile
from apps.indexing.questions import Question as Terms
from apps.indexing.questions import ask
from apps.indexing.scope import Scope, visible
from apps.indexing.serving import active_profile
from apps.indexing.statements import fetch, union
from apps.indexing.stores import all_stores
from apps.retrieval import emptiness
from apps.retrieval.facets import facets_of
from apps.retrieval.filters import narrow
from apps.retrieval.fusion import Place, Standing, boost, factor_of, fuse_places
from apps.retrieval.shelves import SHELVES, Candidate
from apps.retrieval.shelves import Found as Winner
from apps.retrieval.snippets import MAX_CHARS, MIN_CHARS, Match, snip
from apps.retrieval.values import (
    MAX_QUERY_CHARS,
    Answer,
    Degraded,
    Found,
    Hit,
    MatchedTerm,
    Question,
    SourcePlace,
    StreamName,
)

if TYPE_CHECKING:
    from apps.access.viewers import Viewer
    from apps.indexing.lexical import LexicalResult

SHOWN_COPIES = 5
MAX_LIMIT = 100
FIELD_WORDS = {"b": "text", "h": "heading", "p": "path"}


@dataclass(slots=True)
class Streams:
    """What the streams gave for one question inside one scope. Keys are refs."""

    scope: Scope
    terms: Terms
    lexical: LexicalResult | None = None
    dense: Sequence[dense.DenseHit] = ()
    names: names.NameResult = dataclasses.field(default_factory=lambda: names.NameResult(()))
    profile: EmbeddingProfile | None = None
    degraded: list[Degraded] = dataclasses.field(default_factory=list)
    capped: bool = False


@dataclass(slots=True)
class Fused:
    """The ordered list before anything is cut or shown."""

    order: list[Candidate]
    standings: Mapping[int, Standing]
    places: Mapping[int, dict[StreamName, tuple[Place, float]]]
    copies: Mapping[int, list[Candidate]]
    classes: Mapping[int, str]
    """How the query names the row's document or section, by ref."""


def search(*, viewer: Viewer, question: Question) -> Answer:
    """The answer to ``question`` for ``viewer``.

    Sources that the question names must have been looked up by the caller, who answers for absent ones. Raises Invalid
    for an empty query and values out of bounds, BadRequest ``stale_cursor``.
    """
    begun = time.perf_counter()
    question = _checked(question)
    stores = tuple(store for store in all_stores() if store.block == "docs")
    narrowing = narrow(question.filters, stores)
    scope = visible(
        viewer,
        block="docs",
        kinds=narrowing.source_kinds,
        sources=question.sources or None,
        conditions=narrowing.conditions,
    )
    if question.mode == "code":
        return _empty(Answer(question.query, (), 0, False, None, empty=emptiness.no_code()), question, begun)
    if not sum(source.chunks for source in scope.sources):
        return _empty(emptiness.without_text(viewer, question, scope), question, begun)
    streams = run_streams(scope, question.query)
    if streams.terms.only_common_words and not streams.names.rows:
        return _empty(emptiness.only_common_words(question), question, begun)
    absent = absent_words(streams)
    if all_absent(streams):
        # No word of the query is anywhere in scope: what is near in meaning is a suggestion, not an answer.
        return _empty(emptiness.words_absent(question, streams, absent), question, begun)
    fused = fuse_streams(streams)
    bound = _bound_to(question, scope, streams)
    start = _start(question, viewer, bound)
    page = fused.order[start : start + question.limit]
    end = start + len(page)
    answer = Answer(
        query=question.query,
        hits=tuple(_hits(streams, fused, page, question)),
        total=len(fused.order),
        capped=streams.capped,
        next_cursor=write_cursor([end], viewer=viewer, question=bound) if end < len(fused.order) else None,
        facets=facets_of(fused.order, question.filters, question.sources),
        degraded=tuple(streams.degraded),
        absent_words=tuple(absent),
        dropped_terms=len(streams.terms.left_out),
        profile=streams.profile.label if streams.profile else "",
    )
    if not fused.order:
        answer = emptiness.nothing_matched(answer, question, streams, absent)
    return _finished(answer, begun)


def run_streams(scope: Scope, query: str) -> Streams:
    """Words and meaning in one statement; when it fails, each under its own savepoint, the failing one left out."""
    limit = settings.COGRAPH.retrieval.candidates
    backend = lexical.backend()
    streams = Streams(scope, backend.limit(scope, ask(query, scope.languages)))
    named = names.statement(scope, query)
    if streams.terms.only_common_words:
        # Nothing but stop words can still be the exact name of a document, and nothing else.
        _ask_names(streams, fetch(named) if named is not None else [])
        return streams
    vector, look = _vector(streams, query, limit)
    profile = streams.profile
    parts = []
    if streams.terms.asked:
        parts.append(backend.statement(scope, streams.terms))
    if vector is not None and look is not None and profile is not None:
        parts.append(dense.statement(scope, profile, vector, limit, look))
    if named is not None:
        parts.append(named)
    if not parts:
        return streams
    try:
        with transaction.atomic():
            if look is not None:
                look.prepare()
            rows = fetch(union(parts))
        _rank(streams, rows, limit)
        _ask_names(streams, rows)
        if vector is not None and look is not None and not look.exact and profile is not None:
            streams.dense = dense.search(scope, profile, vector, limit) if len(streams.dense) < limit else streams.dense
    except DatabaseError:
        _one_by_one(streams, vector, limit)
    streams.capped = bool(streams.lexical and len(streams.lexical.hits) >= limit) or len(streams.dense) >= limit
    return streams


def _vector(streams: Streams, query: str, limit: int) -> tuple[Any, dense.Look | None]:
    """The vector of the query and how to look; nothing, and a word about it, when there is no embedder that answers."""
    streams.profile = active_profile()
    if streams.profile is None:
        return None, None
    try:
        return dense.embed_query(streams.profile, query), dense.choose(streams.scope, streams.profile, limit)
    except EmbedderUnavailable as problem:
        streams.degraded.append(Degraded("vectors", f"not used ({problem})"))
        return None, None


def _rank(streams: Streams, rows: Sequence[tuple[Any, ...]], limit: int) -> None:
    if streams.terms.asked:
        streams.lexical = lexical.backend().rank(streams.scope, streams.terms, rows, limit)
    if streams.profile is not None:
        streams.dense, _ = dense.rank(streams.profile, rows, limit)


def _ask_names(streams: Streams, rows: Sequence[tuple[Any, ...]]) -> None:
    """The name stream, under its own savepoint: it asks once more for the documents that may be meant."""
    try:
        with transaction.atomic():
            streams.names = names.rank(streams.scope, streams.terms, rows, streams.lexical)
    except DatabaseError as error:
        streams.degraded.append(Degraded("name", type(error).__name__))


def _one_by_one(streams: Streams, vector: Any, limit: int) -> None:
    for name in ("lexical", "dense", "name"):
        try:
            with transaction.atomic():
                if name == "lexical" and streams.terms.asked:
                    streams.lexical = lexical.search(streams.scope, streams.terms, limit)
                elif name == "dense" and vector is not None and streams.profile is not None:
                    streams.dense = dense.search(streams.scope, streams.profile, vector, limit)
                elif name == "name":
                    streams.names = names.search(streams.scope, streams.terms)
        except DatabaseError as error:
            streams.degraded.append(Degraded(name, type(error).__name__))


def fuse_streams(streams: Streams) -> Fused:
    """Candidates of all streams in their final order, copies collapsed."""
    weight = streams.profile.weight if streams.profile else 1.0
    limit = settings.COGRAPH.retrieval.candidates
    found: dict[int, dict[StreamName, tuple[float, float]]] = {}
    for lexical_hit in streams.lexical.hits if streams.lexical else ():
        found.setdefault(lexical_hit.ref, {})["lexical"] = (lexical_hit.score, 1.0)
    for dense_hit in streams.dense:
        found.setdefault(dense_hit.ref, {})["dense"] = (dense_hit.cosine, weight)
    named = [row for row in streams.names.rows if row.ref is not None]
    classes = {row.ref: row.name_class for row in named if row.ref is not None}
    for ref in classes:
        found.setdefault(ref, {})
    candidates = {
        candidate.ref: candidate
        for shelf in SHELVES.values()
        if any(source.store == shelf.store for source in streams.scope.sources)
        for candidate in shelf.candidates(streams.scope, list(found))
    }
    # A chunk may have gone between the two statements: it takes part in nothing.
    found = {ref: scores for ref, scores in found.items() if ref in candidates}
    if streams.names.drops_side:
        # Who names a document so clearly does not mean a fixture of the same name, unless its folder is spelled too.
        found = {
            ref: scores
            for ref, scores in found.items()
            if not candidates[ref].side or classes.get(ref) in {"spelled", "same_name"}
        }
    places: dict[int, dict[StreamName, tuple[Place, float]]] = {ref: {} for ref in found}
    scored: tuple[StreamName, ...] = ("lexical", "dense")
    for name in scored:
        in_stream = [ref for ref in found if name in found[ref]]
        in_stream.sort(key=lambda ref: (-found[ref][name][0], tie_break(candidates[ref])))
        for rank, ref in enumerate(in_stream[:limit], start=1):
            score, row_weight = found[ref][name]
            places[ref][name] = (Place(rank, row_weight), score)
    for rank, row in enumerate((row for row in named if row.ref in found), start=1):
        places[cast("int", row.ref)]["name"] = (Place(rank, row.weight), row.evidence)
    places = {ref: held for ref, held in places.items() if held}
    fused = fuse_places((ref, place) for ref, held in places.items() for place, _ in held.values())
    factors = {
        ref: factor_of(
            status=candidate.status,
            priority=candidate.priority,
            side=candidate.side,
            named=classes.get(ref) in {"spelled", "exact_name"},
        )
        for ref, candidate in candidates.items()
    }
    standings = boost(fused, {ref: candidates[ref].document_id for ref in fused}, factors)
    _in_order_of_names(standings, places, classes, candidates)
    ordered = sorted(
        (candidates[ref] for ref in standings),
        key=lambda one: (
            -standings[one.ref].final,
            -standings[one.ref].fused,
            not one.canonical,
            *tie_break(one),
        ),
    )
    order, copies = _without_copies(ordered)
    return Fused(order, standings, places, copies, classes)


def _in_order_of_names(
    standings: dict[int, Standing],
    places: Mapping[int, Mapping[StreamName, tuple[Place, float]]],
    classes: Mapping[int, str],
    candidates: Mapping[int, Candidate],
) -> None:
    """Who spells a file gets its sections in the order of the name stream: the file's own name, which stands in the
    text of some sections and not of others, says nothing about them. The places are the same, the sections change.
    """
    spelled: dict[object, list[int]] = {}
    for ref in standings:
        if classes.get(ref) in {"spelled", "exact_name"} and "name" in places[ref]:
            spelled.setdefault(candidates[ref].document_id, []).append(ref)
    for refs in spelled.values():
        best_first = sorted((standings[ref] for ref in refs), key=lambda one: (-one.final, -one.fused))
        by_name = sorted(refs, key=lambda ref: places[ref]["name"][0].rank)
        standings.update(zip(by_name, best_first, strict=True))


def tie_break(candidate: Candidate) -> tuple[str, str, str, int]:
    """Source, path, place: no part of an order depends on the ids of rows."""
    return (candidate.source_label, candidate.store, candidate.path, candidate.chunk_index)


def _without_copies(ordered: Sequence[Candidate]) -> tuple[list[Candidate], dict[int, list[Candidate]]]:
    first: dict[bytes, Candidate] = {}
    kept: list[Candidate] = []
    copies: dict[int, list[Candidate]] = {}
    for candidate in ordered:
        if candidate.copy_hash is not None:
            known = first.setdefault(candidate.copy_hash, candidate)
            if known is not candidate:
                copies.setdefault(known.ref, []).append(candidate)
                continue
        kept.append(candidate)
    return kept, copies


def _hits(streams: Streams, fused: Fused, page: Sequence[Candidate], question: Question) -> list[Hit]:
    winners = hydrate(streams, page, fused)
    hits: list[Hit] = []
    for candidate in page:
        winner = winners.get(candidate.chunk_id)
        if winner is not None:
            hits.append(_hit(streams, fused, candidate, winner, winners, question))
    return hits


def hydrate(streams: Streams, page: Sequence[Candidate], fused: Fused) -> dict[int, Winner]:
    """Text and freshness of the winners and of the copies that are shown with them, from the scope that found them."""
    wanted: dict[str, list[int]] = {}
    for candidate in page:
        for shown in (candidate, *fused.copies.get(candidate.ref, ())[:SHOWN_COPIES]):
            wanted.setdefault(shown.store, []).append(shown.chunk_id)
    return {
        winner.chunk_id: winner
        for store, ids in wanted.items()
        for winner in SHELVES[store].hydrate(streams.scope, ids, streams.profile)
    }


def _hit(
    streams: Streams,
    fused: Fused,
    candidate: Candidate,
    winner: Winner,
    winners: Mapping[int, Winner],
    question: Question,
) -> Hit:
    standing = fused.standings[candidate.ref]
    copies = fused.copies.get(candidate.ref, [])
    shown = [
        SourcePlace(winners[copy.chunk_id].source, copy.path, winners[copy.chunk_id].url)
        for copy in copies[:SHOWN_COPIES]
        if copy.chunk_id in winners
    ]
    matches = matches_in(streams.terms, winner.text, winner.language)
    idf = streams.lexical.idf if streams.lexical else {}
    snippet = snip(
        winner.text,
        matches,
        {str(unit): value for unit, value in idf.items()},
        chars=question.snippet_chars,
        first_line=winner.start_line,
        first_byte=winner.start_byte,
        body_start=body_start(winner.text),
    )
    return Hit(
        layer=winner.layer,
        chunk_id=winner.chunk_id,
        document_id=winner.document_id,
        source=winner.source,
        title=candidate.title,
        path=candidate.path,
        kind=candidate.kind,
        heading_path=winner.heading_path,
        anchor=winner.anchor,
        start_line=winner.start_line,
        end_line=winner.end_line,
        start_byte=winner.start_byte,
        end_byte=winner.end_byte,
        url=winner.url,
        chunk_url=f"/chunks/{winner.chunk_id}",
        snippet=snippet,
        tokens=math.ceil(len(winner.text.encode()) / 3),
        version=winner.version,
        text_time=winner.text_time,
        checked_time=winner.checked_time,
        stale_since=winner.stale_since,
        streams=_stream_places(streams, fused, candidate, winner),
        matched=_matched(streams, candidate),
        fused=standing.fused,
        page=standing.page,
        factor=standing.factor,
        final=standing.final,
        also_in=tuple(shown),
        also_in_more=len(copies) - len(shown),
        name_class=fused.classes.get(candidate.ref, ""),
    )


def _stream_places(streams: Streams, fused: Fused, candidate: Candidate, winner: Winner) -> dict[StreamName, Found]:
    held = fused.places[candidate.ref]
    places: dict[StreamName, Found] = {}
    if streams.lexical is not None:
        places["lexical"] = _found(held.get("lexical")) or Found(None, None, "not found")
    if streams.profile is not None:
        missing = Found(None, None, "not found" if winner.has_vector else "no vector yet")
        places["dense"] = _found(held.get("dense")) or missing
    if streams.names.rows:
        places["name"] = _found(held.get("name")) or Found(None, None, "not found")
    return places


def _found(place: tuple[Place, float] | None) -> Found | None:
    return Found(place[0].rank, place[1], "found", place[0].weight) if place is not None else None


def _matched(streams: Streams, candidate: Candidate) -> tuple[MatchedTerm, ...]:
    if streams.lexical is None:
        return ()
    hit = next((hit for hit in streams.lexical.hits if hit.ref == candidate.ref), None)
    if hit is None:
        return ()
    found: dict[str, dict[str, None]] = {}
    for unit, where in sorted(hit.fields.items()):
        known = streams.terms.units[unit]
        word = streams.terms.text[known.start : known.end]
        found.setdefault(word, {}).update(dict.fromkeys(FIELD_WORDS[sign] for sign in where))
    return tuple(MatchedTerm(word, tuple(fields)) for word, fields in found.items())


def matches_in(terms: Terms, text: str, language: str) -> list[Match]:
    """Where the terms of the query stand in a text, in order."""
    asked = terms.terms.get(language) or {}
    return [
        Match(term.start, term.end, str(asked[term.text]))
        for term in analyze(text, language).terms
        if term.text in asked
    ]


def body_start(text: str) -> int:
    """Where the text below its first heading begins."""
    if not text.startswith("#"):
        return 0
    end = text.find("\n")
    rest = end + 1 if end >= 0 else 0
    while rest < len(text) and text[rest] in "\n \t":
        rest += 1
    return rest if rest < len(text) else 0


def _words(terms: Terms) -> dict[str, list[int]]:
    """The words of the query as typed, each with its units; wholes stand for their words and are left out."""
    words: dict[str, list[int]] = {}
    for unit in terms.asked:
        known = terms.units[unit]
        if not known.whole:
            words.setdefault(terms.text[known.start : known.end], []).append(unit)
    return words


def all_absent(streams: Streams) -> bool:
    """Whether no word of the query stands anywhere in scope."""
    if streams.lexical is None or not streams.terms.asked:
        return False
    return len(absent_words(streams)) == len(_words(streams.terms))


def absent_words(streams: Streams) -> list[str]:
    """Words of the query that stand nowhere in scope."""
    if streams.lexical is None:
        return []
    df = streams.lexical.df
    return [word for word, units in _words(streams.terms).items() if not any(df.get(unit, 0) for unit in units)]


def _checked(question: Question) -> Question:
    query = question.query.replace("\0", " ").strip()
    if not query:
        raise Invalid("Ask something: the query is empty.", code="required", field="query")
    if len(query) > MAX_QUERY_CHARS:
        raise Invalid(
            f"A query has at most {MAX_QUERY_CHARS} characters; this one has {len(query)}.",
            code="out_of_range",
            field="query",
        )
    if not 1 <= question.limit <= MAX_LIMIT:
        raise Invalid(f"limit is 1 to {MAX_LIMIT}.", code="out_of_range", field="limit")
    if not MIN_CHARS <= question.snippet_chars <= MAX_CHARS:
        raise Invalid(f"snippet_chars is {MIN_CHARS} to {MAX_CHARS}.", code="out_of_range", field="snippet_chars")
    return dataclasses.replace(question, query=query)


def _bound_to(question: Question, scope: Scope, streams: Streams) -> dict[str, Any]:
    """What a cursor is good for: this question over exactly this state of the sources."""
    return {
        "query": question.query,
        "mode": question.mode,
        "sources": [f"{kind}:{id}" for kind, id in question.sources],
        "filters": question.filters.active,
        "state": [f"{source.number}:{source.version}:{source.generation}" for source in scope.sources],
        "profile": streams.profile.pk if streams.profile else None,
    }


def _start(question: Question, viewer: Viewer, bound: Mapping[str, Any]) -> int:
    position = read_cursor(question.cursor or "", viewer=viewer, question=bound)
    return int(position[0]) if position else 0


def _empty(answer: Answer, question: Question, begun: float) -> Answer:
    """An answer without rows has no further page, so a cursor cannot come from it."""
    if question.cursor:
        raise BadRequest(
            "This cursor belongs to another question. Begin again without one.", code="stale_cursor", field="cursor"
        )
    return _finished(answer, begun)


def _finished(answer: Answer, begun: float) -> Answer:
    return dataclasses.replace(answer, milliseconds=(time.perf_counter() - begun) * 1000)
