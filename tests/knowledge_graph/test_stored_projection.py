"""Random changes: the stored graph is that of a rebuild, a reader's graph is that of the live documents alone, and each
past state is found again (facts 88 and 124)."""

from __future__ import annotations

import hashlib
import uuid
from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from apps.access.models import User
from apps.collections.documents import structure
from apps.collections.models import Collection, Document, DocumentVersion
from apps.knowledge_graph.models import GraphSource
from apps.knowledge_graph.observing import forget_documents
from apps.knowledge_graph.past import graph_at
from apps.knowledge_graph.projection import project
from apps.knowledge_graph.reader import open_graph
from apps.knowledge_graph.storing.documents import load_document, read_document, states
from apps.knowledge_graph.storing.incremental import change_documents
from apps.knowledge_graph.storing.rebuild import rebuild
from apps.knowledge_graph.storing.sources import ensure_graph
from apps.knowledge_graph.values import Page
from apps.markup.decoding import decode
from apps.markup.parsing import parse
from apps.markup.values import Decoded, Limits, ParsedDocument
from tests.knowledge_graph.test_projection import paths, texts

pytestmark = pytest.mark.django_db


def write(collection: Collection, key: str, text: str) -> uuid.UUID:
    """Store a text as an upload does, chunks and links aside."""
    decoded = decode(text.encode(), Limits())
    assert isinstance(decoded, Decoded)
    parsed = parse(decoded, key, Limits())
    assert isinstance(parsed, ParsedDocument)
    digest = hashlib.sha256(text.encode()).digest()
    row = Document.objects.filter(collection=collection, source_key=key).first() or Document(
        collection=collection, source_key=key, title=key, state="indexed", format="markdown", encoding="utf-8", size=1
    )
    row.version = row.version + 1 if not row._state.adding else 1
    row.content_hash, row.text, row.frontmatter, row.trashed_at = digest, parsed.text, dict(parsed.frontmatter), None
    row.warnings = [warning._asdict() for warning in parsed.warnings]
    row.parsed = structure(parsed)
    row.save()
    DocumentVersion.objects.create(document=row, number=row.version, content_hash=digest, raw=text.encode())
    return row.pk


def read(document: uuid.UUID) -> Page | None:
    found = load_document("collection", document)
    return read_document(found).page if found else None


class Changes(RuleBasedStateMachine):
    @initialize()
    def start(self) -> None:
        self.owner = User.objects.get_or_create(username="olga")[0]
        name = uuid.uuid4().hex
        self.collection = Collection.objects.create(owner=self.owner, name=name, slug=name)
        self.graph = ensure_graph("collection", self.collection.pk)
        self.recorded: dict[int, Any] = {0: graph_at(self.graph, 0)}

    def _project(self, *documents: uuid.UUID) -> None:
        with transaction.atomic():
            change_documents(self.graph, {each: read(each) for each in documents}, cause="test")
        self.graph = GraphSource.objects.get(pk=self.graph.pk)
        self.recorded[self.graph.revision] = graph_at(self.graph, self.graph.revision)

    @rule(path=paths, text=texts())
    def put(self, path: str, text: str) -> None:
        self._project(write(self.collection, path, text))

    @rule(path=paths, text=texts(), other=paths, other_text=texts())
    def put_two(self, path: str, text: str, other: str, other_text: str) -> None:
        first = write(self.collection, path, text)
        self._project(first, write(self.collection, other, other_text))

    def _some(self, data: st.DataObject) -> Document | None:
        rows = list(Document.objects.filter(collection=self.collection).order_by("source_key"))
        return data.draw(st.sampled_from(rows)) if rows else None

    @rule(data=st.data(), to=paths)
    def move(self, data: st.DataObject, to: str) -> None:
        row = self._some(data)
        if row and not Document.objects.filter(collection=self.collection, source_key=to).exists():
            Document.objects.filter(pk=row.pk).update(source_key=to)
            self._project(row.pk)

    @rule(data=st.data(), job_runs=st.booleans())
    def trash_or_restore(self, data: st.DataObject, job_runs: bool) -> None:
        if row := self._some(data):
            moment = None if row.trashed_at else row.created_at
            Document.objects.filter(pk=row.pk).update(trashed_at=moment)
            self._reader()  # before the job ran: the trash hides at once
            self._project(row.pk)

    @rule(data=st.data())
    def purge(self, data: st.DataObject) -> None:
        if row := self._some(data):
            with transaction.atomic():
                forget_documents("collection", self.collection.pk, [row.pk])
                row.delete()
            self.graph = GraphSource.objects.get(pk=self.graph.pk)
            # The past of what was removed for good is erased with it.
            self.recorded = {self.graph.revision: graph_at(self.graph, self.graph.revision)}

    def _reader(self) -> None:
        kept = [read(document) for document in states("collection", self.collection.pk)]
        wanted = project(page for page in kept if page is not None and page.live)
        reader, graph = open_graph(self.owner, self.collection)
        assert graph is not None
        nodes = {node.uid: node for node in reader.all_nodes(graph.pk)}
        assert {(n.uid, n.node_type, n.label, n.status, n.priority, n.dangling) for n in nodes.values()} == {
            (n.uid, n.node_type, n.label, n.status, n.priority, n.dangling) for n in wanted.nodes.values()
        }
        edges = {edge.uid: edge for edge in reader.all_edges(graph.pk)}
        assert {(e.uid, float(e.weight), e.provenance, e.type_source) for e in edges.values()} == {
            (e.uid, float(e.weight), e.provenance, e.type_source) for e in wanted.edges.values()
        }
        evidence = reader.evidence(graph.pk, edges)
        assert sorted((uid, row.raw, row.line) for uid, rows in evidence.items() for row in rows) == sorted(
            (row.edge_uid, row.occurrence.raw, row.occurrence.line)
            for rows in wanted.evidence.values()
            for row in rows
            if row.edge_uid
        )

    @invariant()
    def stored_is_rebuilt(self) -> None:
        if hasattr(self, "graph"):
            assert rebuild("collection", self.collection.pk, dry_run=True).total == 0
            self._reader()

    def teardown(self) -> None:
        for revision, state in getattr(self, "recorded", {}).items():
            assert graph_at(self.graph, revision) == state


def test_graph_fact_88_and_124_stored_equals_rebuilt() -> None:
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        Changes,
        settings=settings(
            max_examples=8, stateful_step_count=10, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
