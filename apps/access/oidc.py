"""OpenID Connect, the side of the client: authorization code with PKCE, state and nonce, identity token verified.

Sources: OpenID Connect Core 1.0 (3.1), Discovery 1.0; RFC 7636 (PKCE), RFC 9207 (``iss`` in the answer). What follows
from the claims is decided by ``apps.access.providers``.

Spoken here, by PyJWT and the server's own HTTP client, because django-allauth 65.22 sends no nonce and leaves the
signature of a token unread that it fetched itself.
"""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

import httpx
from django.conf import settings
from django.urls import reverse
from django.utils.crypto import constant_time_compare

from apps.access.errors import Invalid, NotFound, Unavailable
from apps.access.outbound import checked_client

if TYPE_CHECKING:
    from django.http import HttpRequest

PENDING = "_oidc"
"""In the session: state → (nonce, verifier, next page, when it was begun)."""
MOST_PENDING = 5
LIFE_SECONDS = 600
TIMEOUT_SECONDS = 10.0
FRESH_SECONDS = 3600
LARGEST_ANSWER = 1 << 20
LEEWAY_SECONDS = 60
# SECURITY: signatures of a public key only; a symmetric one would let anybody sign who knows the public key.
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
_ERROR = re.compile(r"[a-z_]{1,40}")

NOT_STARTED = "This sign-in was not begun here, or too long ago. Begin it again."
NOT_PROVED = "The provider's answer does not prove who you are. Begin again; if it stays so, tell your administrator."


def provider_name() -> str:
    """The host of the provider, as the sign-in page names it; empty where none can be used."""
    chosen = settings.COGRAPH.oidc
    offered = chosen.issuer and chosen.client_id and find_spec("jwt") is not None
    return urlsplit(chosen.issuer).netloc if offered else ""


def begin(request: HttpRequest, next_page: str) -> str:
    """The address at the provider where the sign-in goes on. Raises NotFound without a provider, Unavailable."""
    if not provider_name():
        raise NotFound
    state, nonce, verifier = (secrets.token_urlsafe(48) for _ in range(3))
    now = int(time.time())
    held = {name: one for name, one in _pending(request).items() if one[3] > now - LIFE_SECONDS}
    newest = sorted(held.items(), key=lambda entry: entry[1][3])[1 - MOST_PENDING :]
    request.session[PENDING] = {**dict(newest), state: [nonce, verifier, next_page, now]}
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    asked = {
        "response_type": "code",
        "client_id": settings.COGRAPH.oidc.client_id,
        "redirect_uri": _callback(request),
        "scope": "openid profile email",
        "state": state,
        "nonce": nonce,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
    }
    address = str(_metadata()["authorization_endpoint"])
    return f"{address}{'&' if '?' in address else '?'}{urlencode(asked)}"


def finish(request: HttpRequest) -> tuple[dict[str, Any], str]:
    """The proved claims, and the page that was wanted. A state is good once.

    Raises NotFound without a provider, Invalid for whatever does not hold, Unavailable.
    """
    if not provider_name():
        raise NotFound
    held = _pending(request)
    nonce, verifier, next_page, begun = held.pop(request.GET.get("state", ""), ("", "", "", 0))
    request.session[PENDING] = held
    if begun <= time.time() - LIFE_SECONDS:
        raise Invalid(NOT_STARTED)
    # SECURITY: an answer of another provider must not be taken to this one (mix-up).
    if request.GET.get("iss", settings.COGRAPH.oidc.issuer) != settings.COGRAPH.oidc.issuer:
        raise Invalid(NOT_PROVED)
    if error := request.GET.get("error", ""):
        word = error if _ERROR.fullmatch(error) else "an error"
        raise Invalid(f"The provider did not sign you in ({word}).")
    tokens = _tokens(request, request.GET.get("code", ""), verifier)
    claims = _verified(str(tokens.get("id_token", "")), nonce)
    return {**_more(tokens, claims), **claims}, next_page


def _pending(request: HttpRequest) -> dict[str, Any]:
    return dict(request.session.get(PENDING, {}))


def _callback(request: HttpRequest) -> str:
    return request.build_absolute_uri(reverse("access:oidc-callback"))


def _tokens(request: HttpRequest, code: str, verifier: str) -> Mapping[str, Any]:
    chosen, metadata = settings.COGRAPH.oidc, _metadata()
    data = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": _callback(request),
        "code_verifier": verifier,
    }
    known = metadata.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
    more: dict[str, Any] = {}
    if not chosen.client_secret or "client_secret_basic" not in known:
        data["client_id"] = chosen.client_id
        if chosen.client_secret:
            data["client_secret"] = chosen.client_secret
    else:
        more["auth"] = (quote(chosen.client_id, safe=""), quote(chosen.client_secret, safe=""))  # RFC 6749, 2.3.1
    return _asked(lambda client: client.post(str(metadata["token_endpoint"]), data=data, **more))


def _verified(token: str, nonce: str) -> dict[str, Any]:
    import jwt

    chosen = settings.COGRAPH.oidc
    try:
        header = jwt.get_unverified_header(token)
        claims: dict[str, Any] = jwt.decode(
            token,
            _key(header.get("kid"), str(header.get("alg"))),
            algorithms=list(ALGORITHMS),
            audience=chosen.client_id,
            issuer=chosen.issuer,
            leeway=LEEWAY_SECONDS,
            options={"require": ["exp", "iat", "sub", "aud", "iss"]},
        )
    except jwt.PyJWTError:
        raise Invalid(NOT_PROVED) from None
    party = claims.get("azp", chosen.client_id)
    if not constant_time_compare(str(claims.get("nonce", "")), nonce) or party != chosen.client_id:
        raise Invalid(NOT_PROVED)
    if isinstance(claims["aud"], list) and len(claims["aud"]) > 1 and "azp" not in claims:
        raise Invalid(NOT_PROVED)
    return claims


def _key(kid: object, algorithm: str) -> Any:
    """The provider's key of this name; fetched anew once when it is not known, because keys are rolled over."""
    import jwt

    if algorithm not in ALGORITHMS:
        raise jwt.InvalidAlgorithmError("not a signature by a public key")
    for fresh in (False, True):
        listed = _known.value("keys", str(_metadata()["jwks_uri"]), fresh=fresh).get("keys", [])
        fitting = [one for one in listed if isinstance(one, dict) and one.get("use", "sig") == "sig"]
        named = [one for one in fitting if kid is None or one.get("kid") == kid]
        if len(named) == 1:
            return jwt.PyJWK(named[0], algorithm=algorithm)
    raise jwt.InvalidTokenError("no such key")


def _more(tokens: Mapping[str, Any], claims: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the provider tells besides, if it is about the same person."""
    address, access = _metadata().get("userinfo_endpoint"), tokens.get("access_token")
    if not address or not access:
        return {}
    told = _asked(lambda client: client.get(str(address), headers={"Authorization": f"Bearer {access}"}))
    return told if told.get("sub") == claims["sub"] else {}


def _metadata() -> Mapping[str, Any]:
    issuer = settings.COGRAPH.oidc.issuer
    found = _known.value("metadata", f"{issuer.rstrip('/')}/.well-known/openid-configuration")
    needed = ("authorization_endpoint", "token_endpoint", "jwks_uri")
    if found.get("issuer") != issuer or not all(isinstance(found.get(name), str) for name in needed):
        raise Unavailable("The sign-in provider describes itself otherwise than it is configured here.")
    return found


def _asked(ask: Callable[[httpx.Client], httpx.Response]) -> Mapping[str, Any]:
    """The JSON object of one answer. Raises Invalid for a refusal of the provider, Unavailable for anything odd."""
    try:
        with checked_client(timeout=TIMEOUT_SECONDS) as client:
            answer = ask(client)
        if 400 <= answer.status_code < 500:
            raise Invalid(NOT_PROVED)
        value = answer.json() if answer.status_code == 200 and len(answer.content) <= LARGEST_ANSWER else None
    except (httpx.HTTPError, ValueError):
        value = None
    if not isinstance(value, dict):
        raise Unavailable("The sign-in provider does not answer. Try again in a moment.")
    return value


class _Known:
    """What the provider publishes about itself, kept for an hour in this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[tuple[str, str], tuple[float, Mapping[str, Any]]] = {}

    def value(self, name: str, address: str, *, fresh: bool = False) -> Mapping[str, Any]:
        with self._lock:
            at, value = self._held.get((name, address), (0.0, {}))
        if not fresh and value and at > time.monotonic() - FRESH_SECONDS:
            return value
        value = _asked(lambda client: client.get(address))
        with self._lock:
            self._held[name, address] = (time.monotonic(), value)
        return value

    def forget(self) -> None:
        with self._lock:
            self._held.clear()


_known = _Known()


def forget() -> None:
    """The next sign-in asks the provider for its addresses and keys again."""
    _known.forget()
