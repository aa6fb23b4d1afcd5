"""What happens around every request: its id and origin, limits, headers, and the gate before pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from django.conf import settings
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.http import Http404, HttpResponse, HttpResponseRedirect

from apps.access import limits, rules, security, signing_in, view_as
from apps.access.errors import Forbidden, MethodRefused, Refusal, Unauthenticated
from apps.access.origin import Origin, acting, client_address, new_request_id
from apps.access.refusal_pages import page_of
from apps.access.rest import problems

if TYPE_CHECKING:
    from django.http import HttpRequest

GetResponse = Callable[["HttpRequest"], HttpResponse]

OPEN_PATHS = frozenset(
    {"/healthz", "/readyz", "/login", "/login/provider", "/login/provider/callback", "/api/schema", "/api/docs"}
)
OPEN_PREFIXES = ("/static/", "/webhooks/")
"""Addresses that need nobody signed in; pinned by a test. Webhooks prove themselves by their signature."""

OWN_PROOF_PREFIXES = ("/api/", "/mcp/")
OWN_PROOF_PATHS = frozenset({"/mcp"})
"""Doors for programs, which authenticate by token and answer 401 instead of sending anyone to a page."""

ACCOUNT_PREFIXES = ("/admin", "/account", "/view-as")
"""Pages that need an account even while public reading is on."""


def is_api(request: HttpRequest) -> bool:
    return request.path_info.startswith("/api/")


def is_for_programs(request: HttpRequest) -> bool:
    """Whether errors are answered as problems, not as pages."""
    path = request.path_info
    return path in OWN_PROOF_PATHS or path.startswith(OWN_PROOF_PREFIXES)


class RequestMiddleware:
    """The outermost layer: every answer, errors and static files included, passes through here last."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        request_id = new_request_id()
        origin = Origin(how="session", request_id=request_id, address=client_address(request))
        with acting(origin), limits.statements_in_time():
            response = self.get_response(request)
            if is_for_programs(request):
                response = _as_problem(response)
            elif response.status_code == 405 and not response.streaming and not response.content:
                response = _as_page(request, response)
        security.harden(request, response)
        response.headers["X-Request-ID"] = request_id
        return response

    def process_view(
        self, request: HttpRequest, view: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]
    ) -> HttpResponse | None:
        try:
            limits.check_body(request, view)
        except Refusal as refusal:
            return _answer(request, refusal)
        return None

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """A refusal that a page let pass becomes its page."""
        return _answer(request, exception) if isinstance(exception, Refusal) else None


class SignInGate:
    """Sends the anonymous to the login page, before any look-up, from everywhere but the open addresses."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        path = request.path_info
        if path in OPEN_PATHS or path.startswith(OPEN_PREFIXES):
            return self.get_response(request)
        if path in OWN_PROOF_PATHS or path.startswith(OWN_PROOF_PREFIXES):
            if is_api(request) and not self._may_pass(request) and "Authorization" not in request.headers:
                return _answer(request, Unauthenticated())
        elif not self._may_pass(request):
            return _to_login(request)
        if "\0" in path:
            # SECURITY: PostgreSQL refuses NUL in text, which would tell a guesser more than "not here".
            raise Http404
        if not is_api(request):
            _without_nul(request)
        if request.user.is_authenticated:
            signing_in.slide(request)
            refused = self._view_as(request)
            if refused is not None:
                return refused
        return self.get_response(request)

    def _view_as(self, request: HttpRequest) -> HttpResponse | None:
        """Give the request the eyes that an administrator borrows, and keep it to reading."""
        viewed = view_as.current(request)
        if viewed is None or "Authorization" in request.headers:
            return None
        if request.path_info == view_as.STOP_PATH:
            return None
        request.view_as = viewed  # type: ignore[attr-defined]
        request.viewer = viewed.viewer  # type: ignore[attr-defined]
        if request.method not in view_as.READING:
            return _answer(request, Forbidden("While you view the portal as somebody else, you only read. Stop first."))
        if view_as.is_closed(request.path_info):
            return _answer(request, Forbidden("This page is closed while you view the portal as somebody else."))
        if viewed.is_closed_out:
            return _closed_out(request)
        return None

    def _may_pass(self, request: HttpRequest) -> bool:
        viewer: Any = request.user
        if rules.is_signed_in(viewer):
            return True
        return rules.may_look_around(viewer) and not request.path_info.startswith(ACCOUNT_PREFIXES)


def _closed_out(request: HttpRequest) -> HttpResponse:
    """What anonymous meets while public reading is off, said instead of done: the administrator needs the banner."""
    if is_api(request):
        return _answer(request, Unauthenticated())
    return page_of(request, Forbidden(view_as.ANONYMOUS_CLOSED))


def _to_login(request: HttpRequest) -> HttpResponse:
    address = f"{settings.LOGIN_URL}?{REDIRECT_FIELD_NAME}={quote(request.get_full_path())}"
    if request.headers.get("HX-Request"):
        return HttpResponse(status=401, headers={"HX-Redirect": str(settings.LOGIN_URL)})
    return HttpResponseRedirect(address)


def _without_nul(request: HttpRequest) -> None:
    """In the query string of a page a NUL counts as a space."""
    if "%00" not in request.META.get("QUERY_STRING", ""):
        return
    cleaned = request.GET.copy()
    for name in list(cleaned):
        cleaned.setlist(name, [value.replace("\0", " ") for value in cleaned.getlist(name)])
    request.GET = cleaned  # type: ignore[assignment]


def _answer(request: HttpRequest, refusal: Refusal) -> HttpResponse:
    if is_for_programs(request):
        return problems.plain_response(problems.body_of(refusal), problems.headers_of(refusal))
    return page_of(request, refusal)


def _as_problem(response: HttpResponse) -> HttpResponse:
    """An error that no REST view rendered (unknown address, CSRF, bad host) in the form of the others."""
    kind = response.headers.get("Content-Type", "")
    if response.status_code < 400 or kind.startswith((problems.MEDIA_TYPE, "application/json")):
        return response
    return problems.plain_response(problems.body_of_status(response.status_code))


def _as_page(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """Django answers a wrong method with an empty body, which browsers show as a failure of their own; one gets there
    by reloading a refused form, or by signing in again after sending one."""
    page = page_of(request, MethodRefused())
    page.headers["Allow"] = response.headers.get("Allow", "")
    return page
