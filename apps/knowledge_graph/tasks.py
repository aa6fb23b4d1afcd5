"""What workers run for the graph."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from uuid import UUID

from apps.jobs.errors import Stopped, TransientFailure
from apps.jobs.items import REPORT
from apps.jobs.kinds import Due, SourceKey
from apps.jobs.models import Job
from apps.jobs.running import JobRun
from apps.knowledge_graph.lint import refresh_findings
from apps.knowledge_graph.models import GraphSource
from apps.knowledge_graph.observing import PROJECT_DOCUMENT, PROJECT_GRAPH
from apps.knowledge_graph.projection import PROJECTOR
from apps.knowledge_graph.proposals import propose
from apps.knowledge_graph.reporting import claims_to, outcomes_of_pages, tell_files
from apps.knowledge_graph.storing.documents import load_document, lock_documents, read_document
from apps.knowledge_graph.storing.history import HistoryUnavailable
from apps.knowledge_graph.storing.incremental import change_documents
from apps.knowledge_graph.storing.rebuild import rebuild
from apps.knowledge_graph.storing.report import Report
from apps.knowledge_graph.storing.sources import KINDS, ensure_graph, find_graph, lock_graph
from apps.knowledge_graph.storing.standing import standing_of
from apps.knowledge_graph.values import Page

__all__ = ["PROJECT_DOCUMENT", "PROJECT_GRAPH", "project_document", "project_graph"]

DOCUMENT_DEADLINE = timedelta(seconds=120)
WAITS = (10.0, 60.0)
PROPOSE_EDGES = "propose_edges"
PROPOSING_REST = timedelta(hours=6)


def waits(attempt: int) -> float:
    """Seconds before the next try after ``attempt`` tries."""
    return WAITS[min(attempt, len(WAITS)) - 1]


def project_document(run: JobRun) -> None:
    """Bring one version of a document into the graph; nothing when it is not the live one any more."""
    try:
        _project_document(run)
    except Stopped:
        raise
    except Exception:
        tell_files(run, {str(run.params.get("path", "")): "error"})
        raise


def _project_document(run: JobRun) -> None:
    kind, source_id = run.source_key
    document_id = UUID(str(run.params["document"]))
    document = load_document(kind, document_id)
    if document is None or document.version_hash != run.params["version"]:
        _end(run, "overtaken")
        return
    try:
        page = read_document(document).page
    except HistoryUnavailable as failure:
        raise TransientFailure("history_unavailable", str(failure)) from failure
    with run.batch():
        if not lock_documents(kind, [document_id]):
            _end(run, "overtaken")
            return
        lock_graph(kind, source_id)
        now = standing_of(kind, document_id)
        if now is None or now.state != document.state:
            _end(run, "overtaken")
            return
        if page is None and not now.is_page:
            _end(run, "plain")
            return
        graph = now.graph or ensure_graph(kind, source_id)
        slugs = {uid for uid in (page.uid if page else "", now.uid) if uid}
        before = claims_to(graph, slugs) if run.params.get(REPORT) else {}
        report = change_documents(
            graph, {document_id: page}, cause=str(run.params.get("act", "edit")), change=str(run.params["change"])
        )
        if graph.projector == 0:
            GraphSource.objects.filter(pk=graph.pk).update(projector=PROJECTOR)
        after = claims_to(graph, slugs) if run.params.get(REPORT) else {}
        tell_files(run, {path: claim for path, claim in after.items() if before.get(path, claim) != claim})
        _end(run, _outcome(page, report), report)


def _outcome(page: Page | None, report: Report) -> str:
    if page is None:
        return "plain"
    if page.header_state == "stale_header":
        return "stale header"
    if page.document in report.withheld:
        return "duplicate"
    return "projected" if report.total else "unchanged"


def project_graph(run: JobRun) -> None:
    """Rebuild the graph of one source."""
    kind, source_id = run.source_key

    def check(done: int, total: int) -> None:
        run.check()
        run.progress("reading", done, total)

    try:
        report = rebuild(
            kind, source_id, cause=str(run.params.get("cause", "rebuild")), check=check, batch=run.batch,
        )  # fmt: skip
    except HistoryUnavailable as failure:
        raise TransientFailure("history_unavailable", str(failure)) from failure
    outcome = "projected" if report.total else "unchanged"
    tell_files(run, outcomes_of_pages(find_graph(kind, source_id), otherwise=outcome))
    run.note(outcome)
    _count(run, report)


def lint_graph(run: JobRun) -> None:
    """Replace the stored findings of a source, after its projections."""
    with run.batch():
        run.counters["findings"] = refresh_findings(run.source)


def propose_edges(run: JobRun) -> None:
    """Ask the proposers again."""
    graph = find_graph(*run.source_key)
    if graph is not None:
        run.counters["proposals"] = propose(graph)


def unproposed(now: datetime) -> Iterable[Due]:
    """Graphs that have changed since their proposers were asked, at most once in `PROPOSING_REST`."""
    for graph in GraphSource.objects.all():
        last = Job.objects.filter(kind=PROPOSE_EDGES, source_id=graph.source_key[1]).order_by("-created_at").first()
        if last is None or (last.created_at < graph.changed_at and last.created_at < now - PROPOSING_REST):
            yield Due(source=graph.source_key)


def outdated(now: datetime) -> Iterable[Due]:
    """Graphs that older rules have made."""
    tried = Job.objects.filter(kind=PROJECT_GRAPH, created_at__gt=now - timedelta(hours=6))
    recently = set(tried.values_list("source_id", flat=True))
    for graph in GraphSource.objects.exclude(projector=PROJECTOR):
        if graph.source_key[1] in recently:
            continue
        yield Due(source=graph.source_key, params={"cause": "new rules"})


def purge(run: JobRun, source: SourceKey) -> None:
    """The graph of a deleted source, before its documents go."""
    kind, source_id = source
    if kind not in KINDS:
        return
    with run.batch():
        lock_graph(kind, source_id)
        GraphSource.objects.filter(**{kind: source_id})._raw_delete("default")


def _end(run: JobRun, outcome: str, report: Report | None = None) -> None:
    run.note(outcome)
    tell_files(run, {str(run.params.get("path", "")): outcome})
    if report is not None:
        _count(run, report)


def _count(run: JobRun, report: Report) -> None:
    run.counters["graph"] = report.as_json()
    for name, change in (("nodes", report.nodes), ("edges", report.edges)):
        run.counters[f"{name}_added"] = change.added
        run.counters[f"{name}_removed"] = change.removed
        run.counters[f"{name}_changed"] = change.changed
