"""The stored graph: keys, jobs, differences, removal, rebuild (facts 2 to 6, 11 to 15, 23, 24, 76 to 90, 112, 124)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction

from apps.collections.models import Collection, Document
from apps.collections.trash import purge_document, restore_document, trash_document
from apps.jobs.models import Job
from apps.jobs.worker import drain
from apps.knowledge_graph.models import CanonicalPage, Edge, Evidence, GraphSource, Node
from apps.knowledge_graph.storing.rebuild import rebuild
from tests.knowledge_graph.pages_of_texts import WORKED_EXAMPLE, page_text
from tests.knowledge_graph.test_stored_projection import write

pytestmark = pytest.mark.django_db

Put = Callable[..., Any]
NOTHING = {"added": 0, "removed": 0, "changed": 0, "examples": []}


def edges(collection: Collection) -> dict[str, tuple[float, str]]:
    rows = Edge.objects.filter(source__collection=collection)
    return {row.edge_uid: (float(row.weight), row.provenance) for row in rows}


def nodes(collection: Collection) -> dict[str, str]:
    return dict(Node.objects.filter(source__collection=collection).values_list("node_uid", "node_type"))


def ids(collection: Collection) -> dict[str, list[tuple[Any, ...]]]:
    return {
        model.__name__: sorted(model.objects.filter(source__collection=collection).values_list("pk", "valid_from"))
        for model in (Node, Edge, Evidence, CanonicalPage)
        if model is not CanonicalPage
    }


def diff(collection: Collection) -> dict[str, Any]:
    report = rebuild("collection", collection.pk).as_json()
    return {name: value for name, value in report.items() if value and value != NOTHING}


@pytest.fixture
def example(platform: Collection, put: Put) -> Collection:
    for key, text in WORKED_EXAMPLE.items():
        put(key, text)
    drain()
    return platform


def test_graph_fact_01_and_03_by_jobs_and_rebuilt(example: Collection) -> None:
    assert edges(example) == {
        "dec-cache-v2>supersedes>dec-cache-v1": (1.0, "frontmatter_supersedes"),
        "dec-cache-v2>decision_for>mod-session-store": (1.0, "wikilink"),
        "mod-session-store>depends_on>mod-redis-pool": (0.8, "frontmatter_related"),
    }
    before = ids(example)
    assert (diff(example), diff(example)) == ({}, {})
    assert ids(example) == before
    assert Job.objects.exclude(status="success").count() == 0


def test_graph_fact_02_the_same_evidence_row(platform: Collection, put: Put) -> None:
    put("decisions/dec-cache-v2.md", WORKED_EXAMPLE["decisions/dec-cache-v2.md"])
    drain()
    assert nodes(platform) == {"dec-cache-v2": "decision", "dec-cache-v1": "unknown", "mod-session-store": "unknown"}
    evidence = Evidence.objects.get(edge_uid="dec-cache-v2>related_to>mod-session-store")
    node = Node.objects.get(node_uid="mod-session-store")
    put("modules/mod-session-store.md", WORKED_EXAMPLE["modules/mod-session-store.md"])
    drain()
    assert edges(platform)["dec-cache-v2>decision_for>mod-session-store"] == (1.0, "wikilink")
    assert "dec-cache-v2>related_to>mod-session-store" not in edges(platform)
    evidence.refresh_from_db()
    assert evidence.edge_uid == "dec-cache-v2>decision_for>mod-session-store"
    assert Node.objects.get(node_uid="mod-session-store").pk == node.pk
    assert diff(platform) == {}


def test_graph_fact_04_and_06_hard_deletes(example: Collection, olga: Any) -> None:
    session = Document.objects.get(source_key="modules/mod-session-store.md")
    purge_document(collection=example, document_id=session.pk, by=olga)
    assert nodes(example)["mod-session-store"] == "unknown"
    assert edges(example) == {
        "dec-cache-v2>supersedes>dec-cache-v1": (1.0, "frontmatter_supersedes"),
        "dec-cache-v2>related_to>mod-session-store": (0.5, "wikilink"),
    }
    assert len(nodes(example)) == 4
    assert diff(example) == {}
    v2 = Document.objects.get(source_key="decisions/dec-cache-v2.md")
    purge_document(collection=example, document_id=v2.pk, by=olga)
    assert set(nodes(example)) == {"dec-cache-v1", "mod-redis-pool"}
    assert edges(example) == {}
    assert diff(example) == {}


def test_graph_fact_05_soft_delete_touches_no_row(example: Collection, olga: Any) -> None:
    before = ids(example)
    v2 = Document.objects.get(source_key="decisions/dec-cache-v2.md")
    trash_document(document=v2, by=olga)
    drain()
    assert ids(example) == before
    restore_document(collection=example, document_id=v2.pk, by=olga)
    drain()
    assert ids(example) == before
    assert diff(example) == {}


def refused(statement: str, *values: object) -> str:
    with pytest.raises(IntegrityError) as caught, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement, values)
    return str(caught.value)


NEW_EDGE = (
    "INSERT INTO kb_edges (source_id, page_id, from_uid, to_uid, edge_type, weight, provenance, type_source, payload,"
    " valid_from) SELECT source_id, page_id, from_uid, {to}, {kind}, {weight}, provenance, type_source, payload, 1"
    " FROM kb_edges WHERE edge_uid = 'mod-session-store>depends_on>mod-redis-pool'"
)


def test_graph_fact_11_and_12_apart(example: Collection, olga: Any, put: Put, elsewhere: Collection) -> None:
    put("x.md", page_text("only-there", "[[dec-cache-v2]]"), collection=elsewhere)
    put("v2.md", WORKED_EXAMPLE["decisions/dec-cache-v2.md"], collection=elsewhere)
    drain()
    statement = NEW_EDGE.format(to="'only-there'", kind="'uses'", weight="0.5")
    assert "kb_edges_to_fk" in refused(statement)
    assert Node.objects.filter(node_uid="dec-cache-v2").count() == 2
    v2 = Document.objects.get(collection=elsewhere, source_key="v2.md")
    before = ids(example)
    purge_document(collection=elsewhere, document_id=v2.pk, by=olga)
    assert ids(example) == before


def test_graph_facts_13_to_15_what_the_database_refuses(example: Collection) -> None:
    node = (
        "INSERT INTO kb_nodes (source_id, page_id, node_uid, node_type, label, status, priority, payload, valid_from)"
        " SELECT source_id, page_id, {uid}, {kind}, label, status, priority, payload, 1 FROM kb_nodes"
        " WHERE node_uid = 'mod-redis-pool'"
    )
    assert "kb_nodes_uid_once" in refused(node.format(uid="'dec-cache-v2'", kind="'module'"))
    assert "kb_nodes_type_known" in refused(node.format(uid="'n'", kind="'novel'"))
    assert "kb_nodes_type_known" in refused(node.format(uid="'n'", kind="'unknown'"))
    to = "'mod-redis-pool'"
    assert "kb_edges_uid_once" in refused(NEW_EDGE.format(to=to, kind="'depends_on'", weight="0.5"))
    assert "kb_edges_type_known" in refused(NEW_EDGE.format(to=to, kind="'likes'", weight="0.5"))
    for weight in ("0", "1.1", "-1"):
        assert "kb_edges_weight_in_bounds" in refused(NEW_EDGE.format(to=to, kind="'uses'", weight=weight))
    assert "kb_edges_two_ends" in refused(NEW_EDGE.format(to="from_uid", kind="'uses'", weight="1"))


def test_graph_fact_14_a_node_takes_its_edges_with_it(example: Collection) -> None:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM kb_nodes WHERE node_uid = 'mod-session-store'")
    assert set(edges(example)) == {"dec-cache-v2>supersedes>dec-cache-v1"}
    assert Evidence.objects.count() == 1
    assert rebuild("collection", example.pk).total > 0  # fact 102: rows that drifted are put right
    assert len(edges(example)) == 3


def test_graph_facts_23_and_24_samples_without_a_page(
    platform: Collection, olga: Any, samples: Any, expected: Any
) -> None:
    for name in ("prometeo-antincendio", "passolibero-calzature", "rotta-logistics"):
        wanted = expected[name]["after_hard_delete"]
        for key, text in samples(name).items():
            write(platform, f"{name}/{key}", text)
        rebuild("collection", platform.pk)
        found = CanonicalPage.objects.get(uid=wanted["slug"])
        purge_document(collection=platform, document_id=found.document_id, by=olga)
        assert len(nodes(platform)) == wanted["counts"]["nodes"]
        assert sum(kind == "unknown" for kind in nodes(platform).values()) == 1
        assert len(edges(platform)) == wanted["counts"]["edges"]
        assert Evidence.objects.filter(outcome="edge").count() == wanted["counts"]["evidence"]
        assert diff(platform) == {}
        for document in Document.objects.all():
            purge_document(collection=platform, document_id=document.pk, by=olga)
        assert (nodes(platform), edges(platform)) == ({}, {})


def test_graph_fact_76_and_78_targets_come_and_go(platform: Collection, put: Put) -> None:
    put("p.md", page_text("p", related="[a, b]"))
    drain()
    assert (len(nodes(platform)), len(edges(platform))) == (3, 2)
    kept = Edge.objects.get(to_uid="a").pk
    put("p.md", page_text("p", related="[a, c]"))
    drain()
    assert set(nodes(platform)) == {"p", "a", "c"}
    assert Edge.objects.get(to_uid="a").pk == kept
    assert diff(platform) == {}


def test_graph_fact_79_the_same_version_writes_nothing(example: Collection) -> None:
    before = ids(example)
    revision = GraphSource.objects.get(collection=example).revision
    for job in Job.objects.filter(kind="project_document"):
        from apps.jobs.queue import enqueue

        enqueue("project_document", source=example, key=job.key, params=job.params)
    done = [job for job in drain() if job.kind == "project_document"]
    assert {(job.status, job.outcome) for job in done} == {("success", "unchanged")}
    assert ids(example) == before
    assert GraphSource.objects.get(collection=example).revision == revision


def test_graph_fact_79_overtaken_and_back_again(platform: Collection, put: Put) -> None:
    put("p.md", page_text("p", "[[a]]"))
    put("p.md", page_text("p", "[[b]]"))
    jobs = [job for job in drain() if job.kind == "project_document"]
    assert [job.outcome for job in jobs] == ["overtaken", "projected"]
    put("p.md", page_text("p", "[[a]]"))
    drain()
    assert set(edges(platform)) == {"p>related_to>a"}


def test_graph_fact_80_a_failure_leaves_nothing(example: Collection, put: Put, monkeypatch: pytest.MonkeyPatch) -> None:
    from apps.knowledge_graph.storing import writing

    before = ids(example)
    add_rows = writing.add_rows

    def break_off(table: str, columns: Any, rows: Any) -> None:
        if table == "kb_edges" and rows:
            raise RuntimeError("injected")
        add_rows(table, columns, rows)

    monkeypatch.setattr(writing, "add_rows", break_off)
    put("new.md", page_text("new", "[[mod-redis-pool]] [[nowhere]]"))
    put("other.md", page_text("other"))
    jobs = {job.params["path"]: job for job in drain() if job.kind == "project_document"}
    assert jobs["other.md"].status == "success"
    assert jobs["new.md"].status == "error"
    monkeypatch.undo()
    assert "new" not in nodes(example)
    assert "nowhere" not in nodes(example)
    after = ids(example)
    assert {name: set(rows) - set(after[name]) for name, rows in before.items()} == {n: set() for n in before}


def test_graph_fact_82_slug_changed(platform: Collection, put: Put) -> None:
    put("x.md", page_text("x", "[[old]]"))
    put("y.md", page_text("y", "[[old]]"))
    put("p.md", page_text("old"))
    drain()
    put("p.md", page_text("new"))
    drain()
    assert nodes(platform) == {"x": "module", "y": "module", "old": "unknown", "new": "module"}
    assert Edge.objects.filter(to_uid="old").count() == 2
    put("p.md", page_text("new", aliases="[old]"))
    drain()
    assert set(edges(platform)) == {"x>depends_on>new", "y>depends_on>new"}
    assert diff(platform) == {}


def test_graph_fact_84_and_85_the_winner_goes(platform: Collection, put: Put, olga: Any) -> None:
    put("b.md", page_text("a", "[[two]]"))
    put("a.md", page_text("a", "[[one]]"))
    drain()
    assert set(edges(platform)) == {"a>related_to>one"}
    document = Document.objects.get(source_key="a.md")
    trash_document(document=document, by=olga)
    drain()
    assert set(edges(platform)) == {"a>related_to>two"}
    assert diff(platform) == {}
    restore_document(collection=platform, document_id=document.pk, by=olga)
    drain()
    assert set(edges(platform)) == {"a>related_to>one"}
    purge_document(collection=platform, document_id=document.pk, by=olga)
    assert set(edges(platform)) == {"a>related_to>two"}
    assert diff(platform) == {}


def test_graph_fact_86_no_pages(platform: Collection, put: Put) -> None:
    put("plain.md", "# Plain\n\n[[x]]\n")
    drain()
    assert diff(platform) == {}
    assert not GraphSource.objects.filter(collection=platform).exists()
    put("p.md", page_text("p", "[[x]]"))
    drain()
    put("p.md", "# No page\n")
    drain()
    assert (nodes(platform), edges(platform), Evidence.objects.count()) == ({}, {}, 0)
    assert diff(platform) == {}


def test_graph_fact_36_stale_header_in_rows(platform: Collection, put: Put) -> None:
    put("p.md", page_text("p", "[[b]]", supersedes="[o]", title="Title"))
    drain()
    put("p.md", "---\nslug: p\ntype: module\nstatus: a: b\n---\n[[c]]\n")
    drain()
    row = CanonicalPage.objects.get(uid="p")
    assert (row.header_state, row.label) == ("stale_header", "Title")
    assert [(each["rule"], each["line"]) for each in row.problems] == [("KG101", 4)]
    assert set(edges(platform)) == {"p>supersedes>o", "p>related_to>c"}
    before = ids(platform)
    assert diff(platform) == {}
    assert ids(platform) == before
    GraphSource.objects.all()._raw_delete("default")
    rebuild("collection", platform.pk)
    assert set(edges(platform)) == {"p>supersedes>o", "p>related_to>c"}
    assert Job.objects.filter(kind="project_document").latest("created_at").outcome == "stale header"


def test_graph_a_batch_of_many_pages_is_one_job(platform: Collection, olga: Any) -> None:
    from apps.collections.documents import Incoming, store
    from apps.collections.reading import read_one

    readings = []
    for number in range(30):
        incoming = Incoming(f"p{number}.md", page_text(f"p{number}", f"[[p{number + 1}]]").encode())
        readings.append((incoming, read_one(incoming, platform)))
    with transaction.atomic():
        store(platform, readings, by=olga)
    kinds = Counter(job.kind for job in drain())
    assert kinds["project_graph"] == 1
    assert "project_document" not in kinds
    assert (len(nodes(platform)), len(edges(platform))) == (31, 30)


def test_graph_foreign_front_matter_queues_nothing(platform: Collection, put: Put) -> None:
    put("a.md", "---\ntitle: A\n---\n")
    put("b.md", "---\nslug: intro\ntype: post\n---\n")
    put("c.md", "---\nslug: intro\n---\n")
    assert not Job.objects.filter(kind__startswith="project").exists()
    put("d.md", "---\n'SLUG': d\nType: Module\n---\n")
    drain()
    assert nodes(platform) == {"d": "module"}
