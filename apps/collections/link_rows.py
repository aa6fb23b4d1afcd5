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
from apps.indexing.arrays import update_values
from apps.indexing.copying import copy_values
from apps.indexing.statements import Fragment, fetch
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

    A link that a document still has keeps its row, and with it what it is bound to; one that is as it was is not
    written. Runs in the caller's transaction.
    """
    stored = _stored(replaced)
    fresh: list[Row] = []
    changed: list[Row] = []
    for row in rows:
        known = stored.pop(row[2:5], None)
        if known is None:
            fresh.append(row)
        elif known[1:] != row[6 : 6 + len(_CONTENT)]:
            changed.append((known[0], *row[6 : 6 + len(_CONTENT)]))
    if stored:
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM md_links WHERE id = ANY(%s)", [[known[0] for known in stored.values()]])
    if changed:
        update_values("md_links", (("id", "uuid"), *_CONTENT), changed)
    copy_values("md_links", _COLUMNS, fresh)


def _stored(documents: Sequence[UUID]) -> dict[Row, Row]:
    """Id and content of the links that documents have, by document, type and digest."""
    if not documents:
        return {}
    content = ", ".join(name for name, _ in _CONTENT)
    statement = f"SELECT document_id, link_type, digest, id, {content} FROM md_links WHERE document_id = ANY(%s)"  # noqa: S608
    return {row[:3]: row[3:] for row in fetch(Fragment(statement, (list(documents),)), prepare=True)}


def update(changed: Sequence[Row]) -> int:
    """(id, *RESOLUTION) of rows that lead elsewhere now. Rows that are gone meanwhile stay gone. Returns how many."""
    # A target may have been trashed or purged since the names were read: such a link waits for the next look.
    bound = (
        "(v.target_document_id IS NULL OR EXISTS (SELECT 1 FROM md_documents target"
        " WHERE target.id = v.target_document_id AND target.trashed_at IS NULL))"
    )
    return update_values("md_links", (("id", "uuid"), *_RESOLUTION), changed, condition=bound)
