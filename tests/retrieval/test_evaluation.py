"""Measuring search: `retrieval.md` facts 123 to 126, and the sets of section 15."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from apps.access.models import User
from apps.access.sources import find_source
from apps.collections import catalogue
from apps.collections.models import Collection, Document
from apps.collections.trash import trash_document
from apps.indexing.models import EmbeddingProfile
from apps.indexing.profiles import run_gates
from apps.indexing.serving import active_profile
from apps.jobs.worker import drain
from apps.retrieval.evaluation.metrics import bootstrap, measure
from apps.retrieval.evaluation.running import compare, evaluate
from apps.retrieval.models_evaluation import EvaluationGate, EvaluationQuery, EvaluationRun, EvaluationSet, Judgement
from apps.retrieval.routing import route
from apps.retrieval.search import search
from apps.retrieval.values import Question

CORPUS = [
    {"_id": "a1", "title": "Guide > Start", "text": "alpha begins here", "parent": "p1", "path": "guide.md"},
    {"_id": "a2", "title": "Guide > Stop", "text": "beta ends there", "parent": "p2", "path": "guide.md"},
    {"_id": "b1", "title": "Other", "text": "alpha and gamma beside", "parent": "p3", "path": "other.md"},
    {"_id": "c1", "title": "Last", "text": "nothing of the kind", "parent": "p4", "path": "last.md"},
]
QUERIES = [{"_id": "q1", "text": "alpha begins"}, {"_id": "q2", "text": "gamma"}, {"_id": "q3", "text": "beta"}]


def test_retrieval_fact_123_one_query_at_rank_three() -> None:
    found = measure(["x", "y", "z"], {"z": 1, "w": 0})
    assert found == {"ndcg@10": 0.5, "mrr@10": pytest.approx(1 / 3), "recall@10": 1.0, "recall@100": 1.0}
    # repeated keys count once, by their first place
    assert measure(["x", "x", "z"], {"z": 2})["mrr@10"] == 0.5
    assert measure(["y"], {"z": 3, "y": 1})["ndcg@10"] == pytest.approx(1 / (3 + 1 / 1.5849625), abs=1e-6)
    with pytest.raises(ValueError, match="judged"):
        measure(["x"], {"z": 0})


def test_retrieval_fact_124_no_difference_to_itself() -> None:
    assert bootstrap([0.0] * 40) == bootstrap([0.0])
    found = bootstrap([0.0] * 40)
    assert (found.mean, found.low, found.high) == (0, 0, 0)
    moved = bootstrap([0.1, 0.2, 0.3, 0.2] * 10)
    assert 0.15 < moved.low < moved.mean < moved.high < 0.25
    assert moved == bootstrap([0.1, 0.2, 0.3, 0.2] * 10)


@pytest.fixture
def ada(db: None) -> User:
    return User.objects.create_superuser("ada")


@pytest.fixture
def imported(ada: User, tmp_path: Path) -> EvaluationSet:
    corpus, queries, qrels, pages = (tmp_path / name for name in ("c.jsonl.gz", "q.jsonl", "qrels.tsv", "pages.tsv"))
    corpus.write_bytes(gzip.compress("\n".join(json.dumps(row) for row in CORPUS).encode()))
    queries.write_text("\n".join(json.dumps(row) for row in QUERIES))
    qrels.write_text("query-id\tcorpus-id\tscore\nq1\tp1\t2\nq2\tp3\t1\nq3\tp2\t0\n")
    pages.write_text("query-id\tcorpus-id\tscore\nq1\tguide.md\t1\n")
    call_command(
        "eval_import", "small", corpus=corpus, queries=queries, qrels=qrels, page_qrels=pages, stdout=io.StringIO()
    )
    drain()
    return EvaluationSet.objects.get(name="small")


def test_an_imported_set_is_measured_and_compared(imported: EvaluationSet, ada: User) -> None:
    out = io.StringIO()
    profile = active_profile()
    assert profile is not None
    call_command("evaluate", "small", format="json", compare=profile.label, stdout=out)
    told = json.loads(out.getvalue())
    (run, other) = told["runs"]
    assert run["metrics"] == other["metrics"]
    assert run["metrics"]["section"]["ndcg@10"] == 1.0
    assert run["metrics"]["page"]["mrr@10"] == 1.0
    assert run["queries"] == 2  # the third has no positive judgement
    assert all(one["difference"] == {"mean": 0, "low": 0, "high": 0} for one in told["compared"])
    assert EvaluationRun.objects.count() == 2
    for mode in ("lexical", "dense"):
        measured = evaluate(set_=imported, viewer=ada, mode=mode)  # type: ignore[arg-type]
        assert measured.metrics["page"]["recall@100"] == 1.0
    assert compare(measured, measured)[0].moved == ()
    with pytest.raises(CommandError, match="no evaluation set"):
        call_command("evaluate", "absent")


def test_retrieval_fact_125_the_corpus_is_in_no_other_scope(imported: EvaluationSet, ada: User) -> None:
    assert imported.collection_id is not None
    for mode in ("docs", "code", "mixed"):
        assert search(viewer=ada, question=Question("alpha begins", mode=mode)).total == 0  # type: ignore[arg-type]
    assert route(viewer=ada, query="alpha").collections == ()
    assert not Collection.objects.visible_to(ada).exists()
    assert not catalogue.keys_of(ada)
    with pytest.raises(Exception, match=r".*"):
        find_source("collection", str(imported.collection_id), ada)


def test_retrieval_fact_124_a_gate_is_measured(imported: EvaluationSet) -> None:
    profile = active_profile()
    assert profile is not None
    gate = EvaluationGate.objects.create(set=imported, level="section", metric="ndcg@10", minimum=0.99)
    assert [result.passed for result in run_gates(profile) if result.name == str(gate)] == [True]
    EvaluationGate.objects.filter(pk=gate.pk).update(level="page", minimum=0.5)
    Judgement.objects.filter(level="page").update(target="nowhere.md")
    (failed,) = [result for result in run_gates(profile) if "page" in result.name]
    assert (failed.passed, failed.numbers) == (False, "0.0000 of at least 0.5000")


def test_a_set_of_code(ada: User, tmp_path: Path) -> None:
    rows = [
        {"_id": "0", "title": "writeBoolean", "text": "def writeBoolean(self, n):\n    self.stream.write(n)"},
        {"_id": "1", "title": "paste", "text": "def paste():\n    return clipboard.read()"},
    ]
    files = {name: tmp_path / name for name in ("corpus", "queries", "qrels")}
    files["corpus"].write_text("\n".join(json.dumps(row) for row in rows))
    files["queries"].write_text(json.dumps({"_id": "q", "text": "write a boolean"}))
    files["qrels"].write_text("query-id\tcorpus-id\tscore\nq\t0\t1\n")
    call_command("eval_import", "code", store="code", stdout=io.StringIO(), **files)
    drain()
    measured = evaluate(set_=EvaluationSet.objects.get(name="code"), viewer=ada)
    assert measured.metrics["chunk"]["ndcg@10"] == 1.0


def test_retrieval_fact_126_moved_counts_and_gone_is_stale(
    fill: Callable[..., None], shelf: Collection, olga: User
) -> None:
    fill({"a.md": "# A\n\nalpha", "b.md": "# B\n\nbeta"})
    own = EvaluationSet.objects.create(name="own", owner=olga)
    for key in ("a.md", "b.md"):
        document = Document.objects.get(source_key=key)
        query = EvaluationQuery.objects.create(set=own, key=key, text={"a.md": "alpha", "b.md": "beta"}[key])
        Judgement.objects.create(
            query=query, level="page", source_kind="collection", source_id=shelf.pk, document_id=document.pk, path=key
        )
    assert evaluate(set_=own, viewer=olga).metrics["page"]["mrr@10"] == 1.0
    trash_document(document=Document.objects.get(source_key="b.md"), by=olga)
    measured: Any = evaluate(set_=own, viewer=olga)
    assert (measured.stale, len(measured.wall)) == (1, 1)
    assert measured.metrics["page"]["mrr@10"] == 1.0
    assert EmbeddingProfile.objects.count() == 1
