"""``/mcp`` before the SDK sees anything: who may speak, how, and how much; and the protocol behind it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from apps.access.models import User
from apps.access.tokens import create_token, revoke_token
from tests.mcp.conftest import Land

Post = Callable[..., Any]
HEADERS = {"Accept": "application/json, text/event-stream"}


def rpc(method: str, params: dict[str, Any] | None = None, id_: int | None = 1) -> str:
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if id_ is not None:
        message["id"] = id_
    if params is not None:
        message["params"] = params
    return json.dumps(message)


INITIALIZE = rpc(
    "initialize",
    {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
)


def call(tool: str, **arguments: Any) -> str:
    return rpc("tools/call", {"name": f"cograph_{tool}", "arguments": arguments})


def token_of(user: User, *scopes: str) -> str:
    return create_token(user=user, name="a test", scopes=scopes)[1]


def post(body: str | bytes, token: str = "", **headers: str) -> Any:
    given = {**HEADERS, **({"Authorization": f"Bearer {token}"} if token else {}), **headers}
    return Client().post("/mcp", body, content_type="application/json", headers=given)


@pytest.fixture
def token(land: Land) -> str:
    return token_of(land.people["otto"], "mcp")


def test_api_fact_30_who_may_speak(land: Land, token: str) -> None:
    otto = land.people["otto"]
    answer = post(INITIALIZE)
    assert (answer.status_code, answer["WWW-Authenticate"]) == (401, 'Bearer realm="cograph"')
    for bad in ("cgr_" + "x" * 43, "nonsense", token + "x"):
        assert post(INITIALIZE, bad).status_code == 401
    for scopes in (("read",), ("write",), ("read", "write")):
        assert post(INITIALIZE, token_of(otto, *scopes)).status_code == 403
    for method in ("get", "delete", "put", "head", "options"):
        answer = getattr(Client(), method)("/mcp", headers={"Authorization": f"Bearer {token}"})
        assert (answer.status_code, answer["Allow"]) == (405, "POST"), method
    assert post(INITIALIZE, token).status_code == 200
    client = Client(headers={**HEADERS, "Authorization": f"Bearer {token}"}, SERVER_NAME="evil.example")
    assert client.post("/mcp", INITIALIZE, content_type="application/json").status_code == 400
    assert post(INITIALIZE, token, Origin="http://evil.example").status_code == 403
    assert post(INITIALIZE, token, Origin="null").status_code == 403
    assert post(INITIALIZE, token, Origin="http://testserver").status_code == 200


def test_a_session_opens_nothing(land: Land) -> None:
    client = Client()
    client.force_login(land.people["ada"])
    assert client.post("/mcp", INITIALIZE, content_type="application/json", headers=HEADERS).status_code == 401


def test_public_reading_opens_nothing(land: Land, settings: Any) -> None:
    settings.COGRAPH = dataclasses.replace(settings.COGRAPH, public_read=True)
    assert post(INITIALIZE).status_code == 401


def test_revoked_tokens_and_inactive_users_end_at_once(land: Land, token: str) -> None:
    assert post(call("repositories"), token).status_code == 200
    User.objects.filter(username="otto").update(is_active=False)
    assert post(call("repositories"), token).status_code == 401
    User.objects.filter(username="otto").update(is_active=True)
    made, text = create_token(user=land.people["otto"], name="x", scopes=["mcp"])
    assert post(call("repositories"), text).status_code == 200
    revoke_token(token_id=made.pk, by=land.people["otto"])
    assert post(call("repositories"), text).status_code == 401


def test_api_13_initialize_and_calls_with_any_session_id(land: Land, token: str) -> None:
    answer = post(INITIALIZE, token).json()["result"]
    assert answer["serverInfo"]["name"] == "cograph"
    assert "cograph_context" in answer["instructions"]
    assert set(answer["capabilities"]) >= {"tools", "resources"}
    assert "prompts" not in answer["capabilities"]
    for session in ("", "an-old-one", "🦄".encode().hex()):
        headers = {"Mcp-Session-Id": session} if session else {}
        said = post(call("repositories"), token, **headers)
        assert said.status_code == 200
        assert "Mcp-Session-Id" not in said
        assert land.api.slug in said.json()["result"]["content"][0]["text"]
    done = post(rpc("notifications/initialized", id_=None), token)
    assert done.status_code == 202


def test_the_newest_protocol_is_one_request(land: Land, token: str) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    body = rpc("tools/call", {"name": "cograph_repositories", "arguments": {}, "_meta": meta})
    answer = post(
        body, token,
        **{"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "cograph_repositories"},
    )  # fmt: skip
    assert answer.status_code == 200, answer.content
    assert land.api.slug in answer.json()["result"]["content"][0]["text"]


def test_bodies_are_bounded_and_bad_ones_are_refused(land: Land, token: str) -> None:
    huge = post("x" * (1024 * 1024 + 1), token)
    assert (huge.status_code, huge["Content-Type"], huge.json()["code"]) == (
        413, "application/problem+json", "payload_too_large",
    )  # fmt: skip
    assert Client().get("/mcp/nothing").json()["code"] == "not_found"
    for body in ("", "{", "[]", "null", '{"jsonrpc": "2.0"}', "\0", '{"jsonrpc":"2.0","id":1,"method":"no/such"}'):
        assert post(body, token).status_code < 500, body


def test_api_08_too_many_calls_are_throttled(land: Land, token: str, settings: Any) -> None:
    settings.COGRAPH = dataclasses.replace(
        settings.COGRAPH, throttle=dataclasses.replace(settings.COGRAPH.throttle, mcp=3)
    )
    for _ in range(3):
        assert post(call("repositories"), token).status_code == 200
    said = post(call("repositories"), token)
    assert said.json()["result"]["isError"] is True
    assert said.json()["result"]["content"][0]["text"].startswith("throttled: ")
    assert 1 <= int(said["Retry-After"]) <= 60
    listed = post(rpc("tools/list"), token)
    assert listed.status_code == 429
    assert int(listed["Retry-After"]) >= 1


def test_an_answer_carries_no_cookie_and_the_headers_of_every_page(land: Land, token: str) -> None:
    answer = post(call("repositories"), token)
    assert not answer.cookies
    assert answer["Content-Type"] == "application/json"
    assert answer["Cache-Control"] == "private, no-store" or "no-store" in answer["Cache-Control"]
    assert answer["X-Content-Type-Options"] == "nosniff"


def test_a_failure_of_a_tool_tells_no_trace(land: Land, token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from apps.mcp import calling
    from apps.mcp.table import BY_NAME

    def broken(call: Any) -> Any:
        raise RuntimeError("secret path /srv/x")

    tool = dataclasses.replace(BY_NAME["cograph_repositories"], run=broken)
    monkeypatch.setattr(calling, "BY_NAME", {**BY_NAME, "cograph_repositories": tool})
    text = post(call("repositories"), token).json()["result"]["content"][0]["text"]
    assert text.startswith("unavailable: this call failed on the server (request ")
    assert "secret" not in text


def test_a_failure_of_a_resource_tells_no_trace(land: Land, token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of exceptions that a handler lets pass the SDK tells the text."""
    from apps.mcp import calling, resources

    def broken(*_: Any) -> Any:
        raise RuntimeError("secret path /srv/x")

    monkeypatch.setattr(resources, "read", broken)
    monkeypatch.setattr(resources, "listed", broken)
    monkeypatch.setattr(calling, "_named", broken)
    for body in (
        rpc("resources/list"),
        rpc("resources/read", {"uri": "cograph://guide"}),
        call("retrieve", query="leases"),
    ):
        answer = post(body, token)
        assert "unavailable: this call failed on the server (request " in answer.content.decode()
        assert b"secret" not in answer.content
