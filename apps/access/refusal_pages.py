"""Refusals as pages: one template for each status, the general one otherwise. Fragments say so in their place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import HttpResponse
from django.template import TemplateDoesNotExist
from django.template.loader import select_template
from django.urls import get_resolver

from apps.access.rest.problems import body_of_status, headers_of

if TYPE_CHECKING:
    from django.http import HttpRequest

    from apps.access.errors import Refusal


def page_of(request: HttpRequest, refusal: Refusal) -> HttpResponse:
    """The page for a refusal that a view let pass. Absent and hidden both end in the site's one 404 page."""
    if refusal.status == 404:
        handler = get_resolver().resolve_error_handler(404)
        page: HttpResponse = handler(request, exception=refusal)  # type: ignore[call-arg]
        return page
    fragment = bool(request.headers.get("HX-Request"))
    names = ["_error.html"] if fragment else [f"{refusal.status}.html", "error.html"]
    context = {
        "status": refusal.status,
        "code": refusal.code,
        "message": refusal.message,
        "errors": refusal.errors,
        "retry_after": refusal.retry_after,
    }
    try:
        text = select_template(names).render(context, request)
        kind = "text/html; charset=utf-8"
    except TemplateDoesNotExist:
        text, kind = refusal.message, "text/plain; charset=utf-8"
    headers = {name: value for name, value in headers_of(refusal).items() if name != "WWW-Authenticate"}
    return HttpResponse(text, status=refusal.status, content_type=kind, headers=headers)


def message_of(status: int) -> str:
    """The sentence that both faces use for a bare status."""
    return str(body_of_status(status)["message"])
