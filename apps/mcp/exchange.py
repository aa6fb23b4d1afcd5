"""One JSON-RPC message through the SDK: an ASGI exchange without a server around it.

The only module of the HTTP door that loads the SDK. To make a session manager and the event loop that it lives on costs
more than a message does, so both stay for the next message. Neither holds anything of a caller: the manager is
stateless, and the loop runs only while a message is on it, in the thread of that message's request.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
from collections.abc import Callable, Iterator
from contextvars import Context
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from apps.access.limits import COMMON_BODY
from apps.mcp.server import server, working_by

Answer = tuple[int, list[tuple[str, str]], bytes]
_Work = tuple[Callable[[], Any], asyncio.Future[Any]]

PUTTING_AWAY_SECONDS = 1.0
MOST_IDLE = 16
"""Lines kept for the next message. More are made while more messages come at once, and closed behind them."""


class Line:
    """A session manager that is running, on an event loop of its own. One message at a time."""

    def __init__(self, mcp: Server[Any]) -> None:
        self.mcp = mcp
        self._loop = asyncio.new_event_loop()
        self._manager = StreamableHTTPSessionManager(
            mcp, json_response=True, stateless=True, max_request_body_size=COMMON_BODY
        )
        self._asked: list[_Work] = []
        self._end = asyncio.Event()
        opened = asyncio.Event()
        self._held = self._loop.create_task(self._hold(opened))
        self._loop.run_until_complete(opened.wait())

    @property
    def ended(self) -> bool:
        return self._held.done()

    def answer(self, scope: dict[str, Any], body: bytes) -> Answer:
        """The status, headers and content of one message. Functions of tools run in this thread, between two steps of
        the loop: the database connection of the request is theirs, and Django sees no loop that they would block."""
        with working_by(self._work):
            task = self._loop.create_task(self._message(scope, body))
            task.add_done_callback(self._stop)
            while not task.done():
                self._loop.run_forever()
                while self._asked:
                    _do(*self._asked.pop())
        self._finish()
        return task.result()

    def close(self) -> None:
        """Whatever is on the loop ends here."""
        self._end.set()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks - {self._held}:
            task.remove_done_callback(self._stop)
            task.cancel()
        if tasks:
            self._loop.run_until_complete(asyncio.wait(tasks, timeout=PUTTING_AWAY_SECONDS))
        self._loop.close()

    def _finish(self) -> None:
        """See off what the SDK still has to put away: it knows of the caller. Raises TimeoutError if it goes on."""
        rest = asyncio.all_tasks(self._loop) - {self._held}
        if rest:
            _, pending = self._loop.run_until_complete(asyncio.wait(rest, timeout=PUTTING_AWAY_SECONDS))
            if pending:
                raise TimeoutError("the MCP SDK does not let go of a message")

    async def _hold(self, opened: asyncio.Event) -> None:
        async with self._manager.run():
            opened.set()
            await self._end.wait()

    def _stop(self, _: asyncio.Task[Answer]) -> None:
        self._loop.stop()

    async def _work(self, function: Callable[[], Any]) -> Any:
        done = self._loop.create_future()
        self._asked.append((function, done))
        self._loop.stop()
        return await done

    async def _message(self, scope: dict[str, Any], body: bytes) -> Answer:
        sent: list[bytes] = []
        begun: dict[str, Any] = {"status": 500, "headers": []}
        given = False

        async def receive() -> dict[str, Any]:
            nonlocal given
            if given:
                # Nobody tells a WSGI view that its client has gone, so it stays until the answer is there.
                await asyncio.Event().wait()
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                begun.update(status=message["status"], headers=message.get("headers", []))
            elif message["type"] == "http.response.body":
                sent.append(message.get("body", b""))

        await self._manager.handle_request(scope, receive, send)
        headers = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in begun["headers"]]
        return int(begun["status"]), headers, b"".join(sent)


def _do(function: Callable[[], Any], done: asyncio.Future[Any]) -> None:
    try:
        found = function()
    except Exception as problem:
        if not done.cancelled():
            done.set_exception(problem)
    else:
        if not done.cancelled():
            done.set_result(found)


_idle: list[Line] = []
_of_parent: list[Line] = []


def exchange(scope: dict[str, Any], body: bytes) -> Answer:
    """One message by an idle line, or by a new one. Safe in any number of threads."""
    with _line() as line:
        return line.answer(scope, body)


@contextlib.contextmanager
def _line() -> Iterator[Line]:
    chosen = server()
    line = _taken()
    if line is not None and (line.ended or line.mcp is not chosen):
        line.close()
        line = None
    # In a context of nobody: a loop keeps the one that it is made in, and with it whoever asks.
    line = line or Context().run(Line, chosen)
    kept = False
    try:
        yield line
        kept = len(_idle) < MOST_IDLE
    finally:
        if kept:
            _idle.append(line)
        else:
            line.close()


def _taken() -> Line | None:
    """Taking from a list and adding to it are whole, whatever thread does them. The last used is the warmest."""
    try:
        return _idle.pop()
    except IndexError:
        return None


def _close_idle() -> None:
    while (line := _taken()) is not None:
        line.close()


def _leave_to_parent() -> None:
    """A fork shares the selectors of its parent: it uses none of its lines, and closes none, which would unregister
    the parent's wake-ups."""
    _of_parent.extend(_idle)
    _idle.clear()


atexit.register(_close_idle)
os.register_at_fork(after_in_child=_leave_to_parent)
