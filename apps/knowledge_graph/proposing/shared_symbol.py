"""Two pages that name the same code symbol."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations

from apps.knowledge_graph.proposing.values import Proposal, ProposerPage

MOST_PAGES = 8
"""A symbol that more pages name says nothing about any two of them."""


def propose(pages: Sequence[ProposerPage]) -> Iterator[Proposal]:
    """Confidence: 1 minus the product, over shared symbols, of 1 - 0.5 / (pages that name it - 1); at most 0.9."""
    naming: dict[str, list[ProposerPage]] = defaultdict(list)
    for page in pages:
        for symbol in page.symbols:
            naming[symbol].append(page)
    doubt: dict[tuple[str, str], float] = {}
    reasons: dict[tuple[str, str], list[dict[str, object]]] = defaultdict(list)
    for symbol, bearers in sorted(naming.items()):
        if not 2 <= len(bearers) <= MOST_PAGES:
            continue
        for left, right in combinations(sorted(bearers, key=lambda page: page.uid), 2):
            pair = (left.uid, right.uid)
            doubt[pair] = doubt.get(pair, 1.0) * (1 - 0.5 / (len(bearers) - 1))
            reasons[pair].append({"kind": "symbol", "symbol": left.symbols[symbol], "pages": len(bearers)})
    for pair, left_over in sorted(doubt.items()):
        yield Proposal(*pair, min(0.9, round(1 - left_over, 4)), tuple(reasons[pair]))
