"""What walks, projections and rebuilds cost, in CPU seconds of this process and of the database backend.

    nice pytest -s tests/bench/graph.py             BENCH_NODES=100000 BENCH_EDGES=1000000 BENCH_PAGES=10000

Edges are drawn so that few pages are hubs: the first page has one edge in twenty.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.db import connection

from apps.access.models import User
from apps.collections.models import Collection, Document
from apps.knowledge_graph.models import CanonicalPage
from apps.knowledge_graph.reader import open_graph
from apps.knowledge_graph.storing.documents import load_document, read_document
from apps.knowledge_graph.storing.incremental import change_documents
from apps.knowledge_graph.storing.rebuild import rebuild
from apps.knowledge_graph.storing.sources import ensure_graph
from apps.knowledge_graph.walks import Options, expand, neighbourhood, shortest_path
from tests.knowledge_graph.pages_of_texts import page_text
from tests.knowledge_graph.test_stored_projection import write

NODES = int(os.environ.get("BENCH_NODES", "100000"))
EDGES = int(os.environ.get("BENCH_EDGES", "1000000"))
PAGES = int(os.environ.get("BENCH_PAGES", "10000"))
TICKS = os.sysconf("SC_CLK_TCK")

pytestmark = pytest.mark.django_db


def backend_seconds() -> float:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()
    with open(f"/proc/{pid}/stat") as stat:  # noqa: PTH123
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def measure(name: str, act: Callable[[], Any], times: int = 1) -> Any:
    found = act() if times > 1 else None
    ours, theirs = time.process_time(), backend_seconds()
    for _ in range(times):
        found = act()
    ours, theirs = time.process_time() - ours, backend_seconds() - theirs
    print(f"{name:<58}{ours / times * 1000:9.1f} ms here {theirs / times * 1000:9.1f} ms in the database")
    return found


@pytest.fixture
def collection(db: None) -> Collection:
    owner = User.objects.create_user("olga")
    return Collection.objects.create(owner=owner, name="Bench", slug="bench")


def fill(collection: Collection) -> int:
    graph = ensure_graph("collection", collection.pk)
    statements = [
        """INSERT INTO md_documents (id, collection_id, source_key, title, title_override, state, state_reason,
        content_hash, size, version, format, encoding, encoding_guessed, replaced_characters, text, frontmatter,
        parsed, warnings, word_count, line_count, chunk_count, profile, created_at, changed_at, shelved_chunks)
        SELECT gen_random_uuid(), %(collection)s, 'p' || n || '.md', '', '', 'indexed', '', '', 1, 1, 'markdown',
        'utf-8', false, 0, '', '{}', '{}', '[]', 0, 0, 0, '', now(), now(), '[]'
        FROM generate_series(1, %(nodes)s) n""",
        """INSERT INTO kb_pages (source_id, document_id, path, uid, node_type, label, status, header, header_state,
        bears, names, problems, version_hash, header_hash, projector) SELECT %(graph)s, id, source_key,
        replace(source_key, '.md', ''), 'module', source_key, 'accepted', '{"priority": 50}', 'current', true,
        ARRAY['slug:' || replace(source_key, '.md', '')], '[]', '', '', 1 FROM md_documents
        WHERE collection_id = %(collection)s""",
        """INSERT INTO kb_nodes (source_id, page_id, node_uid, node_type, label, status, priority, payload, valid_from)
        SELECT source_id, id, uid, node_type, label, status, 50, '{"dangling": false}', 1 FROM kb_pages""",
        """INSERT INTO kb_edges (source_id, page_id, from_uid, to_uid, edge_type, weight, provenance, type_source,
        payload, valid_from) SELECT %(graph)s, p.id, 'p' || a, 'p' || b,
        (ARRAY['uses', 'depends_on', 'related_to'])[1 + i %% 3], (ARRAY[0.8, 0.8, 0.5])[1 + i %% 3], 'wikilink',
        'authored', '{}', 1 FROM (SELECT i, 1 + floor(random() * %(nodes)s)::int AS a,
        CASE WHEN random() < 0.05 THEN 1 ELSE 1 + floor(power(random(), 3) * %(nodes)s)::int END AS b
        FROM generate_series(1, %(edges)s) i) drawn JOIN kb_pages p ON p.uid = 'p' || a WHERE a <> b
        ON CONFLICT DO NOTHING""",
    ]
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement, {"collection": collection.pk, "graph": graph.pk, "nodes": NODES, "edges": EDGES})
        for table in ("md_documents", "kb_pages", "kb_nodes", "kb_edges"):
            cursor.execute(f"ANALYZE {table}")
        cursor.execute("SELECT count(*) FROM kb_edges")
        (count,) = cursor.fetchone()
        cursor.execute("SELECT count(*) FROM kb_edges WHERE to_uid = 'p1' OR from_uid = 'p1'")
        (hub,) = cursor.fetchone()
    print(f"\n{NODES} nodes, {count} edges, the hub has {hub}")
    return graph.pk


def test_walks(collection: Collection) -> None:
    source = fill(collection)
    owner = collection.owner
    documents = dict(CanonicalPage.objects.values_list("uid", "document"))
    plain = {documents[f"p{NODES // 2 + n}"]: 1.0 - n / 20 for n in range(10)}
    hubs = {documents[f"p{n}"]: 1.0 for n in range(1, 11)}
    for hops in (1, 2, 3):
        measure(f"expand 10 plain pages, {hops} hops", partial(expand, owner, plain, Options(hops=hops)), 3)
        measure(f"expand the 10 largest hubs, {hops} hops", partial(expand, owner, hubs, Options(hops=hops)), 3)
    reader, _ = open_graph(owner, collection)
    for name, uid in (("a plain page", f"p{NODES // 2}"), ("the largest hub", "p1")):
        centre = reader.node(source, uid)
        assert centre is not None
        for depth in (1, 2):
            measure(
                f"neighbourhood of {name}, depth {depth}",
                partial(neighbourhood, reader, source, centre, depth=depth),
                3,
            )
    measure("all edges at one plain page", lambda: reader.edges_at(source, [f"p{NODES // 2}"]), 3)
    measure(
        "shortest way between two plain pages",
        lambda: shortest_path(reader, source, f"p{NODES // 2}", f"p{NODES // 3}"),
        3,
    )


def test_projecting(collection: Collection) -> None:
    links = " ".join(f"[[p{n}]]" for n in range(500))
    for number in range(PAGES):
        near = " ".join(f"[[p{(number * 7 + step) % PAGES}]]" for step in range(10))
        write(collection, f"p{number}.md", page_text(f"p{number}", f"# Page {number}\n\n{near}"))
    measure(f"rebuild {PAGES} pages from nothing", lambda: rebuild("collection", collection.pk))
    measure(f"rebuild {PAGES} pages without a difference", lambda: rebuild("collection", collection.pk))
    graph = ensure_graph("collection", collection.pk)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")

    def project(key: str, text: str) -> None:
        document: uuid.UUID = write(collection, key, text)
        found = load_document("collection", document)
        assert found is not None
        change_documents(graph, {document: read_document(found).page}, cause="bench")

    measure("project a page with 500 links", lambda: project("many.md", page_text("many", links)))
    measure("project a page with 10 links", lambda: project("few.md", page_text("few", "[[p1]] [[p2]] [[few]]")))
    measure("project a page that 10 link, with another type", lambda: project("p5.md", page_text("p5", type="runbook")))
    assert Document.objects.count() == PAGES + 2
