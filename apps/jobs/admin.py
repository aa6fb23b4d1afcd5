"""Admin pages of jobs: looked at by those who read the source; retried and cancelled by the functions of the pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from django.contrib import admin
from django.http import HttpResponse
from django.template.response import TemplateResponse
from django_q.models import Failure, OrmQ, Schedule, Success

from apps.access.admin_base import ReadOnlyAdmin, act_on_rows
from apps.access.sources import source_models
from apps.access.viewers import viewer_of
from apps.jobs import control
from apps.jobs.models import Job, JobAttempt, JobItem, Suspect
from apps.jobs.presentation import kind_words, lines

if TYPE_CHECKING:
    from django.http import HttpRequest

    from apps.access.models import User

MOST_SOURCES = 200


class SourceFilter(admin.SimpleListFilter):
    """Rows of one source, by name; only visible sources that have rows are offered."""

    title = "source"
    parameter_name = "source"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        viewer = viewer_of(request)
        rows = model_admin.model._default_manager.order_by()
        found: list[tuple[str, str]] = []
        for model in source_models():
            with_rows = rows.filter(source_kind=model.kind).values("source_id")
            sources = model.objects.visible_to(viewer).filter(pk__in=with_rows)[:MOST_SOURCES]
            found += [(f"{model.kind}:{source.pk}", f"{source.label} ({model.kind})") for source in sources]
        return found

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        # SECURITY: only what lookups() offers, so that the address gives no hint about a hidden source.
        if self.value() not in dict(self.lookup_choices):
            return queryset if self.value() is None else queryset.none()
        kind, _, source_id = str(self.value()).partition(":")
        return queryset.filter(source_kind=kind, source_id=source_id)


# SECURITY: messages are signed pickles and failures hold tracebacks; the queue's own pages would show both, of all
# sources, to whoever has Django's permissions on these tables.
for table in (Schedule, Success, Failure, OrmQ):
    if admin.site.is_registered(table):
        admin.site.unregister(table)


@admin.register(Job)
class JobAdmin(ReadOnlyAdmin):
    list_display = (
        "kind_name",
        "source_name",
        "state",
        "progress",
        "warnings",
        "attempts",
        "cause",
        "requested_by",
        "created_at",
        "took",
    )
    list_filter = ("status", "kind", "cause", SourceFilter, "requested_by", "created_at")
    search_fields = ("kind", "error_code", "error_message", "outcome")
    list_select_related = ("requested_by",)
    date_hierarchy = "created_at"
    view_on_site = True
    actions = ("retry_jobs", "cancel_jobs")
    fields = (
        "id",
        "kind_name",
        "source_name",
        "key",
        "state",
        "waiting_reason",
        "stage",
        "progress",
        "warnings",
        "outcome",
        "error_code",
        "error_message",
        "counters",
        "notes",
        "params",
        "cause",
        "requested_by",
        "retry_of",
        "attempts",
        "not_before",
        "created_at",
        "started_at",
        "finished_at",
    )
    readonly_fields = fields

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        changelist = super().get_changelist_instance(request)
        changelist.result_list = list(changelist.result_list)
        for line in lines(changelist.result_list, viewer_of(request)):
            line.job.shown_source = line.source  # type: ignore[attr-defined]
        return changelist

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        job = super().get_object(request, object_id, from_field)
        if job is not None:
            [line] = lines([job], viewer_of(request))
            job.shown_source = line.source
        return job

    @admin.display(description="kind", ordering="kind")
    def kind_name(self, job: Job) -> str:
        return kind_words(job.kind)

    @admin.display(description="source")
    def source_name(self, job: Any) -> str:
        source = getattr(job, "shown_source", None)
        return source.label if source is not None else "–"

    @admin.display(description="state", ordering="status")
    def state(self, job: Job) -> str:
        return job.state_words

    @admin.display(description="progress")
    def progress(self, job: Job) -> str:
        if job.done is None:
            return job.stage
        return f"{job.done} of {job.total}" if job.total is not None else str(job.done)

    @admin.display(description="took")
    def took(self, job: Job) -> str:
        return f"{job.duration.total_seconds():.1f} s" if job.duration is not None else "–"

    @admin.action(description="Retry job")
    def retry_jobs(self, request: HttpRequest, rows: Any) -> HttpResponse | None:
        return self._act(
            request,
            rows,
            control.retry,
            action="retry_jobs",
            verb="Retry jobs",
            sentence="A new job is made for each of these; it does what the old one did not do, and tries quarantined"
            " files again.",
            done="{n} job{s} queued again.",
            effect=lambda job: "" if control.can_be_retried(job) else "succeeded, nothing to retry",
        )

    @admin.action(description="Cancel job")
    def cancel_jobs(self, request: HttpRequest, rows: Any) -> HttpResponse | None:
        return self._act(
            request,
            rows,
            control.cancel,
            action="cancel_jobs",
            verb="Cancel jobs",
            sentence="These jobs end: waiting ones at once, running ones within ten seconds. What they stored stays.",
            done="{n} job{s} cancelled or about to end.",
            effect=lambda job: "" if job.is_live else "has already finished",
        )

    def _act(
        self,
        request: HttpRequest,
        rows: Any,
        act: Callable[..., object],
        *,
        action: str,
        verb: str,
        sentence: str,
        done: str,
        effect: Callable[[Job], str],
    ) -> HttpResponse | None:
        if request.POST.get("confirmed"):
            by = cast("User", request.user)
            act_on_rows(request, rows, lambda job: act(job, by=by), done=done)
            return None
        jobs = [
            {
                "pk": line.job.pk,
                "label": f"{line.kind} of {line.source.label}" if line.source else line.kind,
                "effect": effect(line.job),
            }
            for line in lines(rows, viewer_of(request))
        ]
        context = {
            **self.admin_site.each_context(request),
            "title": verb,
            "sentence": sentence,
            "verb": verb,
            "jobs": jobs,
            "action": action,
            "back": request.get_full_path(),
        }
        return TemplateResponse(request, "admin/jobs/act.html", context)


@admin.register(JobItem)
class JobItemAdmin(ReadOnlyAdmin):
    list_display = ("path", "job", "state", "reason", "line", "size", "milliseconds", "chunks", "warning")
    list_filter = ("state", "warning", "reason")
    search_fields = ("path", "message")
    list_select_related = ("job",)
    show_full_result_count = False


@admin.register(JobAttempt)
class JobAttemptAdmin(ReadOnlyAdmin):
    list_display = ("job", "number", "ending", "error_code", "worker", "started_at", "finished_at")
    list_filter = ("ending", "error_code")
    search_fields = ("worker", "error_code", "error_message")
    list_select_related = ("job",)
    date_hierarchy = "started_at"


@admin.register(Suspect)
class SuspectAdmin(ReadOnlyAdmin):
    """Files that were under way when a worker was lost; the quarantined ones can be let go."""

    list_display = ("path", "source_kind", "losses", "quarantined_at", "job")
    list_filter = (SourceFilter, "quarantined_at")
    search_fields = ("path",)
    list_select_related = ("job",)
    actions = ("release",)

    @admin.action(description="Release from quarantine")
    def release(self, request: HttpRequest, rows: Any) -> HttpResponse | None:
        if request.POST.get("confirmed"):
            by = cast("User", request.user)
            act_on_rows(
                request, rows, lambda row: control.release_file(row, by=by), done="{n} files will be tried again."
            )
            return None
        context = {
            **self.admin_site.each_context(request),
            "title": "Release from quarantine",
            "sentence": "The next sync reads these versions of the files again. Each may cost a worker once more.",
            "verb": "Release files",
            "jobs": [{"pk": row.pk, "label": row.path, "effect": ""} for row in rows],
            "action": "release",
            "back": request.get_full_path(),
        }
        return TemplateResponse(request, "admin/jobs/act.html", context)
