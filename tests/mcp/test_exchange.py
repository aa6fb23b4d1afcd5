"""The lines on which messages go through the SDK: kept from one message to the next, shared by nobody."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any

import mcp_types as types
import pytest
from mcp.server.lowlevel import Server

from apps.mcp import exchange
from apps.mcp import server as mcp_server

HEADERS = [
    (b"content-type", b"application/json"),
    (b"accept", b"application/json, text/event-stream"),
    (b"host", b"testserver"),
]
caller: ContextVar[str] = ContextVar("caller", default="nobody")


def scope(*more: tuple[bytes, bytes]) -> dict[str, Any]:
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/mcp",
        "raw_path": b"/mcp",
        "query_string": b"",
        "root_path": "",
        "headers": [*HEADERS, *more],
        "client": None,
        "server": None,
    }


def body(text: str) -> bytes:
    params = {"name": "echo", "arguments": {"text": text}}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()


def text_of(answer: exchange.Answer) -> str:
    return str(json.loads(answer[2])["result"]["content"][0]["text"])


async def echo(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    given = (params.arguments or {})["text"]

    def work() -> str:
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()  # Django would refuse the database inside of one
        if given == "stop":
            raise SystemExit(3)
        meeting.wait(20)
        return f"{given} of {caller.get()} in {threading.get_ident()}"

    told = await mcp_server.working()(work)
    if given == "linger":
        lingering.append(asyncio.create_task(asyncio.sleep(0.05)))
    return types.CallToolResult(content=[types.TextContent(type="text", text=told)])


meeting = threading.Barrier(1)
lingering: list[asyncio.Task[None]] = []


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[exchange.Line]]:
    """The idle lines of a server that echoes."""
    made = Server[Any]("echo", on_call_tool=echo)
    idle: list[exchange.Line] = []
    monkeypatch.setattr(exchange, "server", lambda: made)
    monkeypatch.setattr(exchange, "_idle", idle)
    yield idle
    exchange._close_idle()


def test_a_line_is_kept_and_works_in_the_thread_that_asks(lines: list[exchange.Line]) -> None:
    for text in ("one", "two"):
        said = text_of(exchange.exchange(scope(), body(text)))
        assert said == f"{text} of nobody in {threading.get_ident()}"
    assert len(lines) == 1


def test_many_at_once_get_their_own(lines: list[exchange.Line], monkeypatch: pytest.MonkeyPatch) -> None:
    many = exchange.MOST_IDLE + 4
    monkeypatch.setitem(globals(), "meeting", threading.Barrier(many))

    def ask(number: int) -> tuple[str, str]:
        caller.set(f"caller {number}")
        return text_of(exchange.exchange(scope(), body(f"{number}"))), f"{number} of caller {number} in "

    with ThreadPoolExecutor(many) as pool:
        for said, expected in pool.map(ask, range(many)):
            assert said.startswith(expected)
    assert len(lines) == exchange.MOST_IDLE


class Person(str):
    __slots__ = ("__weakref__",)


@pytest.fixture
def no_garbage() -> Iterator[None]:
    """What earlier tests left is gone and is not put away meanwhile: a loop keeps the context in which that happens."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_garbage")
def test_nothing_of_a_caller_stays_on_a_line(lines: list[exchange.Line]) -> None:
    person = Person("somebody")
    known = weakref.ref(person)
    token = caller.set(person)
    assert text_of(exchange.exchange(scope(), body("x"))).startswith("x of somebody")
    caller.reset(token)
    del person, token
    gc.collect()
    assert len(lines) == 1
    assert known() is None


@pytest.mark.usefixtures("no_garbage")
def test_nor_does_it_when_the_sdk_had_something_to_put_away(lines: list[exchange.Line]) -> None:
    person = Person("somebody")
    known = weakref.ref(person)
    token = caller.set(person)
    text_of(exchange.exchange(scope(), body("linger")))
    caller.reset(token)
    lingering.clear()
    del person, token
    gc.collect()
    assert known() is None


def test_a_line_that_broke_is_not_used_again(lines: list[exchange.Line]) -> None:
    exchange.exchange(scope(), body("x"))
    broken = lines[0]
    with pytest.raises(SystemExit):
        exchange.exchange(scope(), body("stop"))
    assert lines == []
    assert broken._loop.is_closed()
    assert text_of(exchange.exchange(scope(), body("again"))).startswith("again of")
    assert len(lines) == 1
    lines[0].close()
    assert text_of(exchange.exchange(scope(), body("again"))).startswith("again of")


def test_a_fork_leaves_the_lines_to_its_parent(lines: list[exchange.Line]) -> None:
    exchange.exchange(scope(), body("x"))
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            before = len(exchange._idle)
            said = text_of(exchange.exchange(scope(), body("child")))
            os.write(writing, f"{before} {said}".encode())
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as told:
        said = told.read()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert said.startswith("0 child of")
    assert text_of(exchange.exchange(scope(), body("parent"))).startswith("parent of")
    assert len(lines) == 1


def test_a_listener_gets_an_answer_and_no_stream(lines: list[exchange.Line]) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": {"_meta": meta}}
    newest = scope((b"mcp-protocol-version", b"2026-07-28"), (b"mcp-method", b"subscriptions/listen"))
    status, _, content = exchange.exchange(newest, json.dumps(message).encode())
    assert status < 500
    assert "error" in json.loads(content)
