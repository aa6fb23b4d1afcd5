"""The two views that lint takes: the stored graph (commands, admin) and a reader's (pages, API, MCP)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

import orjson
from django.conf import settings
from django.db.models import F

from apps.indexing.statements import gathered
from apps.knowledge_graph.linting.values import (
    GraphFinding,
    LintEdge,
    LintEvidence,
    LintInput,
    LintNode,
    LintPage,
)
from apps.knowledge_graph.models import CanonicalPage, Edge, Evidence, GraphSource, Node, NodePast
from apps.knowledge_graph.reader import Overlay, open_graph
from apps.knowledge_graph.reading.header import read_front
from apps.knowledge_graph.reading.pages import plain_problems
from apps.knowledge_graph.storing.documents import PlainDocument, plain_document, plain_rows
from apps.knowledge_graph.storing.rows import evidence_row
from apps.knowledge_graph.storing.sources import find_graph
from apps.knowledge_graph.values import Problem
from apps.markup.front_matter import read_front_matter
from apps.markup.values import Limits

if TYPE_CHECKING:
    from apps.access.sources import Source
    from apps.access.viewers import Viewer


def stored_input(source: Source) -> LintInput:
    """The stored graph: pages in the trash are seen as deleted targets."""
    graph = find_graph(source.kind, source.pk)
    given = LintInput(source_names(source))
    if graph is not None:
        nodes = Node.objects.filter(source=graph).select_related("page__document").order_by("node_uid")
        given.nodes = {
            row.node_uid: LintNode(
                row.node_uid,
                row.node_type,
                row.label,
                row.status,
                row.page_id,
                row.page is not None and row.page.document is not None and row.page.document.trashed_at is not None,
            )
            for row in nodes
        }
        edges = Edge.objects.filter(source=graph).exclude(provenance="inferred")
        given.edges = [
            LintEdge(*row)
            for row in edges.values_list("edge_uid", "from_uid", "to_uid", "edge_type").order_by("edge_uid")
        ]
    _add_stored(given, source, graph, Evidence.objects.filter(source=graph))
    return given


_SEEN = """
    SELECT
        (SELECT json_agg(json_build_array(n.node_uid, n.node_type, n.label, n.status, n.page_id) ORDER BY n.node_uid)
         FROM {nodes} n WHERE n.source_id = %(source)s)::text AS nodes,
        (SELECT json_agg(json_build_array(e.from_uid, e.to_uid, e.edge_type)
                         ORDER BY e.from_uid, e.to_uid, e.edge_type)
         FROM {edges} e WHERE e.source_id = %(source)s AND e.provenance <> 'inferred')::text AS edges
"""


def reader_input(viewer: Viewer, source: Source) -> LintInput:
    """What the viewer sees of ``source``, which the viewer may read. Three statements, whatever there is."""
    reader, graph = open_graph(viewer, source)
    given = LintInput(source_names(source))
    overlay = Overlay()
    if graph is not None:
        [seen] = reader.rows(_SEEN, source=graph.pk)
        given.nodes = {row[0]: LintNode(*row) for row in orjson.loads(seen["nodes"] or "[]")}
        given.edges = [
            LintEdge(f"{begin}>{edge_type}>{end}", begin, end, edge_type)
            for begin, end, edge_type in orjson.loads(seen["edges"] or "[]")
        ]
        overlay = reader.overlays.get(graph.pk) or overlay
    _add_stored(given, source, graph, Evidence.objects.filter(source=graph).exclude(page__in=overlay.pages))
    for page_id, value in overlay.evidence:
        given.evidence.append(_evidence(vars(evidence_row(value, source_id=graph.pk if graph else 0, page_id=page_id))))
    return given


def source_names(source: Source) -> tuple[str, ...]:
    """What ``project:`` may say: the slug, of a repository also its last part."""
    slug = str(getattr(source, "slug", ""))
    return tuple(dict.fromkeys((slug.rpartition("/")[2], slug)))


_EVIDENCE = (
    "page_id", "outcome", "edge_uid", "target", "raw", "line", "column", "anchor", "mode", "weight", "rivals",
    "problem",
)  # fmt: skip


def _evidence(row: Mapping[str, Any]) -> LintEvidence:
    values = {name: row[name] for name in _EVIDENCE[1:]}
    values["weight"] = float(row["weight"]) if row["weight"] is not None else None
    values["rivals"] = tuple(row["rivals"])
    return LintEvidence(page=row["page_id"], **values)


_PAGE = ("pk", "key", "path", "uid", "node_type", "label", "status", "header", "problems", "anchors")


def _add_stored(given: LintInput, source: Source, graph: GraphSource | None, evidence: Any) -> None:
    """Evidence, pages with their former slugs, and the documents that are no pages, by one statement."""
    kept = CanonicalPage.objects.filter(source=graph).kept().live() if graph else CanonicalPage.objects.none()
    kind, anchors = "document", "document__parsed__anchors"
    if source.kind == "repository":
        kind, anchors = "repository_document", "repository_document__anchors"
    # A node of the past that bears the slug of today says nothing new.
    past = NodePast.objects.filter(source=graph, page__in=kept.values("pk")).exclude(node_uid=F("page__uid"))
    stored, pages, former, plain = gathered(
        evidence.values(*_EVIDENCE),
        kept.with_key().annotate(anchors=F(anchors)).order_by("path").values(*_PAGE),
        past.order_by("valid_to").values("node_uid", "page"),
        plain_rows(source.kind, source.pk, kept.values(kind)),
    )
    given.evidence = [_evidence(row) for row in stored]
    bears = {node.page for node in given.nodes.values() if node.page is not None}
    given.pages = [_page(row, row["pk"] in bears) for row in pages]
    now = {page.id: page.uid for page in given.pages if page.bears}
    missing = {uid for uid, node in given.nodes.items() if node.page is None}
    given.former = {
        row["node_uid"]: now[row["page"]] for row in former if row["node_uid"] in missing and row["page"] in now
    }
    _add_plain(given, [plain_document(row) for row in plain])


def _page(row: Mapping[str, Any], bears: bool) -> LintPage:
    header = row["header"]
    return LintPage(
        row["pk"],
        UUID(row["key"]),
        row["path"],
        row["uid"],
        row["node_type"],
        row["label"],
        row["status"],
        bears,
        tuple(header["aliases"]),
        header["project"],
        header["project_line"],
        row["problems"],
        row["anchors"] or (),
    )


def _add_plain(given: LintInput, others: Sequence[PlainDocument]) -> None:
    """Markdown documents that are no pages: near misses, broken headers, open fences; and their paths, for hints.

    In a source without any page only what speaks of our own words is told: there the graph is not there.
    """
    with_pages = bool(given.pages)
    given.plain_paths = sorted(row.path for row in others)
    bounds = settings.COGRAPH.markup
    for document in others:
        for problem in _problems(document, bounds):
            if with_pages or problem.rule == "KG114" or not problem.message.startswith("YAML"):
                given.plain.append(
                    GraphFinding(
                        problem.rule,
                        problem.severity,
                        problem.message,
                        document.path,
                        problem.line,
                        problem.column,
                        problem.hint,
                        problem.names or problem.message,
                        (),
                        document.id,
                        None,
                        (problem.written, problem.replacement) if problem.written else None,
                    )
                )
        open_fences = [row for row in document.warnings if row["code"] == "unclosed_fence"] if with_pages else []
        given.plain += [
            GraphFinding(
                "KG118",
                "warning",
                row["message"],
                document.path,
                row["line"],
                row["column"],
                "close the fence",
                "fence",
                (),
                document.id,
            )
            for row in open_fences
        ]


def _problems(document: PlainDocument, bounds: Limits) -> Sequence[Problem]:
    if not document.text:
        return ()
    front = read_front_matter(document.text, document.path, bounds)
    return plain_problems(read_front(document.text, front.metadata, front.values, front.warnings))
