"""The links from and to the documents of a pack, for its texts and for its picture: one statement a room."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db.models import Case, Q, Value, When

from apps.collections.models import Collection, DocumentLink
from apps.collections.presentation import link_lines
from apps.repos.models import Repository, RepositoryDocumentLink
from apps.repos.page_body import link_answer

if TYPE_CHECKING:
    from apps.access.viewers import Viewer
    from apps.retrieval.packing import Pack, Part, Pointer

MOST_LINKS = 2000
"""Of one room, those of the texts first; an address further on is followed in its own page."""
MOST_PAIRS = 600

Answers = Mapping[tuple[str, str], tuple[str | None, str, str]]
"""Type and address as written, pictures without type → where it leads, state, reason."""


@dataclass(frozen=True, slots=True)
class End:
    """A document at one end of a link."""

    id: UUID
    title: str
    place: str
    href: str


@dataclass(slots=True)
class PackLinks:
    """``answers`` of the documents with a text in the pack; ``pairs`` of linked ones, each once; their ``ends``."""

    answers: dict[UUID, dict[tuple[str, str], tuple[str | None, str, str]]] = field(default_factory=dict)
    pairs: dict[tuple[UUID, UUID], None] = field(default_factory=dict)
    ends: dict[UUID, End] = field(default_factory=dict)

    def join(self, one: End, other: End) -> None:
        pair = (one.id, other.id)
        if one.id == other.id or pair[::-1] in self.pairs or (pair not in self.pairs and len(self.pairs) >= MOST_PAIRS):
            return
        self.pairs[pair] = None
        self.ends[one.id], self.ends[other.id] = one, other


def links_of(viewer: Viewer, pack: Pack) -> PackLinks:
    """The documents of ``pack`` are in the viewer's scope.

    SECURITY: the rows too are asked for in that scope, and links stay within a source, so what is hidden gives no
    answer, no line and no dot.
    """
    texts = list(dict.fromkeys(part.document_id for part in pack.parts))
    found = PackLinks()
    told: list[Part | Pointer] = [*pack.parts, *pack.pointers]
    for kind, add in ((Repository.kind, _of_repositories), (Collection.kind, _of_collections)):
        named = [one for one in told if one.source is not None and one.source.kind == kind]
        if every := list(dict.fromkeys(one.document_id for one in named if one.document_id)):
            add(found, viewer, texts, every)
    return found


def _around(rows: Any, texts: Sequence[UUID], every: Sequence[UUID]) -> Any:
    joins = Q(document__in=every) | Q(target_document__in=every)
    wanted = rows.filter(Q(document__in=texts) | joins & Q(target_document__isnull=False))
    ours = Case(When(document__in=texts, then=Value(0)), default=Value(1))
    return wanted.order_by(ours, "document_id", "target_document_id", "id")[:MOST_LINKS]


_WIDE = ("text", "structure", "frontmatter", "warnings", "anchors")


def _of_repositories(found: PackLinks, viewer: Viewer, texts: Sequence[UUID], every: Sequence[UUID]) -> None:
    rows: Any = RepositoryDocumentLink.objects.visible_to(viewer).select_related(
        "document__repository", "target_document"
    )
    rows = rows.defer(*(f"{end}__{name}" for end in ("document", "target_document") for name in _WIDE))
    for link in _around(rows, texts, every):
        repository = link.document.repository
        if link.document_id in texts:
            key = ("" if link.image else link.link_type, link.href)
            found.answers.setdefault(link.document_id, {})[key] = link_answer(repository, link)
        if link.target_document is not None:
            link.target_document.repository = repository
            one, other = (
                End(row.pk, row.title, row.path, row.get_absolute_url())
                for row in (link.document, link.target_document)
            )
            found.join(one, other)


_TEXTS = ("text", "parsed", "frontmatter", "warnings", "shelved_chunks")


def _of_collections(found: PackLinks, viewer: Viewer, texts: Sequence[UUID], every: Sequence[UUID]) -> None:
    rows: Any = DocumentLink.objects.visible_to(viewer).select_related("document", "target_document")
    rows = rows.filter(document__trashed_at=None, target_document__trashed_at=None)
    rows = rows.defer(*(f"{end}__{name}" for end in ("document", "target_document") for name in _TEXTS))
    for line in link_lines(_around(rows, texts, every)):
        link = line.link
        if link.document_id in texts:
            state = "resolved" if line.target else "broken"
            address = line.target or (link.href if link.state == "external" else None)
            answer = (address, "external" if address and not line.target else state, line.reason)
            for kind in (link.link_type, ""):
                found.answers.setdefault(link.document_id, {}).setdefault((kind, link.href), answer)
        if link.target_document is not None:
            one, other = (
                End(row.pk, row.title, row.source_key, row.get_absolute_url())
                for row in (link.document, link.target_document)
            )
            found.join(one, other)
