"""Where the words of a query stand in a text."""

from __future__ import annotations

from apps.indexing.analyzer import analyze
from apps.indexing.questions import Question as Terms
from apps.retrieval.snippets import Match


def matches_in(terms: Terms, text: str, language: str) -> list[Match]:
    """Where the terms of the query stand in a text, in order."""
    asked = terms.terms.get(language) or {}
    return [
        Match(term.start, term.end, str(asked[term.text]))
        for term in analyze(text, language).terms
        if term.text in asked
    ]


def body_start(text: str) -> int:
    """Where the text below its first heading begins."""
    if not text.startswith("#"):
        return 0
    end = text.find("\n")
    rest = end + 1 if end >= 0 else 0
    while rest < len(text) and text[rest] in "\n \t":
        rest += 1
    return rest if rest < len(text) else 0
