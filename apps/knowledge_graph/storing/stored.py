"""The stored rows of a source that a change concerns, each read once.

Plain statements: a change of one page costs a dozen of them, and building each by the query sets of Django costs more
than the database needs to answer it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import Any
from uuid import UUID

from django.db import connection

from apps.knowledge_graph.models import GraphSource
from apps.knowledge_graph.storing.rows import (
    EVIDENCE_COLUMNS,
    PAGE_COLUMNS,
    EdgeRow,
    EvidenceRow,
    NodeRow,
    PageRow,
)

_PAGES = (
    "SELECT p.id, p.{key}, d.trashed_at IS NULL,"  # noqa: S608 - of constants
    " EXISTS (SELECT FROM kb_cross_source_references r WHERE r.page_id = p.id), "
    + ", ".join(f"p.{name}" for name in PAGE_COLUMNS)
    + " FROM kb_pages p LEFT JOIN md_documents d ON d.id = p.document_id WHERE p.source_id = %(source)s"
)
_CLAIMANTS = (
    "WITH mine AS MATERIALIZED (SELECT id, uid FROM kb_pages WHERE {key} = ANY(%(documents)s)) "  # noqa: S608 - of constants
    + _PAGES
    + " AND p.id IN (SELECT id FROM mine UNION SELECT c.id FROM kb_pages c WHERE c.source_id = %(source)s"
    " AND c.uid IN (SELECT uid FROM mine UNION SELECT unnest(%(uids)s::text[])))"
)
_WANTING = (
    "SELECT p.{key} FROM kb_pages p WHERE p.id IN (SELECT v.page_id FROM kb_evidence v"
    " WHERE v.source_id = %(source)s AND v.wanted && %(names)s::text[])"
)
_BEARING = (
    "SELECT p.{key}, p.uid, p.node_type, p.path, d.trashed_at IS NULL, true, p.names"
    " FROM unnest(%(names)s::text[]) AS w (name) JOIN kb_pages p ON p.names @> ARRAY[w.name]"
    " LEFT JOIN md_documents d ON d.id = p.document_id WHERE p.source_id = %(source)s AND p.bears"
)
_EDGES = (
    "SELECT e.id, e.edge_uid, e.from_uid, e.to_uid, e.page_id, e.weight, e.provenance, e.type_source FROM kb_edges e"
    " WHERE e.source_id = %(source)s"
)
_EVIDENCE = (
    "SELECT v.id, v.page_id, "  # noqa: S608 - of constants
    + ", ".join(f'v."{name}"' for name in EVIDENCE_COLUMNS)
    + " FROM kb_evidence v WHERE v.source_id = %(source)s"
)
_NODE_COLUMNS = "n.id, n.node_uid, n.page_id, n.node_type, n.label, n.status, n.priority, n.payload"
_ENDS = (
    # Whether a page out of reach of this change bears the slug, or else an edge out of its reach leads there.
    "SELECT w.uid, w.borne, NOT w.borne AND EXISTS (SELECT FROM kb_edges e WHERE e.source_id = %(source)s"  # noqa: S608 - of constants
    " AND e.to_uid = w.uid AND e.provenance <> 'inferred' AND e.page_id <> ALL(%(pages)s)), "
    + _NODE_COLUMNS
    + " FROM (SELECT u.uid, EXISTS (SELECT FROM kb_pages p WHERE p.source_id = %(source)s"
    " AND p.uid = u.uid AND p.bears AND p.id <> ALL(%(pages)s)) AS borne FROM unnest(%(uids)s::text[]) AS u (uid)"
    " OFFSET 0) w LEFT JOIN kb_nodes n ON n.source_id = %(source)s AND n.node_uid = w.uid"
)


class StoredRows:
    """Rows of some pages of a source: by `read_claimants` and `read_documents`, or of all of them by `read_all`.

    ``pages`` holds former pages too.
    """

    def __init__(self, graph: GraphSource) -> None:
        self.graph = graph
        self._key = "repository_document_id" if graph.kind == "repository" else "document_id"
        self.pages: dict[UUID, PageRow] = {}
        self.evidence: defaultdict[int, list[EvidenceRow]] = defaultdict(list)

    def read_claimants(self, documents: Iterable[UUID], uids: Iterable[str]) -> None:
        self._read_pages(_CLAIMANTS, documents=list(documents), uids=list(uids))

    def read_documents(self, documents: Collection[UUID]) -> None:
        """The pages of documents that are not read yet, and the evidence of all of ``documents``."""
        if missing := [document for document in documents if document not in self.pages]:
            self._read_pages(_PAGES + " AND p.{key} = ANY(%(documents)s)", documents=missing)
        pages = [self.pages[document].id for document in documents if document in self.pages]
        if pages:
            self._read_evidence(" AND v.page_id = ANY(%(pages)s)", pages=pages)

    def read_all(self) -> None:
        self._read_pages(_PAGES)
        self._read_evidence("")

    def _rows(self, statement: str, **params: Any) -> list[tuple[Any, ...]]:
        with connection.cursor() as cursor:
            cursor.execute(statement.replace("{key}", self._key), {"source": self.graph.pk, **params})
            found: list[tuple[Any, ...]] = cursor.fetchall()
            return found

    def _read_pages(self, statement: str, **params: Any) -> None:
        for id_, document, live, crossing, *columns in self._rows(statement, **params):
            row = PageRow(id_, document, live, crossing, *columns)
            self.pages[document] = row._replace(header=_json(row.header), problems=_json(row.problems))

    def _read_evidence(self, condition: str, **params: Any) -> None:
        statement = f"{_EVIDENCE}{condition} ORDER BY v.page_id, v.ordinal"
        for row in map(EvidenceRow._make, self._rows(statement, **params)):
            self.evidence[row.page_id].append(row)

    def wanting(self, names: Collection[str]) -> set[UUID]:
        """Documents with an occurrence that wants one of ``names``."""
        return {row[0] for row in self._rows(_WANTING, names=sorted(names))}

    def bearing(self, names: Collection[str]) -> list[tuple[Any, ...]]:
        """(document, uid, type, path, live, true, names) of pages that bear their slug and one of ``names``; for each
        of these names once, since looking up one at a time is what the planner leaves to the index."""
        return self._rows(_BEARING, names=sorted(names))

    def edges_of(self, pages: Collection[int] | None) -> dict[str, EdgeRow]:
        """The written edges of some pages, or of all."""
        condition = " AND e.provenance <> 'inferred'"
        if pages is None:
            return self._edges(condition)
        return self._edges(f"{condition} AND e.page_id = ANY(%(pages)s)", pages=list(pages)) if pages else {}

    def edges_named(self, uids: Collection[str]) -> dict[str, EdgeRow]:
        """Edges of these uids, guesses too."""
        return self._edges(" AND e.edge_uid = ANY(%(uids)s)", uids=list(uids)) if uids else {}

    def guesses(self) -> dict[str, EdgeRow]:
        return self._edges(" AND e.provenance = 'inferred'")

    def _edges(self, condition: str, **params: Any) -> dict[str, EdgeRow]:
        found = map(EdgeRow._make, self._rows(f"{_EDGES}{condition}", **params))
        return {row.edge_uid: row for row in found}

    def nodes(self) -> dict[str, NodeRow]:
        statement = f"SELECT {_NODE_COLUMNS} FROM kb_nodes n WHERE n.source_id = %(source)s"  # noqa: S608 - constants
        return {row[1]: _node(row) for row in self._rows(statement)}

    def ends(self, uids: Collection[str], pages: Collection[int]) -> tuple[dict[str, NodeRow], set[str], set[str]]:
        """Of ``uids``: the stored nodes; those borne by other pages than ``pages``; of the others, those that an edge
        of other pages leads to."""
        nodes: dict[str, NodeRow] = {}
        borne: set[str] = set()
        linked: set[str] = set()
        if not uids:
            return nodes, borne, linked
        for uid, is_borne, is_linked, *node in self._rows(_ENDS, uids=list(uids), pages=list(pages)):
            if node[0] is not None:
                nodes[uid] = _node(node)
            if is_borne:
                borne.add(uid)
            if is_linked:
                linked.add(uid)
        return nodes, borne, linked


def _node(row: Any) -> NodeRow:
    found = NodeRow._make(row)
    return found._replace(payload=_json(found.payload))


def _json(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value
