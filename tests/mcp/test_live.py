"""The server as clients meet it: two real processes behind one port, restarted meanwhile, and over standard input."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from django.db import connection
from mcp.client.client import Client as McpClient
from mcp.client.streamable_http import streamable_http_client

from apps.access.models import User
from apps.access.tokens import create_token, revoke_token
from apps.retrieval.models import QueryLogEntry
from cograph_site.processes import end_with_parent
from tests.mcp.conftest import Land, Said, read_result
from tests.mcp.test_door import HEADERS, INITIALIZE, call, rpc
from tests.site.portal_process import descendants, wait_until

pytestmark = pytest.mark.django_db

ROOT = Path(__file__).parents[2]
STARTS_WITHIN = 60.0
PROCESSES = 2


def environment(**more: str) -> dict[str, str]:
    database = connection.settings_dict
    url = f"postgresql://{database['USER']}@{quote(database['HOST'], safe='')}/{database['NAME']}"
    return {
        **os.environ,
        "DATABASE_URL": url,
        "DJANGO_SETTINGS_MODULE": "cograph_site.settings",
        "COGRAPH_THROTTLE__MCP": "10000",
        **more,
    }


class LiveServer:
    """Granian with two worker processes on one port."""

    def __init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def start(self) -> None:
        command = [sys.executable, "-m", "granian", "--interface", "wsgi", "--host", "127.0.0.1"]
        command += ["--port", str(self.port), "--workers", str(PROCESSES), "--blocking-threads", "4", "--no-ws"]
        command += ["--workers-kill-timeout", "4"]  # one that is told to end while it loads does not hear it
        self.process = subprocess.Popen(
            [*command, "--log-level", "warning", "cograph_site.wsgi:application"],
            cwd=ROOT,
            env=environment(),
            preexec_fn=end_with_parent(signal.SIGTERM),
        )
        began = time.monotonic()
        while not self.answers():
            assert self.process.poll() is None, "the server ended"
            assert time.monotonic() - began < STARTS_WITHIN, "the server does not answer"
            time.sleep(0.1)

    def answers(self) -> bool:
        try:
            with urllib.request.urlopen(self.address.replace("/mcp", "/healthz"), timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(20)

    def post(self, body: str, token: str, **headers: str) -> tuple[int, Any]:
        given = {**HEADERS, "Content-Type": "application/json", "Authorization": f"Bearer {token}", **headers}
        request = urllib.request.Request(self.address, data=body.encode(), headers=given)
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            with error:
                return error.code, None

    def session(self, token: str, act: Callable[[McpClient], Any], mode: str = "auto") -> Any:
        async def run() -> Any:
            headers = {"Authorization": f"Bearer {token}"}
            async with httpx2.AsyncClient(headers=headers, timeout=20) as http:
                transport = streamable_http_client(self.address, http_client=http)
                async with McpClient(transport, mode=mode, cache=None) as client:
                    return await act(client)

        return asyncio.run(run())


@pytest.fixture(scope="module")
def tokens(built: Land, django_db_blocker: Any) -> dict[str, str]:
    with django_db_blocker.unblock():
        return {
            name: create_token(user=built.people[name], name="live", scopes=["mcp"])[1] for name in ("otto", "olga")
        }


@pytest.fixture(scope="module")
def live(built: Land, django_db_blocker: Any) -> Iterator[LiveServer]:
    server = LiveServer()
    with django_db_blocker.unblock():
        server.start()
        yield server
        server.stop()


def committed(function: Callable[[], Any]) -> Any:
    """Run on a connection of its own, so that the server sees what was written."""

    def run() -> Any:
        try:
            return function()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(run).result()


def test_api_13_the_sdks_own_client_by_both_protocols(live: LiveServer, tokens: dict[str, str], built: Land) -> None:
    async def act(client: McpClient) -> tuple[list[str], Said, str]:
        tools = [one.name for one in (await client.list_tools()).tools]
        said = read_result(await client.call_tool("cograph_retrieve", {"query": "why are jobs leased"}))
        guide = await client.read_resource("cograph://guide")
        return tools, said, str(guide.contents[0].text)  # type: ignore[union-attr]

    answers = [live.session(tokens["otto"], act, mode) for mode in ("legacy", "auto", "2026-07-28")]
    assert answers[0][0] == answers[1][0] == answers[2][0]
    assert len(answers[0][0]) == 16
    for tools, said, guide in answers:
        assert tools[0] == "cograph_repositories"
        assert built.api.slug in said.first_line or "collection" in said.first_line
        assert "#leases" in said.text
        assert "cograph_context" in guide


def test_api_fact_29_case_b096_any_process_answers_before_and_after_a_restart(
    live: LiveServer, tokens: dict[str, str]
) -> None:
    assert live.process is not None
    assert len(descendants(live.process.pid)) >= PROCESSES
    status, answer = live.post(INITIALIZE, tokens["otto"])
    assert status == 200
    assert answer["result"]["serverInfo"]["name"] == "cograph"
    first = live.post(call("repositories", limit=1), tokens["otto"])[1]["result"]
    for _ in range(8):
        # Each request opens its own connection, so both processes get their share of them.
        status, answer = live.post(call("repositories"), tokens["otto"], **{"Mcp-Session-Id": "from-another-process"})
        assert status == 200
        assert answer["result"]["isError"] is False
    live.stop()
    live.start()
    status, answer = live.post(call("repositories"), tokens["otto"], **{"Mcp-Session-Id": "from-before-the-restart"})
    assert (status, answer["result"]["isError"]) == (200, False)
    assert first["_meta"]["cograph/result"]["total"] == answer["result"]["_meta"]["cograph/result"]["total"]


def test_a_cursor_of_one_process_goes_on_in_the_other(live: LiveServer, tokens: dict[str, str]) -> None:
    seen: list[str] = []
    cursor: dict[str, Any] = {}
    while True:
        body = call("retrieve", query="jobs lease install", top_k=1, **cursor)
        meta = live.post(body, tokens["otto"])[1]["result"]["_meta"]["cograph/result"]
        seen += [item["chunk"] for item in meta["items"]]
        if not meta["next_cursor"]:
            break
        cursor = {"cursor": meta["next_cursor"]}
    assert len(seen) == len(set(seen)) == meta["total"] > 3


def test_api_fact_58_two_people_at_once_get_their_own(live: LiveServer, tokens: dict[str, str], built: Land) -> None:
    def ask(name: str) -> tuple[str, str]:
        return name, json.dumps(live.post(call("retrieve", query="zeppelin lease"), tokens[name])[1])

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, ["otto", "olga"] * 8))
    for name, text in answers:
        assert (built.plans.slug in text) is (name == "olga")
        assert ("Vault" in text) is (name == "olga")
    assert len({text for name, text in answers if name == "otto"}) <= 2  # ages in words may turn a minute


def test_api_fact_56_a_locked_log_holds_nobody_up(live: LiveServer, tokens: dict[str, str]) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SAVEPOINT locked")
        cursor.execute("LOCK TABLE query_log IN ACCESS EXCLUSIVE MODE")
        began = time.monotonic()
        status, answer = live.post(call("retrieve", query="leases"), tokens["otto"])
        passed = time.monotonic() - began
        cursor.execute("ROLLBACK TO SAVEPOINT locked")
    assert (status, answer["result"]["isError"]) == (200, False)
    assert passed < 10
    live.post(call("retrieve", query="logged again"), tokens["otto"])
    assert QueryLogEntry.objects.filter(query="logged again").count() == 1


def test_revoking_holds_for_every_process_at_once(live: LiveServer, built: Land) -> None:
    olga = User.objects.get(username="olga")
    made, text = committed(lambda: create_token(user=olga, name="short", scopes=["mcp"]))
    assert live.post(rpc("tools/list"), text)[0] == 200
    committed(lambda: revoke_token(token_id=made.pk, by=olga))
    assert {live.post(rpc("tools/list"), text)[0] for _ in range(6)} == {401}


# -- standard input and output


NOISE = """
import os, threading, time, warnings
def shout():
    while not os.path.exists(os.environ["NOISE_BEGINS"]):
        time.sleep(0.05)
    for _ in range(20):
        warnings.warn("noise", UserWarning)
        print("noise on standard output", flush=True)
        time.sleep(0.02)
    open(os.environ["NOISE_BEGINS"] + ".done", "w").close()
warnings.warn("early noise", UserWarning)
threading.Thread(target=shout, daemon=True).start()
"""


@contextlib.contextmanager
def stdio(*arguments: str, **more: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "manage.py"), "mcp_stdio", *arguments],
        cwd=ROOT,
        env=environment(**more),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=end_with_parent(signal.SIGTERM),
    )
    with process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def test_api_fact_51_case_b095_standard_output_is_json_rpc_and_nothing_else(
    tokens: dict[str, str], built: Land, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(NOISE)
    options = {"COGRAPH_DEBUG": "1", "COGRAPH_LOG_LEVEL": "debug", "PYTHONWARNINGS": "always"}
    noise = {"PYTHONPATH": str(tmp_path), "NOISE_BEGINS": str(tmp_path / "begin")}
    lines: list[str] = []
    with stdio(COGRAPH_TOKEN=tokens["otto"], **options, **noise) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        put, get = process.stdin, process.stdout

        def ask(body: str) -> Any:
            put.write(body + "\n")
            put.flush()
            lines.append(get.readline())
            return json.loads(lines[-1])

        assert ask(INITIALIZE)["result"]["serverInfo"]["name"] == "cograph"
        put.write(rpc("notifications/initialized", id_=None) + "\n")
        said = ask(call("retrieve", query="why are jobs leased"))["result"]
        assert said["isError"] is False
        (tmp_path / "begin").touch()
        wait_until((tmp_path / "begin.done").exists, limit=30)
        assert len(ask(rpc("tools/list", id_=3))["result"]["tools"]) == 16
        hidden = ask(call("doc_page", repository=built.plans.slug, page="README.md"))["result"]
        assert hidden["isError"] is True
        rest, err = process.communicate(timeout=60)
    assert process.returncode == 0
    for line in [*lines, *rest.splitlines()]:
        assert json.loads(line)["jsonrpc"] == "2.0"
    assert "noise" in err
    assert tokens["otto"] not in err


def test_api_fact_52_without_a_valid_token_it_ends(tokens: dict[str, str], built: Land) -> None:
    olga = User.objects.get(username="olga")
    made, revoked = committed(lambda: create_token(user=olga, name="gone", scopes=["mcp"]))
    committed(lambda: revoke_token(token_id=made.pk, by=olga))
    _, reading = committed(lambda: create_token(user=olga, name="read", scopes=["read"]))
    starts = [((), token) for token in ("", revoked, reading)] + [(("--token", tokens["otto"]), "")]
    with contextlib.ExitStack() as stack:
        processes = [stack.enter_context(stdio(*given, COGRAPH_TOKEN=token)) for given, token in starts]
        ends = [(*process.communicate(timeout=120), process.returncode) for process in processes]
    for out, err, code in ends[:3]:
        assert (code, out) == (2, "")
        assert len(err.splitlines()) == 1
        assert "COGRAPH_TOKEN" in err
    out, err, code = ends[3]
    assert (code, out) == (2, "")
    assert "unrecognized arguments" in err
