"""How the pages of every room answer: as a whole page or as the fragment that htmx asks for, and in numbered pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.paginator import Page, Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers

PAGE_SIZE = 50
SEARCHED = "searched"
"""Set in the session by the first search that found something: the home page ticks a step off."""


def wants_fragment(request: HttpRequest) -> bool:
    """True when htmx asks for a piece. A step back in the history that htmx restores needs the whole page."""
    return request.headers.get("HX-Request") == "true" and request.headers.get("HX-History-Restore-Request") != "true"


def answer(
    request: HttpRequest,
    template: str,
    context: Mapping[str, Any],
    *,
    fragment: str = "",
    status: int = 200,
) -> HttpResponse:
    """The page, or its fragment for htmx. One address serves both, so caches are told what it depends on."""
    chosen = fragment if fragment and wants_fragment(request) else template
    response = render(request, chosen, dict(context), status=status)
    patch_vary_headers(response, ["HX-Request"])
    return response


def redirect_for(request: HttpRequest, address: str) -> HttpResponse:
    """A redirect that htmx follows as a whole page instead of pasting the page into a fragment."""
    if wants_fragment(request):
        return HttpResponse(status=204, headers={"HX-Redirect": address})
    return HttpResponse(status=302, headers={"Location": address})


def paged(rows: Any, request: HttpRequest, *, size: int = PAGE_SIZE, total: int | None = None) -> Page[Any]:
    """The page that ``?page=`` names; the nearest one when the number is out of range or no number.

    ``total`` saves the counting query where the number of rows is known.
    """
    pages = Paginator(rows, size)
    if total is not None:
        # Paginator.count is a cached property: what stands in its place is not asked for.
        pages.__dict__["count"] = total
    return pages.get_page(request.GET.get("page", "1"))
