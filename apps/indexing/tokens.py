"""Where compounds, and runs of scripts written without spaces, stand in a text; how a compound is peeled. Pure.

Two patterns find the same tokens; the one for ASCII text is several times faster and most text is ASCII.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

import regex

# A compound: word characters joined inside, with what may stand before and behind it (`retrieval.md` 2.3).
_ASCII = re.compile(r"""(?:(?<![\w'])(?:-{1,2}|[.@$]))?\w+(?:(?:::|->|[./\\#@+':-])\w+)*(?:\+\+|\#)?""", re.ASCII)
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}ー"
_WORD = rf"[\p{{L}}\p{{M}}\p{{N}}_--[{_UNSPACED}]]"
_UNICODE = regex.compile(
    rf"[[{_UNSPACED}]&&[\p{{L}}\p{{M}}\p{{N}}]]+"
    rf"|(?:(?<![\p{{L}}\p{{M}}\p{{N}}_'’])(?:-{{1,2}}|[.@$]))?"
    rf"{_WORD}+(?:(?:::|->|[./\\#@+'’:-]){_WORD}+)*(?:\+\+|\#)?",
    regex.V1,
)
_UNSPACED_START = regex.compile(rf"[{_UNSPACED}]", regex.V1)

# Levels of a compound from the outside in. Camel humps and letter-digit borders come last.
_LEVELS = (
    re.compile(r"[/\\]"),
    re.compile(r"::|->|[:#@+'’]"),
    re.compile(r"\."),
    re.compile(r"-"),
    re.compile(r"_+"),
)
_ANY_LEVEL = re.compile(r"[/\\:#@+'’._-]|->")
_PART = regex.compile(
    r"\p{Lu}{2,}s(?![\p{L}\p{M}])"  # URLs, APIs: one word
    r"|[\p{Lu}\p{Lt}][\p{Lu}\p{Lt}\p{M}]*(?![\p{Ll}\p{M}])|[\p{Lu}\p{Lt}]?\p{M}*[\p{Ll}][\p{Ll}\p{M}]*"
    r"|[\p{Lo}\p{Lm}\p{M}]+|\p{N}+|[\p{Lu}\p{Lt}]",
    regex.V1,
)
_ASCII_PART = re.compile(r"[A-Z]{2,}s(?![A-Za-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_POSSESSIVE = re.compile(r"['’][sS]$")
_LEAD = re.compile(r"^(?:-{1,2}|[.@$])")
_TAIL = re.compile(r"(?:\+\+|#)$")

MAX_WHOLE = 128
"""Longer wholes are no names that anybody types."""
MAX_WORD = 64
MAX_PARTS = 12
"""A piece with more humps than this is a digest or an encoded blob: it stays one word."""


class Piece(NamedTuple):
    """A part of a compound as spelled, with its offsets. ``words``: how many words have begun before it.

    A tuple, because every new word of a corpus makes a handful of them."""

    text: str
    start: int
    end: int
    whole: bool
    words: int


def find(text: str) -> list[str]:
    """The tokens of normalised ``text``, in order."""
    if text.isascii():
        return _ASCII.findall(text)
    found: list[str] = _UNICODE.findall(text)
    return found


def spans(text: str) -> Iterator[tuple[int, int]]:
    pattern = _ASCII if text.isascii() else _UNICODE
    for match in pattern.finditer(text):
        yield match.span()


def is_unspaced(token: str) -> bool:
    return not token.isascii() and _UNSPACED_START.match(token) is not None


def normalise(text: str) -> str:
    """NFKC, control characters as blanks, addresses without their schemes. Case stays: it shows the humps."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return without_schemes(text)


def without_schemes(text: str) -> str:
    """``text`` with blanks, as many, in the place of ``http://`` and ``https://``.

    They stand in every text that holds a link and tell nothing of it: with them, who asks for "https" is given pages
    with links, not pages about HTTPS.
    """
    return text.replace("https://", "        ").replace("http://", "       ") if "://" in text else text


def peel(token: str) -> list[Piece]:
    """The wholes and words of one compound, each whole before its parts.

    A part that repeats its whole is not given twice.
    """
    if token[-1:] in "sS":
        token = _POSSESSIVE.sub("", token)
    if _is_one_word(token):
        return [Piece(token[:MAX_WORD], 0, len(token), False, 0)]
    pieces: list[Piece] = []
    lead = _LEAD.match(token)
    tail = _TAIL.search(token)
    start = lead.end() if lead else 0
    end = tail.start() if tail else len(token)
    if (lead or tail) and len(token) <= MAX_WHOLE:
        pieces.append(Piece(token, 0, len(token), True, 0))
    _descend(token, start, end, 0, pieces)
    return pieces


def _descend(token: str, start: int, end: int, level: int, pieces: list[Piece]) -> None:
    """Appends the pieces of ``token[start:end]``, split at ``level`` and below."""
    text = token[start:end]
    if _is_one_word(text):
        pieces.append(Piece(text[:MAX_WORD], start, end, False, _words(pieces)))
        return
    if _ANY_LEVEL.search(text) is None:
        level = len(_LEVELS)  # nothing that a level splits at: straight to the humps
    while level < len(_LEVELS):
        cuts = [match.span() for match in _LEVELS[level].finditer(text)]
        level += 1
        if not cuts:
            continue
        edges = [0, *(edge for cut in cuts for edge in cut), len(text)]
        parts = [(edges[i], edges[i + 1]) for i in range(0, len(edges), 2) if edges[i] < edges[i + 1]]
        if len(parts) > 1:
            _whole(text, start, pieces)
        for left, right in parts:
            _descend(token, start + left, start + right, level, pieces)
        return
    pattern = _ASCII_PART if text.isascii() else _PART
    humps = [match.span() for match in pattern.finditer(text)]
    if len(humps) > MAX_PARTS:
        humps = [(0, len(text))]
    if len(humps) > 1:
        _whole(text, start, pieces)
    for left, right in humps:
        pieces.append(
            Piece(text[left : min(right, left + MAX_WORD)], start + left, start + right, False, _words(pieces))
        )


def _is_one_word(text: str) -> bool:
    """Whether ASCII ``text`` has neither a border nor a hump inside: the common case, told without a pattern."""
    if not text.isascii():
        return False
    if text.isalpha():
        return text.islower() or text.isupper() or text[1:].islower()
    return text.isdigit()


def _whole(text: str, start: int, pieces: list[Piece]) -> None:
    if len(text) <= MAX_WHOLE:
        pieces.append(Piece(text, start, start + len(text), True, _words(pieces)))


def _words(pieces: list[Piece]) -> int:
    return pieces[-1].words + (not pieces[-1].whole) if pieces else 0
