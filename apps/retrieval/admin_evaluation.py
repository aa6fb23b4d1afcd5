"""Evaluation in the admin: sets with the history of their runs, and the gates that a new profile must pass."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.access import rules
from apps.access.admin_base import AdministratorAdmin, AdministratorReadOnlyAdmin
from apps.access.viewers import viewer_of
from apps.retrieval.models_evaluation import EvaluationGate, EvaluationRun, EvaluationSet

DRAWN = 40
WIDTH, HEIGHT = 320, 60


@admin.register(EvaluationSet)
class EvaluationSetAdmin(AdministratorAdmin):
    list_display = ("name", "block", "owner", "created_at", "last_run")
    search_fields = ("name",)
    list_filter = ("block", "created_at")
    fields = ("name", "block", "owner", "created_at", "judged", "history")
    readonly_fields = ("owner", "created_at", "judged", "history")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Not for an imported set: its files say what it is."""
        return rules.is_administrator(viewer_of(request)) and (obj is None or obj.collection_id is None)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_change_permission(request, obj)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.readonly_fields if obj is None else ("block", *self.readonly_fields)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        if not change:
            obj.owner = request.user
        super().save_model(request, obj, form, change)

    @admin.display(description="questions with marked answers")
    def judged(self, row: Any) -> str:
        if row.pk is None or row._state.adding:
            return "Writers mark rows of a result page with “Answers this”."
        return str(row.queries.count())

    @admin.display(description="last run")
    def last_run(self, row: Any) -> str:
        run = row.runs.first()
        return _words(run.metrics) if run else "–"

    @admin.display(description="nDCG@10, oldest to newest")
    def history(self, row: Any) -> SafeString | str:
        runs = list(row.runs.filter(mode="hybrid")[:DRAWN])[::-1]
        values = [max((one["ndcg@10"] for one in run.metrics.values()), default=0.0) for run in runs]
        if len(values) < 2:
            return "Two runs or more make a line."
        step = WIDTH / (len(values) - 1)
        points = " ".join(f"{place * step:.1f},{HEIGHT - value * HEIGHT:.1f}" for place, value in enumerate(values))
        return format_html(
            '<svg width="{}" height="{}" role="img" aria-label="{}"><polyline points="{}" fill="none" '
            'stroke="currentColor"/></svg>',
            WIDTH,
            HEIGHT,
            f"from {values[0]:.3f} to {values[-1]:.3f}",
            points,
        )


@admin.register(EvaluationRun)
class EvaluationRunAdmin(AdministratorReadOnlyAdmin):
    list_display = ("at", "set", "mode", "profile", "numbers", "queries", "stale")
    list_filter = ("set", "mode")
    search_fields = ("set__name", "profile", "commit")
    list_select_related = ("set",)
    date_hierarchy = "at"
    fields = ("at", "set", "mode", "profile", "weights", "commit", "metrics", "milliseconds", "queries", "stale", "by")

    @admin.display(description="nDCG@10")
    def numbers(self, row: Any) -> str:
        return _words(row.metrics)


@admin.register(EvaluationGate)
class EvaluationGateAdmin(AdministratorReadOnlyAdmin):
    list_display = ("set", "level", "metric", "minimum", "largest_fall")
    list_filter = ("level", "set")
    search_fields = ("set__name", "metric")
    list_select_related = ("set",)
    fields = ("set", "level", "metric", "minimum", "largest_fall")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return rules.is_administrator(viewer_of(request))

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return rules.is_administrator(viewer_of(request))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return rules.is_administrator(viewer_of(request))


def _words(metrics: dict[str, dict[str, float]]) -> str:
    return ", ".join(f"{level} {values['ndcg@10']:.3f}" for level, values in metrics.items())
