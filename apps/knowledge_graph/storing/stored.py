"""The stored rows of a source that a change concerns, each read once.

Plain statements: a change of one page costs a dozen of them, and building each by the query sets of Django costs more
than the database needs to answer it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from apps.access.cursors import prepared_cursor
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
    _PAGES + " AND p.uid IN (SELECT m.uid FROM kb_pages m WHERE m.{key} = ANY(%(documents)s) UNION ALL"  # noqa: S608
    " SELECT unnest(%(uids)s::text[]))"
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
    "SELECT w.uid, w.borne, NOT w.borne AND EXISTS (SELECT FROM kb_edges e WHERE e.source_id = %(source)s"  # noqa: S608
    f" AND e.to_uid = w.uid AND e.provenance <> 'inferred' AND e.page_id <> ALL(%(pages)s)), {_NODE_COLUMNS}"
    " FROM (SELECT u.uid, EXISTS (SELECT FROM kb_pages p WHERE p.source_id = %(source)s AND p.uid = u.uid AND p.bears"
    " AND p.id <> ALL(%(pages)s)) AS borne FROM unnest(%(uids)s::text[]) AS u (uid) OFFSET 0) w"
    " LEFT JOIN kb_nodes n ON n.source_id = %(source)s AND n.node_uid = w.uid"
)


@dataclass(slots=True)
class Ends:
    """What stands at some uids: those that other pages bear; of the rest, those that an edge of other pages leads to;
    their nodes."""

    borne: set[str] = field(default_factory=set)
    linked: set[str] = field(default_factory=set)
    nodes: dict[str, NodeRow] = field(default_factory=dict)


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
        with prepared_cursor() as cursor:
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

    def edges(self, pages: Collection[int] | None = None, uids: Collection[str] = ()) -> dict[str, EdgeRow]:
        """The edges of these pages and those of these uids, guesses too; or all."""
        if pages is None:
            found = self._rows(_EDGES)
        else:
            condition = " AND (e.page_id = ANY(%(pages)s) OR e.edge_uid = ANY(%(uids)s::text[]))"
            found = self._rows(_EDGES + condition, pages=list(pages), uids=list(uids)) if pages or uids else []
        return {row.edge_uid: row for row in map(EdgeRow._make, found)}

    def nodes(self) -> dict[str, NodeRow]:
        """All nodes."""
        statement = f"SELECT {_NODE_COLUMNS} FROM kb_nodes n WHERE n.source_id = %(source)s"  # noqa: S608 - constants
        return {row[1]: _node(row) for row in self._rows(statement)}

    def ends(self, uids: Collection[str], pages: Collection[int]) -> Ends:
        """What stands at ``uids``, the pages ``pages`` left aside; by one statement."""
        found = Ends()
        for uid, borne, linked, *columns in self._rows(_ENDS, uids=list(uids), pages=list(pages)) if uids else ():
            if borne:
                found.borne.add(uid)
            if linked:
                found.linked.add(uid)
            if columns[0] is not None:
                found.nodes[uid] = _node(columns)
        return found


def _node(row: Any) -> NodeRow:
    found = NodeRow._make(row)
    return found._replace(payload=_json(found.payload))


def _json(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value
