"""What it costs to bring pages into the graph: one document, all of them, lint (`knowledge-graph.md` 14).

    nice python -m tests.bench.projecting [pages]       (10,000 unless said; each links ten others)

CPU of this process and of the database backend together (`performance.md` 1). While the whole graph is swapped for
another one, a reader in a process of its own asks for all of it again and again: what it sees must be the one or the
other, and its waiting is told.
"""

from __future__ import annotations

import multiprocessing
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from tests.bench import place

ROUNDS = 20
LINKS = 10


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
        write(collection, f"p{number}.md", text(number + 1, pages, "runbook", slug=number))
    connection.close()  # a forked process must not share it
    undisturbed(collection, pages)


def write(collection: Any, key: str, body: str) -> Any:
    from tests.knowledge_graph.test_stored_projection import write as store

    return store(collection, key, body)


def text(number: int, pages: int, type_: str, *, slug: int | None = None) -> str:
    from tests.knowledge_graph.pages_of_texts import page_text

    near = " ".join(f"[[p{(number * 7 + step * 13 + 1) % pages}]]" for step in range(LINKS))
    name = number if slug is None else slug
    return page_text(f"p{name}", f"# Page {name}\n\n{near}", type=type_)


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
    """One changed document at a time, as its job does: read, lock, project, what became of it."""
    from django.db import transaction

    from apps.knowledge_graph.storing.documents import load_document, lock_documents, read_document
    from apps.knowledge_graph.storing.incremental import change_documents
    from apps.knowledge_graph.storing.sources import ensure_graph, lock_graph

    graph = ensure_graph("collection", collection.pk)
    clock = place.Clock()

    def one(key: str, body: str) -> float:
        document = write(collection, key, body)
        before = clock.read()
        found = load_document("collection", document)
        assert found is not None
        page = read_document(found).page
        with transaction.atomic():
            lock_documents("collection", [document])
            lock_graph("collection", collection.pk)
            change_documents(graph, {document: page}, cause="bench")
        return clock.read() - before

    acts: dict[str, Callable[[int], float]] = {
        "one link of ten changed": lambda n: one(f"p{n}.md", text(n, pages, "module").replace("[[p", "[[p1", 1)),
        "only words changed": lambda n: one(f"p{n}.md", text(n, pages, "module") + "\nMore words.\n"),
        "a new page with ten links": lambda n: one(f"new{n}.md", text(n, pages, "module").replace("p", "new", 1)),
        "another type, ten pages link it": lambda n: one(f"p{n}.md", text(n, pages, "runbook")),
    }
    for place_, (name, act) in enumerate(acts.items()):
        costs = [act(1000 * place_ % pages + step) for step in range(ROUNDS)]
        print(
            f"project a page: {name:<32} {statistics.median(costs):8.1f} ms of CPU, worst {max(costs):.1f}", flush=True
        )


def undisturbed(collection: Any, pages: int) -> None:
    """The whole graph changes (every page gets another type and other links) under a reader's eyes."""
    from apps.knowledge_graph.storing.rebuild import rebuild

    ready, stop = multiprocessing.Event(), multiprocessing.Event()
    here, there = multiprocessing.Pipe()
    reader = multiprocessing.Process(target=watch, args=(collection.pk, ready, stop, there))
    reader.start()
    ready.wait()
    report = told(
        f"rebuild of {pages} pages, all changed, a reader at work", lambda: rebuild("collection", collection.pk)
    )
    stop.set()
    seen, waits = here.recv()
    reader.join()
    print(f"  {report.nodes.changed} nodes and {report.edges.total} edges differ; the reader saw {len(seen)} states:")
    for state, times in seen.items():
        print(f"    {times} times {state}")
    print(
        f"  it waited {statistics.median(waits):.2f} s in the middle, {max(waits):.2f} s at most (wall, two processes)"
    )


def watch(collection_id: Any, ready: Any, stop: Any, answer: Any) -> None:
    from django.db import connection

    connection.close()
    seen: dict[tuple[Any, ...], int] = {}
    waits: list[float] = []
    ready.set()
    while not stop.is_set() or not waits:
        begun = time.perf_counter()
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT (SELECT count(*) FROM kb_nodes WHERE node_type = 'runbook'), count(*),"
                " md5(string_agg(edge_uid, ',' ORDER BY edge_uid)) FROM kb_edges"
            )
            state = cursor.fetchone()
        waits.append(time.perf_counter() - begun)
        seen[state] = seen.get(state, 0) + 1
        time.sleep(0.05)
    answer.send((seen, waits))
    connection.close()
    os._exit(0)


if __name__ == "__main__":
    main(*(int(each) for each in sys.argv[1:2]))
