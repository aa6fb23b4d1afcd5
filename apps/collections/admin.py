"""Admin pages of collections. Every act calls the function that the portal's pages call."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from django.contrib import admin, messages
from django.db.models import Count, Q
from django.http import HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse

from apps.access import grants
from apps.access.admin_base import GrantAdmin, ReadOnlyAdmin, ScopedAdmin, act_on_rows
from apps.access.errors import Refusal
from apps.access.rules import Right, Visibility
from apps.access.viewers import viewer_of
from apps.collections import curation
from apps.collections.admin_forms import CollectionForm, GrantForm
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


def actor(request: HttpRequest) -> User:
    return cast("User", request.user)


@admin.register(Collection)
class CollectionAdmin(ScopedAdmin):
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
        "grant_group",
        "make_public",
        "make_private",
        "make_admin_only",
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

    def changeform_view(
        self, request: HttpRequest, object_id: str | None = None, form_url: str = "", extra_context: Any = None
    ) -> Any:
        try:
            return super().changeform_view(request, object_id, form_url, extra_context)
        except Refusal as refusal:
            where = f"{refusal.field}: " if refusal.field else ""
            messages.error(request, f"{where}{refusal.message} Nothing was changed.")
            return HttpResponseRedirect(request.get_full_path())

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

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Nothing: collections have no form of related rows."""

    def delete_row(self, request: HttpRequest, obj: Any) -> None:
        curation.delete_collection(collection=obj, by=actor(request))

    # -- actions

    def _confirmed(
        self, request: HttpRequest, rows: Any, *, action: str, sentence: str, verb: str, form: Any = None
    ) -> HttpResponse | None:
        """None when the person has confirmed; else the page that asks."""
        if request.POST.get("confirmed") and (form is None or form.is_valid()):
            return None
        context = {
            **self.admin_site.each_context(request),
            "title": verb,
            "sentence": sentence,
            "verb": verb,
            "rows": rows,
            "action": action,
            "form": form,
            "back": request.get_full_path(),
        }
        return TemplateResponse(request, "admin/act.html", context)

    def _act(
        self, request: HttpRequest, rows: Any, act: Callable[[User, Collection], Any], *, done: str, **words: str
    ) -> HttpResponse | None:
        asked = self._confirmed(request, rows, **words)
        if asked is None:
            act_on_rows(request, rows, lambda row: act(actor(request), row), done=done)
        return asked

    @admin.action(description="Re-chunk")
    def chunk_anew(self, request: HttpRequest, rows: Any) -> HttpResponse | None:
        return self._act(
            request,
            rows,
            lambda by, row: curation.request_rechunk(collection=row, by=by),
            done="{n} jobs queued.",
            action="chunk_anew",
            verb="Re-chunk",
            sentence="Every document of these collections will be cut anew; the present chunks answer until then.",
        )

    @admin.action(description="Re-embed")
    def embed_anew(self, request: HttpRequest, rows: Any) -> HttpResponse | None:
        return self._act(
            request,
            rows,
            lambda by, row: curation.request_reembed(collection=row, by=by),
            done="{n} jobs queued.",
            action="embed_anew",
            verb="Re-embed",
            sentence="Every chunk of these collections will be embedded anew; the present vectors answer until then.",
        )

    @admin.action(description="Resolve links")
    def resolve_links(self, request: HttpRequest, rows: Any) -> HttpResponse | None:
        return self._act(
            request,
            rows,
            lambda by, row: curation.request_links(collection=row, by=by),
            done="{n} jobs queued.",
            action="resolve_links",
            verb="Resolve links",
            sentence="All links of these collections will be resolved again.",
        )

    @admin.action(description="Grant to a group")
    def grant_group(self, request: HttpRequest, rows: Any) -> HttpResponse | None:
        form = GrantForm(request.POST if request.POST.get("confirmed") else None)
        asked = self._confirmed(
            request,
            rows,
            action="grant_group",
            verb="Grant",
            sentence="The group will be able to read, or read and write, these collections.",
            form=form,
        )
        if asked is None:
            group, level = form.cleaned_data["group"], form.cleaned_data["level"]
            act_on_rows(
                request,
                rows,
                lambda row: grants.grant(source=row, to=group, level=level, by=actor(request)),
                done="Granted on {n} collections.",
            )
        return asked

    @admin.action(description="Make public")
    def make_public(self, request: HttpRequest, rows: Any) -> HttpResponse | None:
        return self._visibility(
            request, rows, Visibility.PUBLIC, "make_public", "Every signed-in user will read these."
        )

    @admin.action(description="Make private")
    def make_private(self, request: HttpRequest, rows: Any) -> HttpResponse | None:
        sentence = "Owners, grants and administrators will read these."
        return self._visibility(request, rows, Visibility.PRIVATE, "make_private", sentence)

    @admin.action(description="Make administrators only")
    def make_admin_only(self, request: HttpRequest, rows: Any) -> HttpResponse | None:
        sentence = "Only administrators will read these; grants to users and grants of others than administrators end."
        return self._visibility(request, rows, Visibility.ADMIN_ONLY, "make_admin_only", sentence)

    def _visibility(
        self, request: HttpRequest, rows: Any, visibility: Visibility, action: str, sentence: str
    ) -> HttpResponse | None:
        return self._act(
            request,
            rows,
            lambda by, row: curation.update_collection(collection=row, by=by, visibility=visibility),
            done="Visibility of {n} collections changed.",
            action=action,
            verb="Change visibility",
            sentence=sentence,
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
    list_select_related = ("document", "uploaded_by")
    date_hierarchy = "uploaded_at"
    exclude = ("raw",)

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).defer("raw")


@admin.register(DocumentChunk)
class DocumentChunkAdmin(ReadOnlyAdmin):
    list_display = ("id", "document", "chunk_index", "start_line", "end_line", "profile")
    list_filter = ("collection",)
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
