"""Admin pages of collections. Every act calls the function that the portal's pages call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.db.models import Count, Q

from apps.access.admin_base import GrantAdmin, ReadOnlyAdmin
from apps.access.admin_sources import SOURCE_ACTIONS, SourceAdmin, actor, row_action
from apps.access.rules import Right, Visibility
from apps.access.viewers import viewer_of
from apps.collections import curation
from apps.collections.admin_forms import CollectionForm
from apps.collections.models import (
    Asset,
    Collection,
    CollectionGroupGrant,
    CollectionUserGrant,
    Document,
    DocumentChunk,
    DocumentLink,
    DocumentVersion,
    StagedEntry,
    Upload,
)

if TYPE_CHECKING:
    from django import forms
    from django.http import HttpRequest

    from apps.access.models import User

PROFILE = ("max_chars", "min_chars", "max_chunks")
OWNED = ("name", "visibility", "language", *PROFILE, "query_log_opt_out")
"""What takes the right to manage; a description takes the right to write."""


@admin.register(Collection)
class CollectionAdmin(SourceAdmin):
    plural = "collections"
    add_right = "self"
    change_right = Right.WRITE
    delete_right = Right.MANAGE
    form = CollectionForm
    list_display = ("name", "visibility", "owner", "documents_count", "broken_count", "changed_at")
    list_filter = ("visibility", "language", "owner")
    search_fields = ("name", "description")
    date_hierarchy = "created_at"
    list_select_related = ("owner",)
    view_on_site = True
    facts = ("owner", "slug", "created_at", "changed_at")
    actions = (
        "chunk_anew",
        "embed_anew",
        "resolve_links",
        *SOURCE_ACTIONS,
    )

    def get_queryset(self, request: HttpRequest) -> Any:
        live = Count("documents", filter=Q(documents__trashed_at=None), distinct=True)
        return super().get_queryset(request).annotate(count=live)

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        changelist = super().get_changelist_instance(request)
        changelist.result_list = list(changelist.result_list)
        broken = dict(
            DocumentLink.objects.filter(collection__in=changelist.result_list, document__trashed_at=None)
            .filter(state__in=("broken", "anchor missing"))
            .values_list("collection")
            .annotate(n=Count("pk"))
            .order_by()
        )
        for row in changelist.result_list:
            row.broken = broken.get(row.pk, 0)
        return changelist

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        if obj is None:
            return ()
        manages = Collection.objects.manageable_by(viewer_of(request)).filter(pk=obj.pk).exists()
        return self.facts if manages else (*self.facts, *OWNED)

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        sets: list[Any] = [(None, {"fields": ("name", "description", "visibility", "language")})]
        if obj is not None:
            sets += [
                ("Chunks", {"fields": PROFILE}),
                ("Searches", {"fields": ("query_log_opt_out",)}),
                ("State", {"fields": self.facts}),
            ]
        return sets

    @admin.display(description="documents", ordering="count")
    def documents_count(self, row: Any) -> int:
        return int(row.count)

    @admin.display(description="broken links")
    def broken_count(self, row: Any) -> int:
        return int(getattr(row, "broken", 0))

    def change_visibility(self, by: User, row: Any, visibility: Visibility) -> Any:
        return curation.update_collection(collection=row, by=by, visibility=visibility)

    def save_model(self, request: HttpRequest, obj: Any, form: forms.ModelForm[Any], change: bool) -> None:
        data, by = form.cleaned_data, actor(request)
        if not change:
            made = curation.create_collection(
                by=by,
                name=data["name"],
                description=data["description"],
                visibility=data["visibility"],
                language=data["language"],
            )
            obj.__dict__.update(made.__dict__)
            obj._state.adding = False
            return
        changed = set(form.changed_data)
        values = {name: data[name] for name in changed - set(PROFILE)}
        if changed.intersection(PROFILE):
            values["profile"] = tuple(data[name] for name in PROFILE)
        if values:
            held = Collection.objects.get_for(by, pk=obj.pk)
            curation.update_collection(collection=held, by=by, **values)

    def delete_row(self, request: HttpRequest, obj: Any) -> None:
        curation.delete_collection(collection=obj, by=actor(request))

    # -- actions

    chunk_anew = row_action(
        "chunk_anew",
        "Re-chunk",
        lambda by, row: curation.request_rechunk(collection=row, by=by),
        done="{n} job{s} queued.",
        sentence="Every document of these collections will be cut anew; the present chunks answer until then.",
    )
    embed_anew = row_action(
        "embed_anew",
        "Re-embed",
        lambda by, row: curation.request_reembed(collection=row, by=by),
        done="{n} job{s} queued.",
        sentence="Every chunk of these collections will be embedded anew; the present vectors answer until then.",
    )
    resolve_links = row_action(
        "resolve_links",
        "Resolve links",
        lambda by, row: curation.request_links(collection=row, by=by),
        done="{n} job{s} queued.",
        sentence="All links of these collections will be resolved again.",
    )


@admin.register(Document)
class DocumentAdmin(ReadOnlyAdmin):
    list_display = ("title", "source_key", "collection", "state", "chunk_count", "version", "size", "changed_at")
    list_filter = ("state", "format", "collection")
    search_fields = ("title", "source_key")
    list_select_related = ("collection",)
    date_hierarchy = "changed_at"
    view_on_site = True
    exclude = ("shelved_chunks",)

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).defer("text", "parsed", "frontmatter", "warnings", "shelved_chunks")


@admin.register(DocumentVersion)
class DocumentVersionAdmin(ReadOnlyAdmin):
    list_display = ("document", "number", "uploaded_by", "uploaded_at")
    list_filter = ("document__collection",)
    search_fields = ("document__title", "document__source_key")
    list_select_related = ("document", "uploaded_by")
    date_hierarchy = "uploaded_at"
    exclude = ("raw",)

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).defer("raw")


@admin.register(DocumentChunk)
class DocumentChunkAdmin(ReadOnlyAdmin):
    list_display = ("id", "document", "chunk_index", "start_line", "end_line", "profile")
    list_filter = ("collection",)
    search_fields = ("document__title", "document__source_key")
    list_select_related = ("document",)
    show_full_result_count = False
    view_on_site = True


@admin.register(DocumentLink)
class DocumentLinkAdmin(ReadOnlyAdmin):
    list_display = ("href", "document", "state", "reason", "rule", "suggestion")
    list_filter = ("state", "reason", "link_type", "collection")
    search_fields = ("href", "text")
    list_select_related = ("document",)


@admin.register(Asset)
class AssetAdmin(ReadOnlyAdmin):
    list_display = ("source_key", "collection", "content_type", "size", "changed_at")
    list_filter = ("content_type", "collection")
    search_fields = ("source_key",)
    list_select_related = ("collection",)
    date_hierarchy = "changed_at"
    view_on_site = True
    exclude = ("data",)

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).defer("data")


@admin.register(Upload)
class UploadAdmin(ReadOnlyAdmin):
    list_display = ("created_at", "collection", "purpose", "requested_by", "size", "ignored", "expired")
    list_filter = ("purpose", "expired", "collection", "requested_by")
    search_fields = ("collection__name", "requested_by__username")
    list_select_related = ("collection", "requested_by")
    date_hierarchy = "created_at"


@admin.register(StagedEntry)
class StagedEntryAdmin(ReadOnlyAdmin):
    list_display = ("source_key", "upload", "asset_type", "size", "error_code")
    list_filter = ("error_code", "upload__collection")
    search_fields = ("source_key",)
    list_select_related = ("upload",)
    show_full_result_count = False
    exclude = ("raw",)

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).defer("raw")


admin.site.register(CollectionUserGrant, GrantAdmin)
admin.site.register(CollectionGroupGrant, GrantAdmin)
