"""The two views that lint takes: the stored graph (commands, admin) and a reader's (pages, API, MCP)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db.models import F

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
from apps.knowledge_graph.storing.documents import PlainDocument, plain_documents
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
        given.evidence = [_evidence(row) for row in Evidence.objects.filter(source=graph)]
        bears = {node.page for node in given.nodes.values() if node.page is not None}
        _add_pages(given, graph, bears)
    _add_plain(given, source)
    return given


def reader_input(viewer: Viewer, source: Source) -> LintInput:
    """What the viewer sees of ``source``, which the viewer may read."""
    reader, graph = open_graph(viewer, source)
    given = LintInput(source_names(source))
    if graph is not None:
        given.nodes = {
            node.uid: LintNode(node.uid, node.node_type, node.label, node.status, node.page)
            for node in reader.all_nodes(graph.pk)
        }
        given.edges = [
            LintEdge(edge.uid, edge.from_uid, edge.to_uid, edge.edge_type)
            for edge in reader.all_edges(graph.pk, inferred=False)
        ]
        overlay = reader.overlays.get(graph.pk) or Overlay()
        stored = Evidence.objects.filter(source=graph).exclude(page__in=overlay.pages)
        given.evidence = [_evidence(row) for row in stored] + [
            _evidence(evidence_row(value, source_id=graph.pk, page_id=page_id)) for page_id, value in overlay.evidence
        ]
        _add_pages(given, graph, {node.page for node in given.nodes.values() if node.page is not None})
    _add_plain(given, source)
    return given


def source_names(source: Source) -> tuple[str, ...]:
    """What ``project:`` may say: the slug, of a repository also its last part."""
    slug = str(getattr(source, "slug", ""))
    return tuple(dict.fromkeys((slug.rpartition("/")[2], slug)))


def _evidence(row: Any) -> LintEvidence:
    return LintEvidence(
        row.page_id,
        row.outcome,
        row.edge_uid,
        row.target,
        row.raw,
        row.line,
        row.column,
        row.anchor,
        row.mode,
        float(row.weight) if row.weight is not None else None,
        tuple(row.rivals),
        row.problem,
    )


def _add_pages(given: LintInput, graph: GraphSource, bears: Collection[int]) -> None:
    named = "repository_document__anchors" if graph.kind == "repository" else "document__parsed__anchors"
    rows = CanonicalPage.objects.filter(source=graph).kept().live().with_key().order_by("path")
    given.pages = [
        LintPage(
            row.pk,
            row.key,
            row.path,
            row.uid,
            row.node_type,
            row.label,
            row.status,
            row.pk in bears,
            tuple(row.header["aliases"]),
            row.header["project"],
            row.header["project_line"],
            row.problems,
            row.anchors or (),
        )
        for row in rows.annotate(anchors=F(named))
    ]
    given.former = _former(graph, given)


def _former(graph: GraphSource, given: LintInput) -> dict[str, str]:
    """Slugs that a page of the present had in the past."""
    missing = [uid for uid, node in given.nodes.items() if node.page is None]
    now = {page.id: page.uid for page in given.pages if page.bears}
    rows = NodePast.objects.filter(source=graph, node_uid__in=missing, page__in=list(now)).order_by("valid_to")
    return {uid: now[page] for uid, page in rows.values_list("node_uid", "page") if page in now}


def _add_plain(given: LintInput, source: Source) -> None:
    """Markdown documents that are no pages: near misses, broken headers, open fences; and their paths, for hints.

    In a source without any page only what speaks of our own words is told: there the graph is not there.
    """
    pages = {page.document for page in given.pages}
    with_pages = bool(pages)
    others = plain_documents(source.kind, source.pk, pages)
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
