"""The page that connects an agent: address, configuration for this very host, a token, a try, the last calls."""

from __future__ import annotations

import json
import sys
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_http_methods

from apps.access import rules, tokens
from apps.access.errors import Invalid, Refusal
from apps.access.models import TokenScope
from apps.access.pages import answer
from apps.access.viewers import Viewer, viewer_of
from apps.mcp import calling
from apps.mcp.table import BY_NAME, TOOLS
from apps.retrieval import query_log

LAST_CALLS = 10
DEFAULT_FOLDER = "~/.local/share/cograph"
TOKEN_DAYS = 90
TRIED = "cograph_route"
AGENTS_LINES = (
    "Before you read files to learn how something works here, or why, ask the `cograph` MCP server: `cograph_context` "
    "with the task, then read only what it names. It covers code, docs, collections and decisions. Cite path and lines."
)


@require_http_methods(["GET", "HEAD", "POST"])
def connect(request: HttpRequest) -> HttpResponse:
    """A new token stands in the answer to its own request only, so there is no redirect. A try is a GET."""
    user = request.user if request.user.is_authenticated else None
    text, problem = "", ""
    name = request.POST.get("name", "").strip() or "my agent"
    if request.method == "POST" and user is not None:
        try:
            _, text = tokens.create_token(user=user, name=name, scopes=[TokenScope.MCP], expires_in_days=TOKEN_DAYS)
        except Invalid as refusal:
            problem = refusal.message
    question = request.GET.get("q", "").strip()[:512]
    context = {
        "address": address_of(request),
        "http": http_configuration(request),
        "stdio": stdio_configuration(viewer_of(request)),
        "administrator": rules.is_administrator(viewer_of(request)),
        "agents": AGENTS_LINES,
        "token": text,
        "name": name,
        "problem": problem,
        "days": TOKEN_DAYS,
        "question": question,
        "tried": _try(request, question) if question else None,
        "tools": [(tool.name, tool.description.split(". ")[0].removesuffix(".") + ".") for tool in TOOLS],
        "calls": list(query_log.calls_of_tokens(user, LAST_CALLS)) if user is not None else [],
        "account": user is not None,
    }
    return answer(request, "mcp/connect.html", context, status=422 if problem else 200)


def address_of(request: HttpRequest) -> str:
    """The address of the server as the reader's own browser reaches the portal."""
    return request.build_absolute_uri("/mcp")


def http_configuration(request: HttpRequest) -> str:
    server = {
        "type": "http",
        "url": address_of(request),
        "headers": {"Authorization": "Bearer ${COGRAPH_TOKEN}"},
    }
    return json.dumps({"mcpServers": {"cograph": server}}, indent=2)


def stdio_configuration(viewer: Viewer) -> str:
    """For clients on the machine of the portal, which start their server themselves.

    SECURITY: where the portal and its data lie is told to administrators, in words that work from any folder; others
    see the defaults.
    """
    python, program, folder = "python", "manage.py", DEFAULT_FOLDER
    if rules.is_administrator(viewer):
        python, program = sys.executable, str(settings.BASE_DIR / "manage.py")
        folder = str(settings.COGRAPH.data_path)
    server: dict[str, Any] = {
        "command": python,
        "args": [program, "mcp_stdio"],
        "env": {"COGRAPH_TOKEN": "${COGRAPH_TOKEN}", "COGRAPH_DATA_DIR": folder},
    }
    return json.dumps({"mcpServers": {"cograph": server}}, indent=2)


def _try(request: HttpRequest, question: str) -> dict[str, Any]:
    """What an agent of the reader would be told. Not a call of an agent, so nothing of it is logged as one."""
    tool = BY_NAME[TRIED]
    try:
        outcome = calling.try_tool(tool, viewer_of(request), {"query": question})
    except Refusal as refusal:
        return {"text": refusal.message, "failed": True}
    return {"text": outcome.text, "failed": outcome.is_error}
