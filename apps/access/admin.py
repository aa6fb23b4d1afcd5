"""Accounts, groups, tokens, failed sign-ins and the audit trail: for administrators only."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group
from django.db import transaction
from django.utils.html import format_html

from apps.access import accounts, audit, tokens
from apps.access.admin_base import AdministratorAdmin, AdministratorReadOnlyAdmin, act_on_rows
from apps.access.forms import GroupForm
from apps.access.models import ApiToken, AuditRecord, KeptAnswer, LoginFailure, ProviderIdentity, User

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest

admin.site.unregister(Group)


@admin.register(User)
class UserAdmin(AdministratorAdmin, DjangoUserAdmin):  # type: ignore[type-arg]
    list_display = ("username", "email", "is_active", "is_staff", "is_superuser", "last_login")
    list_filter = ("is_active", "is_staff", "is_superuser", "groups")
    search_fields = ("username", "email", "first_name", "last_name")
    ordering = ("username",)
    filter_horizontal = ()
    autocomplete_fields = ("groups",)
    readonly_fields = ("last_login", "date_joined")
    actions = ("disable",)
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        ("Person", {"fields": ("first_name", "last_name", "email")}),
        ("Rights", {"fields": ("is_active", "is_staff", "is_superuser", "groups")}),
        ("Dates", {"fields": ("last_login", "date_joined")}),
    )

    @admin.action(description="Disable user")
    def disable(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        def close(user: User) -> None:
            user.is_active = False
            accounts.store_user(user=user, by=_by(request))

        act_on_rows(request, queryset, close, done="{n} user{s} disabled; their sessions and tokens open nothing now.")

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        accounts.store_user(user=obj, by=_by(request))

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        before = sorted(form.instance.groups.values_list("name", flat=True))
        super().save_related(request, form, formsets, change)
        accounts.note_membership(user=form.instance, before=before, by=_by(request))

    def delete_model(self, request: HttpRequest, obj: User) -> None:
        accounts.delete_user(user=obj, by=_by(request))

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> Any:
        with transaction.atomic():
            return super().user_change_password(request, id, form_url)

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Django's password page tells of its change only here."""
        if request.path.endswith("/password/"):
            audit.record(audit.Act.PASSWORD_CHANGED, by=_by(request), target=obj)


@admin.register(Group)
class GroupAdmin(AdministratorAdmin):
    form = GroupForm
    list_display = ("name", "members", "managed_by_provider")
    search_fields = ("name",)
    list_filter = ("profile__managed_by_provider",)
    ordering = ("name",)
    fields = ("name", "managed_by_provider")

    @admin.display(description="members")
    def members(self, group: Any) -> int:
        return int(group.member_count)

    @admin.display(description="managed by the sign-in provider", boolean=True)
    def managed_by_provider(self, group: Group) -> bool:
        profile = getattr(group, "profile", None)
        return bool(profile and profile.managed_by_provider)

    def get_queryset(self, request: HttpRequest) -> Any:
        from django.db.models import Count

        return super().get_queryset(request).select_related("profile").annotate(member_count=Count("user"))

    def save_model(self, request: HttpRequest, obj: Group, form: Any, change: bool) -> None:
        accounts.store_group(group=obj, managed_by_provider=form.cleaned_data["managed_by_provider"], by=_by(request))

    def delete_model(self, request: HttpRequest, obj: Group) -> None:
        accounts.delete_group(group=obj, by=_by(request))


@admin.register(ApiToken)
class ApiTokenAdmin(AdministratorReadOnlyAdmin):
    list_display = ("name", "prefix", "user", "scope_list", "created_at", "expires_at", "last_used_at", "revoked_at")
    list_filter = ("user", "created_at", "expires_at", "revoked_at")
    list_select_related = ("user",)
    search_fields = ("name", "prefix", "user__username")
    date_hierarchy = "created_at"
    actions = ("revoke",)
    fields = ("name", "prefix", "user", "scopes", "created_at", "expires_at", "last_used_at", "revoked_at")

    @admin.display(description="scopes")
    def scope_list(self, token: ApiToken) -> str:
        return ", ".join(token.scopes)

    @admin.action(description="Revoke tokens")
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiToken]) -> None:
        live = queryset.filter(revoked_at__isnull=True)
        act_on_rows(
            request,
            live,
            lambda token: tokens.revoke_any_token(token_id=token.pk, by=_by(request)),
            done="{n} token{s} revoked.",
        )


@admin.register(AuditRecord)
class AuditRecordAdmin(AdministratorReadOnlyAdmin):
    list_display = ("time", "actor_name", "act", "target_kind", "target_name", "how", "address")
    list_filter = ("act", "how", "target_kind", "time")
    search_fields = ("actor_name", "target_name", "target_id", "request_id", "address")
    date_hierarchy = "time"
    fields = (
        "time",
        "actor_name",
        "act",
        "target_kind",
        "target_id",
        "target_name",
        "how",
        "token_id",
        "state_before",
        "state_after",
        "request_id",
        "address",
    )

    @admin.display(description="before")
    def state_before(self, row: AuditRecord) -> str:
        return _listing(row.before)

    @admin.display(description="after")
    def state_after(self, row: AuditRecord) -> str:
        return _listing(row.after)


@admin.register(ProviderIdentity)
class ProviderIdentityAdmin(AdministratorReadOnlyAdmin):
    list_display = ("user", "issuer", "subject")
    list_filter = ("issuer",)
    list_select_related = ("user",)
    search_fields = ("user__username", "subject")
    fields = ("user", "issuer", "subject")


@admin.register(LoginFailure)
class LoginFailureAdmin(AdministratorReadOnlyAdmin):
    list_display = ("at", "address")
    search_fields = ("address",)
    list_filter = ("at",)
    date_hierarchy = "at"
    fields = ("at", "address")


@admin.register(KeptAnswer)
class KeptAnswerAdmin(AdministratorReadOnlyAdmin):
    """Kept answers of creating requests; their bodies are for the callers alone."""

    list_display = ("created_at", "user", "method", "path", "status")
    list_filter = ("method", "user")
    search_fields = ("path", "user__username")
    list_select_related = ("user",)
    date_hierarchy = "created_at"
    fields = ("created_at", "user", "method", "path", "status")


def _by(request: HttpRequest) -> User:
    return cast("User", request.user)


def _listing(value: Any) -> str:
    if value is None:
        return "–"
    return format_html("<pre>{}</pre>", json.dumps(value, indent=1, ensure_ascii=False, sort_keys=True))
