"""``/mcp``: streamable HTTP over WSGI, stateless, one JSON answer a request.

Everything about the caller is told before the SDK sees the body. Nothing of one request is known to the next, so any
process behind the port answers any call, before and after a restart.
"""

from __future__ import annotations

import json
from urllib.parse import urlsplit

from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from apps.access import origin, tokens
from apps.access.errors import Forbidden, Refusal, Throttled, Unauthenticated
from apps.access.models import ApiToken, TokenScope
from apps.access.rest import throttles
from apps.access.rest.authentication import bearer_of
from apps.mcp.calling import calling_as
from apps.mcp.errors import of_refusal
from apps.mcp.replies import META_KEY

DROPPED = frozenset({"content-length", "transfer-encoding", "connection"})


@csrf_exempt
def endpoint(request: HttpRequest) -> HttpResponse:
    """One JSON-RPC message. SECURITY: csrf_exempt, because a session opens nothing here: only a bearer token does."""
    if request.method != "POST":
        return _refused(405, "method_not_allowed", "This address takes POST only.", {"Allow": "POST"})
    try:
        _check_origin(request)
        token = _token(request)
    except Unauthenticated:
        return _refused(
            401,
            "unauthenticated",
            "Send Authorization: Bearer cgr_… with a token that has the scope mcp.",
            {"WWW-Authenticate": 'Bearer realm="cograph"'},
        )
    except Refusal as refusal:
        return _refused(refusal.status, refusal.code, refusal.message, {})
    body = request.body
    try:
        throttles.count("mcp", f"token:{token.pk}")
    except Throttled as refusal:
        return _throttled(body, refusal)
    origin.by_token(str(token.pk))
    with calling_as(token.user):
        return _answer(request, body)


def _check_origin(request: HttpRequest) -> None:
    """SECURITY: a page of another site, or of a name that was rebound to this address, is sent away even though it
    has a token. The Host header itself is checked by Django against the allowed hosts."""
    host = request.get_host()
    sent = request.headers.get("Origin")
    if sent is None:
        return
    parts = urlsplit(sent)
    if parts.scheme not in ("http", "https") or parts.netloc.lower() != host.lower():
        raise Forbidden("Requests from pages of other origins are refused.")


def _token(request: HttpRequest) -> ApiToken:
    text = bearer_of(request.headers.get("Authorization", "").encode("latin-1", "replace"))
    token = tokens.authenticate(text) if text is not None else None
    if token is None:
        raise Unauthenticated
    if not tokens.allows(token, TokenScope.MCP):
        raise Forbidden("The token lacks the scope mcp. Make one that has it.", code="insufficient_scope")
    return token


def _answer(request: HttpRequest, body: bytes) -> HttpResponse:
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": request.scheme or "http",
        "path": request.path,
        "raw_path": request.path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [
            (name.lower().encode("latin-1"), value.encode("latin-1", "replace"))
            for name, value in request.headers.items()
        ],
        "client": None,
        "server": None,
    }
    # The SDK takes as long to load as a third of the portal: the first call waits for it, no page and no command does.
    from apps.mcp.exchange import exchange

    status, headers, content = exchange(scope, body)
    response = HttpResponse(content, status=status)
    del response.headers["Content-Type"]
    for name, value in headers:
        if name not in DROPPED:
            response.headers[name] = value
    return response


def _throttled(body: bytes, refusal: Throttled) -> HttpResponse:
    """To a tool call an error that the model reads; to anything else the status alone."""
    wait = str(refusal.retry_after or 1)
    try:
        message = json.loads(body)
    except ValueError:
        message = None
    if isinstance(message, dict) and message.get("method") == "tools/call" and "id" in message:
        line = of_refusal(Throttled(f"{refusal.message} Retry after {wait} seconds.")).line
        result = {
            "content": [{"type": "text", "text": line}],
            "isError": True,
            "resultType": "complete",
            "_meta": {META_KEY: {"error": "throttled", "retry_after": int(wait)}},
        }
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        response = HttpResponse(json.dumps(answer), content_type="application/json")
        response.headers["Retry-After"] = wait
        return response
    return _refused(429, "throttled", refusal.message, {"Retry-After": wait})


def _refused(status: int, code: str, message: str, headers: dict[str, str]) -> HttpResponse:
    body = json.dumps({"status": status, "code": code, "message": message})
    return HttpResponse(body, status=status, content_type="application/problem+json", headers=headers)
