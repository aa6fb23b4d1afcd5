"""What it costs to change one document of a collection: storing its new version against a bare insert of the rows that
are new, into the same live indexes; and a change that only moves its chunks against a bare UPDATE of these rows.

    nice pytest -s tests/bench/changes.py

CPU milliseconds (ours and the database backend), medians of interleaved rounds. Parsing is in neither. The bare insert
is one transaction of COPYs of the very rows that ours has just written: version, chunks, postings, names.
"""

from __future__ import annotations

import dataclasses
import os
import statistics
import time
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection, transaction

from apps.access.models import User
from apps.collections import uploads
from apps.collections.curation import create_collection
from apps.collections.documents import Incoming, store
from apps.collections.models import Collection, DocumentChunk
from apps.indexing.models import IndexedSource
from apps.jobs.worker import run_job
from apps.markup.ingest import Ingested, read_document

CORPORA = Path(os.environ.get("SHARED_FOLDER") or Path(__file__).resolve().parents[3] / "shared") / "corpora"
OTHERS, SECTIONS, ROUNDS = 300, 40, 7


def backend_seconds() -> float:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


class Clock:
    """CPU milliseconds of ours and of the backend."""

    def __enter__(self) -> Clock:
        self.backend, self.own = backend_seconds(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        own = time.process_time() - self.own
        self.spent = 1000 * (own + backend_seconds() - self.backend)


def words() -> list[str]:
    texts = [path.read_text(encoding="utf-8") for path in sorted((CORPORA / "vite-docs" / "tree").rglob("*.md"))[:30]]
    return [word for word in " ".join(texts).split() if word.isalpha() and 3 <= len(word) <= 8]


def sections(vocabulary: list[str], salt: int) -> list[str]:
    """Sections of 60 words, each a chunk."""
    return [f"## Part {n}\n\n{' '.join(vocabulary[(n * 211 + salt * 17) % 9000 :][:60])}\n" for n in range(SECTIONS)]


def changed(collection: Collection, text: str, by: User) -> tuple[float, list[int]]:
    """Milliseconds of storing ``text`` as the new version, and the ids of the chunks that are new."""
    incoming = Incoming("long.md", text.encode())
    found = read_document(incoming.raw, "long.md", settings.COGRAPH.markup, collection.profile)
    assert isinstance(found, Ingested)
    before = set(DocumentChunk.objects.values_list("pk", flat=True))
    with Clock() as clock:
        store(collection, [(incoming, found)], by=by)
    return clock.spent, [pk for pk in DocumentChunk.objects.values_list("pk", flat=True) if pk not in before]


def bare_insert(collection: Collection, added: list[int]) -> float:
    """Milliseconds of copying the rows that the last change wrote into the tables that they came from."""
    chosen = {
        "md_chunks": f"id = ANY(ARRAY{added}::bigint[])",
        "md_document_versions": "(document_id, number) IN (SELECT id, version FROM md_documents"
        " WHERE source_key = 'long.md')",
        "indexing_posting": " OR ".join(
            f"(number = {entry.number} AND segment = {entry.next_segment - 1})"
            for entry in IndexedSource.objects.filter(source_id=collection.pk)
        ),
        "indexing_nameddocument": "path = 'long.md'",
    }
    with transaction.atomic(), connection.cursor() as cursor:
        data = {}
        for table, condition in chosen.items():
            with cursor.copy(f"COPY (SELECT * FROM {table} WHERE {condition}) TO STDOUT (FORMAT binary)") as out:
                data[table] = b"".join(map(bytes, out))
            cursor.execute(f"DELETE FROM {table} WHERE {condition}")
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        with Clock() as clock:
            for table, rows in data.items():
                with cursor.copy(f"COPY {table} FROM STDIN (FORMAT binary)") as into:
                    into.write(rows)
        transaction.set_rollback(True)
    return clock.spent


def bare_update(collection: Collection) -> float:
    with transaction.atomic(), connection.cursor() as cursor:
        with Clock() as clock:
            cursor.execute(
                "UPDATE md_chunks SET start_line = start_line + 1, end_line = end_line + 1,"
                " start_byte = start_byte + 1, end_byte = end_byte + 1"
                " WHERE document_id = (SELECT id FROM md_documents WHERE source_key = 'long.md')"
            )
        transaction.set_rollback(True)
    return clock.spent


@pytest.mark.django_db(transaction=True)
def test_change_costs(settings: Any) -> None:
    settings.COGRAPH = dataclasses.replace(
        settings.COGRAPH, embedding=dataclasses.replace(settings.COGRAPH.embedding, backend="none")
    )
    ada = User.objects.create_superuser("ada", password="x")
    collection = create_collection(by=ada, name="Changing")
    Collection.objects.filter(pk=collection.pk).update(max_chars=600, min_chars=0)
    collection.refresh_from_db()
    vocabulary = words()
    entries = [(f"p{n}.md", f"# P{n}\n\n{''.join(sections(vocabulary, n)[:4])}".encode(), None) for n in range(OTHERS)]
    assert run_job(uploads.stage_batch(collection=collection, by=ada, entries=entries).job.pk).status == "success"  # type: ignore[union-attr]
    base = sections(vocabulary, 5000)
    changed(collection, "".join(base), ada)
    print(f"\ndatabase {os.environ['DATABASE_URL'].partition('@')[2]}: {DocumentChunk.objects.count()} chunks")
    for number in (1, 10, SECTIONS):
        rounds = []
        for salt in range(ROUNDS):
            base[:number] = sections(vocabulary, 6000 + 100 * number + salt)[:number]
            spent, new = changed(collection, "".join(base), ada)
            assert len(new) == number, "only what changed is written"
            rounds.append((spent, bare_insert(collection, new)))
        report(f"{number} of {SECTIONS} chunks changed", "bare insert", rounds)
    rounds = []
    for salt in range(ROUNDS):
        spent, new = changed(collection, "\n" * (salt + 1) + "".join(base), ada)
        assert not new
        rounds.append((spent, bare_update(collection)))
    report("chunks moved by a line", "bare UPDATE", rounds)


def report(what: str, floor: str, rounds: list[tuple[float, float]]) -> None:
    ours, bare = (statistics.median(column) for column in zip(*rounds, strict=True))
    ratios = sorted(one / other for one, other in rounds)
    print(
        f"{what}: {ours:.1f} ms, {floor} {bare:.1f} ms, ratio {statistics.median(ratios):.2f} "
        f"({ratios[0]:.2f}–{ratios[-1]:.2f})"
    )
