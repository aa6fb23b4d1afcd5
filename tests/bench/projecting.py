"""What it costs to bring pages into the graph: one document, all of them, lint (`knowledge-graph.md` 14).

    nice python -m tests.bench.projecting [pages]       (10,000 unless said; each links ten others)

CPU of this process and of the database backend together (`performance.md` 1). While the whole graph is swapped for
another one, a reader in a process of its own asks for all of it again and again: what it sees must be the one or the
other, and what that costs it is told beside what it costs before and after.
"""

from __future__ import annotations

import multiprocessing
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.bench import place

ROUNDS = 20
LINKS = 10
QUIET = 20
"""Looks of a reader before and after the rebuild, to compare with."""


def main(pages: int = 10_000) -> None:
    with place.database():
        measure(pages)


def measure(pages: int) -> None:
    from django.db import connection

    from apps.access.models import User
    from apps.collections.models import Collection
    from apps.knowledge_graph.lint import lint_seen, lint_stored, refresh_findings
    from apps.knowledge_graph.storing.rebuild import rebuild

    owner = User.objects.create_user("bench")
    collection = Collection.objects.create(owner=owner, name="Bench", slug="bench")
    for number in range(pages):
        write(collection, f"p{number}.md", text(number, pages, "module"))
    analyze()
    told(f"rebuild of {pages} pages from nothing", lambda: rebuild("collection", collection.pk))
    analyze()
    told(f"rebuild of {pages} pages, nothing changed", lambda: rebuild("collection", collection.pk))
    project(collection, pages)
    told(f"lint of {pages} pages, stored graph", lambda: lint_stored(collection))
    told(f"lint of {pages} pages, as a reader sees it", lambda: lint_seen(owner, collection))
    told(f"lint of {pages} pages, findings replaced", lambda: refresh_findings(collection))
    for number in range(pages):
        write(collection, f"p{number}.md", text(number + 1, pages, "runbook", slug=f"p{number}"))
    connection.close()  # a forked process must not share it
    undisturbed(collection, pages)


def write(collection: Any, key: str, body: str) -> Any:
    from tests.knowledge_graph.test_stored_projection import write as store

    return store(collection, key, body)


def text(number: int, pages: int, type_: str, *, slug: str = "") -> str:
    from tests.knowledge_graph.pages_of_texts import page_text

    near = " ".join(f"[[p{(number * 7 + step * 13 + 1) % pages}]]" for step in range(LINKS))
    name = slug or f"p{number}"
    return page_text(name, f"# Page {name}\n\n{near}", type=type_)


def analyze() -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


def told(name: str, act: Callable[[], Any]) -> Any:
    clock = place.Clock()
    before = clock.read()
    found = act()
    print(f"{name:<48} {(clock.read() - before) / 1000:8.2f} s of CPU", flush=True)
    return found


def project(collection: Any, pages: int) -> None:
    """One changed document at a time, as its job does: read, lock, project. Beside it, in turn, what the database must
    do at least: a bare upsert of the rows of one page, from values that are at hand."""
    from django.db import connection, transaction

    from apps.knowledge_graph.models import Edge, Evidence
    from apps.knowledge_graph.storing.documents import load_document, lock_documents, read_document
    from apps.knowledge_graph.storing.incremental import change_documents
    from apps.knowledge_graph.storing.sources import ensure_graph, lock_graph

    graph = ensure_graph("collection", collection.pk)
    clock = place.Clock()
    statements = [0]

    def count(execute: Any, *given: Any) -> Any:
        statements[0] += 1
        return execute(*given)

    def one(key: str, body: str) -> float:
        document = write(collection, key, body)
        before = clock.read()
        found = load_document("collection", document)
        assert found is not None
        page = read_document(found).page
        with transaction.atomic(), connection.execute_wrapper(count):
            lock_documents("collection", [document])
            lock_graph("collection", collection.pk)
            change_documents(graph, {document: page}, cause="bench")
        return clock.read() - before

    def bare(number: int) -> float:
        uid = f"p{number}"
        edges = list(Edge.objects.filter(source=graph, from_uid=uid).values_list("to_uid", "edge_type", "page"))
        given = {
            "source": graph.pk,
            "uid": uid,
            "page": edges[0][2],
            "to": [edge[0] for edge in edges],
            "type": [edge[1] for edge in edges],
            "evidence": list(Evidence.objects.filter(page=edges[0][2]).values_list("pk", flat=True)),
            "hash": f"{number:064}",
        }
        before = clock.read()
        with transaction.atomic(), connection.cursor() as cursor:
            for statement in _BARE:
                cursor.execute(statement, given)
        return clock.read() - before

    acts: dict[str, Callable[[int], float]] = {
        "one link of ten changed": lambda n: one(f"p{n}.md", text(n, pages, "module").replace("[[p", "[[p1", 1)),
        "only words changed": lambda n: one(f"p{n}.md", text(n, pages, "module") + "\nMore words.\n"),
        "all links a line further down": lambda n: one(
            f"p{n}.md", text(n, pages, "module").replace("# Page", "More.\n\n# Page")
        ),
        "a new page with ten links": lambda n: one(f"new{n}.md", text(n, pages, "module", slug=f"new{n}")),
        "another type, ten pages link it": lambda n: one(f"p{n}.md", text(n, pages, "runbook")),
    }
    for place_, (name, act) in enumerate(acts.items()):
        statements[0] = 0
        costs: list[float] = []
        floors: list[float] = []
        for step in range(ROUNDS):
            costs.append(act(pages // 10 * place_ + step))
            floors.append(bare(pages // 10 * (place_ + 5) + step))
        middle, floor = statistics.median(costs), statistics.median(floors)
        print(
            f"project a page: {name:<32} {middle:6.1f} ms of CPU ({min(costs):.1f} to {max(costs):.1f},"
            f" {statements[0] / ROUNDS:.0f} statements), bare upsert {floor:.1f}: {middle / floor:.1f} x",
            flush=True,
        )

    as_job(collection, graph, pages)


def as_job(collection: Any, graph: Any, pages: int) -> None:
    """The same with all that a worker does around it: claim, lease, outcome."""
    from apps.jobs.models import Cause
    from apps.jobs.queue import enqueue
    from apps.jobs.worker import run_job
    from apps.knowledge_graph.observing import PROJECT_DOCUMENT
    from apps.knowledge_graph.storing.documents import load_document

    clock = place.Clock()
    costs: list[float] = []
    for number in range(ROUNDS):
        slug = f"p{pages - 1 - number}"
        document = write(collection, f"{slug}.md", text(number, pages, "module", slug=slug))
        found = load_document("collection", document)
        assert found is not None
        params = {"document": str(document), "version": found.version_hash, "path": found.path, "change": slug}
        asked = enqueue(
            PROJECT_DOCUMENT, source_key=("collection", collection.pk), key=slug, params=params, cause=Cause.FOLLOW_UP
        )
        before = clock.read()
        done = run_job(asked.job.pk)
        costs.append(clock.read() - before)
        assert done is not None and done.outcome == "projected", done
    print(f"project a page: {'as a job, all links changed':<32} {statistics.median(costs):6.1f} ms of CPU", flush=True)


_BARE = (
    "UPDATE kb_pages SET version_hash = %(hash)s WHERE id = %(page)s",
    "UPDATE kb_nodes SET label = %(hash)s WHERE source_id = %(source)s AND node_uid = %(uid)s",
    """INSERT INTO kb_edges (source_id, page_id, from_uid, to_uid, edge_type, weight, provenance, type_source, payload,
    valid_from) SELECT %(source)s, %(page)s, %(uid)s, t, k, 0.7, 'wikilink', 'matrix', '{}', 1
    FROM unnest(%(to)s::text[], %(type)s::text[]) AS u (t, k) ON CONFLICT (source_id, edge_uid)
    DO UPDATE SET weight = excluded.weight""",
    "UPDATE kb_evidence SET version_hash = %(hash)s, line = line + 1 WHERE id = ANY(%(evidence)s)",
)


def undisturbed(collection: Any, pages: int) -> None:
    """The whole graph changes (every page gets another type and other links) under a reader's eyes."""
    from apps.knowledge_graph.storing.rebuild import rebuild

    phase, looked, stop = multiprocessing.Value("i", 0), multiprocessing.Semaphore(0), multiprocessing.Event()
    here, there = multiprocessing.Pipe()
    reader = multiprocessing.Process(target=watch, args=(collection.pk, phase, looked, stop, there))
    reader.start()
    for _ in range(QUIET):
        looked.acquire()
    phase.value = 1
    report = told(
        f"rebuild of {pages} pages, all changed, a reader at work", lambda: rebuild("collection", collection.pk)
    )
    phase.value = 2
    while looked.acquire(block=False):
        pass
    for _ in range(QUIET):
        looked.acquire()
    stop.set()
    looks = here.recv()
    reader.join()
    print(f"  {report.nodes.changed} nodes differ, {report.edges.total} edges come or go")
    states: list[dict[Any, int]] = []
    for number, name in enumerate(("before the rebuild", "while it ran", "after it")):
        mine = [look for look in looks if look[0] == number]
        cpu, wall = [look[2] for look in mine], [look[3] for look in mine]
        states.append({state: sum(look[1] == state for look in mine) for state in {look[1] for look in mine}})
        print(
            f"  {name:<20} {len(mine):4} looks, {len(states[-1])} states, {sum(look[4] for look in mine)} times locked"
            f" out; CPU of its backend {statistics.median(cpu):6.1f} ms in the middle, {max(cpu):6.1f} at most;"
            f" wall {statistics.median(wall):6.1f} and {max(wall):.1f} ms"
        )
    old, new = states[0], states[2]
    mixed = set(states[1]) - set(old) - set(new)
    assert len(old) == len(new) == 1 and old.keys() != new.keys(), "the graph was to change, and only then"
    assert not mixed, f"neither the old nor the new graph: {mixed}"


def watch(collection_id: Any, phase: Any, looked: Any, stop: Any, answer: Any) -> None:
    """Look at the whole graph and at what lies around one page, as a reader does, again and again. Who must wait for a
    lock for more than a millisecond is locked out."""
    from django.db import connection, transaction
    from django.db.utils import OperationalError

    from apps.access.models import User
    from apps.collections.models import Collection
    from apps.knowledge_graph.reader import open_graph
    from apps.knowledge_graph.walks import neighbourhood

    connection.close()
    user, collection = User.objects.get(username="bench"), Collection.objects.get(pk=collection_id)
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = 1")
    backend = Path(f"/proc/{place.backend_pid()}/schedstat")
    looks: list[tuple[int, Any, float, float, bool]] = []
    while not stop.is_set():
        began, wall, cpu, state, out = (
            phase.value,
            time.perf_counter(),
            int(backend.read_text().split()[0]),
            None,
            False,
        )
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute(
                    "SELECT (SELECT count(*) FROM kb_nodes WHERE node_type = 'runbook'), count(*),"
                    " md5(string_agg(edge_uid, ',' ORDER BY edge_uid)) FROM kb_edges"
                )
                state = cursor.fetchone()
            reader, graph = open_graph(user, collection)
            assert graph is not None
            centre = reader.node(graph.pk, "p1")
            assert centre is not None
            neighbourhood(reader, graph.pk, centre, depth=2)
        except OperationalError:
            out = True
        spent = (int(backend.read_text().split()[0]) - cpu) / 1e6
        if phase.value == began:  # a look across the border belongs to no phase
            looks.append((began, state, spent, 1000 * (time.perf_counter() - wall), out))
        looked.release()
        time.sleep(0.05)
    answer.send(looks)
    connection.close()
    os._exit(0)


if __name__ == "__main__":
    main(*(int(each) for each in sys.argv[1:2]))
