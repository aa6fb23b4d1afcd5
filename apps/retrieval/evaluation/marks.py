"""“Answers this”: a writer says of a result that it answers the question (``retrieval.md`` 15.2).

Sets belong to administrators. A mark is a judgement of the section and one of the document that holds it; it shows to
the readers of its source only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import transaction

from apps.access.errors import Forbidden, Invalid, NotFound
from apps.access.rules import is_signed_in
from apps.access.sources import source_model
from apps.repos.models import Repository
from apps.repos.models_code import CodeNode
from apps.retrieval.chunk_reading import read_chunk
from apps.retrieval.models_evaluation import EvaluationQuery, EvaluationSet, Judgement, Level

if TYPE_CHECKING:
    from apps.access.viewers import Viewer
    from apps.retrieval.values import Hit

MOST_SETS = 10
KEY_CHARS = 200
MAX_DIGITS = 19


@dataclass(frozen=True, slots=True)
class Mark:
    """A set in which the reader may say that ``row`` answers the question, and whether it was said."""

    set_id: UUID
    set_name: str
    row: str
    """``chunk:ID`` or ``node:UUID``."""
    given: bool


@dataclass(frozen=True, slots=True)
class _Place:
    source_kind: str
    source_id: UUID
    document_id: UUID
    path: str
    tail: tuple[str, ...]
    """The headings above the section, or the qualified name of a symbol."""

    @property
    def levels(self) -> tuple[tuple[Level, list[str]], ...]:
        return (Level.SECTION, list(self.tail)), (Level.PAGE, [])


def offered(viewer: Viewer, query: str, hits: Sequence[Hit]) -> Mapping[str, tuple[Mark, ...]]:
    """What the viewer may mark, by the name of the row (``row_of``): rows of sources that he may write to."""
    if not hits or not is_signed_in(viewer):
        return {}
    sets = list(_sets()[:MOST_SETS])
    writable = _writable(viewer, {(hit.source.kind, hit.source.id) for hit in hits}) if sets else set()
    if not writable:
        return {}
    judged = Judgement.objects.filter(query__set__in=sets, query__key=_key(query), level=Level.SECTION)
    seen: Any = judged.visible_to(viewer).values_list("query__set", "document_id", "heading_path")
    given = {(set_, document, tuple(tail)) for set_, document, tail in seen}
    found: dict[str, tuple[Mark, ...]] = {}
    for hit in hits:
        row = row_of(hit)
        tail = (hit.symbol.qualified_name,) if hit.symbol else hit.heading_path
        if row and (hit.source.kind, hit.source.id) in writable:
            found[row] = tuple(
                Mark(one.pk, one.name, row, (one.pk, hit.document_id, tail) in given)
                for one in sets
                if one.block == hit.block
            )
    return found


def row_of(hit: Hit) -> str:
    """How a mark names a row; empty for a document without text, which has no section to be marked."""
    if hit.symbol is not None:
        return f"node:{hit.symbol.id}"
    return f"chunk:{hit.chunk_id}" if hit.chunk_id else ""


def mark(*, by: Viewer, set_id: str, query: str, row: str, given: bool) -> Mark:
    """Says, or takes back, that ``row`` answers ``query``.

    Raises Invalid for an empty query, NotFound alike for hidden and for absent rows and sets, Forbidden where the
    source may be read and not written.
    """
    query = query.replace("\0", " ").strip()
    if not query:
        raise Invalid("There is no question to answer.", code="required", field="q")
    set_ = _sets().filter(pk=_uuid(set_id)).first()
    if set_ is None:
        raise NotFound
    place = _place(by, row)
    if (set_.block == "code") != row.startswith("node:"):
        raise Invalid(f"“{set_}” takes {set_.get_block_display()} only.", field="set")
    if not _writable(by, {(place.source_kind, place.source_id)}):
        raise Forbidden
    with transaction.atomic():
        if given:
            asked, _ = EvaluationQuery.objects.get_or_create(set=set_, key=_key(query), defaults={"text": query})
            for level, tail in place.levels:
                Judgement.objects.get_or_create(
                    query=asked,
                    level=level,
                    target="",
                    document_id=place.document_id,
                    heading_path=tail,
                    defaults={"source_kind": place.source_kind, "source_id": place.source_id, "path": place.path},
                )
        else:
            _take_back(set_, _key(query), place)
    return Mark(set_.pk, set_.name, row, given)


def _take_back(set_: EvaluationSet, key: str, place: _Place) -> None:
    mine = Judgement.objects.filter(query__set=set_, query__key=key, document_id=place.document_id)
    mine.filter(level=Level.SECTION, heading_path=list(place.tail)).delete()
    # The document answers as long as another of its sections does.
    if not mine.filter(level=Level.SECTION).exists():
        mine.delete()
    EvaluationQuery.objects.filter(set=set_, key=key, judgements=None).delete()


def _sets() -> Any:
    """Sets that are made of marks; imported ones are judged by their files."""
    return EvaluationSet.objects.filter(collection_id=None)


def _key(query: str) -> str:
    return query if len(query) <= KEY_CHARS else hashlib.sha256(query.encode()).hexdigest()


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise NotFound from None


def _writable(viewer: Viewer, keys: set[tuple[str, UUID]]) -> set[tuple[str, UUID]]:
    found: set[tuple[str, UUID]] = set()
    for kind in sorted({kind for kind, _ in keys}):
        rows = source_model(kind).objects.writable_by(viewer).filter(pk__in=[id_ for of, id_ in keys if of == kind])
        found |= {(kind, id_) for id_ in rows.values_list("pk", flat=True)}
    return found


def _place(viewer: Viewer, row: str) -> _Place:
    kind, _, name = row.partition(":")
    if kind == "node":
        node = CodeNode.objects.visible_to(viewer).select_related("file").filter(pk=_uuid(name)).first()
        if node is None:
            raise NotFound
        return _Place(Repository.kind, node.repository_id, node.file_id, node.file.path, (node.qualified_name,))
    if kind != "chunk" or not name.isdecimal() or len(name) > MAX_DIGITS:
        raise NotFound
    view = read_chunk(viewer, int(name))
    return _Place(view.source.kind, view.source.pk, view.document.pk, view.path, tuple(view.chunk.heading_path))
