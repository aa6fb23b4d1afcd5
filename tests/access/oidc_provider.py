"""A sign-in provider on this machine that speaks OpenID Connect over HTTP, well or as a test makes it lie."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec

CLIENT, SECRET = "cograph portal", "s3cret:with colon"


@dataclass
class Provider:
    """``lie`` changes the claims of the next tokens; ``sign`` makes them otherwise than with the published key."""

    port: int = 0
    key: Any = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    kid: str = "first"
    methods: list[str] = field(default_factory=lambda: ["client_secret_basic", "client_secret_post"])
    people: dict[str, dict[str, Any]] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)
    lie: dict[str, Any] = field(default_factory=dict)
    sign: Callable[[dict[str, Any]], str] | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    _codes: dict[str, tuple[dict[str, str], dict[str, Any]]] = field(default_factory=dict)

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def authorize(self, address: str, person: str) -> str:
        """What a browser is sent back to when ``person`` has signed in at ``address``."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        assert asked["response_type"] == "code" and asked["code_challenge_method"] == "S256"
        assert asked["client_id"] == CLIENT and "openid" in asked["scope"].split()
        code = secrets.token_urlsafe(8)
        self._codes[code] = (asked, self.people[person])
        back = urlsplit(asked["redirect_uri"])
        assert back.path == "/login/provider/callback"
        return f"{back.path}?{urlencode({'code': code, 'state': asked['state'], 'iss': self.issuer})}"

    def answer(self, path: str, sent: dict[str, str], headers: Any) -> tuple[int, Any]:
        self.asked.append(path)
        if path == "/.well-known/openid-configuration":
            return 200, {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
                "jwks_uri": f"{self.issuer}/keys",
                "userinfo_endpoint": f"{self.issuer}/userinfo",
                "token_endpoint_auth_methods_supported": self.methods,
                **self.metadata,
            }
        if path == "/keys":
            public = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(self.key.public_key()))
            return 200, {"keys": [{**public, "kid": self.kid, "use": "sig"}]}
        if path == "/userinfo":
            return 200, self.more
        if path == "/token":
            return self._token(sent, headers)
        return 404, {}

    def _token(self, sent: dict[str, str], headers: Any) -> tuple[int, Any]:
        asked, person = self._codes.pop(sent.get("code", ""), ({}, {}))
        verifier = hashlib.sha256(sent.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(verifier).rstrip(b"=").decode()
        if not asked or challenge != asked["code_challenge"] or sent.get("redirect_uri") != asked["redirect_uri"]:
            return 400, {"error": "invalid_grant"}
        basic = base64.b64encode(b"cograph%20portal:s3cret%3Awith%20colon").decode()
        by_header = headers.get("Authorization") == f"Basic {basic}" and "client_secret_basic" in self.methods
        if not by_header and (sent.get("client_id"), sent.get("client_secret")) != (CLIENT, SECRET):
            return 401, {"error": "invalid_client"}
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT, "iat": now, "exp": now + 300, "nonce": asked["nonce"]}
        claims = {name: value for name, value in {**claims, **person, **self.lie}.items() if value is not None}
        made = self.sign(claims) if self.sign else self.signed(claims)
        return 200, {"access_token": "opaque", "token_type": "Bearer", "id_token": made}

    def signed(self, claims: dict[str, Any], key: Any = None, kid: str = "") -> str:
        return jwt.encode(claims, key or self.key, algorithm="ES256", headers={"kid": kid or self.kid})

    def serve(self) -> ThreadingHTTPServer:
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._give({})

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
                self._give({name: values[0] for name, values in parse_qs(body).items()})

            def _give(self, sent: dict[str, str]) -> None:
                status, value = provider.answer(urlsplit(self.path).path, sent, self.headers)
                body = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = server.server_address[1]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server
