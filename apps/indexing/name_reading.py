"""A query as one source reads it in the name stream: its words, and what they explain of it. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from apps.indexing.naming import MEDIUM, Asked, Source, less, words

NOTHING: frozenset[str] = frozenset()


class Reading:
    """The query as one source reads it."""

    def __init__(self, asked: Asked, source: Source) -> None:
        self.source, self.language = source, source.language
        self.label = words(source.label, source.language)
        self.wanted = less(words(asked.text, source.language), self.label)
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
