"""Admin pages of repositories. Every act calls the function that the portal's pages call."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin
from django.db.models import Count, Q

from apps.access import rules
from apps.access.admin_base import GrantAdmin, ReadOnlyAdmin
from apps.access.admin_sources import SOURCE_ACTIONS, SourceAdmin, actor, row_action
from apps.access.rules import Right, Visibility
from apps.access.viewers import viewer_of
from apps.indexing.embedding.jobs import request as request_embedding
from apps.jobs.queue import enqueue
from apps.repos import (
    admin_code,  # noqa: F401 - registers its pages
    registration,
)
from apps.repos.admin_forms import NewRepositoryForm, RepositoryForm
from apps.repos.code.relinking import request_link_symbols
from apps.repos.models import (
    CredentialKind,
    Repository,
    RepositoryDocument,
    RepositoryDocumentChunk,
    RepositoryDocumentLink,
    RepositoryDocumentRedirect,
    RepositoryFile,
    RepositoryGroupGrant,
    RepositoryUserGrant,
    SyncReport,
)
from apps.repos.registration import SETTINGS, WRITER_FIELDS, NewCredential

if TYPE_CHECKING:
    from django import forms
    from django.http import HttpRequest

    from apps.access.models import User

Act = Callable[["User", Any], Any]


def _writable(by: User, row: Repository) -> Repository:
    held: Repository = Repository.objects.get_for(by, Right.WRITE, pk=row.pk)
    return held


@admin.register(Repository)
class RepositoryAdmin(SourceAdmin):
    plural = "repositories"
    add_right = "administer"
    change_right = Right.WRITE
    delete_right = Right.ADMINISTER
    form = RepositoryForm
    list_display = (
        "slug",
        "visibility",
        "state_words",
        "documents_count",
        "schedule",
        "commit_short",
        "last_checked_at",
    )
    list_filter = ("state", "visibility", "schedule", "owner")
    search_fields = ("slug", "description")
    date_hierarchy = "created_at"
    list_select_related = ("owner",)
    view_on_site = True
    facts: ClassVar[tuple[str, ...]] = (
        "slug",
        "owner",
        "state_words",
        "synced_branch",
        "synced_commit",
        "committed_at",
        "synced_at",
        "last_checked_at",
        "next_sync_at",
        "credential_state",
        "created_at",
    )
    actions = (
        "sync_now",
        "chunk_anew",
        "embed_anew",
        "resolve_links",
        "link_symbols",
        "approve_held",
        "discard_held",
        *SOURCE_ACTIONS,
    )

    def get_queryset(self, request: HttpRequest) -> Any:
        waiting = Count("documents", filter=Q(documents__absence="held"))
        return super().get_queryset(request).with_state().annotate(count=Count("documents"), waiting=waiting)

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        if obj is None:
            kwargs["form"] = NewRepositoryForm
        return super().get_form(request, obj, change=change, **kwargs)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        if obj is None:
            return ()
        if rules.is_administrator(viewer_of(request)):
            return self.facts
        return (*self.facts, *sorted(SETTINGS - WRITER_FIELDS), "visibility")

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        follow = ("git_url", "branch", "depth", "schedule")
        profile = ("max_words", "overlap_words", "max_chars", "language")
        shown = ("link_style", "link_template", "logs_queries")
        sets = [
            (None, {"fields": ("description", "visibility")}),
            ("Source", {"fields": (*follow, "name") if obj is None else follow}),
            ("Files", {"fields": ("only", "include", "exclude", "docs_roots")}),
            ("Chunks", {"fields": profile}),
            ("Reading", {"fields": shown}),
        ]
        if obj is None or rules.is_administrator(viewer_of(request)):
            sets.append(("Credential", {"fields": ("new_credential", "new_credential_user")}))
        if obj is not None:
            sets.append(("State", {"fields": self.facts}))
        return sets

    @admin.display(description="state")
    def state_words(self, repository: Any) -> str:
        words = "syncing" if getattr(repository, "is_syncing", False) else repository.get_state_display()
        if getattr(repository, "is_stale", False):
            words += f", stale since {repository.last_checked_at:%Y-%m-%d %H:%M}"
        waiting = getattr(repository, "waiting", 0)
        return f"{words}, {waiting} deletions wait" if waiting else words

    @admin.display(description="documents", ordering="count")
    def documents_count(self, repository: Any) -> int:
        return int(repository.count)

    @admin.display(description="commit")
    def commit_short(self, repository: Repository) -> str:
        return repository.synced_commit[:7]

    @admin.display(description="credential")
    def credential_state(self, repository: Repository) -> str:
        return "set; enter another one to replace it" if repository.credential_kind else "none"

    def change_visibility(self, by: User, row: Any, visibility: Visibility) -> Any:
        return registration.change_visibility(repository=row, visibility=visibility, by=by)

    def save_model(self, request: HttpRequest, obj: Any, form: forms.ModelForm[Any], change: bool) -> None:
        data = form.cleaned_data
        by = actor(request)
        credential = self._credential(data)
        if not change:
            registered = registration.register_repository(
                by=by,
                git_url=data["git_url"],
                name=data.get("name", ""),
                visibility=data["visibility"],
                credential=credential,
                **{name: data[name] for name in SETTINGS if name in data and name != "git_url"},
            )
            obj.__dict__.update(registered.repository.__dict__)
            obj._state.adding = False
            return
        held = Repository.objects.get_for(by, pk=obj.pk)
        changes = {name: data[name] for name in form.changed_data if name in SETTINGS}
        if changes:
            registration.change_repository(repository=held, by=by, **changes)
        if "visibility" in form.changed_data:
            registration.change_visibility(repository=held, visibility=data["visibility"], by=by)
        if credential is not None:
            registration.set_credential(repository=held, credential=credential, by=by)

    def _credential(self, data: dict[str, Any]) -> NewCredential | None:
        secret = data.get("new_credential") or ""
        if not secret:
            return None
        key = "PRIVATE KEY" in secret
        kind = CredentialKind.SSH_KEY if key else CredentialKind.TOKEN
        return NewCredential(secret=secret, user=data.get("new_credential_user") or "", kind=kind)

    def delete_row(self, request: HttpRequest, obj: Any) -> None:
        registration.delete_repository(repository=obj, by=actor(request))

    # -- actions

    sync_now = row_action(
        "sync_now",
        "Sync now",
        lambda by, row: registration.request_sync(repository=row, by=by),
        done="{n} sync{s} queued.",
        sentence="A sync of each of these repositories will be queued.",
    )
    chunk_anew = row_action(
        "chunk_anew",
        "Re-chunk",
        lambda by, row: registration.request_chunk_anew(repository=row, by=by),
        done="{n} sync{s} queued.",
        sentence="Every document of these repositories will be read and chunked again.",
    )
    resolve_links = row_action(
        "resolve_links",
        "Resolve links",
        lambda by, row: enqueue("resolve_links", source=_writable(by, row), by=by),
        done="{n} job{s} queued.",
        sentence="All links of these repositories will be resolved again.",
    )
    embed_anew = row_action(
        "embed_anew",
        "Re-embed",
        lambda by, row: request_embedding(_writable(by, row), again=True, by=by),
        done="{n} job{s} queued.",
        sentence="Every chunk of these repositories will be embedded anew; the present vectors answer until then.",
    )
    link_symbols = row_action(
        "link_symbols",
        "Re-link documents to code",
        lambda by, row: request_link_symbols(repository=row, by=by),
        done="{n} job{s} queued.",
        sentence="Names in the documents of these repositories will be linked to symbols again; nothing is read.",
        verb="Re-link",
    )
    approve_held = row_action(
        "approve_held",
        "Approve held deletions",
        lambda by, row: registration.approve_deletions(repository=row, by=by),
        done="Deletions of {n} repositories approved.",
        sentence="The documents of these repositories whose deletion waits will be deleted for good.",
        verb="Approve deletions",
    )
    discard_held = row_action(
        "discard_held",
        "Discard held deletions",
        lambda by, row: registration.discard_deletions(repository=row, by=by),
        done="Deletions of {n} repositories discarded.",
        sentence="The documents of these repositories whose deletion waits will be kept.",
        verb="Keep documents",
    )


@admin.register(RepositoryDocument)
class RepositoryDocumentAdmin(ReadOnlyAdmin):
    list_display = ("title", "path", "repository", "kind", "state", "chunk_count", "chunk_profile", "committed_at")
    list_filter = ("kind", "state", "absence", "repository")
    search_fields = ("title", "path", "slug")
    list_select_related = ("repository",)
    date_hierarchy = "updated_at"
    view_on_site = True


@admin.register(RepositoryDocumentChunk)
class RepositoryDocumentChunkAdmin(ReadOnlyAdmin):
    list_display = ("id", "document", "chunk_index", "start_line", "end_line", "profile")
    list_filter = ("repository",)
    search_fields = ("document__title", "document__path")
    list_select_related = ("document",)
    show_full_result_count = False


@admin.register(RepositoryDocumentLink)
class RepositoryDocumentLinkAdmin(ReadOnlyAdmin):
    list_display = ("href", "document", "state", "reason", "rule", "suggestion")
    list_filter = ("state", "reason", "link_type", "repository")
    search_fields = ("href", "text")
    list_select_related = ("document",)


@admin.register(RepositoryDocumentRedirect)
class RepositoryDocumentRedirectAdmin(ReadOnlyAdmin):
    list_display = ("slug", "repository", "path", "document", "commit", "created_at")
    list_filter = ("repository",)
    search_fields = ("slug", "path")
    list_select_related = ("repository", "document")
    date_hierarchy = "created_at"


@admin.register(RepositoryFile)
class RepositoryFileAdmin(ReadOnlyAdmin):
    list_display = ("path", "repository", "kind", "state", "reason", "size")
    list_filter = ("state", "kind", "reason", "repository")
    search_fields = ("path",)
    list_select_related = ("repository",)
    show_full_result_count = False


@admin.register(SyncReport)
class SyncReportAdmin(ReadOnlyAdmin):
    list_display = ("repository", "branch", "commit", "previous_commit", "created_at")
    list_filter = ("repository",)
    search_fields = ("repository__slug", "branch", "commit")
    list_select_related = ("repository",)
    date_hierarchy = "created_at"


admin.site.register(RepositoryUserGrant, GrantAdmin)
admin.site.register(RepositoryGroupGrant, GrantAdmin)
