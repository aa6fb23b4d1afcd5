"""What symbols cost: linking, parsing by language, symbol search; CPU seconds and memory.

    nice pytest -s tests/bench/symbols.py        BENCH_SYMBOLS=100000 BENCH_CHUNKS=50000 BENCH_TREE=/a/source/tree
                                                 BENCH_SOURCE_MB=50

Linking is compared with the floor of ``performance.md`` 7: cutting the texts into words and intersecting them with the
set of all names. Parsing takes the files of ``BENCH_TREE`` (this project without it),
beside the bare syntax trees of the same files, in turns. Search is compared with a
sequential ``ILIKE`` over the same rows. Memory is that of a worker process with its children, looked at ten times a
second while it syncs so many megabytes of the tree, repeated under other paths until there are enough.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import resource
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from apps.access.models import User
from apps.markup.values import Limits
from apps.repos.code import alike
from apps.repos.code.mentions import Place, by_chunk, names_in
from apps.repos.code.naming import Resolver, Symbol
from apps.repos.code.reading import CodeRead, read_code
from apps.repos.code.searching import search
from apps.repos.code.storing import Changes, SourceFile, store
from apps.repos.models import Repository
from apps.repos.models_code import CodeFile, CodeNode, CodeState
from apps.repos.registration import request_sync
from apps.symbols.languages import grammar_for, language_of
from apps.symbols.parsing import parse_code
from tests.bench.sync import backend_seconds
from tests.repos.conftest import Portal, Upstream

SYMBOLS = int(os.environ.get("BENCH_SYMBOLS", "100000"))
CHUNKS = int(os.environ.get("BENCH_CHUNKS", "50000"))
TREE = Path(os.environ.get("BENCH_TREE", Path(__file__).resolve().parents[2]))
SOURCE_MB = float(os.environ.get("BENCH_SOURCE_MB", "50"))
ROUNDS = 5
PAGE = 50
VERBS = "get set make find read write open close parse render resolve update delete insert load store merge split"
NOUNS = "user token chunk graph node edge page file server client query index vector cache field value link source"
PROSE = "the server reads each page of a file and writes it to the index when a value of the source has changed"
WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def names(count: int) -> list[str]:
    verbs, nouns = VERBS.split(), NOUNS.split()
    rnd = random.Random(1)
    found: dict[str, None] = {}
    while len(found) < count:
        number = rnd.randrange(count)
        words = (rnd.choice(verbs), rnd.choice(nouns), rnd.choice(nouns))
        found[
            "_".join(words) + f"_{number}" if rnd.random() < 0.5 else "".join(map(str.title, words)) + str(number)
        ] = None
    return list(found)


def texts(known: list[str], count: int) -> list[str]:
    """Passages of about 370 bytes with a few names in code, some unknown, in a prose of common words."""
    rnd = random.Random(2)
    plain = PROSE.split()
    found: list[str] = []
    for _ in range(count):
        words = [rnd.choice(plain) for _ in range(50)]
        for _ in range(3):
            words.insert(rnd.randrange(len(words)), f"`{rnd.choice(known)}`")
        words.insert(rnd.randrange(len(words)), f"{rnd.choice(known)}(x)")
        words.insert(rnd.randrange(len(words)), "`unknown_name_here`")
        found.append(" ".join(words))
    return found


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def test_linking_against_set_intersection(capsys: pytest.CaptureFixture[str]) -> None:
    known = names(SYMBOLS)
    passages = texts(known, CHUNKS)
    symbols = [
        Symbol(number, "function", name, f"pkg.m{number % 500}.{name}", f"pkg/m{number % 500}.py", number, False)
        for number, name in enumerate(known)
    ]
    rows: dict[str, list[float]] = defaultdict(list)
    linked = 0
    for _ in range(ROUNDS):
        start = cpu()
        every = set(known)
        floor = sum(len(every.intersection(WORD.findall(text))) for text in passages)
        rows["set ∩ words"].append(cpu() - start)
        start = cpu()
        stored = [
            dict(by_chunk(text, names_in(text, (), prose=True), [Place(1, 1, 0, len(text))]))[1] for text in passages
        ]
        rows["take names (at sync, once a chunk)"].append(cpu() - start)
        start = cpu()
        resolver = Resolver(symbols)
        linked = sum(resolver.resolve(str(name), "docs/a.md") is not None for entries in stored for name, *_ in entries)
        rows["link stored names (re-link)"].append(cpu() - start)
    base = sorted(rows["set ∩ words"])[ROUNDS // 2]
    with capsys.disabled():
        size = sum(map(len, passages)) / 1e6
        print(
            f"\n{SYMBOLS:,} symbols x {CHUNKS:,} chunks ({size:.1f} MB): {linked:,} mentions, floor {floor:,} matches"
        )
        for what, seconds in rows.items():
            median = sorted(seconds)[ROUNDS // 2]
            print(f"  {what:38} {median:6.2f} s  {median / base:5.2f} x")


def sources() -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for path in sorted(TREE.rglob("*")):
        language = language_of(path.name)
        if language and path.is_file() and "node_modules" not in path.parts:
            found[language].append((path.relative_to(TREE).as_posix(), path.read_text("utf-8", "replace")))
    return found


def test_parsing_by_language(capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print(f"\nparsing {TREE}")
        for language, files in sources().items():
            size = sum(len(text.encode()) for _, text in files) / 1e6
            rows: dict[str, list[float]] = defaultdict(list)
            found = errors = 0
            for _ in range(ROUNDS):
                start = cpu()
                for path, text in files:
                    grammar = grammar_for(path)
                    assert grammar is not None
                    grammar.parser().parse(text.encode())
                rows["bare"].append(cpu() - start)
                start = cpu()
                parsed = [parse_code(text, path) for path, text in files]
                rows["parse"].append(cpu() - start)
                found = sum(len(getattr(code, "symbols", ())) for code in parsed)
                errors = sum(getattr(code, "error_line", None) is not None for code in parsed)
                del parsed
            start = cpu()
            for path, text in files:
                read_code(text.encode(), path, Limits())
            whole = cpu() - start
            bare, parse = (sorted(rows[what])[ROUNDS // 2] for what in ("bare", "parse"))
            print(
                f"  {language:11} {len(files):5} files {size:6.2f} MB {found:7,} symbols {errors:3} with errors:"
                f" parse {size / parse:5.2f} MB/s, {bare / parse:4.2f} x tree-sitter alone ({size / bare:5.2f} MB/s);"
                f" with redaction, cutting and names {size / max(whole, 1e-6):5.2f} MB/s"
            )


def made_code(count: int) -> Iterator[tuple[str, str]]:
    known = names(count)
    for at in range(0, count, 50):
        body = "\n\n".join(f"def {name}(x):\n    return {known[(at * 7) % count]}(x)" for name in known[at : at + 50])
        yield f"pkg/m{at // 50}.py", body + "\n"


@pytest.mark.django_db
def test_storing_and_search(capsys: pytest.CaptureFixture[str]) -> None:
    admin = User.objects.create_superuser("ada", password="x")
    repository = Repository.objects.create(slug="local/bench/code", git_url="/nowhere", owner=admin)
    start, server = cpu(), backend_seconds()
    batch: list[tuple[SourceFile, CodeRead]] = []
    for number, (path, text) in enumerate(made_code(SYMBOLS)):
        read = read_code(text.encode(), path, Limits())
        assert isinstance(read, CodeRead)
        batch.append((SourceFile(number, path, "", len(text), None, False), read))
        if len(batch) == 100:
            store(repository, batch, Changes())
            batch = []
    if batch:
        store(repository, batch, Changes())
    stored = (cpu() - start, backend_seconds() - server)
    state = CodeState.objects.get(repository=repository)
    alike._merge(repository, 0, len(state.segments) - 1)  # as the end of a sync does
    alike._keep(state, state.next_number, [state.next_number])
    with connection.cursor() as cursor:
        cursor.execute("SELECT gin_clean_pending_list('code_nodes_search')")  # as autovacuum does
        cursor.execute("ANALYZE code_nodes")
        cursor.execute("ANALYZE code_triples")
        cursor.execute("ANALYZE code_files")
        cursor.execute("SELECT pg_total_relation_size('code_nodes'), pg_relation_size('code_nodes_search')")
        sizes = cursor.fetchone()
    known = names(SYMBOLS)
    rnd = random.Random(3)
    asked = {
        "exact": [rnd.choice(known) for _ in range(20)],
        "words": [rnd.choice(known).replace("_", " ") for _ in range(20)],
        "prefix": [rnd.choice(known)[:9] for _ in range(20)],
        "typo": [(lambda name: name[:4] + name[5:])(rnd.choice(known)) for _ in range(20)],
    }
    with capsys.disabled():
        print(
            f"\n{SYMBOLS:,} symbols stored: ours {stored[0]:.1f} s, database {stored[1]:.1f} s;"
            f" nodes {sizes[0] / 1e6:.0f} MB, of it keys {sizes[1] / 1e6:.0f} MB;"
            f" memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB"
        )
        for what, queries in asked.items():
            for query in queries:  # a connection plans a statement anew for its first executions
                search(viewer=admin, query=query, whole=True, limit=PAGE)
            start, server, began = cpu(), backend_seconds(), time.perf_counter()
            right = sum(bool(search(viewer=admin, query=query, whole=True, limit=PAGE)) for query in queries)
            ours, theirs = cpu() - start, backend_seconds() - server
            wall = time.perf_counter() - began
            count = len(queries)
            print(
                f"  {what:7} {1000 * ours / count:6.1f} ms ours {1000 * theirs / count:6.1f} ms database"
                f" ({1000 * wall / count:6.1f} ms wall), {right} of {count} found"
            )
        start = backend_seconds()
        with connection.cursor() as cursor:
            for query in asked["exact"]:
                cursor.execute("SELECT id FROM code_nodes WHERE name ILIKE %s LIMIT 50", [f"%{query}%"])
                cursor.fetchall()
        print(f"  sequential ILIKE {1000 * (backend_seconds() - start) / 20:6.1f} ms database")


WORKER = """
import sys, uuid, django
django.setup()
from apps.jobs.worker import run_job
job = run_job(uuid.UUID(sys.argv[1]))
print(job.status, job.error_message)
"""


def memory_of(process: int) -> int:
    """Bytes that a process and its descendants hold, what they share counted once for each."""
    total = 0
    try:
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                total = int(line.split()[1]) * 1024
        # Children belong to the thread that started them.
        lists = [path.read_text() for path in Path(f"/proc/{process}/task").glob("*/children")]
        children = " ".join(lists).split()
    except OSError:
        return total
    return total + sum(memory_of(int(child)) for child in children)


@pytest.mark.django_db(transaction=True)
def test_memory_of_a_sync(capsys: pytest.CaptureFixture[str], tmp_path: Path, settings: Any) -> None:
    files = [entry for found in sources().values() for entry in found]
    upstream = Upstream(tmp_path / "acme" / "source")
    size = copies = 0
    while size < SOURCE_MB * 1e6:
        for path, text in files:
            if size >= SOURCE_MB * 1e6:
                break
            upstream.write({f"copy{copies}/{path}": text})
            size += len(text.encode())
        copies += 1
    upstream.commit()
    portal = Portal(User.objects.create_superuser("ada", password="x"))
    repository = portal.add(upstream)
    job = request_sync(repository=repository, by=portal.admin).job
    database = connection.settings_dict
    host = str(database["HOST"]).replace("/", "%2F")
    environment = {
        **os.environ,
        "DATABASE_URL": f"postgresql://{database['USER']}@{host}/{database['NAME']}",
        "DJANGO_SETTINGS_MODULE": "cograph_site.settings",
        "COGRAPH_DATA_DIR": settings.COGRAPH.data_dir,
        "COGRAPH_DJANGO_SECRET_KEY": settings.SECRET_KEY,
        "COGRAPH_EMBEDDING__BACKEND": "none",
    }
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER, str(job.pk)], env=environment, stdout=subprocess.PIPE, text=True
    )
    most = own = 0
    while worker.poll() is None:
        most = max(most, memory_of(worker.pid))
        with contextlib.suppress(OSError, IndexError):
            peak = Path(f"/proc/{worker.pid}/status").read_text().partition("VmHWM:")[2].split()
            own = max(own, int(peak[0]) * 1024)
        time.sleep(0.1)
    said = worker.communicate()[0].strip()
    with capsys.disabled():
        print(
            f"\n{size / 1e6:.0f} MB of source in {CodeFile.objects.count():,} files,"
            f" {CodeNode.objects.count():,} symbols: {said}; worker {own / 1e6:.0f} MB,"
            f" with its children {most / 1e6:.0f} MB at most"
        )
    assert said.startswith("success") and most < 1e9
