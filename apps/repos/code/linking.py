"""Mentions of symbols in documents: names are taken from the text once, then matched with nodes set by set.

Linking reads no text: it works over the stored names of changed chunks and of chunks that use a name which came or went
in the code (``repository-documents.md`` 8.4).
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, cast

from django.db import connection

from apps.indexing.bulk import collector_paused
from apps.indexing.copying import copy_values
from apps.jobs.running import JobRun
from apps.repos.code.mentions import CALL, Place, by_chunk, names_in
from apps.repos.code.naming import Resolver, Symbol
from apps.repos.discovery import Kind
from apps.repos.models import Repository
from apps.repos.models_code import ChunkNames, CodeState
from apps.symbols.names import parts_of

DOCUMENTS_AT_ONCE = 100
CHUNKS_AT_ONCE = 4000
MANY_NAMES = 5000
NAME_COLUMNS = (
    ("chunk_id", "int8"),
    ("document_id", "uuid"),
    ("repository_id", "uuid"),
    ("path", "text"),
    ("names", "jsonb"),
    ("tails", "text[]"),
)

_UNREAD = """
    SELECT c.id, c.document_id, c.start_line, c.start_byte, c.end_byte FROM repo_document_chunks c
    WHERE c.repository_id = %s AND NOT EXISTS (SELECT FROM repo_document_chunk_names n WHERE n.chunk_id = c.id)
    ORDER BY c.document_id, c.chunk_index
"""
_NODES = """
    SELECT n.id, n.kind, n.name, n.qualified_name, f.path, n.start_line, n.test
    FROM code_nodes n JOIN code_files f ON f.id = n.file_id
    WHERE n.repository_id = %s AND n.name = ANY(%s)
"""


def read_names(run: JobRun, repository: Repository) -> list[int]:
    """Take the names out of chunks that are new. Gives the ids of these chunks."""
    waiting: dict[uuid.UUID, list[Place]] = defaultdict(list)
    with collector_paused(), connection.cursor() as cursor:
        cursor.execute(_UNREAD, [repository.pk])
        rows = cursor.fetchall()
        for id_, document, start_line, start_byte, end_byte in rows:
            waiting[document].append(Place(id_, start_line, start_byte, end_byte))
    documents = list(waiting)
    for at in range(0, len(documents), DOCUMENTS_AT_ONCE):
        portion = documents[at : at + DOCUMENTS_AT_ONCE]
        with collector_paused(), run.batch():
            _store_names(repository, {document: waiting[document] for document in portion})
    return [row[0] for row in rows]


def _store_names(repository: Repository, waiting: dict[uuid.UUID, list[Place]]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, path, kind, text, structure -> 'code_blocks' FROM repo_documents WHERE id = ANY(%s)",
            [list(waiting)],
        )
        documents = cursor.fetchall()
        # Whatever happens to this run, these chunks want linking.
        cursor.execute("UPDATE code_states SET is_linked = false WHERE repository_id = %s", [repository.pk])
    rows: list[tuple[Any, ...]] = []
    for id_, path, kind, text, blocks in documents:
        fences = [(block["start_line"], block["end_line"]) for block in _json(blocks)]
        named = names_in(text, sorted(fences), prose=kind == Kind.REPO_DOC)
        for chunk, names in by_chunk(text, named, waiting[id_]):
            rows.append((chunk, id_, repository.pk, path, names, tails_of(names)))
    copy_values("repo_document_chunk_names", NAME_COLUMNS, rows)


def _json(value: Any) -> Sequence[Any]:
    """A JSON column as a plain cursor of Django gives it."""
    import json

    return json.loads(value) if isinstance(value, str) else (value or ())


def tails_of(names: Sequence[Sequence[str | int]]) -> list[str]:
    """Last parts of the names that may be symbols, and the other names whole."""
    found: set[str] = set()
    for given, form, *_ in names:
        name = str(given)
        if name.isidentifier():  # most are: one part
            found.add(name)
        elif parts := parts_of(name):
            found.add(parts[-1] if int(form) <= CALL else name)
    return sorted(found)


def link(
    run: JobRun, repository: Repository, *, chunks: Sequence[int], names: Sequence[str], everything: bool = False
) -> int:
    """Resolve the names of ``chunks``, of chunks that use one of ``names``, and of documents that moved; or of all.
    Gives how many mentions there are in them afterwards."""
    everything = everything or len(names) > MANY_NAMES
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT n.chunk_id FROM repo_document_chunk_names n JOIN repo_documents d ON d.id = n.document_id"
            " WHERE n.repository_id = %s AND (%s OR n.chunk_id = ANY(%s) OR n.tails && %s OR n.path <> d.path)"
            " ORDER BY n.chunk_id",
            [repository.pk, everything, list(chunks), list(names)],
        )
        wanted = [row[0] for row in cursor.fetchall()]
    if not wanted:
        return 0
    symbols = list(_symbols(repository, wanted))
    resolver = Resolver(symbols)
    total = 0
    for at in range(0, len(wanted), CHUNKS_AT_ONCE):
        run.check()
        portion = wanted[at : at + CHUNKS_AT_ONCE]
        rows = list(_mentions(repository, resolver, portion)) if symbols else []
        with run.batch():
            _replace(portion, rows)
        total += len(rows)
    return total


def _symbols(repository: Repository, chunks: Sequence[int]) -> Iterator[Symbol]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT unnest(tails) FROM repo_document_chunk_names WHERE chunk_id = ANY(%s)", [list(chunks)]
        )
        tails = [row[0] for row in cursor.fetchall()]
        cursor.execute(_NODES, [repository.pk, tails])
        while rows := cursor.fetchmany(5000):
            for row in rows:
                yield Symbol(*row)


def _mentions(repository: Repository, resolver: Resolver, chunks: Sequence[int]) -> Iterator[tuple[Any, ...]]:
    """One row for each chunk and node: the best form and confidence, all occurrences counted."""
    rows = (
        ChunkNames.objects.filter(chunk__in=chunks)
        .order_by("chunk_id")
        .values_list("chunk_id", "document_id", "document__path", "names")
    )
    for chunk, document, path, names in rows.iterator(chunk_size=2000):
        found: dict[Any, list[Any]] = {}
        for name, form, count, line in names:
            hit = resolver.resolve(name, path) if form <= CALL else None
            if hit is None:
                continue
            node, confidence = hit
            entry = found.get(node)
            if entry is None:
                found[node] = [name, form, confidence, count, line]
                continue
            if confidence > entry[2]:
                entry[0], entry[2] = name, confidence
            entry[1] = min(entry[1], form)
            entry[3] += count
            entry[4] = min(entry[4], line)
        for node, (name, form, confidence, count, line) in found.items():
            yield chunk, node, document, repository.pk, name, form, confidence, count, line


def _replace(chunks: Sequence[int], rows: Sequence[tuple[Any, ...]]) -> None:
    """Rows that are right already stay untouched."""
    columns = "chunk_id, node_id, document_id, repository_id, name, form, confidence, count, first_line"
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT id, {columns} FROM repo_document_chunk_mentions WHERE chunk_id = ANY(%s)",  # noqa: S608
            [list(chunks)],
        )
        old = {tuple(row): id_ for id_, *row in cursor.fetchall()}
        wanted = set(rows)
        gone = [id_ for row, id_ in old.items() if row not in wanted]
        if gone:
            cursor.execute("DELETE FROM repo_document_chunk_mentions WHERE id = ANY(%s)", [gone])
        with cursor.copy(f"COPY repo_document_chunk_mentions ({columns}) FROM STDIN") as copy:
            for row in rows:
                if row not in old:
                    copy.write_row(row)
        cursor.execute(
            "UPDATE repo_document_chunk_names AS n SET path = d.path FROM repo_documents d"
            " WHERE n.chunk_id = ANY(%s) AND d.id = n.document_id AND n.path <> d.path",
            [list(chunks)],
        )


def link_symbols(run: JobRun) -> None:
    """The function of the job kind ``link_symbols``: all documents of a repository, from their stored names. Nothing is
    read, chunked or embedded."""
    from apps.repos.code.departures import mend_departures
    from apps.repos.code.literals import resolve_literals
    from apps.repos.code.stock import take_stock

    repository = cast("Repository", run.source)
    run.progress("link")
    chunks = read_names(run, repository)
    total = link(run, repository, chunks=chunks, names=(), everything=True)
    resolve_literals(run, repository)
    with run.batch():
        CodeState.objects.filter(repository=repository).update(is_linked=True)
        run.counters["mentions"] = total
        run.note(f"{total:,} mentions of symbols in documents.")
        mend_departures(repository)
    take_stock(run, repository)
