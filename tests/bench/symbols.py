"""What symbols cost: linking, parsing by language, symbol search; CPU seconds and memory.

    nice pytest -s tests/bench/symbols.py        BENCH_SYMBOLS=100000 BENCH_CHUNKS=50000 BENCH_TREE=/a/source/tree

Linking is compared with the floor of ``performance.md`` 7: cutting the texts into words and intersecting them with the
set of all names. Parsing takes the files of ``BENCH_TREE`` (this project without it),
beside the bare syntax trees of the same files. Search is compared with a
sequential ``ILIKE`` over the same rows.
"""

from __future__ import annotations

import os
import random
import re
import resource
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connection

from apps.access.models import User
from apps.markup.values import Limits
from apps.repos.code.mentions import Place, by_chunk, names_in
from apps.repos.code.naming import Resolver, Symbol
from apps.repos.code.reading import CodeRead, read_code
from apps.repos.code.searching import search
from apps.repos.code.storing import Changes, SourceFile, store
from apps.repos.models import Repository
from apps.symbols.languages import grammar_for, language_of
from apps.symbols.parsing import parse_code
from tests.bench.sync import backend_seconds

SYMBOLS = int(os.environ.get("BENCH_SYMBOLS", "100000"))
CHUNKS = int(os.environ.get("BENCH_CHUNKS", "50000"))
TREE = Path(os.environ.get("BENCH_TREE", Path(__file__).resolve().parents[2]))
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
            size = sum(len(text) for _, text in files) / 1e6
            start = cpu()
            for path, text in files:
                grammar = grammar_for(path)
                assert grammar is not None
                grammar.parser().parse(text.encode())
            bare = cpu() - start
            start = cpu()
            parsed = [parse_code(text, path) for path, text in files]
            spent = cpu() - start
            found = sum(len(getattr(code, "symbols", ())) for code in parsed)
            start = cpu()
            for path, text in files:
                read_code(text.encode(), path, Limits())
            whole = cpu() - start
            alone, all_in_all = size / max(spent, 1e-6), size / max(whole, 1e-6)
            print(
                f"  {language:11} {len(files):5} files {size:6.2f} MB {found:7,} symbols: parse {alone:5.2f} MB/s"
                f" ({size / max(bare, 1e-6):5.2f} by tree-sitter alone), with redaction, cutting and names"
                f" {all_in_all:5.2f} MB/s"
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
