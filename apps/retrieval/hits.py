"""Winners as hits: text, snippet, and the reasons why each was found."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from apps.repos.code import around_hits
from apps.retrieval.marking import body_start, matches_in
from apps.retrieval.shelf_reading import winners_and
from apps.retrieval.snippets import Match, snip
from apps.retrieval.values import Found, Hit, Layer, MatchedTerm, RelatedPassage, SourcePlace, StreamName

if TYPE_CHECKING:
    from apps.indexing.statements import Fragment
    from apps.repos.code.around_hits import Around
    from apps.repos.code.related import RelatedChunk
    from apps.retrieval.blocks import Block
    from apps.retrieval.fusion import Place
    from apps.retrieval.ordering import Fused
    from apps.retrieval.shelf_values import Candidate
    from apps.retrieval.shelf_values import Found as Winner
    from apps.retrieval.streams import Streams
    from apps.retrieval.values import Question

SHOWN_COPIES = 5
PASSAGES = "repo_docs"
"""The store whose passages name symbols, and whose documents are named in code."""
FIELD_WORDS = {"b": "text", "h": "heading", "p": "path"}


def hits_of(page: Sequence[tuple[Block, Candidate]], question: Question) -> list[Hit]:
    """The hits of ``page``, whose rows may be of several blocks; a row that went meanwhile is left out."""
    blocks = list({block.name: block for block, _ in page}.values())
    rows = {block.name: [row for other, row in page if other is block] for block in blocks}
    wanted = {block.name: _with_copies(block.fused, rows[block.name]) for block in blocks}
    texts, told = winners_and(
        [
            (block.streams.scope, [row for row in wanted[block.name] if row.ref not in known], block.streams.profile)
            for block in blocks
            for known in (block.fused.texts,)
        ],
        around_hits.statement(
            nodes=[node for _, row in page if (node := row.node) is not None],
            chunks=[row.chunk_id for _, row in page if row.store == PASSAGES and row.chunk_id],
            documents=[UUID(one) for one in dict.fromkeys(row.document for _, row in page if row.store == PASSAGES)],
            passages=question.related,
        ),
    )
    winners = {block.name: {**block.fused.texts, **found} for block, found in zip(blocks, texts, strict=True)}
    around = around_hits.read(told)
    fields = {block.name: block.fused.fields_of(rows[block.name]) for block in blocks}
    weights = {block.name: _weights(block.streams) for block in blocks}
    return [
        _hit(
            block.streams,
            block.fused,
            row,
            winners[block.name],
            fields[block.name].get(row.ref, {}),
            weights[block.name],
            question,
            around,
        )
        for block, row in page
        if row.ref in winners[block.name]
    ]


def hydrate(streams: Streams, page: Sequence[Candidate], fused: Fused) -> dict[int, Winner]:
    """Text and freshness of the winners and of the copies that are shown with them, from the scope that found them."""
    (found,), _ = hydrate_with([(streams, page, fused)], None)
    return found


def hydrate_with(
    blocks: Sequence[tuple[Streams, Sequence[Candidate], Fused]], around: Fragment | None
) -> tuple[list[dict[int, Winner]], Around]:
    """The same for rows of several blocks, with what ``around`` asks of code, by one statement."""
    texts, told = winners_and(
        [
            (streams.scope, [row for row in _with_copies(fused, page) if row.ref not in fused.texts], streams.profile)
            for streams, page, fused in blocks
        ],
        around,
    )
    winners = [{**fused.texts, **found} for (_, _, fused), found in zip(blocks, texts, strict=True)]
    return winners, around_hits.read(told)


def _with_copies(fused: Fused, page: Sequence[Candidate]) -> list[Candidate]:
    return [shown for row in page for shown in (row, *fused.copies.get(row.ref, ())[:SHOWN_COPIES])]


def _hit(
    streams: Streams,
    fused: Fused,
    candidate: Candidate,
    winners: Mapping[int, Winner],
    fields: Mapping[int, str],
    weights: Mapping[str, float],
    question: Question,
    around: Around,
) -> Hit:
    winner = winners[candidate.ref]
    standing = fused.standings[candidate.ref]
    copies = fused.copies.get(candidate.ref, [])
    shown = [
        SourcePlace(winners[copy.ref].source, copy.path, winners[copy.ref].url)
        for copy in copies[:SHOWN_COPIES]
        if copy.ref in winners
    ]
    matches = matches_in(streams.terms, winner.text, winner.language)
    places = fused.places.get(candidate.ref, {})
    snippet = snip(
        winner.text,
        matches,
        weights,
        chars=question.snippet_chars,
        first_line=winner.start_line,
        first_byte=winner.start_byte,
        body_start=body_start(winner.text) if streams.block == "docs" else 0,
    )
    return Hit(
        layer=_layer(winner, matches, places),
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
        chunk_url=f"/chunks/{winner.chunk_id}" if winner.chunk_id else winner.url,
        snippet=snippet,
        tokens=math.ceil(len(winner.text.encode()) / 3),
        version=winner.version,
        text_time=winner.text_time,
        checked_time=winner.checked_time,
        stale_since=winner.stale_since,
        streams=stream_places(streams, places, has_vector=winner.has_vector),
        matched=_matched(streams, fields),
        fused=standing.fused,
        page=standing.page,
        factor=standing.factor,
        final=standing.final,
        also_in=tuple(shown),
        also_in_more=len(copies) - len(shown),
        name_class=fused.classes.get(candidate.ref, ""),
        evidence=fused.evidence.get(candidate.ref, 0.0),
        symbol=winner.symbol,
        related=_passages(around.passages.get(node, ())) if (node := candidate.node) else (),
        code=around.symbols.get(candidate.chunk_id, ()),
        literals=around.literals.get(winner.document_id, ()),
        status=candidate.status,
    )


def _weights(streams: Streams) -> dict[str, float]:
    """idf of the terms of the question, as snippets name them."""
    return {str(unit): value for unit, value in streams.lexical.idf.items()} if streams.lexical else {}


def _layer(winner: Winner, matches: Sequence[Match], places: Mapping[StreamName, object]) -> Layer:
    """Of code: ``signature`` when only the name, the signature or the comment above them holds what was asked."""
    if winner.symbol is None:
        return winner.layer
    told = winner.told_until - winner.start_line + 1
    border = 0
    for _ in range(max(told, 0)):
        following = winner.text.find("\n", border) + 1
        if not following:
            border = len(winner.text)
            break
        border = following
    if any(match.start >= border for match in matches) or (not matches and "dense" in places):
        return "code"
    return "signature"


def _passages(found: Sequence[RelatedChunk]) -> tuple[RelatedPassage, ...]:
    return tuple(
        RelatedPassage(
            chunk_id=one.chunk_id,
            document_id=one.document_id,
            title=one.title,
            path=one.path,
            heading_path=one.heading_path,
            anchor=one.anchor,
            start_line=one.start_line,
            end_line=one.end_line,
            url=one.address,
            snippet=one.snippet,
        )
        for one in found
    )


def stream_places(
    streams: Streams, held: Mapping[StreamName, tuple[Place, float]], *, has_vector: bool
) -> dict[StreamName, Found]:
    """Rank and score of a row in each stream that was asked, or why there is none."""
    places: dict[StreamName, Found] = {}
    if streams.lexical is not None:
        places["lexical"] = _found(held.get("lexical")) or Found(None, None, "not found")
    if streams.profile is not None:
        missing = Found(None, None, "not found" if has_vector else "no vector yet")
        places["dense"] = _found(held.get("dense")) or missing
    if streams.names.rows:
        places["name"] = _found(held.get("name")) or Found(None, None, "not found")
    if streams.symbols:
        places["symbol"] = _found(held.get("symbol")) or Found(None, None, "not found")
    return places


def _found(place: tuple[Place, float] | None) -> Found | None:
    return Found(place[0].rank, place[1], "found", place[0].weight) if place is not None else None


def _matched(streams: Streams, fields: Mapping[int, str]) -> tuple[MatchedTerm, ...]:
    found: dict[str, dict[str, None]] = {}
    for unit, where in sorted(fields.items()):
        known = streams.terms.units[unit]
        word = streams.terms.text[known.start : known.end]
        found.setdefault(word, {}).update(dict.fromkeys(FIELD_WORDS[sign] for sign in where))
    return tuple(MatchedTerm(word, tuple(fields)) for word, fields in found.items())
