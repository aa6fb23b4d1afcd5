"""The known name that was probably meant. Pure; a look-up costs what resembles the name, not what is known."""

from __future__ import annotations

import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from difflib import SequenceMatcher

from apps.markup.links import DOCUMENT_ENDINGS

PAGE_ENDINGS = frozenset({*DOCUMENT_ENDINGS, ".html", ".htm"})
"""A link to an HTML page may mean the document that it is made from."""
_ENDING = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,9}$")
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


class NearestFiles:
    """The same among file names of one ending: no page stands in for a picture, no picture for a script."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths: defaultdict[str, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for path in paths:
            name = posixpath.basename(path)
            self._paths[foreign_ending(name)][name].append(path)
        self._names: dict[str, NearestNames] = {}

    def find(self, wanted: str) -> str | None:
        """The first path of the file whose name is most alike, at least 60 %."""
        ending = foreign_ending(wanted)
        if ending not in self._paths:
            return None
        if ending not in self._names:
            self._names[ending] = NearestNames(self._paths[ending])
        near = self._names[ending].find(wanted)
        return min(self._paths[ending][near]) if near else None


def foreign_ending(name: str) -> str:
    """The ending of a file name, in lower case, that no page has; empty where it may mean a page."""
    ending = _ENDING.search(name)
    found = ending.group().lower() if ending else ""
    return "" if found in PAGE_ENDINGS else found


def _triples(name: str) -> set[str]:
    padded = f"\0{name.casefold()[:200]}\0"
    return {padded[at : at + 3] for at in range(max(1, len(padded) - 2))}
