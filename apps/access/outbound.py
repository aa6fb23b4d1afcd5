"""The one HTTP client of the server: it connects only to addresses that were checked, at every connection anew."""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from typing import Any

import httpcore
import httpx

from apps.access.addresses import Resolver, check_host, is_listed, resolve
from apps.access.errors import Invalid


class CheckedBackend(httpcore.SyncBackend):
    """Resolves, checks and connects in one step, so that nothing can change between check and use."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        error: httpcore.ConnectError | httpcore.ConnectTimeout | None = None
        for ip in check_host(host, port, resolver=self._resolver):
            try:
                return super().connect_tcp(ip, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as failure:
                error = failure
        raise error or httpcore.ConnectError("no address")


def checked_client(*, timeout: float = 30.0, resolver: Resolver = resolve, **options: Any) -> httpx.Client:
    """An httpx client without proxies and redirects, whose connections are checked and pinned.

    A refused address raises ``Invalid`` from the request. ``timeout`` is in seconds.
    """
    context = ssl.create_default_context()
    transport = httpx.HTTPTransport(verify=context, trust_env=False)
    transport._pool = httpcore.ConnectionPool(
        ssl_context=context, network_backend=CheckedBackend(resolver), max_connections=10
    )
    return httpx.Client(
        transport=transport,
        timeout=timeout,
        follow_redirects=False,
        trust_env=False,
        event_hooks={"request": [_only_https]},
        **options,
    )


def _only_https(request: httpx.Request) -> None:
    if request.url.scheme != "https" and not is_listed(request.url.host):
        raise Invalid(
            f"http is not used for {request.url.host}: only https, or hosts that the operator lists in "
            "COGRAPH_ALLOWED_PRIVATE_HOSTS."
        )
