"""The lexical stream and its ingest against SQLite's FTS5 and PostgreSQL's tsvector, on the same rows in one run.

    nice python -m tests.bench.lexical [chunks [folder]]    (100,000 unless said; a million: 6 GB and 10 minutes)

With a folder, data and FTS5 file stay there and the next run only measures queries.
CPU milliseconds (`performance.md` 1): of the database backend by schedstat and of this process by getrusage.
"""

from __future__ import annotations

import itertools
import resource
import sqlite3
import statistics
import sys
import tempfile
import time
import uuid
from pathlib import Path

from tests.bench import corpus, place

ROUNDS = 5
WARM = 3
BATCH_DOCUMENTS = 250


def main(number: int, keep: str = "") -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(keep or temporary)
        made = (folder / "fts.db").exists()
        with place.database(str(folder / "postgres")):
            if not made:
                ingest(number)
            measure(fts5(folder / "fts.db", number))


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return 1000 * (used.ru_utime + used.ru_stime)


def ingest(number: int) -> None:
    from django.db import connection

    from apps.indexing import chunks, postings
    from apps.indexing.models import IndexedSource
    from tests.indexing import shelf

    clock = place.Clock()
    shelves = [shelf.a_shelf(f"source{n:02}") for n in range(corpus.SOURCES)]
    spent = 0.0
    rows = 0
    documents = itertools.groupby(corpus.chunks(number), key=lambda made: (made.source, made.document))
    for source, group in itertools.groupby(documents, key=lambda item: item[0][0]):
        waiting = []
        for (_, document), made in group:
            paper = shelf.Paper(id=uuid.uuid4(), shelf=shelves[source], path=f"docs/{document}.md")
            cuts = [shelf.cut(item.text, item.heading) for item in made]
            rows += len(cuts)
            waiting.append((paper, shelf.as_text(paper, cuts)))
            if len(waiting) == BATCH_DOCUMENTS:
                spent += store(shelf, chunks, shelves[source], waiting, clock)
                waiting = []
        spent += store(shelf, chunks, shelves[source], waiting, clock)
    print(f"{rows} chunks stored: {1000 * rows / spent:.0f} a CPU-second (chunks, postings, statistics)")
    started = clock.read()
    for entry in IndexedSource.objects.all():
        postings.merge(entry)
    print(f"merged to one segment a source: {1000 * rows / (clock.read() - started):.0f} chunks a CPU-second")
    with connection.cursor() as cursor:
        cursor.execute("VACUUM (FULL, ANALYZE) indexing_posting")
        cursor.execute("ANALYZE")
        cursor.execute(
            "SELECT pg_size_pretty(pg_table_size('indexing_posting')), "
            "pg_size_pretty(pg_indexes_size('indexing_posting')), (SELECT count(*) FROM indexing_posting), "
            "pg_size_pretty(pg_total_relation_size('indexing_tests_paperchunk'))"
        )
        print("postings, their indexes, rows; chunks with indexes:", *cursor.fetchone())
        # Floor: the same chunk rows with a generated tsvector, by COPY ... SELECT from a table that is there already.
        cursor.execute(
            "CREATE TABLE floor_rows (LIKE indexing_tests_paperchunk, "
            "search tsvector GENERATED ALWAYS AS (setweight(to_tsvector('english', section_anchor), 'A') || "
            "to_tsvector('english', source)) STORED)"
        )
        columns = (
            "id, ref, chunk_index, heading_path, heading_level, section_anchor, start_line, end_line, start_byte, "
        )
        columns += (
            "end_byte, source, text, part, parts, flags, profile, content_hash, embed_hash, index_hash, copy_hash, "
        )
        columns += "document_id, shelf_id"
        with tempfile.NamedTemporaryFile() as file:
            with cursor.copy(
                f"COPY (SELECT {columns} FROM indexing_tests_paperchunk LIMIT 50000) TO STDOUT (FORMAT BINARY)"
            ) as copy:
                for data in copy:
                    file.write(data)
            file.flush()
            started = clock.read()
            with cursor.copy(f"COPY floor_rows ({columns}) FROM STDIN (FORMAT BINARY)") as copy:
                copy.write(Path(file.name).read_bytes())
            floor = 1000 * min(rows, 50000) / (clock.read() - started)
            print(f"floor, COPY with generated tsvector: {floor:.0f} a CPU-second")
        cursor.execute("DROP TABLE floor_rows")


def store(shelf, chunks, source, waiting, clock) -> float:
    if not waiting:
        return 0.0
    shelf.Paper.objects.bulk_create([paper for paper, _ in waiting])
    started = clock.read()
    chunks.store_documents(shelf.STORE, source_id=source.id, documents=[text for _, text in waiting])
    return clock.read() - started


def fts5(file: Path, number: int) -> sqlite3.Connection:
    made = file.exists()
    database = sqlite3.connect(file)
    database.execute("PRAGMA cache_size = -2000000")
    if made:
        return database
    database.execute("CREATE VIRTUAL TABLE rows USING fts5(heading, body, tokenize='porter unicode61')")
    started = cpu()
    database.executemany(
        "INSERT INTO rows(heading, body) VALUES (?, ?)", ((made.heading, made.text) for made in corpus.chunks(number))
    )
    database.execute("INSERT INTO rows(rows) VALUES ('optimize')")
    database.commit()
    print(f"FTS5 built: {1000 * number / (cpu() - started):.0f} a CPU-second, generating included")
    return database


def measure(database: sqlite3.Connection) -> None:
    from django.contrib.auth.models import Group

    from apps.access.viewers import GroupViewer
    from apps.indexing import lexical
    from apps.indexing.questions import ask
    from tests.indexing import shelf

    viewer = GroupViewer(Group(pk=1))
    scope = shelf.scope_of(viewer)
    few = shelf.scope_of(viewer, sources=[("shelf", source.id) for source in scope.sources[:5]])
    clock = place.Clock()

    def ours(query: str, scope=scope) -> int:
        return len(lexical.search(scope, ask(query, scope.languages), limit=50).hits)

    def theirs(query: str) -> int:
        words = " OR ".join(f'"{word}"' for word in query.split())
        found = database.execute(
            "SELECT rowid, bm25(rows, 2.0, 1.0) FROM rows WHERE rows MATCH ? ORDER BY rank LIMIT 50", (words,)
        ).fetchall()
        return len(found)

    print(
        f"{'set':8} {'FTS5 ms':>22} {'ours ms, all sources':>26} {'ratio':>7} {'ours ms, 5 of 50':>22}   rows matched"
    )
    for name, queries in corpus.queries().items():
        matched = [
            sum(lexical.search(scope, ask(query, scope.languages)).df.values())
            for query in queries
            for _ in range(WARM)
        ]
        times: dict[str, list[float]] = {"fts5": [], "ours": [], "few": []}
        for query in queries:
            one: dict[str, list[float]] = {"fts5": [], "ours": [], "few": []}
            for _ in range(ROUNDS):
                started = cpu()
                theirs(query)
                one["fts5"].append(cpu() - started)
                started = clock.read()
                ours(query)
                one["ours"].append(clock.read() - started)
                started = clock.read()
                ours(query, few)
                one["few"].append(clock.read() - started)
            for key, values in one.items():
                times[key].append(statistics.median(values))
        shown = {
            key: f"{statistics.mean(values):.2f} ({min(values):.2f}–{max(values):.2f})" for key, values in times.items()
        }
        ratio = statistics.mean(times["ours"]) / statistics.mean(times["fts5"])
        print(
            f"{name:8} {shown['fts5']:>22} {shown['ours']:>26} {ratio:>7.3f} {shown['few']:>22}   "
            f"{statistics.mean(matched):.0f}"
        )


if __name__ == "__main__":
    begun = time.time()
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000, *sys.argv[2:3])
    print(f"{time.time() - begun:.0f} s in all")
