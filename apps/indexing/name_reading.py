"""A query as one source reads it in the name stream: its words, and what they explain of it. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from apps.indexing.analyzer import fold
from apps.indexing.naming import MEDIUM, Asked, Source, less, wholes, words

NOTHING: frozenset[str] = frozenset()


class Reading:
    """The query as one source reads it."""

    def __init__(self, asked: Asked, source: Source) -> None:
        self.source, self.language = source, source.language
        self.label = words(source.label, source.language)
        self.wanted = less(words(asked.text, source.language), self.label)
        self._wholes = wholes(asked.text, source.language)
        self._option = asked.option
        medium = words(MEDIUM, source.language)
        self._weighed = [(term, asked.idf(term), term in medium) for term in sorted(self.wanted)]
        self._headings: dict[str, frozenset[str]] = {}
        self._heard: dict[str, frozenset[str]] = {}
        self._explained: dict[tuple[frozenset[str], ...], float] = {}

    def heading(self, text: str) -> frozenset[str]:
        """The words of a heading, without source words."""
        found = self._headings.get(text)
        if found is None:
            found = self._headings[text] = less(words(text, self.language), self.label)
        return found

    def heard(self, headings: Sequence[str]) -> frozenset[str]:
        """The words of the query that headings hold. Asked for thousands of headings, most of which hold none."""
        known, held = self._heard, NOTHING
        for heading in headings:
            found = known.get(heading)
            if found is None:
                found = known[heading] = words(heading, self.language) & self.wanted
            if found:
                held = held | found if held else found
        return held

    def written_in(self, names: Sequence[str]) -> int:
        """How many compounds of the query stand in ``names`` as they are written."""
        held = NOTHING.union(*(wholes(name, self.language) for name in names)) if self._wholes else NOTHING
        return len(self._wholes & held)

    def may_be_option(self, names: Sequence[str]) -> bool:
        """Whether one of ``names`` is what the query means, when that is an option: who types ``--database`` means that
        one and not the guide on databases; ``dry-run`` may be the name of a page.
        """
        option = self._option
        if not option:
            return True
        bare = option.lstrip("-") if len(self.wanted) > 1 else ""
        return any(option in wholes(name, self.language) or (bare and fold(name).strip("` ") == bare) for name in names)

    def explained(self, named: frozenset[str], folders: frozenset[str], in_heading: frozenset[str]) -> float:
        """C: the share of the query that names, headings and folders account for, by the words of the query that stand
        in each. Many documents hold the same ones.
        """
        key = (named, folders, in_heading)
        found = self._explained.get(key)
        if found is None:
            total = got = 0.0
            for term, weight, is_medium in self._weighed:
                part = 1.0 if term in named or term in in_heading else 0.5 if term in folders else 0.0
                if not part and is_medium:
                    continue
                total += weight
                got += part * weight
            found = self._explained[key] = got / total if total else 0.0
        return found
