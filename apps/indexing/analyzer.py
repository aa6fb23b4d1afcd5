"""From text to terms: one function for what is indexed and what is asked (``retrieval.md`` 2). Pure.

``analyze`` gives terms with positions and offsets. ``lexicon(language)`` is the same for bulk work: it gives numbers
for whole token lists, and keeps what it has once worked out about a token. Both go through ``_expand``.
"""

from __future__ import annotations

import functools
import threading
import unicodedata
from array import array
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import regex
import snowballstemmer

from apps.indexing import tokens

ANALYZER_VERSION = 2
DEFAULT_LANGUAGE = "english"
NO_LANGUAGE = "none"
MAX_QUERY_TERMS = 64
_KEPT_RUNS = 400_000
"""Runs that a lexicon remembers before it starts afresh; about 150 MB."""

Kind = Literal["word", "whole", "letter"]

_LETTERS = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i", "æ": "ae", "œ": "oe", "ё": "е", "’": "'"}
)
_MARKED = regex.compile(r"([\p{Latin}\p{Greek}])\p{M}+")


class Term(NamedTuple):
    """A term of a text. ``position`` counts words from 0; offsets point into the text as given. A tuple, because each
    text that is shown makes many."""

    text: str
    position: int
    start: int
    end: int
    kind: Kind


@dataclass(frozen=True, slots=True)
class Analysis:
    """``length`` is the number of words. ``stopped`` tells that words were left out for being too common."""

    terms: tuple[Term, ...]
    length: int
    stopped: bool = False


def languages() -> tuple[str, ...]:
    """What a source may choose as its language."""
    return (NO_LANGUAGE, *sorted(snowballstemmer.algorithms()))


def fold(text: str) -> str:
    """Case and marks away: Latin and Greek letters lose their marks, other scripts keep them."""
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFKC", text).casefold().translate(_LETTERS)
    text = _MARKED.sub(r"\1", unicodedata.normalize("NFD", text))
    return unicodedata.normalize("NFC", text).translate(_LETTERS)


def analyze(text: str, language: str = DEFAULT_LANGUAGE) -> Analysis:
    """The terms of ``text`` in order of position, a whole before the words it is made of."""
    normal, origin = _normalise(text)
    terms: list[Term] = []
    length = 0
    stopped = False
    normal = tokens.without_schemes(normal)
    for start, end in tokens.spans(normal):
        pieces, count, common = _expand(normal[start:end], language)
        stopped = stopped or common
        for piece, kind in pieces:
            left, right = start + piece.start, start + piece.end
            if origin is not None:
                left, right = _original(origin, left, right)
            terms.append(Term(piece.text, length + piece.words, left, right, kind))
        length += count
    return Analysis(tuple(terms), length, stopped)


def query_terms(query: str, language: str = DEFAULT_LANGUAGE) -> Analysis:
    """What is asked for ``query``: as ``analyze``, single letters of a longer run left out."""
    found = analyze(query, language)
    return Analysis(tuple(term for term in found.terms if term.kind != "letter"), found.length, found.stopped)


@functools.cache
def lexicon(language: str) -> Lexicon:
    return Lexicon(language)


class Lexicon:
    """Texts of one language as numbers, for bulk work. Not shared between threads while it grows.

    A *run* is what stands between blanks; no token reaches over one. ``codes[run]`` is a number; code c stands for the
    term numbers ``flat[starts[c]:starts[c + 1]]`` and counts ``words[c]`` words. ``names[n]`` is the text of term n,
    ``packed[n]`` its UTF-8 form with its length before it, as PostgreSQL takes it.
    """

    def __init__(self, language: str) -> None:
        self.language = language
        self.names: list[str] = []
        self.packed: list[bytes] = []
        self._numbers: dict[str, int] = {}
        self.codes = _Codes(self)
        self.flat = array("i")
        self._is_word = array("b")
        self.starts = array("i", [0])
        self.words = array("i")

    def encode(self, text: str) -> list[int]:
        """The codes of the runs of ``text``."""
        return list(map(self.codes.__getitem__, tokens.normalise(text).split()))

    def word_terms(self, text: str) -> set[str]:
        """The distinct terms of ``text`` that are words."""
        starts, flat, is_word, names = self.starts, self.flat, self._is_word, self.names
        return {
            names[flat[place]]
            for code in self.encode(text)
            for place in range(starts[code], starts[code + 1])
            if is_word[place]
        }

    def full(self) -> bool:
        return len(self.codes) > _KEPT_RUNS or len(self.flat) > 8 * _KEPT_RUNS

    def add(self, run: str) -> int:
        words = 0
        numbers, names = self._numbers, self.names
        for token in tokens.find(run):
            pieces, count, _ = _expand(token, self.language)
            words += count
            for piece, kind in pieces:
                text = piece[0]
                number = numbers.get(text)
                if number is None:
                    number = numbers[text] = len(names)
                    names.append(text)
                    encoded = text.encode()
                    self.packed.append(len(encoded).to_bytes(4, "big") + encoded)
                self.flat.append(number)
                self._is_word.append(kind == "word")
        self.starts.append(len(self.flat))
        self.words.append(words)
        return len(self.words) - 1


class _Codes(dict[str, int]):
    def __init__(self, owner: Lexicon) -> None:
        super().__init__()
        self._owner = owner

    def __missing__(self, run: str) -> int:
        code = self[run] = self._owner.add(run)
        return code


def fresh_lexicon(language: str) -> Lexicon:
    """The lexicon of a language, begun anew when the old one has grown too large."""
    found = lexicon(language)
    if found.full():
        lexicon.cache_clear()
        found = lexicon(language)
    return found


Expanded = tuple[tuple[tuple[tokens.Piece, Kind], ...], int, bool]


@functools.lru_cache(maxsize=100_000)
def _expand(token: str, language: str) -> Expanded:
    """The terms of one token, how many words it counts, and whether it holds a stop word."""
    if tokens.is_unspaced(token):
        return _unspaced(token)
    kept: list[tuple[tokens.Piece, Kind]] = []
    pieces = tokens.peel(token)
    common = False
    count = 0
    for piece in pieces:
        text, start, end, whole, words = piece
        term, stopped = _term(text, language)
        if whole:
            kept.append((piece if term == text else tokens.Piece(term, start, end, True, words), "whole"))
            continue
        count += 1
        if stopped:
            common = True
        else:
            kept.append((piece if term == text else tokens.Piece(term, start, end, False, words), "word"))
    return tuple(kept), count, common


@functools.lru_cache(maxsize=50_000)
def _term(text: str, language: str) -> tuple[str, bool]:
    """A piece as a term, folded and stemmed, and whether it is a stop word."""
    folded = fold(text)
    return stem(folded, language), folded in stop_words(language)


def _unspaced(run: str) -> Expanded:
    text = run.casefold()
    if len(text) != len(run):  # no script of these has case; a stray letter must not shift offsets
        text = run
    if len(text) == 1:
        return ((tokens.Piece(text, 0, 1, False, 0), "word"),), 1, False
    kept: list[tuple[tokens.Piece, Kind]] = []
    for place in range(len(text)):
        kept.append((tokens.Piece(text[place], place, place + 1, True, min(place, len(text) - 2)), "letter"))
        if place + 1 < len(text):
            kept.append((tokens.Piece(text[place : place + 2], place, place + 2, False, place), "word"))
    return tuple(kept), len(text) - 1, False


@functools.lru_cache(maxsize=50_000)
def stem(word: str, language: str) -> str:
    """The stem of a folded term; terms that hold anything but letters are never stemmed."""
    if language == NO_LANGUAGE or not word.isalpha():
        return word
    # A stemmer works in place: each thread has its own. PyStemmer, where it is installed, is eight times faster.
    known = _stemmers.__dict__
    if language not in known:
        known[language] = snowballstemmer.stemmer(language)
    stemmed: str = known[language].stemWord(word)
    return stemmed or word


_stemmers = threading.local()


@functools.cache
def stop_words(language: str) -> frozenset[str]:
    """Folded stop words; none for a language without a list."""
    path = Path(__file__).parent / "stopwords" / f"{language}.txt"
    if language not in languages() or not path.is_file():
        return frozenset()
    return frozenset(fold(line.strip()) for line in path.read_text(encoding="utf-8").splitlines() if line.strip())


def _normalise(text: str) -> tuple[str, list[int] | None]:
    """Normalised text and, where it differs in length or order, the place in ``text`` of each of its characters."""
    if text.isascii() or unicodedata.is_normalized("NFKC", text):
        return text, None
    parts: list[str] = []
    origin: list[int] = []
    for cluster in regex.finditer(r"\X", text):
        piece = unicodedata.normalize("NFKC", cluster.group())
        parts.append(piece)
        if len(piece) == len(cluster.group()):
            origin.extend(range(cluster.start(), cluster.end()))
        else:
            origin.extend([cluster.start()] * len(piece))
    origin.append(len(text))
    return "".join(parts), origin


def _original(origin: list[int], start: int, end: int) -> tuple[int, int]:
    """A stretch of normalised text as a stretch of the text; a cluster that changed is taken whole."""
    last = origin[max(start, end - 1)]
    while end < len(origin) - 1 and origin[end] == last:
        end += 1
    return origin[start], origin[end]
