"""Where the words of a query stand in a text."""

from __future__ import annotations

import functools
import re

from apps.indexing.analyzer import Term, analyze
from apps.indexing.questions import Question as Terms
from apps.retrieval.snippets import Match

_BLANKS = str.maketrans({chr(code): " " for code in (*range(32), 127)})
_SHORT_STEMS = frozenset({"die", "lie", "tie"})
"""Stems that share no more than their first letter with some of their words: dying, lying, tying."""
_QUICK = "english"
_LONGEST_KNOWN = 64
"""Characters of a run whose terms are remembered."""


def matches_in(terms: Terms, text: str, language: str) -> list[Match]:
    """Where the terms of the query stand in a text, in order."""
    asked = terms.terms.get(language) or {}
    if not asked:
        return []
    if language == _QUICK and text.isascii():
        return [
            Match(start + term.start, start + term.end, str(asked[term.text]))
            for start, end in _promising(text, frozenset(asked))
            for term in _terms(text[start:end])
            if term.text in asked
        ]
    return [
        Match(term.start, term.end, str(asked[term.text]))
        for term in analyze(text, language).terms
        if term.text in asked
    ]


def _terms(run: str) -> tuple[Term, ...]:
    return _known_terms(run) if len(run) <= _LONGEST_KNOWN else analyze(run, _QUICK).terms


@functools.lru_cache(maxsize=20_000)
def _known_terms(run: str) -> tuple[Term, ...]:
    """The words that people ask for stand in many texts, most often in the same few forms."""
    return analyze(run, _QUICK).terms


def _promising(text: str, asked: frozenset[str]) -> list[tuple[int, int]]:
    """Stretches between blanks that can hold an asked term. No term crosses a blank, and a word begins like its stem,
    so the rest need not be analysed: that would cost most of the time of a search.
    """
    plain = text.lower().translate(_BLANKS)
    found: list[tuple[int, int]] = []
    end = -1
    for match in _beginnings(asked).finditer(plain):
        if match.start() < end:
            continue
        start = plain.rfind(" ", 0, match.start()) + 1
        end = plain.find(" ", match.end())
        end = len(plain) if end < 0 else end
        found.append((start, end))
    return found


_ADORNED = r"(?P<{0}>[-=~^\"'`*+#_])(?P={0}){{2,}}[ \t]*(?:\n|\Z)"
_TITLE = r"(?![ \t]*\n)[^\n]+\n"
_HEADINGS = re.compile(
    r"(?:\s*\n)?(?:(?:"
    r"\#{1,6}[ \t][^\n]*(?:\n|\Z)"
    # The other forms of Markdown and reStructuredText: a line of signs below the title, and perhaps above it.
    rf"|{_ADORNED.format('above')}{_TITLE}(?P=above){{3,}}[ \t]*(?:\n|\Z)"
    rf"|(?![ \t]|\.\. |[-*+>|] ){_TITLE}{_ADORNED.format('below')}"
    # A label of a heading that follows.
    r"|\.\. _[^\n]+:[ \t]*(?:\n|\Z)"
    r")\s*)+"
)


@functools.lru_cache(maxsize=256)
def _beginnings(asked: frozenset[str]) -> re.Pattern[str]:
    return re.compile("|".join(re.escape(one) for one in sorted({_beginning(term) for term in asked})))


def _beginning(term: str) -> str:
    if term in _SHORT_STEMS:
        return term[:1]
    return term[:3] if len(term) > 4 else term[:2]


def body_start(text: str) -> int:
    """Where the text below the headings that it begins with starts; 0 where there is nothing else."""
    found = _HEADINGS.match(text)
    rest = found.end() if found else 0
    return rest if rest < len(text) else 0
