"""The reranker that an operator may set (``retrieval.md`` 7.9): an order of the first rows, and nothing else.

``COGRAPH_RETRIEVAL__RERANKER`` is the dotted path of a function such as::

    def rerank(query: str, passages: Sequence[Passage]) -> Sequence[int]: ...

It gets the first 50 rows of each block and gives their places, counted from 0, the best first. None ships with the
product. Whatever goes wrong in it, the answer keeps the order that it had, and says so.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import connections
from django.utils.module_loading import import_string

from apps.retrieval.shelf_reading import winners_of
from apps.retrieval.values import Degraded

if TYPE_CHECKING:
    from apps.retrieval.ordering import Fused
    from apps.retrieval.shelf_values import Candidate
    from apps.retrieval.shelf_values import Found as Winner
    from apps.retrieval.streams import Streams

logger = logging.getLogger(__name__)

SEEN = 50
"""Rows of each block that a reranker sees."""
SECONDS = 2.0
"""Time for all blocks of a search together."""
MOST_LATE = 4
"""Calls that may still run after their time: with as many, no further one is begun."""
STREAM = "reranker"


@dataclass(frozen=True, slots=True)
class Passage:
    """A row as a reranker sees it."""

    title: str
    path: str
    heading_path: tuple[str, ...]
    text: str
    """The chunk, verbatim; of code the piece of the body that stands for the symbol. Empty for a bare document."""


Reranker = Callable[[str, Sequence[Passage]], Sequence[int]]


class _Unusable(Exception):
    """Why the order of a reranker is not used, in words for the reader of the answer."""


def reranked(asked: Sequence[Streams], found: Sequence[Fused]) -> list[Fused]:
    """Each block with its first rows in the order of the reranker, and with the texts that were read for it.

    Costs one statement where a reranker is set, else nothing.
    """
    path = settings.COGRAPH.retrieval.reranker
    if not path or not any(len(fused.order) > 1 for fused in found):
        return list(found)
    heads = [fused.order[:SEEN] for fused in found]
    texts = winners_of([(streams.scope, rows, streams.profile) for streams, rows in zip(asked, heads, strict=True)])
    until = time.monotonic() + SECONDS
    made = []
    for streams, fused, rows, known in zip(asked, found, heads, texts, strict=True):
        order: Sequence[int] = range(len(rows))
        if len(rows) > 1:
            try:
                order = _ask(path, streams.terms.text, [_passage(row, known) for row in rows], until)
            except _Unusable as problem:
                streams.degraded.append(Degraded(STREAM, str(problem)))
        made.append(_in_order(replace(fused, texts=known), order))
    return made


def _passage(row: Candidate, known: dict[int, Winner]) -> Passage:
    winner = known.get(row.ref)
    return Passage(row.title, row.path, row.heading_path, winner.text if winner else "")


def _in_order(fused: Fused, first: Sequence[int]) -> Fused:
    """The places keep their scores, the rows change: so the list that both blocks are merged to follows."""
    order = fused.order.at([*first, *range(len(first), len(fused.order))])
    index, count = fused.standings.index, len(first)
    fused.standings.exchange([index[row.ref] for row in order[:count]], [index[row.ref] for row in fused.order[:count]])
    return replace(fused, order=order)


_late = 0
_lock = threading.Lock()


def _ask(path: str, query: str, passages: Sequence[Passage], until: float) -> list[int]:
    """The order that the reranker gives. Raises _Unusable."""
    global _late
    answer: list[object] = []
    done = threading.Event()

    def work() -> None:
        global _late
        try:
            made: Reranker = import_string(path)
            answer.append(list(made(query, passages)))
        except Exception as problem:  # the operator's code may raise anything
            logger.warning("the reranker %s failed", path, exc_info=True)
            answer.append(problem)
        finally:
            with contextlib.suppress(Exception):
                connections.close_all()
            with _lock:
                _late -= 1
            done.set()

    with _lock:
        if _late >= MOST_LATE:
            raise _Unusable("earlier calls of it have not ended yet")
        _late += 1
    # A thread of its own, because nothing else can leave a call alone that takes too long.
    threading.Thread(target=work, daemon=True, name="reranker").start()
    if not done.wait(max(0.0, until - time.monotonic())):
        raise _Unusable(f"took longer than {SECONDS:g} s, so the usual order stands")
    (given,) = answer
    if isinstance(given, Exception):
        raise _Unusable(f"failed ({type(given).__name__}), so the usual order stands")
    order = [place for place in given if isinstance(place, int)] if isinstance(given, list) else []
    if sorted(order) != list(range(len(passages))) or len(order) != len(given):  # type: ignore[arg-type]
        raise _Unusable("dropped or repeated rows, so the usual order stands")
    return order
