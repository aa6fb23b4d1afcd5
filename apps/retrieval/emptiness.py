"""Why an answer is empty, and what to try: never a blank page, never a hint at what is hidden."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from django.db.models import Q

from apps.access.sources import source_models
from apps.indexing.statements import Fragment, fetch, fragment_of, union
from apps.repos.models import Repository
from apps.retrieval.filters import narrow
from apps.retrieval.near_headings import nearest
from apps.retrieval.values import Answer, Empty, Filters, Question

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apps.access.viewers import Viewer
    from apps.retrieval.streams import Streams

WORD_CHARS = 60
"""Of a word that a message names."""


def only_common_words(question: Question) -> Answer:
    message = "Only common words were asked, such as “the” and “is”. Add a word that says what it is about."
    return _empty(question, Empty("only_common_words", message))


def without_text(viewer: Viewer, question: Question) -> Answer:
    """Nothing in scope holds any text: nothing readable, a filter that excludes all, or sources not synced yet."""
    if not any(model.objects.visible_to(viewer).exists() for model in source_models()):
        return _empty(question, Empty("nothing_readable", "There is nothing that you can read yet."))
    if question.filters.kinds or question.filters.language:
        name = "kinds" if question.filters.kinds else "language"
        return _empty(question, Empty("filters_too_narrow", f"The filter “{name}” leaves nothing.", filter=name))
    if stale := _stale(viewer, question):
        message = f"Nothing is indexed here, and the last syncs of {stale} failed: upstream may have moved on."
        return _empty(question, Empty("stale", message))
    if question.mode == "code":
        return _empty(question, Empty("not_indexed", "No code is indexed here."))
    return _empty(question, Empty("not_indexed", "Nothing is indexed here yet: the first sync has not finished."))


def _stale(viewer: Viewer, question: Question) -> str:
    """A repository among those that were asked which no sync has reached for long; none: empty."""
    rows: Any = Repository.objects.visible_to(viewer).with_state().filter(is_stale=True)
    if question.sources:
        rows = rows.filter(pk__in=[id_ for kind, id_ in question.sources if kind == Repository.kind])
    return rows.order_by("slug").values_list("slug", flat=True).first() or ""


def words_absent(question: Question, asked: Sequence[Streams], absent: Sequence[str]) -> Answer:
    """No word of the query occurs; near headings are offered."""
    words = ", ".join(f"“{word if len(word) <= WORD_CHARS else word[:WORD_CHARS] + '…'}”" for word in absent[:8])
    message = f"None of your words occurs in what you can read: {words}." if words else "No word was asked, only signs."
    answer = _empty(question, Empty("words_absent", message, words=tuple(absent)))
    first = asked[0]
    return dataclasses.replace(
        answer,
        absent_words=tuple(absent),
        nearest=nearest(first, absent),
        degraded=tuple(one for streams in asked for one in streams.degraded),
        profile=first.profile.label if first.profile else "",
    )


def nothing_matched(answer: Answer, question: Question, asked: Sequence[Streams], absent: Sequence[str]) -> Answer:
    """Words occur in scope, but no row is left: a filter took it, or nothing holds them."""
    if question.filters.active:
        name = _narrowest(question.filters, asked)
        empty = Empty("filters_too_narrow", f"The filter “{name}” leaves nothing that matches.", filter=name)
    elif absent:
        empty = Empty("words_absent", "Your words do not occur.", words=tuple(absent))
    else:
        empty = Empty("nothing_matched", "Nothing matches.")
    return dataclasses.replace(answer, empty=empty, nearest=nearest(asked[0], absent))


def _narrowest(filters: Filters, asked: Sequence[Streams]) -> str:
    """The filter that leaves the fewest passages by itself. One statement where there are several."""
    names = list(filters.active)
    if len(names) == 1:
        return names[0]
    parts = []
    for place, name in enumerate(names):
        alone = dataclasses.replace(Filters(), **{name: getattr(filters, name)})
        for streams in asked:
            scope = dataclasses.replace(streams.scope, conditions={})
            narrowing = narrow(alone, scope.stores, scope.block)
            for store in scope.stores:
                left = scope.chunks_of(store).filter(narrowing.conditions.get(store.name, Q()))
                rows = fragment_of(left.values("pk"))
                parts.append(Fragment(f"SELECT {place}, count(*) FROM ({rows.sql}) c", rows.params))  # noqa: S608
    counts = dict.fromkeys(range(len(names)), 0)
    for place, count in fetch(union(parts)):
        counts[place] += count
    return names[min(counts, key=lambda place: (counts[place], place))]


def _empty(question: Question, empty: Empty) -> Answer:
    return Answer(query=question.query, hits=(), total=0, capped=False, next_cursor=None, empty=empty)
