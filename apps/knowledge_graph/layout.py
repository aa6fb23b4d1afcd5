"""Places of nodes in a picture: the same graph always looks the same, and labels do not lie on each other.

Parts that no edge joins are placed one by one, by stress majorisation (Gansner, Koren and North 2004: distances in the
picture follow distances in the graph), freed of overlaps, then packed in rows. Nothing is drawn by lot.
"""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Places = npt.NDArray[np.float64]

ROUNDS = 60
CLEARING_ROUNDS = 300
HOP = 120.0
"""Length of an edge that has room, in pixels."""
ROOM = 1.9
"""Area of a part, in areas of the boxes in it: the rest is for edges."""
STRETCH = 1.3
"""Labels are wide and screens are: parts are laid out so much wider than high."""
GAP = 10.0
APART = 36.0
ASPECT = 1.8
BOX_HEIGHT = 50.0
"""Of a node with its label under it."""
LABEL_CHARS = 22
LETTER = 6.3


def box_width(label: str) -> float:
    """Pixels that a node with this label, cut at ``LABEL_CHARS``, takes in a picture."""
    return max(BOX_HEIGHT, LETTER * min(len(label), LABEL_CHARS))


@dataclass(frozen=True, slots=True)
class Layout:
    """Centres of nodes in pixels, inside ``width`` × ``height``, boxes included."""

    at: Mapping[str, tuple[float, float]]
    width: float
    height: float

    def shares(self) -> dict[str, tuple[float, float]]:
        """The same places as shares of the width and of the height, 0 to 1."""
        return {uid: (round(x / self.width, 4), round(y / self.height, 4)) for uid, (x, y) in self.at.items()}


def arrange(widths: Mapping[str, float], edges: Iterable[tuple[str, str]]) -> Layout:
    """``widths`` holds the width in pixels of each node's box (its label), by uid; edges to others are left out."""
    parts = [_part(uids, links, widths) for uids, links in _parts(widths, edges)]
    return _packed(parts)


@dataclass(frozen=True, slots=True)
class _Part:
    uids: Sequence[str]
    at: Places
    """Centres, measured from the part's own corner."""
    width: float
    height: float


def _parts(uids: Iterable[str], edges: Iterable[tuple[str, str]]) -> list[tuple[list[str], list[tuple[str, str]]]]:
    """Connected parts with their edges: the largest first, then by uid."""
    root = {uid: uid for uid in uids}

    def top(uid: str) -> str:
        while root[uid] != uid:
            root[uid] = root[root[uid]]
            uid = root[uid]
        return uid

    held = [(a, b) for a, b in edges if a in root and b in root and a != b]
    for a, b in held:
        root[max(top(a), top(b))] = min(top(a), top(b))
    members: defaultdict[str, list[str]] = defaultdict(list)
    links: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for uid in sorted(root):
        members[top(uid)].append(uid)
    for a, b in held:
        links[top(a)].append((a, b))
    return [(members[key], links[key]) for key in sorted(members, key=lambda key: (-len(members[key]), key))]


def _part(uids: Sequence[str], links: Sequence[tuple[str, str]], widths: Mapping[str, float]) -> _Part:
    sizes = np.array([widths[uid] for uid in uids])
    at = np.zeros((1, 2)) if len(uids) == 1 else _cleared(_spread(_stressed(uids, links), links, uids, sizes), sizes)
    half = np.column_stack([sizes / 2, np.full(len(uids), BOX_HEIGHT / 2)])
    low = (at - half).min(axis=0)
    width, height = (at + half).max(axis=0) - low
    return _Part(uids, at - low, float(width), float(height))


def _hops(uids: Sequence[str], links: Sequence[tuple[str, str]]) -> Places:
    """Edges on the shortest way between each two nodes of a connected part."""
    place = {uid: number for number, uid in enumerate(uids)}
    joined = np.zeros((len(uids), len(uids)), dtype=bool)
    for a, b in links:
        joined[place[a], place[b]] = joined[place[b], place[a]] = True
    hops = np.full(joined.shape, np.inf)
    reached = np.eye(len(uids), dtype=bool)
    step = 0
    while np.isinf(hops).any():
        hops[reached & np.isinf(hops)] = step
        step += 1
        reached = reached | ((reached.astype(np.float32) @ joined.astype(np.float32)) > 0)
    return hops


def _stressed(uids: Sequence[str], links: Sequence[tuple[str, str]]) -> Places:
    """Places in units of hops, the longest direction level, from a start that the graph alone decides."""
    hops = _hops(uids, links)
    count = len(uids)
    # Classical scaling is near the end already; a tiny push by uid parts nodes with the same neighbours.
    centred = np.eye(count) - 1 / count
    values, vectors = np.linalg.eigh(-0.5 * centred @ hops**2 @ centred)
    at = vectors[:, -2:][:, ::-1] * np.sqrt(np.maximum(values[-2:][::-1], 0))
    seeds = [hashlib.blake2b(uid.encode(), digest_size=8).digest() for uid in uids]
    at = at + 0.05 * (np.array([[int.from_bytes(s[:4]), int.from_bytes(s[4:])] for s in seeds]) / 2**32 - 0.5)
    far = np.maximum(hops, 1)
    weights = far**-2
    np.fill_diagonal(weights, 0)
    laplacian = np.diag(weights.sum(axis=1)) - weights
    inverse = np.linalg.pinv(laplacian)
    for _ in range(ROUNDS):
        apart_x, apart_y = (axis[:, None] - axis[None, :] for axis in at.T)
        pull = weights * hops / np.maximum(np.sqrt(apart_x**2 + apart_y**2), 1e-6)
        at = inverse @ (pull.sum(axis=1)[:, None] * at - pull @ at)
    at = at - at.mean(axis=0)
    _, axes = np.linalg.eigh(at.T @ at)
    at = at @ axes[:, ::-1]
    # An axis may come out either way round: the node that lies farthest decides.
    signs = np.sign(at[np.abs(at).argmax(axis=0), range(2)])
    turned: Places = at * np.where(signs == 0, 1, signs)
    return turned


def _spread(at: Places, links: Sequence[tuple[str, str]], uids: Sequence[str], sizes: Places) -> Places:
    """Hops to pixels: edges of a good length, and room enough for all boxes."""
    place = {uid: number for number, uid in enumerate(uids)}
    lengths = [float(np.hypot(*(at[place[a]] - at[place[b]]))) for a, b in links]
    wanted = HOP / max(sum(lengths) / len(lengths), 1e-6)
    span = np.maximum(at.max(axis=0) - at.min(axis=0), 1e-6)
    boxes = float(((sizes + GAP) * (BOX_HEIGHT + GAP)).sum())
    scale = max(wanted, min(math.sqrt(ROOM * boxes / float(span[0] * span[1])), 2 * wanted))
    spread: Places = at * scale * np.array([STRETCH, 1 / STRETCH])
    return spread


def _cleared(at: Places, sizes: Places) -> Places:
    """Boxes that lie on each other are pushed apart, the shorter way, until none does or the rounds are over."""
    count = len(at)
    first, second = np.triu_indices(count, 1)
    wide, high = (sizes[first] + sizes[second]) / 2 + GAP, BOX_HEIGHT + GAP
    x, y = at[:, 0].copy(), at[:, 1].copy()
    for _ in range(CLEARING_ROUNDS):
        apart_x = x[first] - x[second]
        near = np.flatnonzero(np.abs(apart_x) < wide - 0.5)
        apart_y = y[first[near]] - y[second[near]]
        hit = np.abs(apart_y) < high - 0.5
        if not hit.any():
            break
        near, apart_y = near[hit], apart_y[hit]
        apart_x, one, other = apart_x[near], first[near], second[near]
        over_x, over_y = wide[near] - np.abs(apart_x), high - np.abs(apart_y)
        sideways = over_x / STRETCH <= over_y
        # Two nodes at one height part by their order, so that the push has a direction.
        push_x = np.where(apart_x == 0, -1.0, np.sign(apart_x)) * over_x * sideways
        push_y = np.where(apart_y == 0, -1.0, np.sign(apart_y)) * over_y * ~sideways
        x += 0.3 * (np.bincount(one, push_x, count) - np.bincount(other, push_x, count))
        y += 0.3 * (np.bincount(one, push_y, count) - np.bincount(other, push_y, count))
    return np.column_stack([x, y])


def _packed(parts: Sequence[_Part]) -> Layout:
    """Parts in rows, the largest first, about as wide as a screen is."""
    if not parts:
        return Layout({}, 0, 0)
    area = sum((part.width + APART) * (part.height + APART) for part in parts)
    limit = max(max(part.width for part in parts), math.sqrt(area * ASPECT))
    rows: list[list[_Part]] = [[]]
    used = 0.0
    for part in parts:
        if rows[-1] and used + part.width > limit:
            rows.append([])
            used = 0.0
        rows[-1].append(part)
        used += part.width + APART
    at: dict[str, tuple[float, float]] = {}
    width = max(sum(part.width + APART for part in row) - APART for row in rows)
    y = 0.0
    for row in rows:
        x = (width - sum(part.width + APART for part in row) + APART) / 2
        height = max(part.height for part in row)
        for part in row:
            shift = (x, y + (height - part.height) / 2)
            for uid, (px, py) in zip(part.uids, part.at + shift, strict=True):
                at[uid] = (round(float(px), 1), round(float(py), 1))
            x += part.width + APART
        y += height + APART
    return Layout(at, round(width, 1), round(y - APART, 1))
