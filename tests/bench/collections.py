"""What uploads cost: 3,000 documents of 30 MB in batches, unchanged again, links, one large document.

    nice pytest -s tests/bench/collections.py              BENCH_DOCUMENTS=600 for a quick look

CPU seconds (ours, parser children, database server), not wall clock; ratios are of one run. The floor parses and chunks
the same texts without child processes and without staging, copies the same rows into bare tables with the same indexes,
and lets the database make words of the chunks (a generated tsvector with its GIN index). The loops are what a first
version does: one ``create()`` a row and one query a link, each its own transaction. One of them puts words into a
tsvector, as the naive loop of the goals does; the other keeps the index that is really kept, chunk by chunk, as a hook
of ``save()`` would. Parsing is in neither, and ours is compared without its parser children.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import os
import resource
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from django.conf import settings
from django.db import connection, transaction

from apps.access.models import User
from apps.collections import documents, link_rows, links, tasks, uploads
from apps.collections.curation import create_collection
from apps.collections.documents import Incoming, structure
from apps.collections.models import Collection, Document, DocumentChunk, DocumentLink, DocumentVersion
from apps.indexing import chunks as index_chunks
from apps.indexing.fields import Piece
from apps.indexing.models import IndexedSource
from apps.indexing.stores import get_store
from apps.jobs import running
from apps.jobs.worker import drain, run_job
from apps.markup.ingest import Ingested, read_document
from apps.markup.values import CharacterBudget

SHARED = Path(os.environ.get("SHARED_FOLDER") or Path(__file__).resolve().parents[3] / "shared") / "corpora"
DOCUMENTS = int(os.environ.get("BENCH_DOCUMENTS", "3000"))
BYTES = 10_000
BATCH = 500
LOOP = 40
"""Documents of the per-row loop, a sample of all."""
TABLES = ("md_documents", "md_document_versions", "md_chunks", "md_links")


TICK = os.sysconf("SC_CLK_TCK")


def database_seconds() -> float:
    """Of the whole server, ended backends included: jobs have connections of their own."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()
    postmaster = _stat(pid)[1]
    total = sum(_stat(postmaster)[11:15])
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError):
            stat = _stat(int(entry.name))
            total += sum(stat[11:13]) if stat[1] == postmaster else 0
    return total / TICK


def _stat(pid: int) -> list[int]:
    """Fields of ``/proc/<pid>/stat`` from the state on; the state as 0."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return [0, *map(int, fields[1:])]


class Clock:
    """CPU seconds of ours, of ended children and of the database since the last look."""

    def __init__(self) -> None:
        self.marks = self._read()

    def _read(self) -> tuple[float, float, float]:
        own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
        return own.ru_utime + own.ru_stime, children.ru_utime + children.ru_stime, database_seconds()

    def lap(self) -> tuple[float, float, float]:
        now = self._read()
        spent = tuple(after - before for after, before in zip(now, self.marks, strict=True))
        self.marks = now
        return spent  # type: ignore[return-value]


@contextlib.contextmanager
def stages() -> Iterator[dict[str, float]]:
    """CPU seconds of this process inside the named functions."""
    spent: dict[str, float] = defaultdict(float)
    patched = []

    def wrap(place: Any, name: str, label: str) -> None:
        inner = getattr(place, name)

        def timed(*arguments: Any, **options: Any) -> Any:
            started = time.process_time()
            try:
                return inner(*arguments, **options)
            finally:
                spent[label] += time.process_time() - started

        patched.append((place, name, inner))
        setattr(place, name, timed)

    wrap(uploads, "_stage", "stage")
    wrap(tasks, "read", "read + parse + chunk (waiting for children)")
    wrap(tasks, "store", "store")
    wrap(documents, "_prepare", "  prepare rows")
    wrap(documents, "_write", "  write")
    wrap(documents, "store_documents", "    chunks and postings")
    wrap(index_chunks.postings, "change", "      postings")
    wrap(link_rows, "write", "    links")
    wrap(links, "resolve_all", "resolve links")
    wrap(running.JobRun, "_write", "items and progress")
    try:
        yield spent
    finally:
        for place, name, inner in patched:
            setattr(place, name, inner)


def corpus() -> list[tuple[str, bytes]]:
    """Real texts without their links, each of about 10 KB, no two alike, with seven links among them."""
    sources = sorted((SHARED / "vite-docs" / "tree").rglob("*.md"))
    assert sources, f"{SHARED} holds no vite-docs/tree: set SHARED_FOLDER"
    text = "\n\n".join(path.read_text(encoding="utf-8") for path in sources)
    text = text.replace("](", "] (").replace("]: ", "] ").replace("://", " ").replace("href=", "name=")
    pieces, at = [], 0
    for number in range(DOCUMENTS):
        end = text.find("\n\n", at + BYTES)
        if end < 0:
            at, end = 0, text.find("\n\n", BYTES)
        body = text[at:end].replace("Vite", f"Vite{number}")
        at = end
        near = "".join(f"- [p{n}](../d{(number + n) % 40:02}/p{(number + n) % DOCUMENTS:05}.md)\n" for n in range(7))
        pieces.append((f"d{number % 40:02}/p{number:05}.md", f"# Page {number}\n\n{body}\n\n{near}".encode()))
    return pieces


def upload(collection: Collection, by: User, pieces: list[tuple[str, bytes]]) -> None:
    for begin in range(0, len(pieces), BATCH):
        entries = [(key, raw, None) for key, raw in pieces[begin : begin + BATCH]]
        staged = uploads.stage_batch(collection=collection, by=by, entries=entries)
        job = run_job(staged.job.pk)
        assert job is not None and job.status == "success"


def floor(collection: Collection, pieces: list[tuple[str, bytes]]) -> tuple[float, float, float]:
    clock = Clock()
    limits, profile = settings.COGRAPH.markup, CharacterBudget()
    for key, raw in pieces:
        read_document(raw, key, limits, profile)
    spent = [clock.lap()]
    with connection.cursor() as cursor:
        for table in TABLES:
            cursor.execute(f"CREATE TEMP TABLE floor_{table} AS SELECT * FROM {table} WITH NO DATA")
            with cursor.copy(f"COPY {table} TO STDOUT (FORMAT binary)") as out:
                data = b"".join(map(bytes, out))
            clock.lap()
            with cursor.copy(f"COPY floor_{table} FROM STDIN (FORMAT binary)") as into:
                into.write(data)
            cursor.execute("SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' AND tablename = %s", [table])
            for number, (definition,) in enumerate(cursor.fetchall()):
                head, _, tail = definition.partition(f" ON public.{table} ")
                cursor.execute(f"{head.rsplit(' ', 1)[0]} floor_{table}_{number} ON floor_{table} {tail}")
            spent.append(clock.lap())
        cursor.execute(
            "ALTER TABLE floor_md_chunks ADD words tsvector GENERATED ALWAYS AS (to_tsvector('english', source)) STORED"
        )
        cursor.execute("CREATE INDEX ON floor_md_chunks USING gin (words)")
        spent.append(clock.lap())
    return tuple(map(sum, zip(*spent, strict=True)))  # type: ignore[return-value]


def loop(by: User, pieces: list[tuple[str, bytes]], *, own_index: bool) -> float:
    """CPU seconds a document of storing row by row; the texts are parsed before the clock begins."""
    collection = create_collection(by=by, name=f"Row by row {own_index} {pieces[0][0]}")
    limits, profile = settings.COGRAPH.markup, CharacterBudget()
    parsed = [(key, raw, read_document(raw, key, limits, profile)) for key, raw in pieces]
    with transaction.atomic():
        entry = index_chunks.lock_source(get_store(documents.STORE), collection.pk)
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE IF NOT EXISTS bench_words (chunk bigint PRIMARY KEY, words tsvector)")
        cursor.execute("CREATE INDEX IF NOT EXISTS bench_gin ON bench_words USING gin (words)")
    clock = Clock()
    for key, raw, found in parsed:
        assert isinstance(found, Ingested)
        _store_row_by_row(collection, entry, key, raw, found, own_index=own_index)
    return sum(clock.lap()) / len(pieces)


def _store_row_by_row(
    collection: Collection, entry: IndexedSource, key: str, raw: bytes, found: Ingested, *, own_index: bool
) -> None:
    parsed = found.parsed
    document = Document.objects.create(
        collection=collection, source_key=key, title=parsed.title or key, state="indexed", size=len(raw),
        content_hash=Incoming(key, raw).content_hash, format=parsed.format, encoding=parsed.encoding,
        text=parsed.text, parsed=orjson.loads(orjson.dumps(structure(parsed))), profile="x",
    )  # fmt: skip
    DocumentVersion.objects.create(document=document, number=1, content_hash=b"x", raw=raw)
    for chunk in found.chunked.chunks:
        slot = entry.next_slot
        entry.next_slot += 1
        row = DocumentChunk.objects.create(
            collection=collection, document=document, ref=entry.number << 32 | slot, chunk_index=chunk.chunk_index,
            heading_path=list(chunk.heading_path), start_line=chunk.start_line, end_line=chunk.end_line,
            start_byte=chunk.start_byte, end_byte=chunk.end_byte, source=chunk.source, content_hash=b"x" * 16,
            embed_hash=b"y" * 32, index_hash=b"z" * 16,
        )  # fmt: skip
        if own_index:
            piece = Piece(slot, document.title, key, False, chunk.heading_path, chunk.text)
            index_chunks.postings.change("docs", entry, entered=[piece], left=())
            entry.save()
            continue
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO bench_words VALUES (%s, to_tsvector('english', %s))", [row.pk, row.source])
    for href, link in {link.href: link for link in parsed.links}.items():
        target = Document.objects.filter(collection=collection, source_key=href.removeprefix("../")).first()
        DocumentLink.objects.create(
            collection=collection, document=document, link_type=link.link_type, href=href,
            digest=link_rows.digest_of(href), lines=[link.line], target_document=target,
            state="resolved" if target else "broken",
        )  # fmt: skip


@pytest.mark.django_db(transaction=True)
def test_upload_costs(settings: Any) -> None:
    settings.COGRAPH = dataclasses.replace(
        settings.COGRAPH, embedding=dataclasses.replace(settings.COGRAPH.embedding, backend="none")
    )
    ada = User.objects.create_superuser("ada", password="x")
    pieces = corpus()
    collection = create_collection(by=ada, name="Bench")
    clock = Clock()
    with stages() as spent:
        upload(collection, ada, pieces)
    own, children, database = clock.lap()
    total = own + children + database
    chunks = DocumentChunk.objects.count()
    size = sum(len(raw) for _, raw in pieces)
    found = DocumentLink.objects.count()
    print(f"\n{len(pieces)} documents, {size / 1e6:.1f} MB, {chunks} chunks, {found} links")
    print(f"upload: {total:.2f} CPU-s (ours {own:.2f}, children {children:.2f}, database {database:.2f})")
    for label, seconds in spent.items():
        print(f"  {label:<46} {seconds:7.2f}")
    bare = floor(collection, pieces)
    print(f"floor:  {sum(bare):.2f} CPU-s; floor / ours {sum(bare) / total:.2f}")
    clock.lap()
    upload(collection, ada, pieces)
    again = sum(clock.lap())
    print(f"unchanged: {again:.2f} CPU-s, {total / again:.1f} times faster")
    drain()
    clock.lap()
    from apps.jobs.queue import enqueue

    enqueue("resolve_links", source=collection)
    drain()
    print(f"links looked at again: {sum(clock.lap()):.2f} CPU-s for {found}")
    DocumentLink.objects.update(state="pending", target_document=None)
    clock.lap()
    enqueue("resolve_links", source=collection)
    drain()
    linked = sum(clock.lap())
    print(f"links resolved anew: {linked:.2f} CPU-s for {found}, {linked / found * 20_000:.2f} for 20,000")
    storing, parsing = total - children, bare[0]
    for own_index, words in ((False, "words into a tsvector"), (True, "the index that is kept")):
        each = sum(sorted(loop(ada, pieces[at : at + LOOP], own_index=own_index) for at in (0, LOOP, 2 * LOOP))[1:2])
        print(
            f"row by row, {words}: {each * len(pieces):.1f} CPU-s to store; ours {storing:.2f}: "
            f"{each * len(pieces) / storing:.1f} times"
        )
    print(f"  parsing and chunking alone {parsing:.2f}")
    gc.disable()  # as the parser's children do
    large = b"\n\n".join(raw for _, raw in pieces)[: 8 << 20]
    begun = time.process_time()
    result = read_document(large, "large.md", settings.COGRAPH.markup, CharacterBudget(max_chunks=10_000))
    print(f"{len(large) / 1e6:.1f} MB in one document: {time.process_time() - begun:.2f} CPU-s", type(result).__name__)
    print(f"peak memory of ours {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
