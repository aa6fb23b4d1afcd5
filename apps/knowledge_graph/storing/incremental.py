"""One change of documents to the stored graph: what it can reach is projected again, from stored rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

from apps.knowledge_graph.models import GraphSource
from apps.knowledge_graph.projection import Projected, Reprojection, StoredPage, reproject
from apps.knowledge_graph.storing import rows
from apps.knowledge_graph.storing.applying import Desired, apply
from apps.knowledge_graph.storing.report import Report
from apps.knowledge_graph.storing.stored import StoredRows
from apps.knowledge_graph.values import Page


class StoredPages:
    """`projection.Pages` over the tables of one source. ``rows`` keeps what was read of the documents concerned."""

    def __init__(self, graph: GraphSource) -> None:
        self.rows = StoredRows(graph)

    def claimants(self, documents: Collection[UUID], uids: Collection[str]) -> Sequence[StoredPage]:
        self.rows.read_claimants(documents, uids)
        return [
            StoredPage(row.document, row.uid, row.node_type, row.path, row.live, row.bears, tuple(row.names))
            for row in self.rows.pages.values()
            if row.header_state != "former"
        ]

    def wanting(self, names: Collection[str]) -> Collection[UUID]:
        return self.rows.wanting(names)

    def bearing(self, names: Collection[str]) -> Sequence[StoredPage]:
        return [
            StoredPage(document, uid, node_type, path, live, bears, tuple(names_))
            for document, uid, node_type, path, live, bears, names_ in self.rows.bearing(names)
        ]

    def load(self, documents: Collection[UUID]) -> Mapping[UUID, Projected]:
        self.rows.read_documents(documents)
        found = {}
        for document in documents:
            row = self.rows.pages.get(document)
            if row is not None and row.header_state != "former":
                evidence = self.rows.evidence.get(row.id, ())
                answers = {rows.question_of(each): rows.answer_of(each) for each in evidence}
                found[document] = Projected(rows.page_value(row, evidence), row.bears, answers)
        return found


def desired_of(result: Reprojection, read: Collection[UUID]) -> Desired:
    desired = Desired(read=set(read))
    for document, graph in result.graphs.items():
        if graph is None:
            desired.pages[document] = None
            continue
        desired.pages[document] = (result.pages[document], graph.node is not None)
        desired.evidence[document] = graph.evidence
        desired.edges.update(graph.edges)
        if graph.node is not None:
            desired.nodes[graph.node.uid] = graph.node
    return desired


def change_documents(
    graph: GraphSource, changes: Mapping[UUID, Page | None], *, cause: str, change: str = ""
) -> Report:
    """Project changed documents (None: no page any more) and what they reach. The caller holds lock and transaction."""
    store = StoredPages(graph)
    result = reproject(store, changes)
    read = {document for document, page in changes.items() if page is not None}
    return apply(store.rows, desired_of(result, read), whole=False, cause=cause, change=change)
