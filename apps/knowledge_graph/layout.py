"""Places of nodes in a picture: the same graph always looks the same."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np

ROUNDS = 120


def positions(uids: Sequence[str], edges: Iterable[tuple[str, str, float]]) -> dict[str, tuple[float, float]]:
    """x and y from 0 to 1 for each uid, by springs between linked nodes and repulsion between all (Fruchterman and
    Reingold 1991). The start is drawn from the uids, so that nothing but the graph decides."""
    count = len(uids)
    if count == 0:
        return {}
    if count == 1:
        return {uids[0]: (0.5, 0.5)}
    seeds = [hashlib.blake2b(uid.encode(), digest_size=8).digest() for uid in uids]
    at = np.array([[int.from_bytes(s[:4], "big"), int.from_bytes(s[4:], "big")] for s in seeds], dtype=float) / 2**32
    place = {uid: number for number, uid in enumerate(uids)}
    pairs = [(place[a], place[b], weight) for a, b, weight in edges if a in place and b in place]
    starts = np.array([pair[0] for pair in pairs], dtype=int)
    ends = np.array([pair[1] for pair in pairs], dtype=int)
    weights = np.array([pair[2] for pair in pairs], dtype=float)[:, None]
    ideal = np.sqrt(1.0 / count)
    for step in range(ROUNDS):
        heat = 0.1 * (1 - step / ROUNDS)
        apart = at[:, None, :] - at[None, :, :]
        distance = np.maximum(np.sqrt((apart**2).sum(axis=2)), 1e-4)
        moves = (apart * (ideal**2 / distance**2)[:, :, None]).sum(axis=1)
        if pairs:
            pull = at[starts] - at[ends]
            length = np.maximum(np.sqrt((pull**2).sum(axis=1, keepdims=True)), 1e-4)
            pull = pull * length / ideal * weights * 0.5
            np.add.at(moves, starts, -pull)
            np.add.at(moves, ends, pull)
        moves -= (at - 0.5) * 0.05  # keeps parts that nothing joins in sight
        size = np.maximum(np.sqrt((moves**2).sum(axis=1, keepdims=True)), 1e-9)
        at = at + moves / size * np.minimum(size, heat)
    low, high = at.min(axis=0), at.max(axis=0)
    at = 0.02 + 0.96 * (at - low) / np.maximum(high - low, 1e-9)
    return {uid: (round(float(x), 4), round(float(y), 4)) for uid, (x, y) in zip(uids, at, strict=True)}
