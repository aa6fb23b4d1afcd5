"""An embedding service on this machine, with the faults of real ones on request."""

from __future__ import annotations

import dataclasses
import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from apps.indexing.embedding.hashing import Hashing


@dataclasses.dataclass
class Service:
    """What the running service does. ``spoil`` changes the list of vectors of a request before it is sent."""

    port: int = 0
    dimension: int = 64
    status: int = 200
    headers: dict[str, str] = dataclasses.field(default_factory=dict)
    delay_above: int = 0
    requests: list[list[str]] = dataclasses.field(default_factory=list)
    authorization: list[str] = dataclasses.field(default_factory=list)
    spoil: Callable[[list[str], list[Any]], list[Any]] | None = None
    shift: float = 0.0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def texts(self) -> list[str]:
        return [text for request in self.requests for text in request]


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        service: Service = self.server.service  # type: ignore[attr-defined]
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
        service.requests.append(asked)
        service.authorization.append(self.headers.get("Authorization", ""))
        body = b"{}"
        if service.status == 200:
            hashing = Hashing(dimension=service.dimension)
            vectors: list[Any] = [(hashing.query(text) + service.shift).tolist() for text in asked]
            if service.spoil is not None:
                vectors = service.spoil(asked, vectors)
            rows = [{"index": place, "embedding": vector} for place, vector in enumerate(vectors)]
            body = json.dumps({"data": rows[::-1]}).encode()
        self.send_response(service.status)
        for name, value in service.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def start() -> tuple[Service, ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    service = Service(port=server.server_address[1])
    server.service = service  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return service, server
