"""Headings to try when nothing was found: near in meaning where there are vectors, else near in letters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from apps.indexing.analyzer import fold
from apps.indexing.models import NamedDocument
from apps.indexing.names import refs_in
from apps.indexing.statements import Fragment, fetch
from apps.retrieval.shelf_reading import Wanted, candidates_of
from apps.retrieval.values import NearHeading
from apps.symbols.names import trigrams

if TYPE_CHECKING:
    from apps.indexing.scope import Scope
    from apps.retrieval.streams import Streams

SHOWN = 5
LEAST = 0.3
"""Similarity of two words by their letter triples, as in the symbol stream."""
MOST_WORDS = 8
MOST_TERMS = 2000
"""Rows of terms that begin like one word."""
MOST_DOCUMENTS = 200
BEGINNING = 2
"""Letters that a word and a heading share at least: seldom is the first one mistyped."""


def nearest(streams: Streams, absent: Sequence[str]) -> tuple[NearHeading, ...]:
    """Up to five headings in scope, one a section. ``absent`` are the words that stand nowhere."""
    return _in_meaning(streams) or _in_letters(streams.scope, absent)


def _in_meaning(streams: Streams) -> tuple[NearHeading, ...]:
    refs = [hit.ref for hit in streams.dense[: SHOWN * 4]]
    if not refs:
        return ()
    ((rows,), _) = candidates_of([Wanted(streams.scope, refs)])
    candidates = {candidate.ref: candidate for candidate in rows}
    found: dict[tuple[object, tuple[str, ...]], NearHeading] = {}
    for ref in refs:
        candidate = candidates.get(ref)
        if candidate is None or len(found) == SHOWN:
            continue
        found.setdefault(
            (candidate.document, candidate.heading_path),
            NearHeading(candidate.title, candidate.heading_path, f"/chunks/{candidate.chunk_id}"),
        )
    return tuple(found.values())


def _in_letters(scope: Scope, absent: Sequence[str]) -> tuple[NearHeading, ...]:
    """By the best likeness of a word of the title or heading to each of ``absent``. Two statements."""
    labels = {source.names: source.label for source in scope.sources if source.names}
    asked = {word: trigrams(word) for word in dict.fromkeys(map(fold, absent[:MOST_WORDS]))}
    asked = {word: triples for word, triples in asked.items() if len(word) > BEGINNING and triples}
    refs = _refs(list(labels), asked) if labels and asked else []
    found: list[tuple[tuple[object, ...], NearHeading]] = []
    for row in NamedDocument.objects.filter(ref__in=refs).only("number", "path", "title", "sections"):
        for place, (heading_path, chunk_id, *_) in enumerate(row.sections):
            held = [trigrams(word) for word in fold(" ".join((row.title, *heading_path[-1:]))).split()]
            worth = sum(
                best
                for triples in asked.values()
                if (best := max((_likeness(triples, one) for one in held), default=0.0)) >= LEAST
            )
            if worth:
                near = NearHeading(row.title, tuple(heading_path), f"/chunks/{chunk_id}")
                found.append(((-round(worth, 6), labels[row.number], row.path, place), near))
    return tuple(near for _, near in sorted(found, key=lambda one: one[0])[:SHOWN])


def _refs(numbers: list[int], asked: dict[str, set[str]]) -> list[int]:
    """Documents whose names or headings hold a term like one of ``asked``, the likest first."""
    begins = sorted({word[:BEGINNING] for word in asked})
    rows = fetch(
        Fragment(
            "SELECT p.* FROM unnest(%s::text[], %s::text[]) AS b(first, last) CROSS JOIN LATERAL "
            "(SELECT term, number, block::int, entries FROM indexing_posting WHERE number = ANY(%s::int[]) "
            "AND term >= b.first AND term < b.last ORDER BY term, number, block, segment LIMIT %s) p",
            (begins, [f"{begin}\U0010ffff" for begin in begins], numbers, MOST_TERMS),
        )
    )
    likeness: dict[str, float] = {}
    for term, *_ in rows:
        if term not in likeness:
            mine = trigrams(term)
            likeness[term] = max(_likeness(mine, triples) for triples in asked.values())
    near = sorted((row for row in rows if likeness[row[0]] >= LEAST), key=lambda row: (-likeness[row[0]], *row[:3]))
    return refs_in(near, MOST_DOCUMENTS)


def _likeness(one: set[str], other: set[str]) -> float:
    return len(one & other) / len(one | other) if one and other else 0.0
