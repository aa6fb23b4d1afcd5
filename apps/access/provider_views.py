"""Signing in by a provider: away to it, and back."""

from __future__ import annotations

from dataclasses import replace

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST, require_safe

from apps.access import oidc, providers, signing_in
from apps.access.errors import Invalid, Unavailable
from apps.access.origin import acting, current_origin
from apps.access.pages import answer


@require_POST
def begin(request: HttpRequest) -> HttpResponse:
    try:
        return redirect(oidc.begin(request, request.POST.get("next", "")))
    except (Invalid, Unavailable) as refusal:
        return _refused(request, refusal)


@require_safe
def callback(request: HttpRequest) -> HttpResponse:
    """SECURITY: a GET that changes something, as the protocol wants it; the state in the session keeps others out."""
    try:
        claims, wanted = oidc.finish(request)
        with acting(replace(current_origin(), how="provider")):
            providers.sign_in(request, claims)
    except (Invalid, Unavailable) as refusal:
        return _refused(request, refusal)
    return redirect(signing_in.next_page(request, wanted))


def _refused(request: HttpRequest, refusal: Invalid | Unavailable) -> HttpResponse:
    context = {
        "next": "",
        "username": "",
        "problem": refusal.message,
        "remember": False,
        "provider": oidc.provider_name(),
    }
    return answer(request, "access/login.html", context, status=refusal.status)
