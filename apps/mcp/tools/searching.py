"""Ranked passages: the one search of the portal, in the words of this door."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, cast

from apps.collections import catalogue as collections
from apps.mcp.bounds import beside, fenced, one_line
from apps.mcp.freshness import lines_of
from apps.mcp.replies import Call, Reply, list_within
from apps.mcp.tools.beside import beside_blocks, beside_meta
from apps.repos import catalogue as repos
from apps.retrieval.search import retrieve as ranked_blocks
from apps.retrieval.search import search
from apps.retrieval.values import Answer, Empty, Filters, Hit, Mode, Question

SHOWN_WORDS = 12
RELATED = 3
"""Passages beside a row of code."""
SHOWN_SYMBOLS = 3


def retrieve(call: Call) -> Reply:
    sources: list[Any] = []
    if call["repository"]:
        sources.append(call.repository())
    mode = "docs" if call["mode"] == "wiki" else call["mode"]
    question = Question(
        query=call["query"],
        mode=cast("Mode", mode),
        sources=tuple((source.kind, source.pk) for source in sources),
        filters=Filters(path=call["path"], since=call["since"], until=call["until"]),
        cursor=call["cursor"] or None,
        snippet_chars=call["snippet_chars"],
        explain=call["explain"],
        related=RELATED,
    )
    return answer_of(call, question, call["top_k"], sources, in_blocks=True)


def collection_search(call: Call) -> Reply:
    sources: list[Any] = []
    if call["collection"]:
        sources.append(call.collection())
        named = tuple((source.kind, source.pk) for source in sources)
    else:
        named = tuple(("collection", pk) for pk in collections.keys_of(call.viewer))
        if not named:
            empty = Empty("nothing_readable", "There is no collection that you can read.")
            return _nothing(call, Answer(call["query"], (), 0, False, None, empty=empty), [])
    question = Question(
        query=call["query"],
        mode="docs",
        sources=named,
        cursor=call["cursor"] or None,
        snippet_chars=call["snippet_chars"],
        explain=call["explain"],
    )
    return answer_of(call, question, call["top_k"], sources)


def answer_of(call: Call, question: Question, top_k: int, named: Sequence[Any], *, in_blocks: bool = False) -> Reply:
    """The answer to ``question`` in at most ``top_k`` items; ``in_blocks``: of documents and of code each. ``named``
    are the sources that it names."""
    asked: dict[int, Answer] = {}

    def answered(limit: int) -> Answer:
        if limit not in asked:
            asking = ranked_blocks if in_blocks else search
            asked[limit] = asking(viewer=call.viewer, question=dataclasses.replace(question, limit=limit))
        return asked[limit]

    def fetch(limit: int) -> tuple[list[Hit], int, str | None]:
        answer = answered(limit)
        return list(answer.hits), answer.total, answer.next_cursor

    answer = answered(top_k)
    around = beside_blocks(answer)
    listed = list_within(
        beside(call.room, around),
        top_k,
        fetch,
        lambda hit: hit_block(hit, explain=question.explain),
    )
    if not listed.items and not answer.already_rejected:
        return _nothing(call, answer, named)
    places = [one.place for one in answer.already_rejected] + [one.place for one in answer.neighbours]
    sources = [hit.source for hit in listed.items] + [place.source for place in places]
    shown = list(dict.fromkeys((source.kind, source.id) for source in sources))
    closing = [_count(len(listed.items), answer), *_warnings(answer)]
    return Reply(
        freshness=freshness_of(call, named, shown),
        blocks=[*listed.blocks, *around],
        closing=closing,
        next_cursor=listed.next_cursor,
        sources=[(hit.source.kind, hit.source.id) for hit in listed.items],
        meta={
            "returned": len(listed.items),
            "total": answer.total,
            "capped": answer.capped,
            "blocks": [{"name": block.name, "total": block.total} for block in answer.blocks],
            "items": [hit_meta(hit) for hit in listed.items],
            **beside_meta(answer),
            "vectors": answer.profile,
        },
    )


def freshness_of(call: Call, named: Sequence[Any], shown: Sequence[tuple[str, Any]]) -> list[str]:
    """Of the named sources, else of those that the answer shows, in their order."""
    if named:
        return lines_of(named, call.now)
    repositories = repos.with_state(call.viewer, [id_ for kind, id_ in shown if kind == "repository"])
    shelves = collections.with_ids(call.viewer, [id_ for kind, id_ in shown if kind == "collection"])
    found: list[Any] = [repositories.get(id_) or shelves.get(id_) for _, id_ in shown]
    return lines_of([source for source in found if source is not None], call.now)


def hit_block(hit: Hit, *, explain: bool = False) -> str:
    """Title, location, why, cost and the text, verbatim in its fence."""
    lines = [trail_of(hit.title, hit.heading_path)]
    source = hit.source.label if hit.source.kind == "repository" else f'collection "{one_line(hit.source.label, 80)}"'
    version = hit.version[:7]
    status = f" · {hit.status}" if hit.status and hit.status != "accepted" else ""
    lines.append(f"{one_line(hit.location, 400)} · {hit.layer} · {source} @ {version}{status}")
    if hit.replaced_by:
        lines.append(
            "replaced by: " + ", ".join(f"{one_line(page.title, 120)} ({page.uid})" for page in hit.replaced_by)
        )
    lines.append(f"why: {why(hit)} · score {hit.final:.4f} · {hit.tokens} tokens · chunk {hit.chunk_id}")
    if hit.source.kind == "collection":
        lines.append(f"collection {hit.source.id} · document {hit.document_id}")
    if hit.stale_since is not None:
        lines.append("note: this source is stale; see the first line.")
    if explain:
        streams = "; ".join(
            f"{name} {found.state}" + (f" rank {found.rank} score {found.score:.6f}" if found.rank else "")
            for name, found in hit.streams.items()
        )
        lines.append(f"explain: fused {hit.fused:.6f}; page {hit.page:.6f}; factor {hit.factor:.3f}; {streams}")
    if hit.also_in:
        copies = ", ".join(f"{place.source.label} {one_line(place.path)}" for place in hit.also_in)
        more = f" and {hit.also_in_more} more" if hit.also_in_more else ""
        lines.append(f"the same text also in: {copies}{more}")
    if hit.code:
        shown = hit.code[:SHOWN_SYMBOLS]
        named = ", ".join(f"{one_line(one.qualified_name, 80)} ({one_line(one.path, 100)})" for one in shown)
        lines.append(f"code named here: {named}")
    if hit.symbol is not None:
        lines.append(f"{hit.symbol.kind} node {hit.symbol.id}: {one_line(hit.symbol.signature, 300)}")
    for one in hit.related:
        place = one_line(one.path, 300) + (f"#{one.anchor}" if one.anchor else "")
        lines.append(f"documented in: {place}:{one.start_line}-{one.end_line}")
    snippet = hit.snippet
    if snippet.truncated:
        lines.append(f"lines {snippet.start_line}-{snippet.end_line} of the passage:")
    return "\n".join(lines) + "\n" + fenced(snippet.text)


def trail_of(title: str, headings: Sequence[str]) -> str:
    """Title and headings; a first heading that is the title is not said twice."""
    below = headings[1:] if headings and headings[0] == title else headings
    return " › ".join([one_line(title, 160), *(one_line(part, 80) for part in below)])


def why(hit: Hit) -> str:
    """Which stream found it at which rank, and which words matched where."""
    streams = ", ".join(f"{name} #{found.rank}" for name, found in hit.streams.items() if found.rank)
    words = ", ".join(f"{one_line(term.word, 40)} ({'/'.join(term.fields)})" for term in hit.matched[:SHOWN_WORDS])
    return "; ".join(part for part in (streams, f"words {words}" if words else "") if part) or "found"


def hit_meta(hit: Hit) -> dict[str, Any]:
    return {
        "chunk": str(hit.chunk_id),
        **({"node": str(hit.symbol.id), "qualified_name": hit.symbol.qualified_name} if hit.symbol else {}),
        "document": str(hit.document_id),
        "layer": hit.layer,
        "source": {"kind": hit.source.kind, "id": str(hit.source.id), "label": hit.source.label},
        "location": hit.location,
        **({"replaced_by": [page.uid for page in hit.replaced_by]} if hit.replaced_by else {}),
        "score": hit.final,
        "tokens": hit.tokens,
        "streams": {name: found.rank for name, found in hit.streams.items() if found.rank},
    }


def _count(returned: int, answer: Answer) -> str:
    capped = "+" if answer.capped else ""
    parts = ", ".join(f"{block.total} in {block.name}" for block in answer.blocks)
    split = f" ({parts}; the better part first)" if len(answer.blocks) > 1 else ""
    return f"{returned} of {answer.total}{capped} passages{split}."


def _warnings(answer: Answer) -> list[str]:
    told = [f"{one.stream}: {one.reason}" for one in answer.degraded]
    if not answer.profile and not any(one.stream in ("vectors", "dense") for one in answer.degraded):
        told.append("vectors: not used (no embedding profile is active)")
    if answer.absent_words:
        told.append(
            "not found anywhere: " + ", ".join(one_line(word, 40) for word in answer.absent_words[:SHOWN_WORDS])
        )
    if answer.dropped_terms:
        told.append(f"{answer.dropped_terms} words of the query over the limit of 64 were left out.")
    return told


def _nothing(call: Call, answer: Answer, named: Sequence[Any]) -> Reply:
    """Nothing found is an answer: why, and what to try."""
    empty = answer.empty
    reason = empty.reason if empty else "nothing_matched"
    message = empty.message if empty else "Nothing matches."
    closing = [f"0 results. reason: {reason}: {message}"]
    if empty and empty.words:
        closing.append("words: " + ", ".join(one_line(word, 40) for word in empty.words[:SHOWN_WORDS]))
    if empty and empty.filter:
        closing.append(f"filter: {empty.filter}")
    if answer.nearest:
        closing.append("nearest indexed headings:")
        for near in answer.nearest:
            chunk = near.url.rpartition("/")[2]
            closing.append(f"- {trail_of(near.title, near.heading_path)} · chunk {chunk}")
    closing += [f"{one.stream}: {one.reason}" for one in answer.degraded]
    return Reply(
        freshness=lines_of(named, call.now),
        closing=closing,
        meta={
            "returned": 0,
            "total": 0,
            "items": [],
            "reason": reason,
            "words": list(empty.words) if empty else [],
            "filter": empty.filter if empty else "",
        },
    )
