"""A git host on this machine: smart HTTP by ``git http-backend``, with a password."""

from __future__ import annotations

import base64
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit


class GitServer:
    def __init__(self, root: Path, token: str = "") -> None:
        self.root = root
        self.token = token
        self.redirect_to = ""
        self.requests: list[str] = []
        self.seen: list[str] = []
        """Command lines and environments of every git process that was alive at a request."""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, format: str, *args: object) -> None:
                return

            def do_GET(self) -> None:
                outer.answer(self)

            def do_POST(self) -> None:
                outer.answer(self)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        self.requests.append(handler.path)
        self.seen.extend(git_processes())
        if self.redirect_to:
            handler.send_response(301)
            handler.send_header("Location", self.redirect_to + handler.path)
            handler.end_headers()
            return
        if self.token:
            given = handler.headers.get("Authorization", "")
            password = base64.b64decode(given.removeprefix("Basic ")).decode().partition(":")[2]
            if password != self.token:
                handler.send_response(401)
                handler.send_header("WWW-Authenticate", 'Basic realm="git"')
                handler.end_headers()
                return
        self._backend(handler)

    def _backend(self, handler: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(handler.path)
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": parts.path,
            "QUERY_STRING": parts.query,
            "REQUEST_METHOD": handler.command,
            "CONTENT_TYPE": handler.headers.get("Content-Type", ""),
            "HTTP_CONTENT_ENCODING": handler.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": handler.headers.get("Git-Protocol", ""),
            "REMOTE_USER": "x",
        }
        done = subprocess.run(["git", "http-backend"], input=body, capture_output=True, check=True, env=environment)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        lines = [line.split(": ", 1) for line in head.decode().split("\r\n")]
        status = next((value.split(" ")[0] for name, value in lines if name == "Status"), "200")
        handler.send_response(int(status))
        for name, value in lines:
            if name != "Status":
                handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)


def git_processes() -> list[str]:
    found = []
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            line = (process / "cmdline").read_bytes()
            if b"git" in line:
                found.append((line + b"\n" + (process / "environ").read_bytes()).decode("utf-8", "replace"))
        except OSError:
            continue
    return found


@contextmanager
def serving(root: Path, token: str = "") -> Iterator[GitServer]:
    served = GitServer(root, token)
    thread = threading.Thread(target=served.server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield served
    finally:
        served.server.shutdown()
        thread.join()
        served.server.server_close()
