"""Why an answer is empty, and what to try: never a blank page, never a hint at what is hidden."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from apps.access.sources import source_models
from apps.retrieval.shelf_reading import Wanted, candidates_of
from apps.retrieval.values import Answer, Empty, NearHeading, Question

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apps.access.viewers import Viewer
    from apps.retrieval.streams import Streams

NEAREST = 5


def only_common_words(question: Question) -> Answer:
    message = "Only common words were asked, such as “the” and “is”. Add a word that says what it is about."
    return _empty(question, Empty("only_common_words", message))


def without_text(viewer: Viewer, question: Question) -> Answer:
    """Nothing in scope holds any text: nothing readable, a filter that excludes all, or sources not synced yet."""
    if question.filters.kinds or question.filters.language:
        name = "kinds" if question.filters.kinds else "language"
        return _empty(question, Empty("filters_too_narrow", f"The filter “{name}” leaves nothing.", filter=name))
    if not any(model.objects.visible_to(viewer).exists() for model in source_models()):
        return _empty(question, Empty("nothing_readable", "There is nothing that you can read yet."))
    if question.mode == "code":
        return _empty(question, Empty("not_indexed", "No code is indexed here."))
    return _empty(question, Empty("not_indexed", "Nothing is indexed here yet: the first sync has not finished."))


def words_absent(question: Question, streams: Streams, absent: Sequence[str]) -> Answer:
    """No word of the query occurs; headings near in meaning are offered."""
    words = ", ".join(f"“{word}”" for word in absent[:8])
    answer = _empty(
        question,
        Empty("words_absent", f"None of your words occurs in what you can read: {words}.", words=tuple(absent)),
    )
    return dataclasses.replace(
        answer,
        absent_words=tuple(absent),
        nearest=nearest(streams),
        degraded=tuple(streams.degraded),
        profile=streams.profile.label if streams.profile else "",
    )


def nothing_matched(answer: Answer, question: Question, streams: Streams, absent: Sequence[str]) -> Answer:
    """Words occur in scope, but no row is left: a filter took it, or nothing holds them."""
    if question.filters.active:
        name = next(iter(question.filters.active))
        empty = Empty("filters_too_narrow", f"The filter “{name}” leaves nothing that matches.", filter=name)
    elif absent:
        empty = Empty("words_absent", "Your words do not occur.", words=tuple(absent))
    else:
        empty = Empty("nothing_matched", "Nothing matches.")
    return dataclasses.replace(answer, empty=empty, nearest=nearest(streams))


def nearest(streams: Streams) -> tuple[NearHeading, ...]:
    """Up to five headings whose sections are near in meaning, one a section."""
    refs = [hit.ref for hit in streams.dense[: NEAREST * 4]]
    if not refs:
        return ()
    ((rows,), _) = candidates_of([Wanted(streams.scope, refs)])
    candidates = {candidate.ref: candidate for candidate in rows}
    found: dict[tuple[object, tuple[str, ...]], NearHeading] = {}
    for ref in refs:
        candidate = candidates.get(ref)
        if candidate is None or len(found) == NEAREST:
            continue
        found.setdefault(
            (candidate.document, candidate.heading_path),
            NearHeading(candidate.title, candidate.heading_path, f"/chunks/{candidate.chunk_id}"),
        )
    return tuple(found.values())


def _empty(question: Question, empty: Empty) -> Answer:
    return Answer(query=question.query, hits=(), total=0, capped=False, next_cursor=None, empty=empty)
