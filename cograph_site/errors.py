"""The pages of errors. They repeat nothing of the request: what is hidden and what does not exist look alike."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import get_template

from cograph_site.context import navigation


@dataclass(frozen=True, slots=True)
class Words:
    title: str
    message: str
    remedy: str


WORDS: dict[int, Words] = {
    400: Words(
        "The request cannot be read",
        "The address or the form holds something that the portal cannot read.",
        "Go back and send it again; if you typed the address, check it.",
    ),
    403: Words(
        "You may not do this",
        "Your rights do not cover this act, or the form was too old to be trusted.",
        "Reload the page that you came from and try again. If that does not help, ask the owner of the source.",
    ),
    404: Words(
        "Nothing here that you can see",
        "There is no page at this address, or it belongs to a source that you may not read.",
        "Search for it, or ask whoever gave you the link to grant you access.",
    ),
    405: Words(
        "This is no page to open",
        "This address only takes a form that a page of the portal sends.",
        "Go back to the page that you came from and send its form again.",
    ),
    409: Words(
        "Something else came first",
        "What you wanted to change has been changed meanwhile, or the name is taken.",
        "Reload the page and look at its present state before you try again.",
    ),
    410: Words(
        "This passage is gone",
        "It was readable here once and has been removed.",
        "Search for its subject; it may live on in another document.",
    ),
    413: Words(
        "Too large",
        "What you sent is larger than this portal accepts.",
        "Send it in smaller parts, or ask an administrator to raise the limit.",
    ),
    422: Words(
        "This cannot be accepted",
        "One of the values is not allowed.",
        "Go back, correct the value and send the form again.",
    ),
    429: Words(
        "Too many requests",
        "More was asked in a short time than this portal answers.",
        "Wait a little, then try again.",
    ),
    500: Words(
        "The portal failed",
        "An error on our side kept this page from being made. Nothing was changed by it.",
        "Try again. If it stays, give the request id to an administrator.",
    ),
    503: Words(
        "A part does not answer",
        "A service that this page needs is not there at the moment.",
        "Try again in a minute.",
    ),
}
FALLBACK = {401: 403, 412: 409, 415: 422}


def words_of(status: int) -> Words:
    """The words of a status; those of its nearest relative for a rare one."""
    return WORDS.get(status) or WORDS[FALLBACK.get(status, 400)]


def error_page(request: HttpRequest, status: int) -> HttpResponse:
    """The page of a bare status. SECURITY: it may not depend on the path, or hidden and missing pages would differ."""
    context = {"status": status, "message": "", "navigation": navigation(""), "retry_after": None}
    return render(request, "error.html", context, status=status)


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return error_page(request, 400)


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return error_page(request, 403)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    return error_page(request, 403)


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return error_page(request, 404)


def server_error(request: HttpRequest) -> HttpResponse:
    """SECURITY: made without database, session or detail of the failure; the request id leads to the log."""
    context = {"words": WORDS[500], "request_id": getattr(request, "request_id", "")}
    return HttpResponse(get_template("500.html").render(context), status=500)
