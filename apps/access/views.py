"""Pages of identity: sign in and out, the account, its tokens."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from django.contrib import messages
from django.contrib.auth.models import Group
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.access import oidc, rules, signing_in, tokens, view_as
from apps.access.errors import Invalid, NotFound, Refusal, Throttled
from apps.access.models import ApiToken, TokenScope
from apps.access.pages import answer, wants_fragment

if TYPE_CHECKING:
    from apps.access.models import User

EXPIRIES = ((30, "30 days"), (90, "90 days"), (365, "one year"), (0, "never"))
SCOPE_HELP = {
    TokenScope.READ: "Reads and searches through the REST API.",
    TokenScope.WRITE: "Uploads, syncs and changes through the REST API. Includes reading.",
    TokenScope.MCP: "Lets an agent use the MCP server, and nothing else.",
}


@dataclasses.dataclass(frozen=True, slots=True)
class ScopeChoice:
    value: str
    words: str
    help: str
    chosen: bool


@dataclasses.dataclass(frozen=True, slots=True)
class TokenLine:
    token: ApiToken
    expired: bool


@require_http_methods(["GET", "HEAD", "POST"])
def login(request: HttpRequest) -> HttpResponse:
    """Sign in. A fragment that meets an ended session is sent here as a whole page."""
    wanted = request.POST.get("next") or request.GET.get("next") or ""
    target = signing_in.next_page(request, wanted)
    if wants_fragment(request):
        return HttpResponse(status=204, headers={"HX-Redirect": reverse("access:login")})
    context = {"next": wanted, "username": "", "problem": "", "remember": False, "provider": oidc.provider_name()}
    if request.method != "POST":
        if request.user.is_authenticated:
            return redirect(target)
        return answer(request, "access/login.html", context)
    username = request.POST.get("username", "")
    remember = request.POST.get("remember") == "on"
    try:
        signing_in.sign_in(request, username=username, password=request.POST.get("password", ""), remember=remember)
    except (Invalid, Throttled) as refusal:
        context |= {"username": username, "problem": refusal.message, "remember": remember}
        response = answer(request, "access/login.html", context, status=refusal.status)
        if refusal.retry_after is not None:
            response["Retry-After"] = str(refusal.retry_after)
        return response
    return redirect(target)


@require_POST
def logout(request: HttpRequest) -> HttpResponse:
    signing_in.sign_out(request)
    return redirect("access:login")


@require_http_methods(["GET", "HEAD", "POST"])
def account(request: HttpRequest) -> HttpResponse:
    """Who one is; change the password; end the other sessions."""
    user = _signed_in(request)
    if user is None:
        return _to_login(request)
    problem: Refusal | None = None
    if request.method == "POST":
        try:
            if request.POST.get("act") == "end-sessions":
                signing_in.end_other_sessions(request)
                messages.success(request, "Every other session of yours has ended.")
            else:
                _change_password(request)
                messages.success(request, "Your password is changed. Every other session of yours has ended.")
            return redirect("access:account")
        except (Invalid, Throttled) as refusal:
            problem = refusal
    context = {"groups": list(user.groups.order_by("name")), "problem": problem}
    return answer(request, "access/account.html", context, status=problem.status if problem else 200)


def _change_password(request: HttpRequest) -> None:
    new = request.POST.get("new", "")
    if new != request.POST.get("again", ""):
        raise Invalid("The new password was typed differently the second time.", field="again")
    signing_in.change_password(request, old=request.POST.get("old", ""), new=new)


@require_http_methods(["GET", "HEAD", "POST"])
def tokens_page(request: HttpRequest) -> HttpResponse:
    """The tokens of the user. A new one stands in the answer to its own request only, so there is no redirect."""
    user = _signed_in(request)
    if user is None:
        return _to_login(request)
    made: tuple[ApiToken, str] | None = None
    problem: Invalid | None = None
    name = ""
    chosen = {TokenScope.READ.value}
    days = str(tokens.DEFAULT_DAYS)
    if request.method == "POST":
        name, days = request.POST.get("name", ""), request.POST.get("expires_in_days", "")
        chosen = set(request.POST.getlist("scopes"))
        try:
            made = tokens.create_token(user=user, name=name, scopes=chosen, expires_in_days=_days(days))
        except Invalid as refusal:
            problem = refusal
    now = timezone.now()
    context = {
        "lines": [
            TokenLine(token, token.expires_at is not None and token.expires_at <= now)
            for token in tokens.tokens_of(user)
        ],
        "made": made[0] if made else None,
        "text": made[1] if made else "",
        "problem": problem,
        "name": "" if made else name,
        "days": days,
        "expiries": [(str(value), words) for value, words in EXPIRIES],
        "scopes": [
            ScopeChoice(scope.value, str(scope.label), SCOPE_HELP[scope], scope.value in chosen) for scope in TokenScope
        ],
    }
    return answer(request, "access/tokens.html", context, status=problem.status if problem else 200)


def _days(value: str) -> int | None:
    """The chosen days until expiry; 0 is "never". Raises Invalid."""
    if not value.isascii() or not value.isdigit():
        raise Invalid("Choose after how many days the token expires.", field="expires_in_days")
    return int(value) or None


@require_POST
def revoke_token(request: HttpRequest, token_id: str) -> HttpResponse:
    user = _signed_in(request)
    if user is None:
        return _to_login(request)
    tokens.revoke_token(token_id=token_id, by=user)
    messages.success(request, "The token is revoked. Whatever used it is refused from now on.")
    return redirect("access:tokens")


@require_safe
def revoke_page(request: HttpRequest, token_id: str) -> HttpResponse:
    """Asks before a token ends, and names it."""
    user = _signed_in(request)
    if user is None:
        return _to_login(request)
    found = [token for token in tokens.tokens_of(user) if str(token.pk) == str(token_id)]
    if not found:
        return redirect("access:tokens")
    return answer(request, "access/revoke.html", {"token": found[0]})


def _signed_in(request: HttpRequest) -> User | None:
    return request.user if request.user.is_authenticated else None


def _to_login(request: HttpRequest) -> HttpResponse:
    return redirect(f"{reverse('access:login')}?next={request.path}")


@require_http_methods(["GET", "HEAD", "POST"])
def view_as_page(request: HttpRequest) -> HttpResponse:
    """Administrators choose whose eyes to use. Raises NotFound for everybody else."""
    user = _signed_in(request)
    if user is None or not rules.is_administrator(user):
        raise NotFound
    problem = ""
    if request.method == "POST":
        try:
            view_as.begin(request, kind=request.POST.get("kind", ""), name=request.POST.get("name", "").strip())
            return redirect("home")
        except NotFound:
            problem = "There is no active user or group of this name."
    context = {
        "problem": problem,
        "kind": request.POST.get("kind", "user"),
        "name": request.POST.get("name", ""),
        "groups": list(Group.objects.order_by("name").values_list("name", flat=True)[:500]),
    }
    return answer(request, "access/view_as.html", context, status=404 if problem else 200)


@require_http_methods(["GET", "HEAD", "POST"])
def view_as_stop(request: HttpRequest) -> HttpResponse:
    """Ends it at a POST; a GET asks, for those who come by the banner of an error page."""
    if request.method == "POST":
        view_as.end(request)
        messages.success(request, "You see the portal with your own eyes again.")
        return redirect("home")
    return answer(request, "access/view_as_stop.html", {})
