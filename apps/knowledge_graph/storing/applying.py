"""Applying a difference to the stored graph: nothing is written that stands there already.

A row that changes or goes is closed into its twin table in the same transaction, unless it was made by the same
revision. The caller holds the lock of the graph and a transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from apps.knowledge_graph.models import GraphSource
from apps.knowledge_graph.projection import PROJECTOR
from apps.knowledge_graph.resolution import dangling_node
from apps.knowledge_graph.storing import rows, writing
from apps.knowledge_graph.storing.matching import Plan, matched, place_of
from apps.knowledge_graph.storing.report import Report
from apps.knowledge_graph.storing.stored import StoredRows
from apps.knowledge_graph.values import EdgeValue, EvidenceValue, NodeValue, Page

_NOT_YET = 0
"""The row of a page that is about to be written."""


@dataclass(slots=True)
class Desired:
    """What is to stand for some documents of a source.

    ``pages``: document -> its page and whether it bears its slug; None for a document that is no page any more.
    ``read``: documents of ``pages`` that were read from their text, whose references and problems are known.
    """

    pages: dict[UUID, tuple[Page, bool] | None] = field(default_factory=dict)
    read: set[UUID] = field(default_factory=set)
    nodes: dict[str, NodeValue] = field(default_factory=dict)
    edges: dict[str, EdgeValue] = field(default_factory=dict)
    evidence: dict[UUID, tuple[EvidenceValue, ...]] = field(default_factory=dict)


def apply(
    stored: StoredRows,
    desired: Desired,
    *,
    whole: bool,
    cause: str,
    change: str = "",
    dry_run: bool = False,
) -> Report:
    """Make the stored graph what ``desired`` says and report the difference.

    ``whole``: ``desired`` is the graph of the entire source, and what it does not name goes. Otherwise it speaks for
    its documents only; nodes at the far ends of their edges come and go as edges need them. ``stored`` are the rows of
    the same documents. ``change`` names the commit or the change of a collection: all that one of them brings shares a
    revision.
    """
    application = _Application(stored, desired, whole=whole)
    report = application.compare()
    if not dry_run:
        application.write(cause=cause, change=change)
    return report


@dataclass(frozen=True, slots=True)
class Difference:
    """What would stand for the uids and pages concerned, without anything being written."""

    nodes: Mapping[str, NodeValue | None]
    stored_edges: set[str]
    page_ids: Mapping[UUID, int]


def difference(stored: StoredRows, desired: Desired) -> Difference:
    """What ``desired`` would make of the stored graph; for readers who do not see all that is stored."""
    application = _Application(stored, desired, whole=False)
    edges = application.stored_edges()
    nodes, _ = application.wanted_nodes(edges)
    return Difference(nodes, set(edges), application.page_ids)


class _Application:
    def __init__(self, stored: StoredRows, desired: Desired, *, whole: bool) -> None:
        self.stored, self.desired, self.whole = stored, desired, whole
        self.graph: GraphSource = stored.graph
        self.report = Report()
        self.pages = stored.pages if whole else {key: stored.pages[key] for key in desired.pages if key in stored.pages}
        self.page_ids: dict[UUID, int] = {key: row.id for key, row in self.pages.items()}
        self.nodes = Plan(self.report.nodes)
        self.edges = Plan(self.report.edges)
        self.evidence = Plan(self.report.evidence)
        self.silent: list[tuple[Any, ...]] = []
        self.others: dict[str, rows.EdgeRow] = {}

    def compare(self) -> Report:
        edges = self.stored_edges()
        wanted, nodes = self.wanted_nodes(edges)
        self._compare_nodes(nodes, wanted)
        self._compare_edges(edges)
        self._compare_evidence()
        return self.report

    # -- what should be

    def stored_edges(self) -> dict[str, rows.EdgeRow]:
        """The written edges of the pages concerned; ``self.others`` are those that stand where another is to come."""
        found = self.stored.edges() if self.whole else self.stored.edges(self.page_ids.values(), self.desired.edges)
        mine = set(self.page_ids.values())
        # An edge may pass from one page to another, with the slug; and a guess may have become written text.
        self.others = {uid: row for uid, row in found.items() if row.page_id not in mine}
        return {uid: row for uid, row in found.items() if row.page_id in mine}

    def wanted_nodes(
        self, edges: Mapping[str, rows.EdgeRow]
    ) -> tuple[dict[str, NodeValue | None], dict[str, rows.NodeRow]]:
        """Uid -> the node that should stand there, None for none, for the uids that may have changed; and those that
        stand there."""
        if self.whole:
            return dict(self.desired.nodes), self.stored.nodes()
        found: dict[str, NodeValue | None] = dict(self.desired.nodes)
        linked = {edge.to_uid for edge in self.desired.edges.values()}
        open_uids = {row.uid for row in self.pages.values() if row.bears}
        open_uids |= {edge.to_uid for uid, edge in edges.items() if uid not in self.desired.edges}
        open_uids |= {edge.to_uid for uid, edge in self.desired.edges.items() if uid not in edges}
        open_uids -= set(found)
        ends = self.stored.ends({*found, *open_uids}, self.page_ids.values())
        # Borne by a page out of reach of this change: such nodes are as they should be.
        for uid in open_uids - ends.borne:
            found[uid] = dangling_node(uid) if uid in linked or uid in ends.linked else None
        return found, {uid: row for uid, row in ends.nodes.items() if uid in found}

    # -- comparing

    def _page_of(self, document: UUID | None) -> int | None:
        return None if document is None else self.page_ids.get(document, _NOT_YET)

    def _stands(self, old: Any, document: UUID | None, form: rows.Form) -> bool:
        return bool(old.page_id == self._page_of(document) and old.form == form)

    def _compare_nodes(self, stored: Mapping[str, rows.NodeRow], wanted: Mapping[str, NodeValue | None]) -> None:
        for uid, value in wanted.items():
            if value is None:
                continue
            form, old = rows.node_form(value), stored.get(uid)
            if old is None:
                self.nodes.add(uid, value.document, (uid,), form)
            elif not self._stands(old, value.document, form):
                self.nodes.change(uid, old, value.document, form)
        for uid, row in stored.items():
            if wanted.get(uid) is None:
                self.nodes.remove(uid, row)

    def _compare_edges(self, stored: Mapping[str, rows.EdgeRow]) -> None:
        for uid, value in self.desired.edges.items():
            form, old = rows.edge_form(value), stored.get(uid) or self.others.get(uid)
            if old is None:
                self.edges.add(uid, value.document, (value.from_uid, value.to_uid, value.edge_type), form)
            elif not self._stands(old, value.document, form):
                self.edges.change(uid, old, value.document, form)
        for uid, row in stored.items():
            if uid not in self.desired.edges:
                self.edges.remove(uid, row)

    def _compare_evidence(self) -> None:
        silent = len(rows.EVIDENCE_SILENT)
        left = set(self.stored.evidence) if self.whole else set(self.page_ids.values())
        for document, values in self.desired.evidence.items():
            page_id = self._page_of(document) or _NOT_YET
            left.discard(page_id)
            new = [rows.evidence_form(value, place) for place, value in enumerate(values)]
            for before, form in matched(self.stored.evidence.get(page_id, ()), new):
                if form is None:
                    assert before is not None  # noqa: S101 - told by the type of the pairs
                    self.evidence.remove(before.raw, before)
                elif before is None:
                    self.evidence.add(place_of(form), document, (), form)
                elif before.form[:-silent] != form[:-silent]:
                    self.evidence.change(place_of(form), before, document, form)
                elif before.form != form:
                    self.silent.append((before.id, *form[-silent:]))
        for page_id in left:
            for row in self.stored.evidence.get(page_id, ()):
                self.evidence.remove(row.raw, row)

    # -- writing

    def write(self, *, cause: str, change: str) -> None:
        graph, report = self.graph, self.report
        if report.total:
            report.revision = graph.revision = writing.next_revision(graph.pk, cause=cause, change=change)
        self._write_pages()
        # Rows that point come after what they point to, and go before it.
        self._write_plan("kb_nodes", self.nodes, ("node_uid",), rows.NODE_COLUMNS)
        self._write_plan("kb_edges", self.edges, ("from_uid", "to_uid", "edge_type"), rows.EDGE_COLUMNS)
        self._delete("kb_evidence", self.evidence)
        self._write_plan("kb_evidence", self.evidence, (), rows.EVIDENCE_COLUMNS)
        writing.update_rows("kb_evidence", rows.EVIDENCE_SILENT, self.silent)
        self._delete("kb_edges", self.edges)
        self._delete("kb_nodes", self.nodes)
        self._write_references()
        self._drop_guesses()

    def _write_plan(self, table: str, plan: Plan, key: tuple[str, ...], columns: tuple[str, ...]) -> None:
        source, revision = self.graph.pk, self.graph.revision
        added = [(source, revision, self._page_of(document), *named, *form) for document, named, form in plan.added]
        changed = [(row.id, revision, self._page_of(document), *form) for row, document, form in plan.changed]
        writing.add_rows(table, ("source_id", "valid_from", "page_id", *key, *columns), added)
        writing.update_rows(table, ("valid_from", "page_id", *columns), changed, closing=revision)

    def _delete(self, table: str, plan: Plan) -> None:
        writing.delete_rows(table, [row.id for row in plan.removed], closing=self.graph.revision)

    def _write_pages(self) -> None:
        added: list[rows.Form] = []
        changed: list[rows.Form] = []
        gaining: list[int] = []
        losing: list[int] = []
        former = self.pages.keys() - self.desired.pages.keys() if self.whole else set()
        for document, pair in self.desired.pages.items():
            row = self.pages.get(document)
            if pair is None:
                former.add(document)
                continue
            page, bears = pair
            if not bears:
                self.report.withheld.add(document)
            if document in self.desired.read:
                form = rows.page_form(page, bears=bears, projector=PROJECTOR)
                if row is None:
                    added.append((document, *form))
                elif row.form != form:
                    changed.append((row.id, *form))
            elif row is not None and bears and not row.bears:
                # Read from stored rows, which know neither its problems nor what else its text says.
                gaining.append(row.id)
            if row is not None and row.bears and (not bears or row.uid != page.uid):
                losing.append(row.id)
        forgotten = [self.pages[each].id for each in former if each in self.pages]
        # Whoever loses a slug lets go of it before another takes it.
        writing.let_go(losing)
        writing.make_former(forgotten)
        writing.update_rows("kb_pages", rows.PAGE_COLUMNS, changed)
        writing.take_up(gaining)
        kind = "repository_document_id" if self.graph.kind == "repository" else "document_id"
        for id_, document in writing.insert_rows("kb_pages", self.graph.pk, (kind, *rows.PAGE_COLUMNS), added, kind):
            self.page_ids[document] = id_

    def _write_references(self) -> None:
        wanted = [
            rows.reference_form(value, page_id=self.page_ids[document])
            for document, pair in self.desired.pages.items()
            if pair is not None and document in self.desired.read
            for value in pair[0].references
        ]
        concerned = [
            row.id
            for document, row in self.pages.items()
            if row.crossing and (document in self.desired.read or self.desired.pages.get(document) is None)
        ]
        present = writing.references_of(concerned)
        if sorted(present, key=repr) != sorted(wanted, key=repr):
            writing.drop_references(concerned)
            source = self.graph.pk
            columns = ("source_id", *rows.REFERENCE_COLUMNS)
            writing.add_rows("kb_cross_source_references", columns, [(source, *form) for form in wanted])

    def _drop_guesses(self) -> None:
        """Guesses end with one of their pages, and where a person has written an edge between the two."""
        dangling = [row.node_uid for row, document, _ in self.nodes.changed if document is None]
        written = [(named[0], named[1]) for _, named, _ in self.edges.added]
        written += [(row.from_uid, row.to_uid) for row, _, _ in self.edges.changed if row.provenance == "inferred"]
        writing.drop_guesses(self.graph.pk, self.graph.revision, dangling=dangling, written=written)
