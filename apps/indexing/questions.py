"""A query as the streams ask it: its terms in each language of the scope. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from apps.indexing.analyzer import DEFAULT_LANGUAGE, query_terms

_VERSION = re.compile(r"(v?)(\d+(?:\.\d+)+(?:[-+.]\w+)*)")


@dataclass(frozen=True, slots=True)
class Unit:
    """One distinct term of the query, with the stretch of the query that it comes from."""

    word: str
    start: int
    end: int
    whole: bool


@dataclass(frozen=True, slots=True)
class Question:
    """``terms[language][term]`` is the place in ``units`` that the term stands for in sources of that language.

    A word that becomes two terms in two languages is one unit, so its rarity is summed over all sources.
    """

    text: str
    units: tuple[Unit, ...]
    terms: Mapping[str, Mapping[str, int]]
    only_common_words: bool
    left_out: tuple[str, ...] = ()
    """Words beyond the limit of 64, the commonest first to go."""

    def without(self, dropped: Collection[int]) -> Question:
        """The question without some of its units, which the answer then names."""
        kept = {
            language: {term: unit for term, unit in terms.items() if unit not in dropped}
            for language, terms in self.terms.items()
        }
        return replace(self, terms=kept, left_out=tuple(self.units[unit].word for unit in sorted(dropped)))

    @property
    def asked(self) -> list[int]:
        """Units that are asked in any language."""
        return sorted({unit for terms in self.terms.values() for unit in terms.values()})


def ask(text: str, languages: Collection[str] = ()) -> Question:
    """Analyses a query once for each language of the scope."""
    units: list[Unit] = []
    places: dict[tuple[int, int, bool], int] = {}
    terms: dict[str, dict[str, int]] = {}
    stopped = False
    for language in sorted(languages) or [DEFAULT_LANGUAGE]:
        found = query_terms(text, language)
        stopped = stopped or found.stopped
        here = terms[language] = {}
        for term in found.terms:
            if term.text in here:
                continue
            key = (term.start, term.end, term.kind == "whole")
            if key not in places:
                places[key] = len(units)
                units.append(Unit(term.text, term.start, term.end, term.kind == "whole"))
            here[term.text] = places[key]
            if key[2] and (other := _other_version(term.text)):
                here.setdefault(other, places[key])
    return Question(text, tuple(units), terms, stopped and not any(terms.values()))


def _other_version(term: str) -> str:
    """``4.2.1`` for ``v4.2.1`` and the reverse: tags have the letter, change logs often lack it. Else nothing."""
    found = _VERSION.fullmatch(term)
    if found is None:
        return ""
    letter, number = found.groups()
    return str(number) if letter else f"v{number}"
