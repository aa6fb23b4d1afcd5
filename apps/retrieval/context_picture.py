"""The documents around a pack as a picture that the server draws: always the same for the same pack and reader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from apps.retrieval.context_links import PackLinks
from apps.retrieval.context_presentation import numbers_of
from apps.retrieval.packing import Pack

MOST_NODES = 150
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


def picture_of(pack: Pack, links: PackLinks) -> Picture:
    """The pack's documents in two columns, those with a text in it on the left; what links to them as dots below."""
    chosen = _chosen(pack)
    numbers = numbers_of(pack)
    others = _others(links, chosen)[: max(0, MOST_NODES - len(chosen))]
    longest = max((len(_short(entry.title)) for entry in chosen.values()), default=0)
    column = max(NARROWEST, int(longest * LETTER) + BESIDE)
    nodes, bottom = _columns(list(chosen.values()), {part.document_id for part in pack.parts}, numbers, column)
    dots, height = _dots(others, bottom, 2 * column + GAP)
    at = {node.id: node for node in (*nodes, *dots)}
    lines = [_line(at[a], at[b], column + GAP // 2) for a, b in links.pairs if a in at and b in at]
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


def _others(links: PackLinks, chosen: Mapping[UUID, _Entry]) -> list[_Entry]:
    """The documents nearby, by path."""
    ends = (end for end in links.ends.values() if end.id not in chosen)
    found = [_Entry(end.id, end.title, end.place, end.href, "nearby") for end in ends]
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
