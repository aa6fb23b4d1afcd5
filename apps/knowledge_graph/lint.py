"""Lint of the graph of one source, for readers and for the stored graph."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from django.db import transaction

from apps.indexing.findings import Finder, Finding, Rows
from apps.knowledge_graph.linting.inputs import reader_input, stored_input
from apps.knowledge_graph.linting.rules import check
from apps.knowledge_graph.linting.values import RULES, GraphFinding
from apps.knowledge_graph.models import LintFinding
from apps.knowledge_graph.storing.sources import find_graph, lock_graph

if TYPE_CHECKING:
    from apps.access.sources import Source
    from apps.access.viewers import Viewer


def lint_stored(source: Source) -> list[GraphFinding]:
    """Findings of the stored graph: for commands and admin."""
    return check(stored_input(source))


def lint_seen(viewer: Viewer, source: Source) -> list[GraphFinding]:
    """Findings of what the viewer sees of a source that the viewer may read."""
    return check(reader_input(viewer, source))


def refresh_findings(source: Source) -> int:
    """Replace the stored findings of a source as a set; returns how many there are."""
    with transaction.atomic():
        lock_graph(source.kind, source.pk)
        graph = find_graph(source.kind, source.pk)
        if graph is None:
            return 0
        found = lint_stored(source)
        LintFinding.objects.filter(source=graph).delete()
        LintFinding.objects.bulk_create(
            [
                LintFinding(
                    source=graph,
                    page_id=finding.page_id,
                    revision=graph.revision,
                    rule=finding.rule,
                    severity=finding.severity,
                    path=finding.path,
                    line=finding.line,
                    column=finding.column,
                    message=finding.message,
                    hint=finding.hint,
                    fingerprint=finding.fingerprint,
                )
                for finding in found
            ],
            batch_size=1000,
        )
        return len(found)


def _find(viewer: Viewer, source: Source, rows: Rows) -> Iterable[Finding]:
    for finding in lint_seen(viewer, source):
        yield Finding(
            finding.rule,
            finding.severity,
            finding.message,
            finding.path,
            finding.line,
            finding.column,
            finding.hint,
            finding.document_id,
            finding.fingerprint,
        )


FINDER = Finder("graph", RULES, _find)
