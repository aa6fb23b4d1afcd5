"""Two pages, each among the other's nearest by meaning."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from apps.knowledge_graph.proposing.values import Proposal, ProposerPage

NEAREST = 5
LEAST_COSINE = 0.60
_ROWS = 512


def propose(pages: Sequence[ProposerPage]) -> Iterator[Proposal]:
    """Each among the other's five nearest by mean chunk vector, cosine at least 0.60, which is the confidence."""
    known = sorted((page for page in pages if page.vector is not None), key=lambda page: page.uid)
    if len(known) < 2:
        return
    matrix = np.stack([page.vector for page in known if page.vector is not None]).astype(np.float32)
    nearest: list[set[int]] = []
    cosines: dict[tuple[int, int], float] = {}
    for start in range(0, len(known), _ROWS):
        block = matrix[start : start + _ROWS] @ matrix.T
        for offset, row in enumerate(block):
            number = start + offset
            row[number] = -2.0
            # Stable among equals: the first by slug.
            best = np.argsort(-np.round(row, 6), kind="stable")[:NEAREST]
            nearest.append({int(each) for each in best})
            cosines.update({(number, int(each)): float(row[each]) for each in best})
    for left in range(len(known)):
        for right in sorted(nearest[left]):
            if left < right and left in nearest[right]:
                cosine = round(min(1.0, cosines[left, right]), 4)
                if cosine >= LEAST_COSINE:
                    reason = {"kind": "neighbours", "cosine": cosine}
                    yield Proposal(known[left].uid, known[right].uid, cosine, (reason,))
