"""One pool of parser children that the threads of a web process share: a start costs more than to parse a page."""

from __future__ import annotations

import threading
from typing import Any

from apps.markup.pool import ParserPool
from apps.markup.values import Limits

_lock = threading.Lock()
_pool: ParserPool | None = None
_limits: Limits | None = None


def run_in_child(function: str, *payloads: tuple[Any, ...], limits: Limits) -> list[Any]:
    """``package.module:function`` called with each payload, in a child that can be killed; in order what it returned, a
    `Skipped` or a `Failure`. One call at a time: for what somebody waits for, not for loads."""
    global _pool, _limits
    with _lock:
        if _pool is None or _limits != limits:
            if _pool is not None:
                _pool.close()
            _pool, _limits = ParserPool(limits), limits
        return list(_pool.run(function, payloads))


def close_shared_pool() -> None:
    """End the children; the next call starts new ones."""
    global _pool
    with _lock:
        if _pool is not None:
            _pool.close()
            _pool = None
