"""Several at once: two workers, a reader during a swap, a job run twice; past states (facts 77, 80, 81, 87, 124)."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.utils import InternalError
from django.test import Client

from apps.access.models import User
from apps.collections.curation import create_collection
from apps.collections.models import Collection, Document
from apps.jobs import control
from apps.jobs.models import Job
from apps.jobs.worker import drain, run_job
from apps.knowledge_graph.models import Edge, GraphSource, Node
from apps.knowledge_graph.past import graph_at
from apps.knowledge_graph.reader import open_graph
from apps.knowledge_graph.snapshot import one_snapshot
from apps.knowledge_graph.storing import writing
from apps.knowledge_graph.storing.documents import load_document, read_document
from apps.knowledge_graph.storing.incremental import change_documents
from apps.knowledge_graph.storing.rebuild import rebuild
from apps.knowledge_graph.storing.sources import ensure_graph, lock_graph
from tests.knowledge_graph.pages_of_texts import WORKED_EXAMPLE, page_text
from tests.knowledge_graph.test_stored_projection import write


def in_threads(*acts: Callable[[], Any]) -> None:
    """Run at once, each with a connection of its own; the first failure is raised."""
    failures: list[BaseException] = []

    def run(act: Callable[[], Any]) -> None:
        try:
            act()
        except BaseException as failure:
            failures.append(failure)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    if failures:
        raise failures[0]


@pytest.fixture
def bench(transactional_db: None) -> Collection:
    return create_collection(by=User.objects.create_user("olga"), name="Platform")


def project(collection: Collection, document: Any) -> None:
    found = load_document("collection", document)
    assert found is not None
    page = read_document(found).page
    with transaction.atomic():
        lock_graph("collection", collection.pk)
        change_documents(ensure_graph("collection", collection.pk), {document: page}, cause="test")


def test_graph_fact_77_two_pages_with_one_unknown_target(bench: Collection) -> None:
    for round_ in range(5):
        documents = [write(bench, f"{name}{round_}.md", page_text(f"{name}{round_}", "[[same]]")) for name in "ab"]
        in_threads(*[lambda each=each: project(bench, each) for each in documents])  # type: ignore[misc]
    assert Node.objects.filter(node_uid="same").count() == 1
    assert Edge.objects.filter(to_uid="same").count() == 10
    assert rebuild("collection", bench.pk).total == 0


def test_graph_fact_80_and_87_readers_see_the_old_or_the_new(
    bench: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = 60
    for number in range(pages):
        write(bench, f"p{number}.md", page_text(f"p{number}", f"[[p{(number + 1) % pages}]]"))
    rebuild("collection", bench.pk)
    for number in range(pages):
        write(bench, f"p{number}.md", page_text(f"p{number}", f"[[uses::p{(number + 1) % pages}]]"))
    seen: set[tuple[int, int]] = set()
    stop, half_way = threading.Event(), threading.Event()

    def read() -> None:
        while not stop.is_set():
            kinds = list(Edge.objects.values_list("edge_type", flat=True))
            seen.add((kinds.count("depends_on"), kinds.count("uses")))
            half_way.set()

    add_rows = writing.add_rows

    def slowly(table: str, columns: Any, rows: Any) -> None:
        add_rows(table, columns, rows)
        half_way.clear()
        half_way.wait(5)  # a reader looks while part of the rows are written

    monkeypatch.setattr(writing, "add_rows", slowly)

    def swap() -> None:
        try:
            rebuild("collection", bench.pk)
        finally:
            half_way.clear()
            half_way.wait(5)
            stop.set()

    in_threads(read, swap)
    assert seen <= {(pages, 0), (0, pages)}
    assert len(seen) == 2


@pytest.mark.django_db
def test_graph_fact_87_what_one_request_reads_is_of_one_state(bench: Collection) -> None:
    """Between two statements of a reader another page takes the place of what they see."""
    project(bench, write(bench, "a.md", page_text("a", "[[b]] [[c]]")))
    olga = User.objects.get(username="olga")

    def changed() -> None:
        project(bench, write(bench, "a.md", page_text("a", "[[d]]")))

    with one_snapshot():
        reader, graph = open_graph(olga, bench)
        assert graph is not None
        nodes = {node.uid for node in reader.all_nodes(graph.pk)}
        in_threads(changed)
        assert {edge.to_uid for edge in reader.all_edges(graph.pk)} == nodes - {"a"} == {"b", "c"}
        with pytest.raises(InternalError):
            User.objects.create_user("rita")
    reader, graph = open_graph(olga, bench)
    assert graph is not None
    assert {edge.to_uid for edge in reader.all_edges(graph.pk)} == {"d"}


def test_graph_fact_87_exports_hold_both_ends_of_every_edge(bench: Collection) -> None:
    client = Client()
    client.force_login(User.objects.get(username="olga"))
    for name in "abc":
        project(bench, write(bench, f"{name}.md", page_text(name, "[[x0]]")))
    odd: list[Any] = []
    done = threading.Event()

    def change() -> None:
        try:
            for round_ in range(25):
                for name in "abc":
                    project(bench, write(bench, f"{name}.md", page_text(name, f"[[x{round_}]] [[{name}{round_}]]")))
        finally:
            done.set()

    def look() -> None:
        while not done.is_set():
            seen = json.loads(b"".join(client.get(f"/api/graph/collection/{bench.pk}/export")))  # type: ignore[arg-type]
            known = {node["uid"] for node in seen["nodes"]}
            odd.extend(edge for edge in seen["edges"] if not {edge["from"], edge["to"]} <= known)

    in_threads(change, look)
    assert not odd


def test_graph_fact_81_a_job_runs_twice(put: Any, platform: Collection, olga: Any) -> None:
    for key, text in WORKED_EXAMPLE.items():
        put(key, text)
    first = Job.objects.filter(kind="project_document").earliest("created_at")
    run_job(first.pk)
    # A worker that was lost: the row is queued again and taken up by another one.
    Job.objects.filter(pk=first.pk).update(status="queued", finished_at=None, lease_token=None)
    drain()
    assert Edge.objects.count() == 3
    failed = Job.objects.filter(kind="project_document").latest("created_at")
    Job.objects.filter(pk=failed.pk).update(status="error")
    failed.refresh_from_db()
    jobs = {control.retry(failed, by=olga).job.pk for _ in range(2)}
    assert len(jobs) == 1
    drain()
    assert rebuild("collection", platform.pk).total == 0


@pytest.mark.django_db
def test_graph_fact_124_before_and_after(platform: Collection) -> None:
    states: dict[int, Any] = {}

    def project_and_record(key: str, text: str) -> None:
        project(platform, write(platform, key, text))
        graph = GraphSource.objects.get(collection=platform)
        states[graph.revision] = graph_at(graph, graph.revision)

    v2 = "decisions/dec-cache-v2.md"
    project_and_record(v2, WORKED_EXAMPLE[v2])
    project_and_record("modules/mod-session-store.md", WORKED_EXAMPLE["modules/mod-session-store.md"])  # fact 2
    project_and_record("p.md", page_text("p", related="[a, b]"))
    project_and_record("p.md", page_text("p", related="[a, c]"))  # fact 78
    project_and_record("p.md", page_text("q", related="[a, c]"))  # fact 82
    graph = GraphSource.objects.get(collection=platform)
    assert list(states) == [1, 2, 3, 4, 5]
    for revision, state in states.items():
        assert graph_at(graph, revision) == state
    assert [edge.uid for edge in graph_at(graph, 1).edges] == [
        "dec-cache-v2>related_to>mod-session-store",
        "dec-cache-v2>supersedes>dec-cache-v1",
    ]
    assert "dec-cache-v2>decision_for>mod-session-store" in {edge.uid for edge in graph_at(graph, 2).edges}
    # What is removed for good leaves the past too.
    from apps.knowledge_graph.observing import forget_documents

    document = Document.objects.get(source_key="p.md")
    with transaction.atomic():
        forget_documents("collection", platform.pk, [document.pk])
    assert "p" not in {node.uid for node in graph_at(graph, 3).nodes}
