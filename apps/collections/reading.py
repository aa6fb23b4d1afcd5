"""Bytes of a collection's documents to parsed and cut values, in child processes."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

from django.conf import settings

from apps.collections.documents import Incoming
from apps.collections.models import Collection
from apps.markup.ingest import Ingested
from apps.markup.pool import Failure, ParserPool
from apps.markup.values import CharacterBudget, Limits, Skipped

READ = "apps.markup.ingest:read_document"


def read(
    pool: ParserPool, incoming: Sequence[Incoming], profile: CharacterBudget
) -> Iterator[tuple[Incoming, Ingested | Skipped]]:
    """Each text with what reading gave, in order. A file that breaks its reader costs itself only."""
    bounds = settings.COGRAPH.markup
    payloads = [(entry.raw, entry.source_key, bounds, profile) for entry in incoming]
    for entry, result in zip(incoming, pool.run(READ, payloads), strict=True):
        if isinstance(result, Failure):
            yield entry, Skipped("unreadable", f"The file could not be parsed ({result.message}).")
        else:
            yield entry, result


class _OnePool:
    """A pool that the threads of a web process share: a start costs more than the parsing of a page."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pool: ParserPool | None = None
        self._limits: Limits | None = None

    def read(self, incoming: Incoming, profile: CharacterBudget) -> Ingested | Skipped:
        with self._lock:
            if self._pool is None or self._limits != settings.COGRAPH.markup:
                if self._pool is not None:
                    self._pool.close()
                self._limits = settings.COGRAPH.markup
                self._pool = ParserPool(self._limits)
            ((_, reading),) = read(self._pool, [incoming], profile)
            return reading

    def close(self) -> None:
        with self._lock:
            if self._pool is not None:
                self._pool.close()
                self._pool = None


_shared = _OnePool()


def read_one(incoming: Incoming, collection: Collection) -> Ingested | Skipped:
    """One text, read in the request that brought it."""
    return _shared.read(incoming, collection.profile)


def close_shared_pool() -> None:
    """End the children of the shared pool; the next reading starts a new one."""
    _shared.close()
