"""The server over standard input and output: one client, one token, looked up anew for every call."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from django.db import connection
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from apps.access import tokens
from apps.access.limits import statements_in_time
from apps.access.models import TokenScope
from apps.access.origin import Origin, acting, new_request_id
from apps.access.rest import throttles
from apps.mcp.calling import opened_by
from apps.mcp.server import server

if TYPE_CHECKING:
    from apps.access.models import User

WITHOUT_TOKEN = "COGRAPH_TOKEN holds no valid API token: make one with the scope mcp under Account, API tokens."  # noqa: S105
WITHOUT_SCOPE = "The token in COGRAPH_TOKEN lacks the scope mcp."
NOT_ALLOWED = -32001


def problem_with(text: str) -> str:
    """Why the token opens nothing; empty when it does."""
    try:
        token = tokens.authenticate(text) if text else None
        if token is None:
            return WITHOUT_TOKEN
        return "" if tokens.allows(token, TokenScope.MCP) else WITHOUT_SCOPE
    finally:
        connection.close()


@contextlib.contextmanager
def as_token(text: str) -> Iterator[User]:
    """The user of the token, as its rights are now. The database connection is given back after each call."""
    try:
        token = tokens.authenticate(text)
        if token is None or not tokens.allows(token, TokenScope.MCP):
            raise MCPError(NOT_ALLOWED, WITHOUT_TOKEN if token is None else WITHOUT_SCOPE)
        throttles.count("mcp", f"token:{token.pk}")
        origin = Origin(how="token", request_id=new_request_id(), token_id=str(token.pk))
        with acting(origin), statements_in_time():
            yield token.user
    finally:
        connection.close()


async def serve(text: str) -> None:
    """Until the client closes its end."""
    chosen = server()
    with opened_by(lambda: as_token(text)):
        async with stdio_server() as (incoming, outgoing):
            await chosen.run(incoming, outgoing, chosen.create_initialization_options())
