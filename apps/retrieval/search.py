"""One search for page, API and agents (``retrieval.md`` 1.7): scope first, shape last.

Nothing that is computed here is kept for another request: what one reader may see is never another's answer.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db.models import Q

from apps.access.errors import BadRequest, Invalid
from apps.access.rest.cursors import read_cursor, write_cursor
from apps.indexing import dense
from apps.indexing.scope import Scope, visible_blocks
from apps.indexing.stores import Block as BlockName
from apps.indexing.stores import all_stores
from apps.retrieval import emptiness
from apps.retrieval.beside import Beside
from apps.retrieval.beside_values import GraphBlocks
from apps.retrieval.blocks import blocks_of, merged
from apps.retrieval.facets import facets_of
from apps.retrieval.filters import narrow
from apps.retrieval.hits import hits_of
from apps.retrieval.snippets import MAX_CHARS, MIN_CHARS
from apps.retrieval.streams import Streams, absent_words, all_absent, riders_of, run_blocks
from apps.retrieval.values import MAX_QUERY_CHARS, Answer, BlockAnswer, Question

if TYPE_CHECKING:
    from apps.access.viewers import Viewer

MAX_LIMIT = 100
MAX_RELATED = 10
BLOCKS: Mapping[str, tuple[BlockName, ...]] = {"docs": ("docs",), "code": ("code",), "mixed": ("docs", "code")}


def search(*, viewer: Viewer, question: Question) -> Answer:
    """The answer to ``question`` for ``viewer`` as one list, the blocks merged.

    Sources that the question names must have been looked up by the caller, who answers for absent ones. Raises Invalid
    for an empty query and values out of bounds, BadRequest ``stale_cursor``.
    """
    return _answer(viewer, question, in_blocks=False)


def retrieve(*, viewer: Viewer, question: Question) -> Answer:
    """The same rows block by block, the better one first, each of at most ``question.limit`` rows. Raises as search."""
    return _answer(viewer, question, in_blocks=True)


def scopes_of(viewer: Viewer, question: Question) -> list[Scope]:
    """What the question may touch, by block: no filter adds anything."""
    blocks: dict[BlockName, frozenset[str] | None] = {}
    conditions: dict[str, Q] = {}
    for block in BLOCKS[question.mode]:
        narrowing = narrow(question.filters, tuple(store for store in all_stores() if store.block == block), block)
        blocks[block] = narrowing.source_kinds
        conditions |= narrowing.conditions
    return visible_blocks(
        viewer,
        blocks=blocks,
        sources=question.sources or None,
        conditions=conditions,
        riders=riders_of(question.query, blocks, conditions),
    )


def _answer(viewer: Viewer, question: Question, *, in_blocks: bool) -> Answer:
    begun = time.perf_counter()
    question = checked(question)
    scopes = scopes_of(viewer, question)
    filled = [scope for scope in scopes if sum(source.chunks for source in scope.sources)]
    if not filled:
        return _empty(emptiness.without_text(viewer, question), question, begun)
    asked = run_blocks(filled, question.query)
    if all(streams.terms.only_common_words and not streams.names.rows for streams in asked):
        return _empty(emptiness.only_common_words(question), question, begun)
    absent = _absent(asked)
    # No word of the query is anywhere in a block: what is near in meaning is a suggestion, not an answer.
    heard = [streams for streams in asked if not all_absent(streams) or streams.symbols or streams.names.rows]
    for streams in heard:
        if all_absent(streams):
            streams.dense = dense.NO_HITS
    if not heard:
        return _empty(emptiness.words_absent(question, asked, absent), question, begun)
    beside = Beside(viewer, question.filters)
    blocks = blocks_of(heard, beside.set_aside)
    total = sum(len(block.fused.order) for block in blocks)
    bound = _bound_to(question, filled, asked[0], in_blocks=in_blocks)
    start = _start(question, viewer, bound)
    end = start + question.limit
    if in_blocks:
        page = [(block, row) for block in blocks for row in block.fused.order[start:end]]
        more = any(len(block.fused.order) > end for block in blocks)
    else:
        page = merged(blocks, end)[start:]
        more = total > end
    # Once, on the first page of an answer.
    graph = beside.blocks() if start == 0 else GraphBlocks()
    answer = Answer(
        query=question.query,
        hits=tuple(
            hit._replace(replaced_by=graph.replaced[hit.document_id]) if hit.document_id in graph.replaced else hit
            for hit in hits_of(page, question)
        ),
        total=total,
        capped=any(block.streams.capped for block in blocks),
        next_cursor=write_cursor([end], viewer=viewer, question=bound) if more else None,
        previous_cursor=_before(start, question, viewer, bound),
        facets=facets_of([block.fused.order for block in blocks], question.filters, question.sources),
        degraded=tuple(one for streams in asked for one in streams.degraded),
        absent_words=tuple(absent),
        dropped_terms=max(len(streams.terms.left_out) for streams in asked),
        profile=asked[0].profile.label if asked[0].profile else "",
        blocks=tuple(
            BlockAnswer(block.streams.block, block.strength, len(block.fused.order), block.streams.capped)
            for block in blocks
        ),
        neighbours=graph.neighbours,
        already_rejected=graph.already_rejected,
    )
    if not total and not graph.already_rejected:
        answer = emptiness.nothing_matched(answer, question, asked, absent)
    return _finished(answer, begun)


def _absent(asked: Sequence[Streams]) -> list[str]:
    """Words of the query that stand in no block."""
    missing = [absent_words(streams) for streams in asked if streams.lexical is not None]
    return [word for word in missing[0] if all(word in words for words in missing)] if missing else []


def checked(question: Question) -> Question:
    query = question.query.replace("\0", " ").strip()
    if not query:
        raise Invalid("Ask something: the query is empty.", code="required", field="query")
    if len(query) > MAX_QUERY_CHARS:
        raise Invalid(
            f"A query has at most {MAX_QUERY_CHARS} characters; this one has {len(query)}.",
            code="out_of_range",
            field="query",
        )
    for name, value, low, high in (
        ("limit", question.limit, 1, MAX_LIMIT),
        ("snippet_chars", question.snippet_chars, MIN_CHARS, MAX_CHARS),
        ("related", question.related, 0, MAX_RELATED),
    ):
        if not low <= value <= high:
            raise Invalid(f"{name} is {low} to {high}.", code="out_of_range", field=name)
    return dataclasses.replace(question, query=query)


def _bound_to(question: Question, scopes: Sequence[Scope], streams: Streams, *, in_blocks: bool) -> dict[str, Any]:
    """What a cursor is good for: this question over exactly this state of the sources."""
    return {
        "query": question.query,
        "mode": question.mode,
        "blocks": in_blocks,
        "sources": [f"{kind}:{id}" for kind, id in question.sources],
        "filters": question.filters.active,
        "state": [
            f"{source.number}:{source.version}:{source.generation}" for scope in scopes for source in scope.sources
        ],
        "profile": streams.profile.pk if streams.profile else None,
        "reranker": settings.COGRAPH.retrieval.reranker,
    }


def _start(question: Question, viewer: Viewer, bound: Mapping[str, Any]) -> int:
    position = read_cursor(question.cursor or "", viewer=viewer, question=bound)
    return int(position[0]) if position else 0


def _before(start: int, question: Question, viewer: Viewer, bound: Mapping[str, Any]) -> str | None:
    """The cursor of the page before; the first page has none."""
    return write_cursor([start - question.limit], viewer=viewer, question=bound) if start > question.limit else None


def _empty(answer: Answer, question: Question, begun: float) -> Answer:
    """An answer without rows has no further page, so a cursor cannot come from it."""
    if question.cursor:
        raise BadRequest(
            "This cursor belongs to another question. Begin again without one.", code="stale_cursor", field="cursor"
        )
    return _finished(answer, begun)


def _finished(answer: Answer, begun: float) -> Answer:
    return dataclasses.replace(answer, milliseconds=(time.perf_counter() - begun) * 1000)
