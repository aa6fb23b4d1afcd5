"""One JSON-RPC message through the SDK: an ASGI exchange without a server around it.

The only module of the HTTP door that loads the SDK.
"""

from __future__ import annotations

from typing import Any

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from apps.access.limits import COMMON_BODY
from apps.mcp.server import server


async def exchange(scope: dict[str, Any], body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
    """One request through a session manager of its own."""
    sent: list[bytes] = []
    begun: dict[str, Any] = {"status": 500, "headers": []}
    given = False

    async def receive() -> dict[str, Any]:
        nonlocal given
        if given:
            return {"type": "http.disconnect"}
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            begun.update(status=message["status"], headers=message.get("headers", []))
        elif message["type"] == "http.response.body":
            sent.append(message.get("body", b""))

    manager = StreamableHTTPSessionManager(
        server(), json_response=True, stateless=True, max_request_body_size=COMMON_BODY
    )
    async with manager.run():
        await manager.handle_request(scope, receive, send)
    headers = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in begun["headers"]]
    return int(begun["status"]), headers, b"".join(sent)
