"""What one page shows: the texts of a document and of those it embeds, with the answers to all their links."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.db.models.expressions import RawSQL
from django.db.models.functions import Lower

from apps.collections.models import Asset, Document, DocumentLink, LinkState
from apps.markup.links import candidates

MOST_DOCUMENTS = 200
_TREE = """
WITH RECURSIVE tree (id, depth) AS (
    SELECT %s::uuid, 0
    UNION
    SELECT link.target_document_id, tree.depth + 1 FROM tree JOIN md_links link ON link.document_id = tree.id
    WHERE link.embed AND link.target_document_id IS NOT NULL AND tree.depth < %s
)
SELECT id FROM tree GROUP BY id ORDER BY min(depth) LIMIT %s
"""


@dataclass(frozen=True, slots=True, order=True)
class Answer:
    """Where one address of a document leads. ``address`` without fragment; empty for what is broken."""

    state: str
    reason: str = ""
    address: str = ""
    anchor: str = ""
    suggestion: str = ""
    candidates: tuple[str, ...] = ()
    embed: bool = False
    document: UUID | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Shown:
    """A document as far as drawing it needs; ``answers`` by (type, address as written), the type empty for pictures."""

    id: UUID
    key: str
    text: str
    encoding: str
    content_hash: bytes
    address: str
    answers: Mapping[tuple[str, str], Answer]


def load_shown(document: Document, *, depth: int) -> dict[UUID, Shown]:
    """The document and those that it embeds, ``depth`` levels deep, by id; two to four queries however many."""
    tree = RawSQL(_TREE, [document.pk, depth, MOST_DOCUMENTS])  # noqa: S611 - constant text, values as parameters
    rows = list(
        DocumentLink.objects.filter(document__in=tree)
        .order_by("document_id", "id")
        .values_list(
            "document_id",
            "link_type",
            "href",
            "state",
            "reason",
            "target_document_id",
            "target_asset_id",
            "anchor",
            "suggestion",
            "candidates",
            "embed",
        )
    )
    wanted = {row[5] for row in rows if row[10] and row[5]} - {document.pk}
    others: Iterable[Document] = ()
    if wanted:
        others = Document.objects.live().filter(collection=document.collection_id, pk__in=wanted)
    documents = {document.pk: document, **{other.pk: other for other in others}}
    answers: dict[UUID, dict[tuple[str, str], Answer]] = {pk: {} for pk in documents}
    base = f"/docs/{document.collection_id}"
    for owner, kind, href, state, reason, target, asset, anchor, suggestion, keys, embed in rows:
        if owner in answers:
            address = (
                f"{base}/documents/{target}"
                if target
                else f"{base}/assets/{asset}"
                if asset
                else href
                if state == LinkState.EXTERNAL and kind != "wiki"
                else ""
            )
            answers[owner][kind, href] = Answer(
                state, reason, address, anchor, suggestion, tuple(keys), embed, document=target
            )
    _add_pictures(documents, answers)
    return {
        pk: Shown(
            pk,
            one.source_key,
            one.text,
            one.encoding,
            bytes(one.content_hash),
            f"{base}/documents/{pk}",
            answers[pk],
        )
        for pk, one in documents.items()
    }


def _add_pictures(documents: Mapping[UUID, Document], answers: Mapping[UUID, dict[tuple[str, str], Answer]]) -> None:
    """Pictures are looked up when they are drawn: by rules 1, 5 and 6 (``collections.md`` 6.10)."""
    asked = {
        (pk, str(row["href"])): _keys(str(row["href"]), one.source_key)
        for pk, one in documents.items()
        for row in one.parsed.get("assets", ())
    }
    if not asked:
        return
    exact = {key for tried in asked.values() for key in tried[0]}
    folded = {key for tried in asked.values() for key in tried[1]}
    collection = next(iter(documents.values())).collection_id
    found: list[Any] = list(
        Asset.objects.filter(collection=collection)
        .annotate(lower=Lower("source_key"))
        .filter(Q(source_key__in=exact) | Q(lower__in=folded))
        .values_list("source_key", "id")
    )
    by_key: dict[str, UUID] = dict(found)
    by_fold: dict[str, list[UUID]] = {}
    for key, id_ in found:
        by_fold.setdefault(key.casefold(), []).append(id_)
    for (pk, href), (keys, folds) in asked.items():
        hit = next((by_key[key] for key in keys if key in by_key), None)
        if hit is None:
            near = {id_ for fold in folds for id_ in by_fold.get(fold, ())}
            hit = near.pop() if len(near) == 1 else None
        answers[pk]["", href] = (
            Answer(LinkState.ASSET, address=f"/docs/{collection}/assets/{hit}")
            if hit
            else Answer(LinkState.BROKEN, "not found")
        )


def _keys(href: str, source_key: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Keys to try as they are, in order, and folded."""
    exact: list[str] = []
    folded: list[str] = []
    for group in candidates(href, source_key).groups():
        if group.match == "exact" and group.rule in (1, 5):
            exact += group.keys
        elif group.match == "fold":
            folded += [key.lower() for key in group.keys]
    return tuple(exact), tuple(folded)
