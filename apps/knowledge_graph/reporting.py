"""What the graph made of each file, beside the states of files in the report of a sync or an upload
(``knowledge-graph.md`` 12)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from uuid import UUID

from apps.jobs.items import REPORT, add_details
from apps.jobs.running import JobRun
from apps.knowledge_graph.models import CanonicalPage, GraphSource


def outcomes_of_pages(
    graph: GraphSource | None, documents: Collection[UUID] | None = None, *, otherwise: str
) -> dict[str, str]:
    """Path -> what became of it, for the documents of a graph that are or were pages; ``otherwise`` says what became of
    a page that bears its slug by a sound header."""
    pages = CanonicalPage.objects.filter(source=graph)
    if documents is not None:
        pages = pages.of_documents(documents)
    found = {}
    for path, state, bears in pages.values_list("path", "header_state", "bears"):
        if state == "former":
            found[path] = "plain"
        elif state == "stale_header":
            found[path] = "stale header"
        else:
            found[path] = otherwise if bears else "duplicate"
    return found


def claims_to(graph: GraphSource, slugs: Collection[str]) -> dict[str, str]:
    """Path -> outcome, for all pages with one of these slugs: one page's change can give the slug to another."""
    pages = CanonicalPage.objects.filter(source=graph, uid__in=slugs).kept()
    return {path: "projected" if bears else "duplicate" for path, bears in pages.values_list("path", "bears")}


def tell_files(run: JobRun, outcomes: Mapping[str, str]) -> None:
    """Write the outcomes into the report that the job belongs to; in the caller's transaction, if there is one."""
    report = str(run.params.get(REPORT) or "")
    if report and outcomes:
        add_details(UUID(report), {path: {"graph": outcome} for path, outcome in outcomes.items()})
