"""The documents around a pack as a picture that the server draws: always the same for the same pack and reader."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db.models import Q

from apps.collections.models import Document as CollectionDocument
from apps.collections.models import DocumentLink
from apps.repos.models import RepositoryDocument, RepositoryDocumentLink
from apps.retrieval.context_presentation import numbers_of
from apps.retrieval.packing import Pack

if TYPE_CHECKING:
    from apps.access.viewers import Viewer

MOST_NODES = 150
MOST_LINKS = 600
ROW = 26
TOP = 30
GAP = 56
"""Between the two columns of nodes, where the lines run; their names stand outside."""
LETTER, BESIDE, NARROWEST = 6.4, 34, 90
"""Width of a letter, room beside a name, and the least width of a column, in units of the picture."""
DOT, DOTS_FROM = 20, 22
NAME_CHARS = 42

SIGNS = {"seed": "circle", "graph": "diamond", "link": "square", "code reference": "triangle", "co-located": "ring"}


@dataclass(frozen=True, slots=True)
class Node:
    """A document. ``number`` is its number in the pack; None for one that stands only nearby."""

    id: UUID
    title: str
    name: str
    place: str
    href: str
    tier: str
    number: int | None
    x: int
    y: int
    in_left: bool = False

    @property
    def sign(self) -> str:
        return SIGNS.get(self.tier, "dot")


@dataclass(frozen=True, slots=True)
class Line:
    path: str
    faded: bool


@dataclass(frozen=True, slots=True)
class Picture:
    nodes: Sequence[Node]
    others: Sequence[Node]
    lines: Sequence[Line]
    tiers: Sequence[tuple[str, str, int]]
    """Tier, its sign and its number of documents, for the legend."""
    height: int
    width: int
    column: int
    """Width of the column of names that is clickable with its node."""

    @property
    def first_other(self) -> int:
        return min((node.y for node in self.others), default=0)


@dataclass(frozen=True, slots=True)
class _Entry:
    id: UUID
    title: str
    place: str
    href: str
    tier: str


def picture_of(viewer: Viewer, pack: Pack) -> Picture:
    """The pack's documents in two columns, those with a text in it on the left; what links to them as dots below."""
    chosen = _chosen(pack)
    numbers = numbers_of(pack)
    pairs = _pairs(chosen)
    beyond = dict.fromkeys(id_ for pair in pairs for id_ in pair if id_ not in chosen)
    others = _entries(viewer, list(beyond))[: max(0, MOST_NODES - len(chosen))]
    longest = max((len(_short(entry.title)) for entry in chosen.values()), default=0)
    column = max(NARROWEST, int(longest * LETTER) + BESIDE)
    nodes, bottom = _columns(list(chosen.values()), {part.document_id for part in pack.parts}, numbers, column)
    dots, height = _dots(others, bottom, 2 * column + GAP)
    at = {node.id: node for node in (*nodes, *dots)}
    lines = [_line(at[a], at[b], column + GAP // 2) for a, b in pairs if a in at and b in at]
    counts: dict[str, int] = {}
    for entry in chosen.values():
        counts[entry.tier] = counts.get(entry.tier, 0) + 1
    tiers = tuple((tier, SIGNS[tier], counts[tier]) for tier in SIGNS if tier in counts)
    return Picture(tuple(nodes), tuple(dots), tuple(lines), tiers, height, 2 * column + GAP, column)


def _chosen(pack: Pack) -> dict[UUID, _Entry]:
    found: dict[UUID, _Entry] = {}
    for part in pack.parts:
        found.setdefault(part.document_id, _Entry(part.document_id, part.title, part.path, part.url, part.tier))
    for one in pack.pointers:
        if one.document_id is not None and len(found) < MOST_NODES:
            path = one.location.partition("#")[0].rpartition(":")[0] or one.location.partition("#")[0]
            found.setdefault(one.document_id, _Entry(one.document_id, one.title, path, one.url, one.tier))
    return found


def _pairs(chosen: Iterable[UUID]) -> list[tuple[UUID, UUID]]:
    """Links from and to the documents of a pack, each pair once."""
    ids = list(chosen)
    found: dict[tuple[UUID, UUID], None] = {}
    links: tuple[Any, ...] = (RepositoryDocumentLink.objects, DocumentLink.objects)
    for rows in links:
        ends = rows.filter(Q(document__in=ids) | Q(target_document__in=ids), target_document__isnull=False)
        ends = ends.order_by("document_id", "target_document_id").values_list("document_id", "target_document_id")
        for source, target in ends.distinct()[:MOST_LINKS]:
            if source != target and (target, source) not in found:
                found[source, target] = None
    return list(found)


def _entries(viewer: Viewer, ids: Sequence[UUID]) -> list[_Entry]:
    """The documents nearby, by path.

    SECURITY: looked up in the reader's scope; what is hidden gives no dot, no line and no count.
    """
    own = RepositoryDocument.objects.visible_to(viewer).filter(pk__in=ids).select_related("repository")
    rows: Any = CollectionDocument.objects.visible_to(viewer).filter(pk__in=ids)
    found = [
        _Entry(row.pk, row.title, row.path, row.get_absolute_url(), "nearby")
        for row in own.only("title", "path", "slug", "repository__slug")
    ]
    found += [
        _Entry(row.pk, row.title, row.source_key, row.get_absolute_url(), "nearby")
        for row in rows.only("title", "source_key", "collection_id")
    ]
    return sorted(found, key=lambda entry: (entry.place, entry.title, str(entry.id)))


def _columns(
    entries: Sequence[_Entry], with_text: set[UUID], numbers: Mapping[UUID, int], width: int
) -> tuple[list[Node], int]:
    left = [entry for entry in entries if entry.id in with_text]
    right = [entry for entry in entries if entry.id not in with_text]
    nodes = []
    for x, column in ((width, left), (width + GAP, right)):
        for row, entry in enumerate(column):
            nodes.append(
                Node(
                    entry.id,
                    entry.title,
                    _short(entry.title),
                    entry.place,
                    entry.href,
                    entry.tier,
                    numbers[entry.id],
                    x,
                    TOP + row * ROW,
                    x == width,
                )
            )
    return nodes, TOP + max(len(left), len(right), 1) * ROW


def _dots(entries: Sequence[_Entry], top: int, width: int) -> tuple[list[Node], int]:
    a_row = (width - 2 * DOTS_FROM) // DOT
    dots = [
        Node(
            entry.id,
            entry.title,
            "",
            entry.place,
            entry.href,
            entry.tier,
            None,
            DOTS_FROM + at % a_row * DOT,
            top + 40 + at // a_row * DOT,
        )
        for at, entry in enumerate(entries)
    ]
    return dots, (dots[-1].y + DOT if dots else top)


def _line(one: Node, other: Node, middle: int) -> Line:
    """A curve in the gap between the columns; a dot is reached from there too."""
    faded = one.number is None or other.number is None
    if faded:
        return Line(f"M{one.x} {one.y}L{other.x} {other.y}", True)
    bend = middle if one.x != other.x else middle + (10 if one.in_left else -10)
    return Line(f"M{one.x} {one.y}C{bend} {one.y} {bend} {other.y} {other.x} {other.y}", False)


def _short(title: str) -> str:
    return title if len(title) <= NAME_CHARS else title[: NAME_CHARS - 1] + "…"
