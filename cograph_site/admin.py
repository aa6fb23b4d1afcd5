from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest

from apps.access.rules import is_administrator
from cograph_site.models import GivenSample


@admin.register(GivenSample)
class GivenSampleAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """To be looked at only: a row that is deleted would bring its sample back."""

    list_display = ("name", "given_at")
    search_fields = ("name",)
    list_filter = ("given_at",)
    date_hierarchy = "given_at"

    def has_view_permission(self, request: HttpRequest, obj: GivenSample | None = None) -> bool:
        return is_administrator(request.user)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: GivenSample | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: GivenSample | None = None) -> bool:
        return False
