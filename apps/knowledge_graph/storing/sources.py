"""The graph row of a source, and the lock that lets one writer at a time change its graph."""

from __future__ import annotations

from uuid import UUID

from apps.access.cursors import prepared_cursor
from apps.indexing.statements import Fragment, fetch
from apps.knowledge_graph.models import GraphSource

KINDS = ("repository", "collection")


def find_graph(kind: str, source_id: UUID) -> GraphSource | None:
    found: GraphSource | None = GraphSource.objects.filter(**{kind: source_id}).first()
    return found


def has_graph(kind: str, source_id: UUID) -> bool:
    """Asked whenever documents are stored, so without making the row."""
    statement = f"SELECT 1 FROM kb_sources WHERE {kind}_id = %s"  # noqa: S608 - of two constants
    return bool(fetch(Fragment(statement, (source_id,)), prepare=True))


def ensure_graph(kind: str, source_id: UUID) -> GraphSource:
    """The row of a source, made when it is the first time. The source itself exists."""
    GraphSource.objects.bulk_create([GraphSource(**{f"{kind}_id": source_id})], ignore_conflicts=True)
    found: GraphSource = GraphSource.objects.get(**{kind: source_id})
    return found


def lock_graph(kind: str, source_id: UUID) -> None:
    """Wait until no other transaction changes this graph; held to the end of the transaction.

    Row locks of documents are taken before this one, never after, so that deletions, which hold theirs already, and
    projections cannot wait for each other in a circle.
    """
    with prepared_cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended('knowledge_graph:' || %s::text || ':' || %s::text, 0))",
            [kind, str(source_id)],
        )
