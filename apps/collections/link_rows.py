"""Writing the links of documents in bulk: rows go to the server by COPY, however many documents a batch holds.

Measured with 60 links a document: model instances and ``bulk_create`` took four fifths of the time of an upload.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

from django.db import connection

from apps.collections.models import LinkState
from apps.indexing.copying import copy_values
from apps.markup.values import Link, ParsedDocument

_KEY = (("document_id", "uuid"), ("link_type", "text"), ("digest", "bytea"))
_CONTENT = (
    ("text", "text"),
    ("lines", "int4[]"),
    ("fragment", "text"),
    ("alias", "text"),
    ("rel_type", "text"),
    ("field", "text"),
    ("embed", "bool"),
)
_RESOLUTION = (
    ("state", "text"),
    ("reason", "text"),
    ("rule", "int2"),
    ("target_document_id", "uuid"),
    ("target_asset_id", "uuid"),
    ("anchor", "text"),
    ("candidates", "jsonb"),
    ("suggestion", "text"),
)
_COLUMNS = (("id", "uuid"), ("collection_id", "uuid"), *_KEY, ("href", "text"), *_CONTENT, *_RESOLUTION)
RESOLUTION = tuple(name for name, _ in _RESOLUTION)
_UNRESOLVED = (LinkState.PENDING.value, "", None, None, None, "", (), "")

Row = tuple[Any, ...]


def digest_of(href: str) -> bytes:
    return hashlib.blake2b(href.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def rows_of(collection_id: UUID, document_id: UUID, parsed: ParsedDocument) -> list[Row]:
    """One row for each type and address, with the text of the first use and the lines of all."""
    uses: dict[tuple[str, str], list[Link]] = {}
    for link in parsed.links:
        uses.setdefault((link.link_type, link.href), []).append(link)
    return [
        (
            uuid4(),
            collection_id,
            document_id,
            kind,
            digest_of(href),
            href,
            found[0].text,
            sorted({link.line for link in found}),
            found[0].fragment,
            found[0].alias,
            found[0].rel_type[:200],
            found[0].field,
            any(link.embed for link in found),
            *_UNRESOLVED,
        )
        for (kind, href), found in uses.items()
    ]


def write(rows: Sequence[Row], *, replaced: Sequence[UUID]) -> None:
    """Store the links of documents, those of ``replaced`` in place of what they had.

    A link that a document still has keeps its row, and with it what it is bound to. Runs in the caller's transaction.
    """
    known = set(replaced)
    fresh = [row for row in rows if row[2] not in known]
    copy_values("md_links", _COLUMNS, fresh)
    if not known:
        return
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMP TABLE arriving_links (LIKE md_links) ON COMMIT DROP")
        copy_values("arriving_links", _COLUMNS, [row for row in rows if row[2] in known])
        cursor.execute(
            "DELETE FROM md_links old WHERE old.document_id = ANY(%s) AND NOT EXISTS (SELECT 1 FROM arriving_links new"
            " WHERE new.document_id = old.document_id AND new.link_type = old.link_type AND new.digest = old.digest)",
            [list(known)],
        )
        columns = ", ".join(name for name, _ in _COLUMNS)
        written = ", ".join(f"{name} = excluded.{name}" for name, _ in _CONTENT)
        cursor.execute(
            f"INSERT INTO md_links ({columns}) SELECT {columns} FROM arriving_links"  # noqa: S608 - constants
            f" ON CONFLICT ({', '.join(name for name, _ in _KEY)}) DO UPDATE SET {written}"
        )
        cursor.execute("DROP TABLE arriving_links")


def update(changed: Sequence[Row]) -> int:
    """(id, *RESOLUTION) of rows that lead elsewhere now. Rows that are gone meanwhile stay gone. Returns how many."""
    names = ("id", *RESOLUTION)
    written = ", ".join(f"{name} = new.{name}" for name in RESOLUTION)
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TEMP TABLE link_changes AS SELECT {', '.join(names)} FROM md_links WITH NO DATA")  # noqa: S608
        copy_values("link_changes", (("id", "uuid"), *_RESOLUTION), changed)
        # A target may have been trashed or purged since the names were read: such a link waits for the next look.
        cursor.execute(
            f"UPDATE md_links old SET {written} FROM link_changes new WHERE old.id = new.id"  # noqa: S608 - constants
            " AND (new.target_document_id IS NULL OR EXISTS (SELECT 1 FROM md_documents target"
            " WHERE target.id = new.target_document_id AND target.trashed_at IS NULL))"
        )
        count = int(cursor.rowcount)
        cursor.execute("DROP TABLE link_changes")
    return count
