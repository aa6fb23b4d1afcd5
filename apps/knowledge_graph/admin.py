"""Admin of the graph: sources with rebuild and dry run, derived rows to look at, findings, the queue of proposals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.db.models import Count, OuterRef, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest

from apps.access.admin_base import ReadOnlyAdmin, act_on_rows
from apps.access.rules import Right
from apps.access.viewers import viewer_of
from apps.jobs.queue import enqueue
from apps.knowledge_graph import proposals
from apps.knowledge_graph.models import (
    CanonicalPage,
    CrossSourceReference,
    Edge,
    Evidence,
    GraphRevision,
    GraphSource,
    LintFinding,
    Node,
    ProposalDecision,
    Verdict,
)
from apps.knowledge_graph.naming_sources import find_by_address, source_word
from apps.knowledge_graph.observing import PROJECT_GRAPH
from apps.knowledge_graph.storing.rebuild import rebuild
from apps.knowledge_graph.tasks import PROPOSE_EDGES

REASONS = 3
"""Reasons of a proposal that its line shows."""
PLACES = ("source__repository", "source__collection")


def _counted(model: Any, **conditions: Any) -> Any:
    rows = model.objects.filter(source=OuterRef("pk"), **conditions).order_by().values("source")
    return Coalesce(Subquery(rows.annotate(rows=Count("pk")).values("rows")), 0)


@admin.register(GraphSource)
class GraphSourceAdmin(ReadOnlyAdmin):
    list_display = ("__str__", "kind", "revision", "nodes_count", "edges_count", "dangling_count", "changed_at")
    list_filter = ("repository", "collection")
    search_fields = ("repository__slug", "collection__name")
    list_select_related = ("repository", "collection")
    date_hierarchy = "changed_at"
    actions = ("rebuild", "dry_run", "propose")

    def get_queryset(self, request: HttpRequest) -> Any:
        return (
            super()
            .get_queryset(request)
            .annotate(
                nodes_total=_counted(Node),
                edges_total=_counted(Edge),
                dangling_total=_counted(Node, dangling=True),
            )
        )

    @admin.display(description="nodes")
    def nodes_count(self, row: Any) -> int:
        return int(row.nodes_total)

    @admin.display(description="edges")
    def edges_count(self, row: Any) -> int:
        return int(row.edges_total)

    @admin.display(description="dangling")
    def dangling_count(self, row: Any) -> int:
        return int(row.dangling_total)

    @admin.action(description="Rebuild")
    def rebuild(self, request: HttpRequest, queryset: Any) -> None:
        def act(graph: GraphSource) -> None:
            enqueue(PROJECT_GRAPH, source=_writable(graph, request), by=viewer_of(request))  # type: ignore[arg-type]

        act_on_rows(request, queryset, act, done="{n} rebuild{s} queued.")

    @admin.action(description="Say what a rebuild would change")
    def dry_run(self, request: HttpRequest, queryset: Any) -> None:
        def act(graph: GraphSource) -> None:
            source = _writable(graph, request)
            report = rebuild(source.kind, source.pk, dry_run=True)
            counts = f"{report.nodes.total} nodes, {report.edges.total} edges, {report.evidence.total} places"
            messages.info(request, f"{graph}: {counts} would change.")

        act_on_rows(request, queryset, act, done="{n} graph{s} compared.")

    @admin.action(description="Look for proposals now")
    def propose(self, request: HttpRequest, queryset: Any) -> None:
        def act(graph: GraphSource) -> None:
            enqueue(PROPOSE_EDGES, source=_writable(graph, request), by=viewer_of(request))  # type: ignore[arg-type]

        act_on_rows(request, queryset, act, done="{n} job{s} queued that look for proposals.")


def _writable(graph: GraphSource, request: HttpRequest) -> Any:
    kind, _, name = source_word(graph.owner).partition("/")
    return find_by_address(kind, name, viewer_of(request), Right.WRITE)


class _Derived(ReadOnlyAdmin):
    list_select_related: ClassVar[Any] = ("source__repository", "source__collection")
    show_full_result_count = False


@admin.register(CanonicalPage)
class CanonicalPageAdmin(_Derived):
    list_display = ("path", "uid", "node_type", "status", "header_state", "bears", "source")
    list_filter = ("node_type", "status", "header_state", "bears", *PLACES)
    search_fields = ("path", "uid", "label")


@admin.register(Node)
class NodeAdmin(_Derived):
    list_display = ("node_uid", "node_type", "label", "status", "priority", "dangling", "source")
    list_filter = ("node_type", "status", "dangling", *PLACES)
    search_fields = ("node_uid", "label")


@admin.register(Edge)
class EdgeAdmin(_Derived):
    """Edges; filtered by *inferred* this is the queue of proposals."""

    list_display = (
        "from_uid", "edge_type", "to_uid", "weight", "provenance", "type_source", "confidence", "reasons", "decision",
        "source",
    )  # fmt: skip
    list_filter = ("edge_type", "provenance", "type_source", *PLACES)
    search_fields = ("from_uid", "to_uid")
    actions = ("accept", "reject")

    def get_queryset(self, request: HttpRequest) -> Any:
        same = {name: OuterRef(name) for name in ("source", "from_uid", "to_uid", "edge_type")}
        verdict = ProposalDecision.objects.filter(**same).values("verdict")
        return super().get_queryset(request).annotate(verdict=Subquery(verdict))

    @admin.display(description="reasons")
    def reasons(self, row: Edge) -> str:
        given = row.payload.get("reasons", ())
        told = "; ".join(_reason(one) for one in given[:REASONS])
        return f"{told}; {len(given) - REASONS} more" if len(given) > REASONS else told

    @admin.display(description="decision")
    def decision(self, row: Any) -> str:
        """What somebody said to the proposal: one that is accepted stays until its page says so."""
        return row.verdict if row.provenance == "inferred" and row.verdict else ""

    @admin.display(description="confidence")
    def confidence(self, row: Edge) -> str:
        return str(row.payload.get("confidence", ""))

    @admin.action(description="Accept the proposals: show the lines to paste")
    def accept(self, request: HttpRequest, queryset: Any) -> None:
        def act(edge: Edge) -> None:
            paste = proposals.decide(edge=edge, verdict=Verdict.ACCEPTED, by=viewer_of(request))  # type: ignore[arg-type]
            if paste is not None:
                messages.info(request, str(paste))

        act_on_rows(request, queryset.filter(provenance="inferred"), act, done="{n} proposal{s} accepted.")

    @admin.action(description="Reject the proposals for good")
    def reject(self, request: HttpRequest, queryset: Any) -> None:
        def act(edge: Edge) -> None:
            proposals.decide(edge=edge, verdict=Verdict.REJECTED, by=viewer_of(request))  # type: ignore[arg-type]

        act_on_rows(request, queryset.filter(provenance="inferred"), act, done="{n} proposal{s} rejected.")


def _reason(given: Mapping[str, Any]) -> str:
    """``mention: line 9``."""
    return f"{given.get('kind', '')}: " + ", ".join(
        f"{name} {value}" for name, value in given.items() if name != "kind"
    )


@admin.register(Evidence)
class EvidenceAdmin(_Derived):
    list_display = ("raw", "page", "line", "provenance", "outcome", "edge_uid")
    list_filter = ("outcome", "provenance", *PLACES)
    search_fields = ("raw", "edge_uid")
    list_select_related = ("page",)
    exclude = ("edge",)


@admin.register(CrossSourceReference)
class CrossSourceReferenceAdmin(_Derived):
    list_display = ("raw", "page", "line", "wanted_source", "wanted_slug")
    list_filter = PLACES
    search_fields = ("raw",)
    list_select_related = ("page",)


@admin.register(GraphRevision)
class GraphRevisionAdmin(_Derived):
    list_display = ("source", "number", "cause", "change", "created_at")
    list_filter = ("cause", *PLACES)
    search_fields = ("source__repository__slug", "source__collection__name")
    date_hierarchy = "created_at"


@admin.register(LintFinding)
class LintFindingAdmin(_Derived):
    list_display = ("rule", "severity", "path", "line", "message", "hint", "source")
    list_filter = ("rule", "severity", *PLACES)
    search_fields = ("path", "message")


@admin.register(ProposalDecision)
class ProposalDecisionAdmin(_Derived):
    list_display = ("from_uid", "edge_type", "to_uid", "verdict", "decided_by", "decided_at", "source")
    list_filter = ("verdict", "edge_type", *PLACES)
    search_fields = ("from_uid", "to_uid")
    date_hierarchy = "decided_at"
    list_select_related = ("decided_by", "source__repository", "source__collection")
