"""A page whose prose holds another page's label or alias as whole words."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from apps.knowledge_graph.proposing.values import Proposal, ProposerPage

LEAST_CHARACTERS = 4
_WORD = re.compile(r"\w+")
_BETWEEN = re.compile(r"[\s\-'’./&,:]*")


def propose(pages: Sequence[ProposerPage]) -> Iterator[Proposal]:
    """Confidence 0.5, and 0.1 more for each further mention, at most 0.9. Names that two pages bear lead nowhere."""
    names: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for page in pages:
        for name in (page.label, *page.aliases):
            words = tuple(word.casefold() for word in _WORD.findall(name))
            if words and len(name) >= LEAST_CHARACTERS:
                names[words].add(page.uid)
    by_first: dict[str, list[tuple[tuple[str, ...], str]]] = defaultdict(list)
    for words, bearers in names.items():
        if len(bearers) == 1:
            by_first[words[0]].append((words, next(iter(bearers))))
    for entries in by_first.values():
        entries.sort(key=lambda entry: (-len(entry[0]), entry[0]))
    for page in pages:
        found: dict[str, list[dict[str, object]]] = defaultdict(list)
        for line, text in page.prose:
            for uid, written in _mentions(text, by_first):
                if uid != page.uid:
                    found[uid].append({"kind": "mention", "line": line, "text": written})
        for uid, reasons in sorted(found.items()):
            yield Proposal(page.uid, uid, min(0.9, round(0.5 + 0.1 * (len(reasons) - 1), 4)), tuple(reasons))


def _mentions(text: str, by_first: dict[str, list[tuple[tuple[str, ...], str]]]) -> Iterator[tuple[str, str]]:
    """Longest names first, none within another."""
    words = [(match.start(), match.end(), match[0].casefold()) for match in _WORD.finditer(text)]
    place = 0
    while place < len(words):
        for name, uid in by_first.get(words[place][2], ()):
            end = place + len(name)
            if tuple(word for _, _, word in words[place:end]) == name and all(
                _BETWEEN.fullmatch(text, words[at][1], words[at + 1][0]) for at in range(place, end - 1)
            ):
                yield uid, text[words[place][0] : words[end - 1][1]]
                place = end
                break
        else:
            place += 1
