"""A graph as SVG values: the same graph always gives the same picture. The template writes the tags."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import QueryDict

from apps.knowledge_graph.layout import LABEL_CHARS, arrange, box_width
from apps.knowledge_graph.page_values import BACKWARDS, SIGNS, edge_id
from apps.knowledge_graph.reader import SeenEdge, SeenNode

MARGIN, SMALL_MARGIN = 16, 44
MIN_WIDTH, MIN_HEIGHT = 460, 240
RADIUS = 13
ARROW = 6
LABEL_DROP = 9


@dataclass(frozen=True, slots=True)
class Links:
    """Addresses of the page that a picture stands on; what is in force stays."""

    params: QueryDict
    names: Sequence[str]
    base: str = ""

    def to(self, focus: str) -> str:
        return self.base + address(self.params, self.names, focus=focus)


@dataclass(frozen=True, slots=True)
class DrawnNode:
    node: SeenNode
    x: float
    y: float
    href: str
    focused: bool
    degree: int

    @property
    def sign(self) -> str:
        return _sign(self.node)[0]

    @property
    def style(self) -> str:
        return "fill-none" if self.node.dangling else _sign(self.node)[1]

    @property
    def name(self) -> str:
        label = self.node.label
        return label if len(label) <= LABEL_CHARS else label[: LABEL_CHARS - 1] + "…"

    @property
    def words(self) -> str:
        state = (
            "dangling: no page has this name" if self.node.dangling else f"{self.node.node_type}, {self.node.status}"
        )
        return f"{self.node.label} ({state})"


@dataclass(frozen=True, slots=True)
class DrawnEdge:
    edge: SeenEdge
    x1: float
    y1: float
    x2: float
    y2: float
    width: float
    href: str
    words: str

    @property
    def inferred(self) -> bool:
        return self.edge.provenance == "inferred"


@dataclass(frozen=True, slots=True)
class ListedEdge:
    words: str
    other: SeenNode
    href: str


@dataclass(frozen=True, slots=True)
class Entry:
    """A node of the list that says the same as the picture."""

    drawn: DrawnNode
    edges: Sequence[ListedEdge]


@dataclass(frozen=True, slots=True)
class Drawing:
    nodes: Sequence[DrawnNode]
    edges: Sequence[DrawnEdge]
    entries: Sequence[Entry]
    types: Sequence[tuple[str, str, str, int]]
    """Type, sign, colour and number, for the legend."""
    width: int
    height: int


def draw(
    nodes: Sequence[SeenNode], edges: Sequence[SeenEdge], links: Links, *, focus: str = "", small: bool = False
) -> Drawing:
    """``focus`` is the node in the middle of attention. In a ``small`` picture names are written larger."""
    # Sorted, so that rows in another order give the same picture.
    by_uid = {node.uid: node for node in sorted(nodes, key=lambda node: node.uid)}
    held = sorted(
        (edge for edge in edges if edge.from_uid in by_uid and edge.to_uid in by_uid), key=lambda edge: edge.uid
    )
    layout = arrange(
        {uid: box_width(node.label) for uid, node in by_uid.items()}, [(edge.from_uid, edge.to_uid) for edge in held]
    )
    width = max(MIN_WIDTH, math.ceil(layout.width) + 2 * (SMALL_MARGIN if small else MARGIN))
    height = max(MIN_HEIGHT, math.ceil(layout.height) + 2 * MARGIN)
    # A circle stands above its label: the box's middle lies between them.
    left, above = (width - layout.width) / 2, (height - layout.height) / 2 - LABEL_DROP
    at = {uid: (round(x + left, 1), round(y + above, 1)) for uid, (x, y) in layout.at.items()}
    degrees: dict[str, int] = dict.fromkeys(by_uid, 0)
    for edge in held:
        degrees[edge.from_uid] += 1
        degrees[edge.to_uid] += 1
    drawn = [DrawnNode(node, *at[uid], links.to(uid), uid == focus, degrees[uid]) for uid, node in by_uid.items()]
    lines = [line for edge in held if (line := _edge(edge, by_uid, at, links)) is not None]
    counts: dict[str, int] = {}
    for node in by_uid.values():
        counts[node.node_type] = counts.get(node.node_type, 0) + 1
    types = tuple((name, *SIGNS[name], counts[name]) for name in SIGNS if name in counts)
    return Drawing(tuple(drawn), tuple(lines), _entries(drawn, held, by_uid, links), types, width, height)


def _edge(
    edge: SeenEdge, nodes: dict[str, SeenNode], at: dict[str, tuple[float, float]], links: Links
) -> DrawnEdge | None:
    (x1, y1), (x2, y2) = at[edge.from_uid], at[edge.to_uid]
    length = math.hypot(x2 - x1, y2 - y1)
    if length < 2 * RADIUS:
        return None
    ux, uy = (x2 - x1) / length, (y2 - y1) / length
    words = f"{nodes[edge.from_uid].label} {_words(edge)} {nodes[edge.to_uid].label}, weight {edge.weight:g}"
    return DrawnEdge(
        edge,
        round(x1 + ux * RADIUS, 1),
        round(y1 + uy * RADIUS, 1),
        round(x2 - ux * (RADIUS + ARROW), 1),
        round(y2 - uy * (RADIUS + ARROW), 1),
        round(1 + 3 * float(edge.weight), 1),
        f"{links.to(edge.from_uid)}#{edge_id(edge.uid)}",
        words + (", inferred" if edge.provenance == "inferred" else ""),
    )


def _entries(
    drawn: Sequence[DrawnNode], edges: Sequence[SeenEdge], nodes: dict[str, SeenNode], links: Links
) -> tuple[Entry, ...]:
    listed: dict[str, list[ListedEdge]] = {}
    for edge in edges:
        href = f"{links.to(edge.from_uid)}#{edge_id(edge.uid)}"
        for at, other, backwards in ((edge.from_uid, edge.to_uid, False), (edge.to_uid, edge.from_uid, True)):
            listed.setdefault(at, []).append(ListedEdge(words_of(edge, backwards=backwards), nodes[other], href))
    order = sorted(drawn, key=lambda one: (not one.focused, -one.degree, one.node.label.lower(), one.node.uid))
    return tuple(Entry(one, tuple(listed.get(one.node.uid, ()))) for one in order)


def _sign(node: SeenNode) -> tuple[str, str]:
    return SIGNS.get(node.node_type, SIGNS["unknown"])


def _words(edge: SeenEdge) -> str:
    return edge.edge_type.replace("_", " ")


def words_of(edge: SeenEdge, *, backwards: bool) -> str:
    """An edge as it is read from one of its ends to the other."""
    guess = " (inferred)" if edge.provenance == "inferred" else ""
    return f"{BACKWARDS[edge.edge_type] if backwards else _words(edge)}{guess}"


def address(params: QueryDict, names: Sequence[str], **changes: str) -> str:
    """The query string that keeps what is in force, with some of it changed."""
    values = {name: params.get(name, "") for name in names} | changes
    return "?" + urlencode({name: value for name, value in values.items() if value})
