"""The two views that lint takes: the stored graph (commands, admin) and a reader's (pages, API, MCP)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db.models import Q

from apps.collections.models import Document
from apps.knowledge_graph.linting.values import (
    GraphFinding,
    LintEdge,
    LintEvidence,
    LintInput,
    LintNode,
    LintPage,
)
from apps.knowledge_graph.models import CanonicalPage, Edge, Evidence, GraphSource, Node, NodePast
from apps.knowledge_graph.naming import PAGE_ENDINGS
from apps.knowledge_graph.reader import Overlay, open_graph
from apps.knowledge_graph.reading.header import read_front
from apps.knowledge_graph.reading.pages import plain_problems
from apps.knowledge_graph.storing.documents import limits, load_documents, with_header
from apps.knowledge_graph.storing.rows import evidence_row
from apps.knowledge_graph.storing.sources import find_graph
from apps.markup.front_matter import read_front_matter
from apps.repos.models import RepositoryDocument

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
            _evidence(evidence_row(value, source_id=graph.pk, page_id=page_id, ordinal=0))
            for page_id, value in overlay.evidence
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
    rows = list(CanonicalPage.objects.filter(source=graph).kept().live().with_key().order_by("path"))
    anchors = _anchors(graph.kind, [row.key for row in rows])
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
            anchors.get(row.key, ()),
        )
        for row in rows
    ]
    given.former = _former(graph, given)


def _former(graph: GraphSource, given: LintInput) -> dict[str, str]:
    """Slugs that a page of the present had in the past."""
    missing = [uid for uid, node in given.nodes.items() if node.page is None]
    now = {page.id: page.uid for page in given.pages if page.bears}
    rows = NodePast.objects.filter(source=graph, node_uid__in=missing, page__in=list(now)).order_by("valid_to")
    return {uid: now[page] for uid, page in rows.values_list("node_uid", "page") if page in now}


def _anchors(kind: str, documents: Iterable[UUID]) -> dict[UUID, list[str]]:
    wanted = list(documents)
    if kind == "repository":
        return dict(RepositoryDocument.objects.filter(pk__in=wanted).values_list("pk", "anchors"))
    return {
        key: anchors or []
        for key, anchors in Document.objects.filter(pk__in=wanted).values_list("pk", "parsed__anchors")
    }


def _add_plain(given: LintInput, source: Source) -> None:
    """Markdown documents that are no pages: near misses, broken headers, open fences; and their paths, for hints.

    In a source without any page only what speaks of our own words is told: there the graph is not there.
    """
    name = "path" if source.kind == "repository" else "source_key"
    model: Any = RepositoryDocument if source.kind == "repository" else Document
    ending = Q()
    for each in PAGE_ENDINGS:
        ending |= Q(**{f"{name}__iendswith": each})
    rows = model.objects.filter(ending, **{source.kind: source.pk})
    if source.kind == "collection":
        rows = rows.live()
    pages = {page.document for page in given.pages}
    with_pages = bool(pages)
    others = {id_: path for id_, path in rows.values_list("pk", name) if id_ not in pages}
    given.plain_paths = sorted(others.values())
    bounds = limits()
    for document in load_documents(source.kind, sorted(with_header(source.kind, others))):
        front = read_front_matter(document.text, document.path, bounds)
        reading = read_front(document.text, front.metadata, front.values, front.warnings)
        for problem in plain_problems(reading):
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
    if not with_pages:
        return
    fenced = rows.filter(warnings__contains=[{"code": "unclosed_fence"}]).exclude(pk__in=pages)
    for id_, path, warnings in fenced.values_list("pk", name, "warnings"):
        for warning in warnings:
            if warning["code"] == "unclosed_fence":
                given.plain.append(
                    GraphFinding(
                        "KG118",
                        "warning",
                        warning["message"],
                        path,
                        warning["line"],
                        warning["column"],
                        "close the fence",
                        "fence",
                        (),
                        id_,
                    )
                )
