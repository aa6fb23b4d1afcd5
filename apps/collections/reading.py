"""Bytes of a collection's documents to parsed and cut values, in child processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django.conf import settings

from apps.collections.documents import Incoming
from apps.collections.models import Collection
from apps.markup.ingest import READ_DOCUMENT, Ingested
from apps.markup.pool import Failure, ParserPool
from apps.markup.shared_pool import run_in_child
from apps.markup.values import CharacterBudget, Skipped


def read(
    pool: ParserPool, incoming: Sequence[Incoming], profile: CharacterBudget
) -> Iterator[tuple[Incoming, Ingested | Skipped]]:
    """Each text with what reading gave, in order. A file that breaks its reader costs itself only."""
    bounds = settings.COGRAPH.markup
    payloads = [(entry.raw, entry.source_key, bounds, profile) for entry in incoming]
    for entry, result in zip(incoming, pool.run(READ_DOCUMENT, payloads), strict=True):
        yield entry, _taken(result)


def read_one(incoming: Incoming, collection: Collection) -> Ingested | Skipped:
    """One text, read in the request that brought it."""
    bounds = settings.COGRAPH.markup
    payload = (incoming.raw, incoming.source_key, bounds, collection.profile)
    (result,) = run_in_child(READ_DOCUMENT, payload, limits=bounds)
    return _taken(result)


def _taken(result: Ingested | Skipped | Failure) -> Ingested | Skipped:
    if isinstance(result, Failure):
        return Skipped("unreadable", f"The file could not be parsed ({result.message}).")
    return result
