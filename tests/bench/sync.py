"""What a sync costs: stages, a floor of the same rows, a sync with nothing to do, memory.

    nice pytest -s tests/bench/sync.py              BENCH_DOCUMENTS=2000 documents made from real ones

CPU seconds (ours, git and parser children, database backend), not wall clock. The floor reads the same blobs, parses
and chunks the same files without child processes, copies the same rows into bare tables, builds the same indexes. What
makes text searchable is in it in two ways: as a generated tsvector with its GIN index, which is the floor of the goals,
and as our own postings, copied ready-made, which counts no word.
"""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from apps.access.models import User
from apps.jobs.queue import enqueue
from apps.jobs.worker import drain, run_job
from apps.markup.values import WordWindow
from apps.repos import files, links, read_stage, remotes, storing, sync
from apps.repos.git.blobs import blob_reader
from apps.repos.git.listing import list_tree
from apps.repos.models import RepositoryDocument, RepositoryDocumentChunk
from apps.repos.reading import read_file
from tests.repos.conftest import Portal, Upstream

SHARED = Path(os.environ.get("SHARED_FOLDER") or Path(__file__).resolve().parents[3] / "shared") / "corpora"
DOCUMENTS = int(os.environ.get("BENCH_DOCUMENTS", "1000"))
TABLES = (
    "repo_documents",
    "repo_document_chunks",
    "repo_document_links",
    "repo_files",
)
POSTINGS = ("indexing_posting", "indexing_indexeddocument")


def backend_seconds() -> float:
    """Of all processes of the database server, those that have ended included."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        pid = cursor.fetchone()[0]
    server = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1]
    ended = Path(f"/proc/{server}/stat").read_text().rsplit(")", 1)[1].split()
    spent = (int(ended[13]) + int(ended[14])) / os.sysconf("SC_CLK_TCK")
    for child in Path(f"/proc/{server}/task/{server}/children").read_text().split():
        with contextlib.suppress(OSError):
            spent += int(Path(f"/proc/{child}/schedstat").read_text().split()[0]) / 1e9
    return spent


class Clock:
    """CPU seconds of ours, of ended children and of the database backend since the last look."""

    def __init__(self) -> None:
        self.marks = self._read()

    def _read(self) -> tuple[float, float, float]:
        own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
        return (
            own.ru_utime + own.ru_stime,
            children.ru_utime + children.ru_stime,
            backend_seconds(),
        )

    def lap(self) -> tuple[float, float, float]:
        now = self._read()
        spent = tuple(after - before for after, before in zip(now, self.marks, strict=True))
        self.marks = now
        return spent  # type: ignore[return-value]


@contextlib.contextmanager
def stages() -> Iterator[dict[str, float]]:
    """Wall seconds inside the named functions, children of each other included."""
    spent: dict[str, float] = defaultdict(float)
    patched = []

    def wrap(place: Any, name: str, label: str) -> None:
        inner = getattr(place, name)

        def timed(*arguments: Any, **options: Any) -> Any:
            started = time.perf_counter()
            try:
                return inner(*arguments, **options)
            finally:
                spent[label] += time.perf_counter() - started

        patched.append((place, name, inner))
        setattr(place, name, timed)

    wrap(sync, "fetch", "fetch")
    wrap(sync, "list_tree", "list")
    wrap(sync, "last_changes", "commit dates")
    wrap(read_stage.ReadStage, "_outcomes", "read + parse + chunk")
    wrap(storing.Writer, "store", "store documents, chunks, links")
    wrap(storing, "store_documents", "  of that chunks and postings")
    wrap(files, "_copy", "file rows")
    wrap(links, "resolve_links", "links")
    try:
        yield spent
    finally:
        for place, name, inner in patched:
            setattr(place, name, inner)


def corpus(upstream: Upstream) -> None:
    sources = sorted((SHARED / "vite-docs" / "tree").rglob("*.md"))
    assert sources, f"{SHARED} holds no vite-docs/tree: set SHARED_FOLDER"
    texts = [path.read_text(encoding="utf-8")[:60_000] for path in sources]
    for number in range(DOCUMENTS):
        text = texts[number % len(texts)].replace("Vite", f"Vite{number}")
        path = upstream.path / f"docs/d{number % 40:02}/p{number:05}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    upstream.commit()


Spent = tuple[float, float, float]


def floor(repository: Any) -> tuple[Spent, Spent]:
    """The same work in its barest form: with words by the database, and with our postings copied."""
    clock = Clock()
    mirror = remotes.mirror(repository).directory
    from django.conf import settings

    limits, profile = settings.COGRAPH.markup, WordWindow()
    entries = list_tree(mirror, repository.synced_commit)
    with blob_reader(mirror) as blobs:
        for entry, raw in zip(entries, blobs.read_many([entry.blob for entry in entries]), strict=True):
            read_file(raw or b"", entry.path, "repo_doc", limits, profile)
    rows = added(clock.lap(), *(copied(table, clock) for table in TABLES))
    with connection.cursor() as cursor:
        cursor.execute(
            "ALTER TABLE floor_repo_document_chunks ADD words tsvector"
            " GENERATED ALWAYS AS (to_tsvector('english', source)) STORED"
        )
        cursor.execute("CREATE INDEX ON floor_repo_document_chunks USING gin (words)")
    words = clock.lap()
    return added(rows, words), added(rows, *(copied(table, clock) for table in POSTINGS))


def copied(table: str, clock: Clock) -> Spent:
    """The rows of a table copied into a bare one that then gets the same indexes."""
    with connection.cursor() as cursor:
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
    return clock.lap()


def added(*parts: Spent) -> Spent:
    return tuple(map(sum, zip(*parts, strict=True)))  # type: ignore[return-value]


def noop(repository: Any, portal: Portal) -> tuple[float, float, float]:
    """CPU of a sync by hand that finds nothing new (one report line a document), of a scheduled one (ends at once), and
    of two listings plus the query of what is stored."""
    drain()
    clock = Clock()
    job = portal.sync(repository)
    assert job.counters["indexed_documents"] == 0
    by_hand = sum(clock.lap())
    drain()
    clock.lap()
    scheduled = run_job(enqueue("sync", source=repository, params={"sync": True}, cause="schedule").job.pk)
    assert scheduled is not None
    assert scheduled.outcome.startswith("Unchanged")
    at_once = sum(clock.lap())
    mirror = remotes.mirror(repository).directory
    for _ in range(2):
        subprocess.run(
            ["git", f"--git-dir={mirror}", "ls-tree", "-r", "-z", "-l", repository.synced_commit],
            check=True,
            stdout=subprocess.DEVNULL,
        )
    with connection.cursor() as cursor:
        cursor.execute("SELECT path, blob FROM repo_files WHERE repository_id = %s", [repository.pk])
        cursor.fetchall()
    return by_hand, at_once, sum(clock.lap())


@pytest.mark.django_db(transaction=True)
def test_sync_costs(tmp_path: Path, settings: Any) -> None:
    import dataclasses

    settings.COGRAPH = dataclasses.replace(
        settings.COGRAPH,
        data_dir=str(tmp_path / "var"),
        embedding=dataclasses.replace(settings.COGRAPH.embedding, backend="none"),
    )
    upstream = Upstream(tmp_path / "acme" / "site")
    corpus(upstream)
    portal = Portal(User.objects.create_superuser("ada", password="x"))
    repository = portal.add(upstream)
    clock = Clock()
    with stages() as spent:
        job = portal.sync(repository)
    own, children, database = clock.lap()
    assert job.status == "success", job.error_message
    total = own + children + database
    documents = RepositoryDocument.objects.filter(repository=repository).count()
    chunks = RepositoryDocumentChunk.objects.filter(repository=repository).count()
    size = sum(RepositoryDocument.objects.values_list("size", flat=True))
    print(f"\n{documents} documents, {chunks} chunks, {size / 1e6:.1f} MB")
    print(f"first sync: {total:.2f} CPU-s (ours {own:.2f}, children {children:.2f}, database {database:.2f}),")
    print(f"  {documents / total:.0f} documents, {chunks / total:.0f} chunks a CPU-second")
    for label, seconds in spent.items():
        print(f"  {label:<34} {seconds:7.2f} s wall")
    print(f"peak memory of ours {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
    for bare, words in zip(floor(repository), ("words by the database", "our postings copied"), strict=True):
        print(
            f"floor, {words}: {sum(bare):.2f} CPU-s (ours {bare[0]:.2f}, children {bare[1]:.2f}, "
            f"database {bare[2]:.2f}); floor / ours {sum(bare) / total:.2f}"
        )
    measured = [noop(repository, portal) for _ in range(5)]
    for place, words in enumerate(("by hand", "scheduled")):
        rounds = sorted(row[place] / row[2] for row in measured)
        milliseconds = ", ".join(f"{row[place] * 1000:.0f} / {row[2] * 1000:.0f} ms" for row in measured)
        print(f"nothing new, {words}, over two listings and a query: median {rounds[2]:.2f} ({milliseconds})")
