"""The whole graph of a source from its documents, compared with the stored one, swapped in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from uuid import UUID

from django.db import transaction

from apps.knowledge_graph.models import CanonicalPage, GraphSource
from apps.knowledge_graph.projection import PROJECTOR, project
from apps.knowledge_graph.storing.applying import Desired, apply
from apps.knowledge_graph.storing.documents import load_documents, lock_documents, read_document, states
from apps.knowledge_graph.storing.report import Report
from apps.knowledge_graph.storing.sources import ensure_graph, find_graph, lock_graph
from apps.knowledge_graph.storing.stored import StoredRows
from apps.knowledge_graph.values import GraphValue, Page

State = tuple[str, str, bool]


def rebuild(
    kind: str,
    source_id: UUID,
    *,
    cause: str = "rebuild",
    dry_run: bool = False,
    check: Callable[[int, int], None] = lambda done, total: None,
    batch: Callable[[], AbstractContextManager[object]] = transaction.atomic,
) -> Report:
    """Project every kept document beside the stored graph and apply the difference; returns what it was.

    Documents are parsed outside the transaction; those committed meanwhile are parsed again inside, under the lock.
    ``check(done, total)`` is called between documents. Inferred edges stay unless their ends vanish or become authored.
    """
    pages: dict[UUID, Page | None] = {}
    seen: dict[UUID, State] = {}
    _read_missing(kind, source_id, pages, seen, check)
    with batch():
        lock_documents(kind, list(seen))
        lock_graph(kind, source_id)
        _read_missing(kind, source_id, pages, seen, lambda done, total: None)
        kept = [page for page in pages.values() if page is not None]
        graph = find_graph(kind, source_id)
        if graph is None:
            if not kept or dry_run:
                return _dry_report(kept, dry_run)
            graph = ensure_graph(kind, source_id)
        stored = StoredRows(graph)
        stored.read_all()
        report = apply(stored, whole_graph(kept), whole=True, cause=cause, dry_run=dry_run)
        if not dry_run:
            GraphSource.objects.filter(pk=graph.pk).update(projector=PROJECTOR)
            CanonicalPage.objects.filter(source=graph).exclude(projector=PROJECTOR).update(projector=PROJECTOR)
    return report


def whole_graph(pages: Iterable[Page]) -> Desired:
    kept = list(pages)
    graph: GraphValue = project(kept)
    bearers = set(graph.winners.values())
    return Desired(
        pages={page.document: (page, page.document in bearers) for page in kept},
        read={page.document for page in kept},
        nodes=dict(graph.nodes),
        edges=dict(graph.edges),
        evidence=dict(graph.evidence),
    )


def _read_missing(
    kind: str,
    source_id: UUID,
    pages: dict[UUID, Page | None],
    seen: dict[UUID, State],
    check: Callable[[int, int], None],
) -> None:
    """Read what is not read in its present state, and forget what is gone."""
    now = states(kind, source_id)
    for gone in set(pages) - set(now):
        del pages[gone], seen[gone]
    missing = [known for known, state in now.items() if seen.get(known) != state]
    for done, document in enumerate(load_documents(kind, missing)):
        check(done, len(missing))
        pages[document.id] = read_document(document).page
        seen[document.id] = document.state


def _dry_report(kept: list[Page], dry_run: bool) -> Report:
    report = Report()
    if dry_run and kept:
        wanted = whole_graph(kept)
        for name in sorted(wanted.nodes):
            report.nodes.note("added", name)
        for name in sorted(wanted.edges):
            report.edges.note("added", name)
        for rows in wanted.evidence.values():
            for row in rows:
                report.evidence.note("added", row.occurrence.raw)
    return report
