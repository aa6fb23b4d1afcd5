"""A running `manage.py up` as tests see it."""

from __future__ import annotations

import contextlib
import http.cookiejar
import os
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg

from cograph_site import processes

ROOT = Path(__file__).resolve().parents[2]
READY_SECONDS = 120.0
HEALED_WITHIN = 30.0  # whether, not how fast: a second to two on a machine of its own, more beside other work


class Portal:
    """A running `up`: its output line by line, its address, its processes."""

    def __init__(self, folder: Path, *options: str, **environment: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.folder = folder
        inherited = {
            name: text for name, text in os.environ.items() if not name.startswith(("COGRAPH_", "DATABASE_URL"))
        }
        self.process = subprocess.Popen(
            [sys.executable, "manage.py", "up", "--port", str(self.port), "--data-dir", str(folder), *options],
            cwd=ROOT,
            env={**inherited, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def wait_ready(self) -> Portal:
        wait_until(lambda: "ready after" in self.text or self.process.poll() is not None, limit=READY_SECONDS)
        assert self.process.poll() is None, self.text
        return self

    def get(self, path: str) -> tuple[int, str, dict[str, str]]:
        try:
            with urllib.request.urlopen(self.address + path, timeout=10) as answer:
                headers = {name.lower(): text for name, text in answer.headers.items()}
                return answer.status, answer.read().decode(errors="replace"), headers
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode(errors="replace"), {}

    def answers(self) -> bool:
        with contextlib.suppress(OSError):
            return self.get("/login")[0] == 200
        return False

    def ready(self) -> bool:
        """False too while a new web server does not listen yet."""
        with contextlib.suppress(OSError):
            return self.get("/readyz")[0] == 200
        return False

    def tree(self) -> list[int]:
        """Every process below the supervisor, itself left out."""
        return descendants(self.process.pid)

    def named(self, words: str) -> list[int]:
        found = []
        for pid in self.tree():
            with contextlib.suppress(OSError):
                if words in Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode():
                    found.append(pid)
        return found

    def stop(self) -> float:
        """Seconds that it took from SIGTERM to the end."""
        began = time.monotonic()
        self.process.terminate()
        self.process.wait(20)
        self._reader.join(5)
        return time.monotonic() - began


def descendants(pid: int) -> list[int]:
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError):
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    found, waiting = [], [pid]
    while waiting:
        parent = waiting.pop()
        children = [child for child, above in parents.items() if above == parent]
        found += children
        waiting += children
    return found


def wait_until(condition: Callable[[], bool], *, limit: float = HEALED_WITHIN) -> float:
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < limit, "waited too long"
        time.sleep(0.05)
    return time.monotonic() - began


@contextlib.contextmanager
def up(folder: Path, *options: str, **environment: str) -> Iterator[Portal]:
    portal = Portal(folder, *options, **environment)
    try:
        yield portal
    finally:
        left = portal.tree()
        if portal.process.poll() is None:
            portal.stop()
        wait_until(lambda: not any(processes.alive(pid) for pid in left), limit=15)
        if portal.process.stdout is not None:
            portal.process.stdout.close()


def sign_in(portal: Portal, password: str) -> str:
    """The address where signing in leads to."""
    jar = http.cookiejar.CookieJar()
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    with browser.open(f"{portal.address}/login", timeout=10) as page:
        match = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page.read().decode())
    assert match
    form = {"csrfmiddlewaretoken": match.group(1), "username": "admin", "password": password}
    request = urllib.request.Request(
        f"{portal.address}/login",
        data=urllib.parse.urlencode(form).encode(),
        headers={"Referer": f"{portal.address}/login"},
    )
    with browser.open(request, timeout=10) as page:
        return str(page.geturl())


def seconds_until_back(url: str, *, limit: float = 15.0) -> float:
    began = time.monotonic()
    while True:
        try:
            with psycopg.connect(url, connect_timeout=2) as connection:
                connection.execute("SELECT 1")
                return time.monotonic() - began
        except psycopg.OperationalError:
            assert time.monotonic() - began < limit, "the database did not come back"
            time.sleep(0.02)
