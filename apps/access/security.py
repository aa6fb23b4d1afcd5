"""Headers that every answer carries, whoever wrote it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from django.conf import settings
from django.utils.cache import patch_vary_headers

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})


def content_security_policy() -> str:
    """The policy of pages, admin and API. Nothing inline, nothing evaluated, nothing from elsewhere."""
    images = " ".join(f"https://{host}" for host in settings.COGRAPH.external_images)
    forms = ""
    if settings.COGRAPH.oidc.issuer:
        issuer = urlsplit(settings.COGRAPH.oidc.issuer)
        forms = f" {issuer.scheme}://{issuer.netloc}"
    return (
        "default-src 'none'; script-src 'self'; style-src 'self'; "
        f"img-src 'self' data:{' ' + images if images else ''}; font-src 'self'; connect-src 'self'; "
        f"form-action 'self'{forms}; frame-src 'self'; frame-ancestors 'none'; base-uri 'none'"
    )


def harden(request: HttpRequest, response: HttpResponse) -> None:
    """Add what the view did not set itself (the diagram frame and raw files bring a narrower policy of their own)."""
    response.headers.setdefault("Content-Security-Policy", content_security_policy())
    response.headers.setdefault("X-Content-Type-Options", "nosniff")
    response.headers.setdefault("Referrer-Policy", "same-origin")
    # SECURITY: pages that a browser or a proxy keeps outlive the sign-out and the revoked grant.
    response.headers.setdefault("Cache-Control", "private, no-store")
    if response.headers.get("Content-Type", "").startswith("text/html"):
        patch_vary_headers(response, ["HX-Request"])
    if is_plain_loopback(request):
        # All of them, that of messages too: not every client takes this machine for a safe origin.
        for cookie in response.cookies.values():
            cookie["secure"] = ""


def is_plain_loopback(request: HttpRequest) -> bool:
    """Whether the page is asked over plain http on this very machine, the one place where cookies are not Secure."""
    if request.is_secure():
        return False
    host = str(request.META.get("HTTP_HOST", "")).lower()
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() and not host.endswith("]") else host
    return name in LOOPBACK_NAMES or name == "testserver"
