"""Refusals that a workflow raised while a page was made become pages; programs get theirs from the REST face."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from apps.access.errors import Refusal, Unauthenticated
from apps.access.pages import redirect_for
from cograph_site.errors import error_page

PROGRAMS = ("/api/", "/mcp", "/webhooks/")


class RefusalPages:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if not isinstance(exception, Refusal) or request.path.startswith(PROGRAMS):
            return None
        if isinstance(exception, Unauthenticated):
            return redirect_for(request, reverse("access:login"))
        return error_page(request, exception.status, message=exception.message, retry_after=exception.retry_after)
