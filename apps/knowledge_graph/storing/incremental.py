"""One change of documents to the stored graph: what it can reach is projected again, from stored rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any
from uuid import UUID

from apps.knowledge_graph.models import CanonicalPage, Evidence, GraphSource
from apps.knowledge_graph.projection import Reprojection, StoredPage, reproject
from apps.knowledge_graph.storing import rows
from apps.knowledge_graph.storing.applying import Desired, Report, apply
from apps.knowledge_graph.values import Page


class StoredPages:
    """`projection.Pages` over the tables of one source."""

    def __init__(self, graph: GraphSource) -> None:
        self._graph = graph
        self._rows = CanonicalPage.objects.filter(source=graph).kept().with_key()

    def _forms(self, rows_: Any) -> list[StoredPage]:
        fields = ("key", "uid", "node_type", "path", "document__trashed_at", "bears", "names")
        return [
            StoredPage(key, uid, node_type, path, trashed is None, bears, tuple(names))
            for key, uid, node_type, path, trashed, bears, names in rows_.values_list(*fields)
        ]

    def stored(self, documents: Collection[UUID]) -> Sequence[StoredPage]:
        return self._forms(self._rows.of_documents(documents)) if documents else []

    def claimants(self, uids: Collection[str]) -> Sequence[StoredPage]:
        return self._forms(self._rows.filter(uid__in=list(uids))) if uids else []

    def wanting(self, names: Collection[str]) -> Collection[UUID]:
        found = Evidence.objects.filter(source=self._graph, wanted__overlap=sorted(names))
        pages = CanonicalPage.objects.filter(pk__in=found.values("page")).with_key()
        return set(pages.values_list("key", flat=True))

    def bearing(self, names: Collection[str]) -> Sequence[StoredPage]:
        return self._forms(self._rows.filter(bears=True, names__overlap=sorted(names)))

    def load(self, documents: Collection[UUID]) -> Sequence[Page]:
        if not documents:
            return []
        pages = list(self._rows.of_documents(documents).select_related("document"))
        evidence: defaultdict[int, list[Evidence]] = defaultdict(list)
        for row in Evidence.objects.filter(page__in=[page.pk for page in pages]).order_by("page_id", "ordinal"):
            evidence[row.page_id].append(row)
        return [
            rows.page_value(
                page,
                document=page.key,
                live=page.document is None or page.document.trashed_at is None,
                evidence=evidence[page.pk],
            )
            for page in pages
        ]


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
    result = reproject(StoredPages(graph), changes)
    read = {document for document, page in changes.items() if page is not None}
    return apply(graph, desired_of(result, read), whole=False, cause=cause, change=change)
