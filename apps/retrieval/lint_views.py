"""Pages of findings: of one repository, of one collection, of everything that the reader may see."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from uuid import UUID

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_safe

from apps.access.errors import NotFound
from apps.access.pages import answer, paged, wants_fragment
from apps.access.sources import Source
from apps.access.viewers import viewer_of
from apps.collections.lookup import collection_for
from apps.collections.models import Collection
from apps.collections.presentation import header as collection_header
from apps.indexing.findings import SEVERITIES, Finding, findings
from apps.indexing.findings_output import as_json, as_sarif
from apps.repos.lookup import repository_for
from apps.repos.models import Repository
from apps.repos.presentation import header as repository_header

if TYPE_CHECKING:
    from apps.access.viewers import Viewer

SOURCES_A_PAGE = 20
"""Sources whose findings are gathered at once on the page of all of them."""
COLUMNS = (
    "source",
    "path",
    "line",
    "column",
    "severity",
    "rule",
    "message",
    "hint",
    "replacement",
    "since",
    "first_commit",
)


@dataclass(frozen=True, slots=True)
class Row:
    source: Source
    finding: Finding

    @property
    def url(self) -> str:
        """To the line in the source text."""
        line = f"#L{self.finding.line}" if self.finding.line else ""
        if isinstance(self.source, Repository):
            if not self.finding.path:
                return self.source.get_absolute_url()
            return f"{self.source.get_absolute_url()}/files/{quote(self.finding.path, safe='/~')}{line}"
        if self.finding.document_id:
            return f"{self.source.get_absolute_url()}/documents/{self.finding.document_id}?tab=raw{line}"
        return self.source.get_absolute_url()


ORDERS: dict[str, Callable[[Row], Any]] = {
    "severity": lambda row: (SEVERITIES.index(row.finding.severity), row.source.label, row.finding.path, _line(row)),
    "path": lambda row: (row.source.label, row.finding.path, _line(row)),
    "rule": lambda row: (row.finding.rule, row.source.label, row.finding.path, _line(row)),
    "newest": lambda row: (-_age(row), row.source.label, row.finding.path, _line(row)),
}


def _age(row: Row) -> float:
    """Seconds on the clock; what no job has met yet is newer than all else."""
    return row.finding.since.timestamp() if row.finding.since else float("inf")


def _line(row: Row) -> tuple[int, int]:
    return row.finding.line or 0, row.finding.column or 0


@require_safe
def repository_lint(request: HttpRequest, slug: str) -> HttpResponse:
    viewer = viewer_of(request)
    repository = repository_for(viewer, slug)
    return _page(request, viewer, [repository], "repos", repository_header(repository, "repository-lint"))


@require_safe
def repository_lint_figures(request: HttpRequest, slug: str) -> HttpResponse:
    """How many findings there are, for the overview, which does not wait for them; their page for anybody else."""
    viewer = viewer_of(request)
    repository = repository_for(viewer, slug)
    if not wants_fragment(request):
        return redirect("repository-lint", slug=repository.slug)
    severities = Counter(finding.severity for finding in findings(viewer, repository))
    figures = [(name, severities[name]) for name in SEVERITIES if severities[name]]
    return answer(request, "retrieval/_lint_figures.html", {"slug": repository.slug, "figures": figures})


@require_safe
def collection_lint(request: HttpRequest, collection_id: UUID) -> HttpResponse:
    viewer = viewer_of(request)
    collection = collection_for(viewer, collection_id)
    return _page(request, viewer, [collection], "collections", collection_header(collection, "lint"))


@require_safe
def all_lint(request: HttpRequest) -> HttpResponse:
    """Every source that the reader may see, some at a time (``?sources=`` counts the groups from 0)."""
    viewer = viewer_of(request)
    sources: list[Source] = [
        *Repository.objects.visible_to(viewer).order_by("slug"),
        *Collection.objects.visible_to(viewer).order_by("name", "pk"),
    ]
    chosen = _group(sources, request.GET.get("sources", "0"))
    return _page(request, viewer, chosen, "", None, total=len(sources))


def _group(sources: Sequence[Source], text: str) -> list[Source]:
    """The n-th group of sources. Raises NotFound for what is none."""
    if not text.isdecimal() or len(text) > 6:
        raise NotFound
    first = int(text) * SOURCES_A_PAGE
    return list(sources[first : first + SOURCES_A_PAGE])


def _page(
    request: HttpRequest, viewer: Viewer, sources: Sequence[Source], kind: str, header: Any, *, total: int = 1
) -> HttpResponse:
    params = request.GET
    every = [Row(source, finding) for source in sources for finding in findings(viewer, source)]
    rule, severity, order = params.get("rule", ""), params.get("severity", ""), params.get("order", "severity")
    text = params.get("q", "").strip()[:200].lower()
    rows = [
        row
        for row in every
        if (not rule or row.finding.rule == rule)
        and (not severity or row.finding.severity == severity)
        and (not text or text in row.finding.path.lower() or text in row.finding.message.lower())
    ]
    rows.sort(key=ORDERS.get(order, ORDERS["severity"]))
    form = params.get("format", "")
    if form in OUTPUTS:
        return OUTPUTS[form](rows, sources)
    severities = Counter(row.finding.severity for row in every)
    context = {
        "kind": kind,
        "header": header,
        "page": paged(rows, request),
        "total": len(every),
        "rules": sorted(Counter(row.finding.rule for row in every).items()),
        "severities": [(name, severities[name]) for name in SEVERITIES],
        "rule": rule,
        "severity": severity,
        "order": order if order in ORDERS else "severity",
        "orders": (("severity", "worst first"), ("path", "by path"), ("rule", "by rule"), ("newest", "newest first")),
        "q": params.get("q", "").strip()[:200],
        "filtered": bool(rule or severity or text),
        "several": not kind,
        "source_total": total,
        "source_groups": [
            (number, number * SOURCES_A_PAGE + 1, min(total, (number + 1) * SOURCES_A_PAGE))
            for number in range((total + SOURCES_A_PAGE - 1) // SOURCES_A_PAGE)
        ]
        if total > SOURCES_A_PAGE
        else [],
        "group": params.get("sources", "0"),
    }
    return answer(request, "retrieval/lint.html", context, fragment="retrieval/_lint.html")


def _as_csv(rows: Sequence[Row], sources: Sequence[Source]) -> HttpResponse:
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="findings.csv"'
    writer = csv.writer(response)
    writer.writerow(COLUMNS)
    for row, plain in zip(rows, as_json([row.finding for row in rows]), strict=True):
        one = row.finding
        values = (
            row.source.label,
            one.path,
            one.line or "",
            one.column or "",
            one.severity,
            one.rule,
            one.message,
            one.hint,
            one.patch.new if one.patch else "",
            plain["since"] or "",
            one.first_commit,
        )
        writer.writerow([_cell(value) for value in values])
    return response


def _cell(value: object) -> object:
    """SECURITY: a spreadsheet takes a cell that begins so for a formula, and paths and links come from content."""
    return f"'{value}" if isinstance(value, str) and value[:1] in "=+-@\t\r" and value else value


def _as_json(rows: Sequence[Row], sources: Sequence[Source]) -> HttpResponse:
    items = [
        {"source": row.source.label, **plain}
        for row, plain in zip(rows, as_json([row.finding for row in rows]), strict=True)
    ]
    return JsonResponse({"total": len(items), "items": items})


def _as_sarif(rows: Sequence[Row], sources: Sequence[Source]) -> HttpResponse:
    """One run for each source."""
    runs: list[Any] = []
    report: dict[str, Any] = {}
    for source in sources:
        mine = [row.finding for row in rows if row.source.pk == source.pk]
        commit = source.synced_commit if isinstance(source, Repository) else ""
        address = f"https://{source.slug}" if isinstance(source, Repository) else ""
        report = as_sarif(mine, commit=commit, uri=address)
        runs += report["runs"]
    report = report or as_sarif([])
    response = JsonResponse({**report, "runs": runs or report["runs"]})
    response["Content-Type"] = "application/sarif+json"
    response["Content-Disposition"] = 'attachment; filename="findings.sarif"'
    return response


OUTPUTS = {"csv": _as_csv, "json": _as_json, "sarif": _as_sarif}
