"""Names of symbols as people ask for them: words, endings, letter triples (``retrieval.md`` 5.2). Pure.

A symbol is looked up by keys, each with a letter in front: ``n`` its name, ``q`` its whole qualified name, ``e`` an
ending of that of two names or more, ``g`` the set of its words, ``p`` the first three letters of its name and of each
word, ``t`` letter triples inside it. All are folded; separators count alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_SEPARATORS = re.compile(r"::|->|[#/\\:]")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
_RUN = re.compile(r"[^\W_]+")
PREFIX = 3
LONGEST_NAME = 200
MOST_PARTS = 12


def joined(name: str) -> str:
    """A qualified name with dots for every kind of separator, call brackets dropped."""
    return _SEPARATORS.sub(".", name.removesuffix("()")).strip(".")


def parts_of(name: str) -> list[str]:
    return [part for part in joined(name).split(".") if part]


def segments(name: str) -> list[str]:
    """The words of a name, folded: ``createServer`` and ``create_server`` give ``create``, ``server``."""
    return [word.casefold() for word in _WORD.findall(name[:LONGEST_NAME])]


def trigrams(text: str) -> set[str]:
    """Letter triples as pg_trgm makes them: of each run of letters and digits, two blanks before, one behind."""
    found: set[str] = set()
    for run in _RUN.findall(text[:LONGEST_NAME].casefold()):
        padded = f"  {run} "
        found.update(padded[at : at + 3] for at in range(len(padded) - 2))
    return found


def inner_trigrams(text: str) -> set[str]:
    """The triples that every name holds that begins with ``text``, or has a word that does."""
    return {triple for triple in trigrams(text) if " " not in triple}


def endings(qualified: str) -> list[str]:
    """The endings of a qualified name that begin at a separator, the longest first, single names left out."""
    parts = parts_of(qualified.casefold())[-MOST_PARTS:]
    return [".".join(parts[at:]) for at in range(1, len(parts) - 1)]


def search_keys(name: str, qualified: str) -> list[str]:
    folded = name.casefold()[:LONGEST_NAME]
    words = segments(name)
    keys = {f"n{folded}", f"q{joined(qualified).casefold()}", group_key(words)}
    keys.update(f"e{ending}" for ending in endings(qualified))
    keys.update(f"p{word[:PREFIX]}" for word in (folded, *words) if len(word) >= PREFIX)
    keys.update(f"t{triple}" for triple in inner_trigrams(name))
    return sorted(keys)


def group_key(words: Iterable[str]) -> str:
    return "g" + " ".join(sorted(set(words)))
