"""The rows behind the name stream, kept with the documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from apps.indexing import naming, postings
from apps.indexing.analyzer import fold, fresh_lexicon
from apps.indexing.arrays import update_values
from apps.indexing.copying import copy_values
from apps.indexing.entries import lock_entry
from apps.indexing.fields import Piece
from apps.indexing.models import NAMES_SUFFIX as SUFFIX
from apps.indexing.models import SLOT_BITS, IndexedSource, NamedDocument

if TYPE_CHECKING:
    from apps.indexing.chunks import DocumentText
    from apps.indexing.stores import ChunkStore


class KnownNames(NamedTuple):
    """What the postings of a document's names were made of."""

    ref: int
    path: str
    title: str
    aliases: Sequence[str]
    side: bool
    sections: list[list[Any]]
    """As ``NamedDocument`` has them."""


def store_names(
    entry: IndexedSource,
    old: Mapping[UUID, KnownNames],
    documents: Sequence[DocumentText],
    ids: Sequence[Sequence[tuple[int, int]]],
) -> bool:
    """Makes the named rows of ``documents`` those given; ``ids`` are id and ref of each one's chunks, in order.

    ``entry``, that of the names, is locked; the caller saves it if this returns True.
    """
    entered: list[Piece] = []
    left: list[Piece] = []
    rows: list[NamedDocument] = []
    same: list[NamedDocument] = []
    for document, chunk_ids in zip(documents, ids, strict=True):
        row = _row(entry, document, chunk_ids)
        known = old.get(document.document_id)
        if known is not None and _piece(known) == _piece(row, slot=postings.slot_of(known.ref)):
            if known.sections != row.sections or known.side != row.side:
                row.ref = known.ref
                same.append(row)
            continue
        row.ref = entry.number << SLOT_BITS | entry.next_slot
        entry.next_slot += 1
        entered.append(_piece(row))
        rows.append(row)
        if known is not None:
            left.append(_piece(known))
    if left:
        gone = [row.document_id for row in rows if row.document_id in old]
        NamedDocument.objects.filter(number=entry.number, document_id__in=gone).delete()
    _copy(rows)
    update_values("indexing_nameddocument", _SAME_TERMS, [_values_of_same(row) for row in same])
    if entered or left:
        postings.change("docs", entry, entered=entered, left=left)
    return bool(entered or left)


def remove_names(store: ChunkStore, source_id: UUID, document_ids: Sequence[UUID]) -> None:
    entry = IndexedSource.objects.select_for_update().filter(store=store.name + SUFFIX, source_id=source_id).first()
    if entry is None:
        return
    rows = NamedDocument.objects.filter(number=entry.number, document_id__in=document_ids)
    left = [_piece(row) for row in rows]
    if left:
        rows.delete()
        postings.change("docs", entry, entered=(), left=left)
        entry.save()


def rebuild_names(store: ChunkStore, source_id: UUID, language: str) -> None:
    """All postings of names anew, for another language or analyzer."""
    entry = _locked(store, source_id, language)
    rows = list(NamedDocument.objects.filter(number=entry.number).order_by("path"))
    ids = [section[1] for row in rows for section in row.sections]
    refs = dict(store.model._default_manager.filter(id__in=ids).values_list("id", "ref"))
    NamedDocument.objects.filter(number=entry.number).delete()
    postings.forget(entry, language)
    for slot, row in enumerate(rows):
        row.ref = entry.number << SLOT_BITS | slot
        row.sections = [[path, id_, refs[id_], *lines] for path, id_, _, *lines in row.sections]
        _describe(row, language)
    _copy(rows)
    entry.next_slot = len(rows)
    if rows:
        postings.change("docs", entry, entered=[_piece(row) for row in rows], left=())
    entry.save()


_COLUMNS = (
    ("ref", "int8"),
    ("number", "int4"),
    ("document_id", "uuid"),
    ("path", "text"),
    ("title", "text"),
    ("aliases", "text[]"),
    ("side", "bool"),
    ("stem", "text"),
    ("capital", "bool"),
    ("depth", "int2"),
    ("folded", "text[]"),
    ("terms", "text[]"),
    ("sections", "jsonb"),
)


def _copy(rows: Sequence[NamedDocument]) -> None:
    copy_values("indexing_nameddocument", _COLUMNS, [_values(row) for row in rows])


def _locked(store: ChunkStore, source_id: UUID, language: str) -> IndexedSource:
    return lock_entry(store.name + SUFFIX, store.source_kind, source_id, language=language)


_SAME_TERMS = tuple(
    column for column in _COLUMNS if column[0] not in {"number", "document_id", "path", "stem", "capital", "depth"}
)
"""Of a row whose postings stay: its reference, and what may change."""
_values = attrgetter(*(name for name, _ in _COLUMNS))
_values_of_same = attrgetter(*(name for name, _ in _SAME_TERMS))


def _row(entry: IndexedSource, document: DocumentText, chunk_ids: Sequence[tuple[int, int]]) -> NamedDocument:
    stem = naming.stem_of(document.path)
    row = NamedDocument(
        number=entry.number,
        document_id=document.document_id,
        path=document.path,
        title=document.title,
        aliases=list(document.aliases),
        side=document.side,
        stem=fold(stem),
        capital=stem.isupper(),
        depth=document.path.count("/"),
        sections=_sections(document, chunk_ids),
    )
    _describe(row, entry.language)
    return row


def _describe(row: NamedDocument, language: str) -> None:
    """Fills in what depends on the language: terms, and names of nothing but common words."""
    lexicon = fresh_lexicon(language)
    headings = [path[-1] for path, *_ in row.sections if path]
    names = [name for name in (naming.stem_of(row.path), row.title, *row.aliases, *headings) if name]
    row.terms = sorted(lexicon.word_terms("\n".join((row.path, *names))))
    row.folded = sorted({fold(name)[:200] for name in names if not lexicon.word_terms(name)})


def _sections(document: DocumentText, chunk_ids: Sequence[tuple[int, int]]) -> list[list[Any]]:
    """Sections with text of their own, in file order; the end of one is the end of its last sub-section."""
    found: list[list[Any]] = []
    open_: list[list[Any]] = []
    before: tuple[list[str], str] | None = None
    for chunk, (chunk_id, ref) in zip(document.chunks, chunk_ids, strict=True):
        here = (list(chunk.heading_path), chunk.section_anchor)
        if here != before:
            while open_ and (not open_[-1][0] or here[0][: len(open_[-1][0])] != open_[-1][0]):
                open_.pop()
            open_.append([here[0], chunk_id, ref, chunk.start_line, chunk.end_line])
            found.append(open_[-1])
            before = here
        for section in open_:
            section[4] = max(section[4], chunk.end_line)
    return found


def _piece(row: NamedDocument | KnownNames, *, slot: int | None = None) -> Piece:
    """The document as the posting writer takes it: names as headings, the path, all headings as body."""
    headings = "\n".join(dict.fromkeys(name for path, *_ in row.sections for name in path))
    names = tuple(name for name in (naming.stem_of(row.path), row.title, *row.aliases) if name)
    return Piece(postings.slot_of(row.ref) if slot is None else slot, "", row.path, False, names, f"\n{headings}")
