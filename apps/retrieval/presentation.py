"""An answer as the search page shows it: rows grouped by document, facets and filters as links, reasons in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import QueryDict

from apps.retrieval.evaluation.marks import Mark, row_of
from apps.retrieval.values import Answer, Facet, Found, Hit, StreamName

SHOWN = 3
"""Rows of one document before the rest is folded (``portal.md`` 14)."""

FILTERS = ("source", "kind", "path", "language", "tag", "type", "status", "since", "until")
SEVERAL = ("source", "kind")
"""Filters that may have several values; another value of the rest takes the place of the first."""
FILTER_WORDS = {
    "source": "source",
    "kind": "kind",
    "kinds": "kind",
    "path": "path",
    "language": "language",
    "tag": "tag",
    "type": "type",
    "status": "status",
    "since": "since",
    "until": "until",
}
STREAM_WORDS: dict[StreamName, str] = {
    "lexical": "words",
    "dense": "meaning",
    "symbol": "symbols",
    "name": "names and headings",
}
STATE_WORDS = {
    "found": "",
    "not found": "not found by this one",
    "no vector yet": "no vector yet",
    "not asked": "not asked for this query",
}


@dataclass(frozen=True, slots=True)
class StreamLine:
    """What one stream says about a row; ``words`` stands in place of rank and score."""

    name: str
    rank: int | None
    score: float | None
    weight: float
    words: str


def stream_lines(streams: Mapping[StreamName, Found]) -> list[StreamLine]:
    return [
        StreamLine(STREAM_WORDS[name], found.rank, found.score, found.weight, STATE_WORDS[found.state])
        for name, found in streams.items()
    ]


@dataclass(frozen=True, slots=True)
class Row:
    hit: Hit
    place: int
    """Place in the list, from 1."""
    marks: Sequence[Mark] = ()

    @property
    def streams(self) -> list[StreamLine]:
        return stream_lines(self.hit.streams)

    @property
    def trail(self) -> tuple[str, ...]:
        """The headings above the passage, without the title that stands before them."""
        headings = self.hit.heading_path
        return headings[1:] if headings[:1] == (self.hit.title,) else headings

    @property
    def is_code(self) -> bool:
        return self.hit.layer in ("code", "signature")


@dataclass(frozen=True, slots=True)
class Group:
    """The rows of one document, at the place of its best one."""

    first: Row
    more: Sequence[Row]
    folded: Sequence[Row]


def grouped(
    hits: Sequence[Hit], first_place: int = 1, marks: Mapping[str, Sequence[Mark]] | None = None
) -> list[Group]:
    """``marks``: what the reader may say of rows, by ``row_of``."""
    by_document: dict[object, list[Row]] = {}
    for place, hit in enumerate(hits, start=first_place):
        mine = marks.get(row_of(hit), ()) if marks else ()
        by_document.setdefault(hit.document_id, []).append(Row(hit, place, mine))
    return [Group(rows[0], tuple(rows[1:SHOWN]), tuple(rows[SHOWN:])) for rows in by_document.values()]


@dataclass(frozen=True, slots=True)
class Choice:
    label: str
    count: int
    active: bool
    href: str


@dataclass(frozen=True, slots=True)
class FacetBox:
    name: str
    label: str
    choices: Sequence[Choice]


@dataclass(frozen=True, slots=True)
class Chip:
    """A filter in force and the address without it."""

    words: str
    href: str


def address(params: QueryDict, **changes: str | Sequence[str] | None) -> str:
    """The query string of ``params`` with some of them changed; a new filter begins at the first page."""
    changed = params.copy()
    for name in ("cursor", *changes):
        changed.pop(name, None)
    for name, value in changes.items():
        changed.setlist(name, [value] if isinstance(value, str) else list(value or ()))
    pairs = [(name, value) for name, values in changed.lists() for value in values if value]
    return "?" + urlencode(pairs)


def facet_boxes(facets: Sequence[Facet], params: QueryDict) -> list[FacetBox]:
    """Facets as links that add or take away one value."""
    boxes = []
    for facet in facets:
        chosen = params.getlist(facet.name)
        choices = []
        for value in facet.values:
            active = value.active or value.value in chosen
            if facet.name not in SEVERAL:
                rest = [] if active else [value.value]
            else:
                rest = [one for one in chosen if one != value.value] if active else [*chosen, value.value]
            choices.append(Choice(value.label, value.count, active, address(params, **{facet.name: rest})))
        if choices:
            boxes.append(FacetBox(facet.name, facet.label, tuple(choices)))
    return boxes


def chips(params: QueryDict, labels: Mapping[tuple[str, str], str]) -> list[Chip]:
    """The filters in force as removable chips; ``labels`` names values that people know by another word."""
    found = []
    for name in FILTERS:
        values = [value for value in params.getlist(name) if value]
        for value in values:
            rest = [one for one in values if one != value]
            words = f"{FILTER_WORDS[name]}: {labels.get((name, value), value)}"
            found.append(Chip(words, address(params, **{name: rest})))
    return found


def facet_labels(facets: Sequence[Facet]) -> dict[tuple[str, str], str]:
    return {(facet.name, value.value): value.label for facet in facets for value in facet.values}


def total_words(answer: Answer) -> str:
    """``42 results``, ``1 result``, ``300+ results``, ``No results``: what the live region says."""
    if not answer.total:
        return "No results"
    if answer.total == 1 and not answer.capped:
        return "1 result"
    return f"{answer.total:,}{'+' if answer.capped else ''} results"


def kept(params: QueryDict) -> list[tuple[str, str]]:
    """Everything but the query and the place, as hidden fields: another query keeps the filters."""
    return [
        (name, value)
        for name, values in params.lists()
        if name in FILTERS or name == "mode"
        for value in values
        if value
    ]


def page_address(params: QueryDict, cursor: str) -> str:
    return address(params) + "&" + urlencode({"cursor": cursor})
