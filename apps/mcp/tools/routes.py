"""Which sources are about a question."""

from __future__ import annotations

from typing import Any

from apps.collections import catalogue as collections
from apps.mcp.bounds import one_line
from apps.mcp.freshness import line_of
from apps.mcp.replies import Call, Reply
from apps.repos import catalogue as repos
from apps.retrieval.routing import Route, route

WHY_WORDS = 12
WHY_CHARS = 400


def route_question(call: Call) -> Reply:
    found = route(viewer=call.viewer, query=call["query"], top_k=call["top_k"])
    repositories = repos.with_state(call.viewer, [one.id for one in found.repositories])
    shelves = collections.with_ids(call.viewer, [one.id for one in found.collections])
    sources: dict[Any, Any] = {**repositories, **shelves}
    blocks = []
    for title, pool in (("repositories", found.repositories), ("collections", found.collections)):
        lines = [f"{title}:"] if pool else []
        lines += [_line(place, one, sources.get(one.id), call) for place, one in enumerate(pool, start=1)]
        blocks.append("\n".join(lines))
    shown = [*found.repositories, *found.collections]
    closing = []
    reason = ""
    if found.only_common_words:
        reason = "only_common_words"
        closing.append("0 sources. reason: only_common_words: add a word that says what it is about.")
    elif not shown:
        reason = "nothing_readable" if not repos.listed(call.viewer).exists() else "words_absent"
        words = {
            "nothing_readable": "there is no source that you can read.",
            "words_absent": "no repository that you can read holds any of these words, and there is no collection.",
        }
        closing.append(f"0 sources. reason: {reason}: {words[reason]}")
    strong = [one for one in shown if not one.weak]
    return Reply(
        blocks=[block for block in blocks if block],
        closing=closing,
        sources=[(one.kind, one.id) for one in strong],
        meta={
            "returned": len(shown),
            "total": len(shown),
            "reason": reason,
            "items": [
                {"kind": one.kind, "id": str(one.id), "label": one.label, "score": one.score, "weak": one.weak}
                for one in shown
            ],
        },
    )


def _line(place: int, one: Route, source: Any, call: Call) -> str:
    fresh = line_of(source, call.now) if source is not None else one_line(one.label)
    why = "; ".join(f"{name}: {', '.join(one_line(word, 40) for word in words[:WHY_WORDS])}" for name, words in one.why)
    why = one_line(why, WHY_CHARS)
    weak = " · weak" if one.weak else ""
    about = f"\n   {one_line(one.description, 200)}" if one.description else ""
    return f"{place}. {fresh}\n   score {one.score:.3f}{weak} · why: {why or 'no word of the question'}{about}"
