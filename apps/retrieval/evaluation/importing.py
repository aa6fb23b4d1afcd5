"""A test set from files: its corpus becomes a collection of its own, its judgements rows (``retrieval.md`` 15.3)."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from django.db import transaction

from apps.access.errors import Conflict, Invalid
from apps.access.rules import Visibility
from apps.collections.models import Collection, Document, DocumentState
from apps.indexing.chunks import DocumentText, store_documents
from apps.indexing.embedding import jobs as embedding
from apps.indexing.stores import get_store
from apps.markup.values import Chunk
from apps.retrieval.evaluation.shelf import CODE_OF_SETS
from apps.retrieval.models_evaluation import EvaluationQuery, EvaluationSet, Judgement, Level

if TYPE_CHECKING:
    from apps.access.models import User

AT_ONCE = 500
GRADES = (1, 3)


@dataclass(frozen=True, slots=True)
class Files:
    """JSON lines, or tab separated judgements with a line of headings; plain or gzip."""

    corpus: Path
    queries: Path
    qrels: Path
    page_qrels: Path | None = None


@dataclass(frozen=True, slots=True)
class _Row:
    id: str
    title: str
    text: str
    parent: str
    path: str


def import_set(*, by: User, name: str, files: Files, block: str = "docs", language: str = "english") -> EvaluationSet:
    """The set ``name`` with its collection, which only administrators see and no search asks; vectors are queued.

    Raises Conflict for a name that is taken, Invalid for files that cannot be read.
    """
    if EvaluationSet.objects.filter(name=name).exists():
        raise Conflict(f"There is an evaluation set “{name}” already.", field="name")
    rows = [_row(one) for one in _json_lines(files.corpus)]
    queries = {str(one["_id"]): str(one["text"]) for one in _json_lines(files.queries)}
    by_section = any(row.parent for row in rows)
    judged = {Level.SECTION if by_section else Level.CHUNK: _judgements(files.qrels)}
    if files.page_qrels is not None:
        judged[Level.PAGE] = _judgements(files.page_qrels)
    with transaction.atomic():
        collection = Collection.objects.create(
            owner=by,
            name=f"Evaluation set {name}"[:200],
            slug=f"evaluation-{uuid4().hex[:12]}",
            visibility=Visibility.ADMIN_ONLY,
            language=language,
            evaluation=True,
        )
        made = EvaluationSet.objects.create(name=name, block=block, collection_id=collection.pk, owner=by)
        _store(collection, rows, block)
        _judge(made, collection, queries, judged)
    embedding.request(collection, by=by)
    return made


def _store(collection: Collection, rows: Sequence[_Row], block: str) -> None:
    """One given chunk makes one chunk: its key stands in the flags, that of its section in the anchor."""
    store = CODE_OF_SETS if block == "code" else get_store("md_collections")
    by_path: dict[str, list[_Row]] = defaultdict(list)
    for row in rows:
        by_path[row.path or row.id].append(row)
    items = list(by_path.items())
    for begin in range(0, len(items), AT_ONCE):
        documents: list[Document] = []
        texts: list[DocumentText] = []
        for path, members in items[begin : begin + AT_ONCE]:
            text = "\n\n".join(row.text for row in members)
            title = _trail(members[0].title)[0] if block == "docs" and _trail(members[0].title) else members[0].title
            document = Document(
                collection=collection,
                source_key=path,
                title=title or path,
                state=DocumentState.INDEXED,
                content_hash=hashlib.sha256(text.encode()).digest(),
                size=len(text.encode()),
                format="text",
                encoding="utf-8",
                text=text,
                line_count=text.count("\n") + 1,
                chunk_count=len(members),
            )
            documents.append(document)
            has_title = len(members) > 1 or bool(members[0].path)
            texts.append(
                DocumentText(
                    document_id=document.pk,
                    title=title if has_title else "",
                    path=path,
                    chunks=_chunks(members),
                    language=collection.language,
                )
            )
        Document.objects.bulk_create(documents)
        store_documents(store, source_id=collection.pk, documents=texts)


def _chunks(rows: Sequence[_Row]) -> list[Chunk]:
    found: list[Chunk] = []
    line, byte = 1, 0
    for place, row in enumerate(rows):
        lines, size = row.text.count("\n"), len(row.text.encode())
        trail = _trail(row.title)
        found.append(
            Chunk(
                chunk_index=place,
                heading_path=trail,
                heading_level=len(trail),
                section_anchor=row.parent,
                start_line=line,
                end_line=line + lines,
                start_byte=byte,
                end_byte=byte + size,
                source=row.text,
                text=row.text,
                flags=(row.id,),
            )
        )
        line, byte = line + lines + 2, byte + size + 2
    return found


def _trail(title: str) -> tuple[str, ...]:
    return tuple(part for part in title.split(" > ") if part)


def _judge(
    made: EvaluationSet,
    collection: Collection,
    queries: Mapping[str, str],
    judged: Mapping[Level, Mapping[str, Mapping[str, int]]],
) -> None:
    stored = EvaluationQuery.objects.bulk_create(
        [EvaluationQuery(set=made, key=key, text=text) for key, text in queries.items()]
    )
    Judgement.objects.bulk_create(
        [
            Judgement(
                query=query,
                level=level,
                target=target,
                source_kind=Collection.kind,
                source_id=collection.pk,
                grade=min(max(grade, GRADES[0]), GRADES[1]),
            )
            for level, by_query in judged.items()
            for query in stored
            for target, grade in by_query.get(query.key, {}).items()
        ]
    )


def _row(one: Mapping[str, Any]) -> _Row:
    try:
        text = str(one.get("text", "")).replace("\0", " ")
        return _Row(
            str(one["_id"]), str(one.get("title", "")), text, str(one.get("parent", "")), str(one.get("path", ""))
        )
    except KeyError as missing:
        raise Invalid(f"A row of the corpus has no {missing}.", field="corpus") from None


def _json_lines(path: Path) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(_text(path).split("\n"), start=1):
        if line.strip():
            try:
                yield json.loads(line)
            except ValueError:
                raise Invalid(f"{path.name} line {number} is no JSON.", field=path.name) from None


def _judgements(path: Path) -> dict[str, dict[str, int]]:
    """query -> target -> grade; only positive grades are kept."""
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for number, line in enumerate(_text(path).splitlines(), start=1):
        parts = line.rstrip("\n").split("\t")
        if not line.strip() or (number == 1 and not parts[-1].strip().lstrip("-").isdigit()):
            continue
        if len(parts) < 3 or not parts[-1].strip().lstrip("-").isdigit():
            raise Invalid(f"{path.name} line {number} is not query, document and score.", field=path.name)
        if int(parts[-1]) > 0:
            found[parts[0]][parts[-2]] = int(parts[-1])
    return found


def _text(path: Path) -> str:
    try:
        raw = path.read_bytes()
        return (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode("utf-8")
    except (OSError, EOFError, ValueError) as error:
        raise Invalid(f"{path} cannot be read: {error}.", field=path.name) from None
