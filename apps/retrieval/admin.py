"""The query log in the admin: looked at by administrators, edited by nobody."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.access.admin_base import AdministratorReadOnlyAdmin
from apps.access.viewers import viewer_of
from apps.retrieval import admin_evaluation, query_log  # noqa: F401 - registers its pages
from apps.retrieval.models import AnonymousQueries, QueryLogEntry


class SlowFilter(admin.SimpleListFilter):
    title = "time"
    parameter_name = "slower"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("200", "200 ms or more"), ("1000", "1 s or more")]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        value = self.value()
        return queryset.filter(milliseconds__gte=int(value)) if value in ("200", "1000") else queryset


@admin.register(QueryLogEntry)
class QueryLogAdmin(AdministratorReadOnlyAdmin):
    list_display = (
        "at", "query", "outcome", "results", "milliseconds", "tokens", "door", "tool", "user", "token", "test_case",
    )  # fmt: skip
    list_filter = ("outcome", "door", "tool", SlowFilter, "code", "user")
    list_select_related = ("user", "token")
    search_fields = ("query", "user__username", "token__name")
    date_hierarchy = "at"
    fields = (
        "at", "user", "token", "door", "tool", "query", "sources_named", "sources_found", "outcome", "code", "results",
        "tokens", "milliseconds",
    )  # fmt: skip
    readonly_fields = ("sources_named", "sources_found")

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        found = super().get_object(request, object_id, from_field)
        if found is not None:
            found.shown = query_log.labels([found], viewer_of(request))
        return found

    @admin.display(description="test case")
    def test_case(self, row: Any) -> SafeString:
        """To the result page, where rows are marked."""
        address = f"{reverse('search')}?{urlencode({'q': row.query})}"
        return format_html('<a href="{}">make a test case</a>', address)

    @admin.display(description="sources named")
    def sources_named(self, row: Any) -> str:
        return _words(row, row.named)

    @admin.display(description="sources found")
    def sources_found(self, row: Any) -> str:
        return _words(row, row.found)


@admin.register(AnonymousQueries)
class AnonymousQueriesAdmin(AdministratorReadOnlyAdmin):
    list_display = ("day", "door", "tool", "queries")
    list_filter = ("door", "tool")
    search_fields = ("door", "tool")
    date_hierarchy = "day"
    fields = ("day", "door", "tool", "queries")


def _words(row: Any, keys: list[str]) -> str:
    shown = getattr(row, "shown", {})
    return ", ".join(shown.get(key, "a source that is gone") for key in keys) or "–"
