"""The known name that was probably meant. Pure; a look-up costs what resembles the name, not what is known."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from difflib import SequenceMatcher

ALIKE = 0.6
COMPARED = 12
"""Names that share the most letter triples with what is sought; only these are compared letter by letter."""
COMMON = 2000
"""A triple that more names than this hold says nothing about any of them."""


class NearestNames:
    """Names found by the letter triples that they share, then compared letter by letter."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = sorted(set(names))
        self._holding: defaultdict[str, list[int]] = defaultdict(list)
        for place, name in enumerate(self._names):
            for triple in _triples(name):
                self._holding[triple].append(place)

    def find(self, wanted: str, alike: float = ALIKE) -> str | None:
        """The most alike of all names, at least ``alike`` (0 to 1); the first in code point order of equals."""
        shared: Counter[int] = Counter()
        for triple in _triples(wanted):
            holding = self._holding.get(triple, ())
            if len(holding) <= COMMON:
                shared.update(holding)
        likely = sorted(shared, key=lambda place: (-shared[place], place))[:COMPARED]
        matcher = SequenceMatcher(b=wanted.casefold(), autojunk=False)
        best, nearest = 0.0, None
        for place in sorted(likely):
            matcher.set_seq1(self._names[place].casefold())
            if matcher.real_quick_ratio() < alike or matcher.quick_ratio() < alike:
                continue
            ratio = matcher.ratio()
            if ratio >= alike and ratio > best:
                best, nearest = ratio, self._names[place]
        return nearest


def _triples(name: str) -> set[str]:
    padded = f"\0{name.casefold()[:200]}\0"
    return {padded[at : at + 3] for at in range(max(1, len(padded) - 2))}
