"""Applying a difference to the stored graph: nothing is written that stands there already.

A row that changes or goes is closed into its twin table in the same transaction, unless it was made by the same
revision. The caller holds the lock of the graph and a transaction.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import JSONField, Q
from django.utils import timezone
from psycopg.types.json import Jsonb

from apps.knowledge_graph.models import (
    CanonicalPage,
    CrossSourceReference,
    Edge,
    Evidence,
    GraphRevision,
    GraphSource,
    Node,
)
from apps.knowledge_graph.projection import PROJECTOR
from apps.knowledge_graph.resolution import dangling_node
from apps.knowledge_graph.storing import rows
from apps.knowledge_graph.values import EdgeValue, EvidenceValue, NodeValue, Page

EXAMPLES = 5
_BATCH, _UPDATED = 2000, 300
_TWINS = {
    "kb_nodes": "node_uid, node_type, label, status, priority, payload",
    "kb_edges": "from_uid, to_uid, edge_type, weight, provenance, type_source, payload, edge_uid",
    "kb_evidence": (
        'version_hash, ordinal, provenance, mode, target, stated_type, field, heading_path, line, "column", raw,'
        " anchor, label, embed, weight, problem, outcome, rivals, fallback_uid, edge_uid, wanted"
    ),
}


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


@dataclass(slots=True)
class Change:
    """How many rows of one table were added, removed and changed, with a few by name."""

    added: int = 0
    removed: int = 0
    changed: int = 0
    examples: list[str] = field(default_factory=list)

    def note(self, act: str, name: str) -> None:
        setattr(self, act, getattr(self, act) + 1)
        if len(self.examples) < EXAMPLES:
            self.examples.append(f"{act} {name}")

    @property
    def total(self) -> int:
        return self.added + self.removed + self.changed


@dataclass(slots=True)
class Report:
    """What an application changed. ``revision`` is None when nothing did."""

    nodes: Change = field(default_factory=Change)
    edges: Change = field(default_factory=Change)
    evidence: Change = field(default_factory=Change)
    revision: int | None = None

    @property
    def total(self) -> int:
        return self.nodes.total + self.edges.total + self.evidence.total

    def as_json(self) -> dict[str, Any]:
        named = {"nodes": self.nodes, "edges": self.edges, "evidence": self.evidence}
        return {
            "revision": self.revision,
            **{
                name: {
                    "added": one.added,
                    "removed": one.removed,
                    "changed": one.changed,
                    "examples": one.examples,
                }
                for name, one in named.items()
            },
        }


@dataclass(slots=True)
class _Plan:
    insert: list[Any] = field(default_factory=list)
    update: list[Any] = field(default_factory=list)
    silent: list[Any] = field(default_factory=list)
    delete: list[Any] = field(default_factory=list)


def apply(
    graph: GraphSource,
    desired: Desired,
    *,
    whole: bool,
    cause: str,
    change: str = "",
    dry_run: bool = False,
) -> Report:
    """Make the stored graph what ``desired`` says and report the difference.

    ``whole``: ``desired`` is the graph of the entire source, and what it does not name goes. Otherwise it speaks for
    its documents only; nodes at the far ends of their edges come and go as edges need them. ``change`` names the commit
    or the change of a collection: all that one of them brings shares a revision.
    """
    return _Application(graph, desired, whole=whole).run(cause=cause, change=change, dry_run=dry_run)


@dataclass(frozen=True, slots=True)
class Difference:
    """What would stand for the uids and pages concerned, without anything being written."""

    nodes: Mapping[str, NodeValue | None]
    stored_edges: set[str]
    page_ids: Mapping[UUID, int]


def difference(graph: GraphSource, desired: Desired) -> Difference:
    """What ``desired`` would make of the stored graph; for readers who do not see all that is stored."""
    application = _Application(graph, desired, whole=False)
    edges = application.stored_edges()
    return Difference(application.wanted_nodes(edges), set(edges), application.page_ids)


class _Application:
    def __init__(self, graph: GraphSource, desired: Desired, *, whole: bool) -> None:
        self.graph, self.desired, self.whole = graph, desired, whole
        self.report = Report()
        self.stored = {row.key: row for row in self._stored_pages()}
        self.page_ids: dict[UUID, int] = {key: row.pk for key, row in self.stored.items()}
        self.keys = {row.pk: key for key, row in self.stored.items()}

    def _stored_pages(self) -> Any:
        pages = CanonicalPage.objects.filter(source=self.graph).with_key()
        return pages if self.whole else pages.of_documents(self.desired.pages)

    def _in_scope(self, model: Any) -> Any:
        found = model.objects.filter(source=self.graph)
        return found if self.whole else found.filter(page__in=list(self.keys))

    def run(self, *, cause: str, change: str, dry_run: bool) -> Report:
        edges = self.stored_edges()
        nodes = self.wanted_nodes(edges)
        stored_nodes = {row.node_uid: row for row in self._stored_nodes(nodes, edges)}
        plans = {
            "nodes": self._compare_nodes(stored_nodes, nodes),
            "edges": self._compare_edges(edges),
            "evidence": self._compare_evidence(),
        }
        if dry_run:
            return self.report
        if self.report.total:
            self.report.revision = self._revision(cause, change)
        self._write(plans["nodes"], plans["edges"], plans["evidence"])
        return self.report

    # -- what should be

    def stored_edges(self) -> dict[str, Edge]:
        return {row.edge_uid: row for row in self._in_scope(Edge).exclude(provenance="inferred")}

    def wanted_nodes(self, edges: Mapping[str, Edge]) -> dict[str, NodeValue | None]:
        """Uid -> the node that should stand there, None for none; only uids that may have changed."""
        if self.whole:
            return dict(self.desired.nodes)
        found: dict[str, NodeValue | None] = dict(self.desired.nodes)
        bearers = {row.uid for row in self.stored.values() if row.bears}
        ends = {edge.to_uid for edge in edges.values()} | {edge.to_uid for edge in self.desired.edges.values()}
        open_uids = (bearers | ends) - set(found)
        if not open_uids:
            return found
        # Borne by a page out of reach of this change: such nodes are as they should be.
        elsewhere = CanonicalPage.objects.filter(source=self.graph, uid__in=open_uids, bears=True)
        open_uids -= set(elsewhere.exclude(pk__in=list(self.keys)).values_list("uid", flat=True))
        linked = {edge.to_uid for edge in self.desired.edges.values()}
        others = Edge.objects.filter(source=self.graph, to_uid__in=open_uids).exclude(provenance="inferred")
        linked |= set(others.exclude(page__in=list(self.keys)).values_list("to_uid", flat=True))
        for uid in open_uids:
            found[uid] = dangling_node(uid) if uid in linked else None
        return found

    def _stored_nodes(self, nodes: Mapping[str, NodeValue | None], edges: Mapping[str, Edge]) -> Any:
        found = Node.objects.filter(source=self.graph)
        return found if self.whole else found.filter(node_uid__in=list(nodes))

    # -- comparing

    def _compare_nodes(self, stored: Mapping[str, Node], wanted: Mapping[str, NodeValue | None]) -> _Plan:
        plan = _Plan()
        for uid, value in wanted.items():
            if value is None:
                continue
            # A page that is about to get its row has no id yet; zero stands for it until then.
            page_id = self.page_ids.get(value.document, 0) if value.document else None
            new = rows.node_row(value, source_id=self.graph.pk, page_id=page_id)
            self._compare(plan, self.report.nodes, stored.get(uid), new, rows.NODE_COMPARED, uid, value.document)
        gone = [row for uid, row in stored.items() if wanted.get(uid) is None]
        for row in gone:
            self.report.nodes.note("removed", row.node_uid)
        plan.delete += gone
        return plan

    def _compare_edges(self, stored: Mapping[str, Edge]) -> _Plan:
        plan = _Plan()
        found = dict(stored)
        missing = [uid for uid in self.desired.edges if uid not in found]
        if missing and not self.whole:
            # An edge may pass from one page to another, with the slug; and a guess may have become written text.
            for row in Edge.objects.filter(source=self.graph, edge_uid__in=missing):
                found[row.edge_uid] = row
        elif missing:
            inferred = Edge.objects.filter(source=self.graph, provenance="inferred")
            found |= {row.edge_uid: row for row in inferred if row.edge_uid in self.desired.edges}
        for uid, value in self.desired.edges.items():
            page_id = self.page_ids.get(value.document, 0) if value.document else None
            new = rows.edge_row(value, source_id=self.graph.pk, page_id=page_id)
            old = found.get(uid)
            if old is not None and old.provenance == "inferred":
                new.payload = {}
            self._compare(plan, self.report.edges, old, new, rows.EDGE_COMPARED, uid, value.document)
        for uid, row in stored.items():
            if uid not in self.desired.edges:
                self.report.edges.note("removed", uid)
                plan.delete.append(row)
        return plan

    def _compare_evidence(self) -> _Plan:
        plan = _Plan()
        stored: defaultdict[int, list[Evidence]] = defaultdict(list)
        for row in self._in_scope(Evidence).order_by("page_id", "ordinal"):
            stored[row.page_id].append(row)
        for document, values in self.desired.evidence.items():
            page_id = self.page_ids.get(document, 0)
            new = [
                rows.evidence_row(value, source_id=self.graph.pk, page_id=page_id, ordinal=place)
                for place, value in enumerate(values)
            ]
            old = stored.pop(page_id, [])
            for before, after in _matched(old, new):
                if after is None:
                    assert before is not None  # noqa: S101 - told by the type of the pairs
                    plan.delete.append(before)
                    self.report.evidence.note("removed", before.raw)
                    continue
                name = f"{after.raw} (line {after.line})"
                self._compare(plan, self.report.evidence, before, after, rows.EVIDENCE_COMPARED, name, document)
                changed = hasattr(before, "replacement")
                if before is not None and not changed and _differ(before, after, rows.EVIDENCE_SILENT):
                    _take(before, after, rows.EVIDENCE_SILENT)
                    plan.silent.append(before)
        for left in stored.values():
            for row in left:
                plan.delete.append(row)
                self.report.evidence.note("removed", row.raw)
        return plan

    def _compare(
        self, plan: _Plan, counts: Change, old: Any, new: Any, names: Sequence[str], name: str, document: UUID | None
    ) -> None:
        new.document = document
        if old is None:
            plan.insert.append(new)
            counts.note("added", name)
        elif _differ(old, new, names):
            old.replacement = new
            plan.update.append(old)
            counts.note("changed", name)

    # -- writing

    def _revision(self, cause: str, change: str) -> int:
        graph = self.graph
        graph.refresh_from_db(fields=["revision"])
        last = GraphRevision.objects.filter(source=graph, number=graph.revision).first()
        if not change or last is None or last.change != change:
            graph.revision += 1
            GraphRevision.objects.create(source=graph, number=graph.revision, change=change, cause=cause)
        graph.changed_at = timezone.now()
        graph.save(update_fields=["revision", "changed_at"])
        return graph.revision

    def _write(self, nodes: _Plan, edges: _Plan, evidence: _Plan) -> None:
        revision = self.report.revision or self.graph.revision
        for table, plan in (("kb_nodes", nodes), ("kb_edges", edges), ("kb_evidence", evidence)):
            _close(table, [row.pk for row in (*plan.update, *plan.delete)], revision)
        self._write_pages()
        # Rows that point come after what they point to, and go before it.
        self._insert(Node, nodes, revision, rows.NODE_COMPARED)
        self._insert(Edge, edges, revision, (*rows.EDGE_COMPARED, "payload"))
        _delete(Evidence, evidence.delete)
        self._insert(Evidence, evidence, revision, (*rows.EVIDENCE_COMPARED, *rows.EVIDENCE_SILENT))
        if evidence.silent:
            Evidence.objects.bulk_update(evidence.silent, list(rows.EVIDENCE_SILENT), batch_size=_UPDATED)
        _delete(Edge, edges.delete)
        _delete(Node, nodes.delete)
        self._write_references()
        self._drop_inferred(nodes, edges)

    def _insert(self, model: Any, plan: _Plan, revision: int, names: Sequence[str]) -> None:
        for row in plan.insert:
            row.valid_from = revision
            self._give_page(row)
        copy_rows(model, plan.insert)
        for row in plan.update:
            self._give_page(row.replacement)
            _take(row, row.replacement, names)
            row.valid_from = revision
        if plan.update:
            columns = ["page" if name == "page_id" else name for name in names]
            model.objects.bulk_update(plan.update, [*columns, "valid_from"], batch_size=_UPDATED)

    def _give_page(self, row: Any) -> None:
        if row.page_id == 0:
            row.page_id = self.page_ids[row.document]

    def _write_pages(self) -> None:
        insert: list[CanonicalPage] = []
        update: list[CanonicalPage] = []
        former: list[CanonicalPage] = []
        moving: list[int] = []
        kind = "repository_document_id" if self.graph.kind == "repository" else "document_id"
        for document, pair in self.desired.pages.items():
            row = self.stored.get(document)
            if pair is None:
                if row is not None and row.header_state != "former":
                    row.bears, row.header_state, row.names, row.problems = False, "former", [], []
                    former.append(row)
                continue
            page, bears = pair
            columns = rows.page_columns(page, bears=bears, projector=PROJECTOR)
            if document not in self.desired.read:
                # From stored rows, which know neither its problems nor what else its text says.
                columns = {"bears": bears}
            if row is None:
                insert.append(CanonicalPage(source=self.graph, **{kind: document}, **columns))
            elif any(getattr(row, name) != value for name, value in columns.items()):
                if not bears or row.uid != page.uid:
                    moving.append(row.pk)
                for name, value in columns.items():
                    setattr(row, name, value)
                update.append(row)
        if self.whole:
            for document, row in self.stored.items():
                if document not in self.desired.pages and row.header_state != "former":
                    row.bears, row.header_state, row.names, row.problems = False, "former", [], []
                    former.append(row)
        # Whoever loses a slug lets go of it before another takes it.
        moving += [row.pk for row in former]
        CanonicalPage.objects.filter(pk__in=moving, bears=True).update(bears=False)
        if update or former:
            CanonicalPage.objects.bulk_update([*former, *update], list(rows.PAGE_COMPARED), batch_size=500)
        for row in CanonicalPage.objects.bulk_create(insert, batch_size=_BATCH):
            self.page_ids[row.document_key] = row.pk

    def _write_references(self) -> None:
        concerned = [self.page_ids[document] for document in self.desired.read if document in self.page_ids]
        concerned += [self.page_ids[d] for d, pair in self.desired.pages.items() if pair is None and d in self.page_ids]
        if self.whole:
            stored = CrossSourceReference.objects.filter(source=self.graph)
        else:
            stored = CrossSourceReference.objects.filter(source=self.graph, page__in=concerned)
        wanted = [
            rows.reference_row(value, source_id=self.graph.pk, page_id=self.page_ids[document])
            for document, pair in self.desired.pages.items()
            if pair is not None and document in self.desired.read
            for value in pair[0].references
        ]
        names = [each.attname for each in CrossSourceReference._meta.concrete_fields if each.attname != "id"]

        def form(row: CrossSourceReference) -> tuple[Any, ...]:
            return tuple(getattr(row, name) for name in names)

        present = list(stored.order_by("id"))
        if sorted(map(form, present), key=repr) != sorted(map(form, wanted), key=repr):
            stored.delete()
            CrossSourceReference.objects.bulk_create(wanted, batch_size=_BATCH)

    def _drop_inferred(self, nodes: _Plan, edges: _Plan) -> None:
        """Guesses end with one of their pages, and where a person has written an edge between the two."""
        uids = {row.node_uid for row in (*nodes.insert, *nodes.update, *nodes.delete)}
        uids |= {uid for row in edges.insert for uid in (row.from_uid, row.to_uid)}
        if not uids:
            return
        touched = Edge.objects.filter(source=self.graph, provenance="inferred").filter(
            Q(from_uid__in=uids) | Q(to_uid__in=uids)
        )
        doomed = []
        for row in touched.select_related("from_node", "to_node"):
            pair = Q(from_uid=row.from_uid, to_uid=row.to_uid) | Q(from_uid=row.to_uid, to_uid=row.from_uid)
            written = Edge.objects.filter(pair, source=self.graph).exclude(provenance="inferred")
            if row.from_node.dangling or row.to_node.dangling or written.exists():
                doomed.append(row)
        if doomed:
            _close("kb_edges", [row.pk for row in doomed], self.report.revision or self.graph.revision)
            _delete(Edge, doomed)


def copy_rows(model: Any, new: Sequence[Any]) -> None:
    """Insert rows whose ids nobody asks for. By COPY: statements with thousands of parameters cost ten times more."""
    if not new:
        return
    fields = [each for each in model._meta.concrete_fields if not each.primary_key and not each.generated]
    names = ", ".join(connection.ops.quote_name(each.column) for each in fields)
    json_names = {each.attname for each in fields if isinstance(each, JSONField)}
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY {model._meta.db_table} ({names}) FROM STDIN") as copy,
    ):
        for row in new:
            copy.write_row(
                [
                    Jsonb(getattr(row, each.attname)) if each.attname in json_names else getattr(row, each.attname)
                    for each in fields
                ]
            )


def _matched(
    old: Sequence[Evidence], new: Sequence[Evidence]
) -> Iterable[tuple[Evidence, Evidence] | tuple[None, Evidence] | tuple[Evidence, None]]:
    """Pairs of what stands and what should: the same place first, then the same words in the same order."""

    def placed(row: Evidence) -> tuple[Any, ...]:
        return (*(getattr(row, name) for name in rows.EVIDENCE_IDENTITY), row.line, row.column)

    def worded(row: Evidence) -> tuple[Any, ...]:
        return tuple(getattr(row, name) for name in rows.EVIDENCE_IDENTITY)

    pairs: list[tuple[Evidence, Evidence]] = []
    left: Sequence[Evidence] = old
    missing: Sequence[Evidence] = new
    for key in (placed, worded):
        pairs_now, left, missing = _pair(left, missing, key)
        pairs += pairs_now
    yield from pairs
    for row in missing:
        yield None, row
    for row in left:
        yield row, None


def _pair(
    old: Sequence[Evidence], new: Sequence[Evidence], key: Callable[[Evidence], tuple[Any, ...]]
) -> tuple[list[tuple[Evidence, Evidence]], list[Evidence], list[Evidence]]:
    waiting: defaultdict[tuple[Any, ...], deque[Evidence]] = defaultdict(deque)
    for row in old:
        waiting[key(row)].append(row)
    pairs: list[tuple[Evidence, Evidence]] = []
    missing: list[Evidence] = []
    taken: set[int] = set()
    for row in new:
        candidates = waiting.get(key(row))
        if candidates:
            before = candidates.popleft()
            taken.add(before.pk)
            pairs.append((before, row))
        else:
            missing.append(row)
    return pairs, [row for row in old if row.pk not in taken], missing


def _differ(old: Any, new: Any, names: Iterable[str]) -> bool:
    return any(getattr(old, name) != getattr(new, name) for name in names)


def _take(old: Any, new: Any, names: Iterable[str]) -> None:
    for name in names:
        setattr(old, name, getattr(new, name))


def _close(table: str, ids: Collection[int], revision: int) -> None:
    if not ids:
        return
    columns = _TWINS[table]
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {table}_past (source_id, page_id, row, valid_from, valid_to, {columns})"  # noqa: S608
            f" SELECT source_id, page_id, id, valid_from, %s, {columns} FROM {table}"
            " WHERE id = ANY(%s) AND valid_from < %s",
            [revision, list(ids), revision],
        )


def _delete(model: Any, doomed: Sequence[Any]) -> None:
    ids = [row.pk for row in doomed]
    for start in range(0, len(ids), 10_000):
        model.objects.filter(pk__in=ids[start : start + 10_000])._raw_delete("default")
