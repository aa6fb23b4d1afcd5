"""Titles, headings and symbols that begin as the reader types, out of what he may read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from django.db.models import Q

from apps.access.errors import BadRequest
from apps.indexing.analyzer import fold, stop_words
from apps.indexing.models import NamedDocument
from apps.indexing.names import refs_in
from apps.indexing.scope import Scope, ScopedSource, visible
from apps.indexing.statements import Fragment, fetch
from apps.indexing.stores import get_store
from apps.indexing.tokens import is_unspaced
from apps.repos.models_code import CodeNode

if TYPE_CHECKING:
    from apps.access.viewers import Viewer

MIN_CHARS = 2
SHOWN = 10
STEM_CHARS = 3
"""Terms of names are stems, so a word half typed may be longer than its term: they are looked up by a short beginning,
and the text decides."""
PAIR_CHARS = 2
"""Of a script without spaces the terms are pairs of letters."""
MOST_TERMS = 2000
MOST_DOCUMENTS = 400
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Suggestion:
    """``detail`` says where it is: the path, or the qualified name of a symbol."""

    kind: Literal["title", "heading", "symbol"]
    text: str
    detail: str
    source: str
    url: str


@dataclass(frozen=True, slots=True)
class _Found:
    rank: tuple[Any, ...]
    kind: Literal["title", "heading"]
    text: str
    source: ScopedSource
    document: UUID
    path: str
    chunk: int | None


def suggest(viewer: Viewer, text: str) -> list[Suggestion]:
    """At most ten. Raises BadRequest below two characters."""
    text = text.replace("\0", " ").strip()
    if len(text) < MIN_CHARS:
        raise BadRequest(f"Type at least {MIN_CHARS} characters.", code="out_of_range", field="q")
    words = _WORD.findall(fold(text))
    named = _named(visible(viewer, block="docs"), words) if words else []
    symbols = _symbols(viewer, text)
    # Names of documents first, yet a symbol that is typed exactly is not crowded out.
    room = SHOWN - min(len(symbols), max(SHOWN - len(named), 3))
    return [*_addressed(named[:room]), *symbols][:SHOWN]


def _named(scope: Scope, words: Sequence[str]) -> list[_Found]:
    sources = {source.names: source for source in scope.sources if source.names}
    if not sources:
        return []
    found: dict[tuple[str, str, UUID], _Found] = {}
    for row in NamedDocument.objects.filter(ref__in=_refs(list(sources), _telling(words, scope))).only(
        "number", "document_id", "path", "title", "sections", "side", "depth"
    ):
        source = sources[row.number]
        for kind, text, chunk in _names_of(row):
            place = _place(fold(text), words)
            if place is None:
                continue
            rank = (place, row.side, kind != "title", len(text), source.label, row.path, text)
            one = _Found(rank, kind, text, source, row.document_id, row.path, chunk)
            found.setdefault((kind, text, row.document_id), one)
    return sorted(found.values(), key=lambda one: one.rank)


def _telling(words: Sequence[str], scope: Scope) -> str:
    """The longest word typed; a stop word, which has no terms, only where there is no other."""
    small = frozenset[str]().union(*(stop_words(language) for language in scope.languages))
    return max(words, key=lambda word: (word not in small, len(word)))


def _refs(numbers: list[int], word: str) -> list[int]:
    """Documents whose names or headings hold a term that begins like ``word``."""
    start = word[: PAIR_CHARS if is_unspaced(word) else STEM_CHARS]
    rows = fetch(
        Fragment(
            "SELECT term, number, block::int, entries FROM indexing_posting "
            "WHERE number = ANY(%s::int[]) AND term >= %s AND term < %s "
            "ORDER BY indexing_posting.term, number, indexing_posting.block, segment LIMIT %s",
            (numbers, start, start + "\U0010ffff", MOST_TERMS),
        )
    )
    rows.sort(key=lambda row: (-_shared(row[0], word), row[0], row[1], row[2]))
    return refs_in(rows, MOST_DOCUMENTS)


def _shared(term: str, word: str) -> int:
    """How many letters both begin with."""
    return next((at for at, (a, b) in enumerate(zip(term, word, strict=False)) if a != b), min(len(term), len(word)))


def _names_of(row: NamedDocument) -> Iterator[tuple[Literal["title", "heading"], str, int | None]]:
    title = row.title or row.path.rpartition("/")[2]
    yield "title", title, None
    for heading_path, chunk_id, *_ in row.sections:
        if heading_path and heading_path[-1] != title:
            yield "heading", heading_path[-1], chunk_id


def _place(text: str, words: Sequence[str]) -> int | None:
    """0 when the text begins with what was typed, 1 when its words follow somewhere; None when one is not there."""
    held = _WORD.findall(text)
    complete = len(words) - 1
    if held[:complete] == list(words[:-1]) and len(held) > complete and held[complete].startswith(words[-1]):
        return 0
    if any(word not in held and not _inside(word, held) for word in words[:-1]):
        return None
    return 1 if any(one.startswith(words[-1]) for one in held) or _inside(words[-1], held) else None


def _inside(word: str, held: Sequence[str]) -> bool:
    """Whether a word of a script without spaces stands within one of ``held``: nothing shows where it begins."""
    return is_unspaced(word) and any(word in one for one in held)


def _addressed(found: Sequence[_Found]) -> list[Suggestion]:
    """With the addresses of documents and sections: two queries for each store."""
    urls: dict[tuple[str, UUID], str] = {}
    anchors: dict[int, str] = {}
    for name in {one.source.store for one in found}:
        store = get_store(name)
        here = [one for one in found if one.source.store == name]
        model: Any = store.model._meta.get_field(store.document_field).related_model
        for document in model._default_manager.filter(pk__in={one.document for one in here}).select_related(
            store.source_field
        ):
            urls[name, document.pk] = document.get_absolute_url()
        chunks = store.model._default_manager.filter(pk__in=[one.chunk for one in here if one.chunk])
        anchors.update(chunks.values_list("pk", "section_anchor"))
    return [
        Suggestion(
            kind=one.kind,
            text=one.text,
            detail=one.path,
            source=one.source.label,
            url=urls[one.source.store, one.document]
            + (f"#{anchors[one.chunk]}" if one.chunk and anchors.get(one.chunk) else ""),
        )
        for one in found
        if (one.source.store, one.document) in urls
    ]


def _symbols(viewer: Viewer, text: str) -> list[Suggestion]:
    """Symbols whose name begins so, as typed or with a capital."""
    if not text.isidentifier():
        return []
    begins = Q(name__startswith=text) | Q(name__startswith=text[:1].upper() + text[1:])
    rows = (
        CodeNode.objects.visible_to(viewer)
        .filter(begins, test=False)
        .select_related("repository")
        .only("name", "qualified_name", "repository__slug")
        .order_by("name", "qualified_name", "pk")[:SHOWN]
    )
    return [
        Suggestion("symbol", row.name, row.qualified_name, row.repository.slug, row.get_absolute_url()) for row in rows
    ]
