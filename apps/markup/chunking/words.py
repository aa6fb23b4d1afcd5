"""What a word is, and where words begin and end (``repository-documents.md`` 5.3).

A word is a run of non-white characters; in scripts that are written without spaces every letter is one, together with
the marks that stand on it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate
from typing import overload

import regex

from apps.markup.words import count_words as _count_bytes

_UNSPACED = (
    r"[[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}"
    r"\p{Script=Myanmar}]&&\p{L}]"
)
_MIXED = regex.compile(rf"{_UNSPACED}\p{{M}}*|(?:(?!{_UNSPACED})[^\s\x1c-\x1f])+", regex.V1)
_ANY_UNSPACED = regex.compile(_UNSPACED, regex.V1)
# The blocks that hold these scripts, roughly, and none of the punctuation, arrows and emoji of other texts.
_BLOCKS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u19ff\u2e80-\ua4cf\ua9e0-\uaa7f\uf900-\ufaff\uff66-\uff9f"
    "\U00016f00-\U00016fff\U0001aff0-\U0001b16f\U0001f200-\U0001f2ff\U00020000-\U0003ffff"
)
_MAYBE = re.compile(f"[{_BLOCKS}]")
_MAYBE_RUN = re.compile(f"[{_BLOCKS}][{_BLOCKS}\u0300-\u036f\ufe00-\ufe0f]*")
_LETTER = regex.compile(rf"{_UNSPACED}\p{{M}}*", regex.V1)
_PLAIN = re.compile(r"\S+")
_RUN = re.compile(r"\S+\s*")
_GRAPHEME = regex.compile(r"\X", regex.V1)
_ASCII = bytes(range(128))
_LOOK_BACK = 64
"""Characters before a cut that are read to find a grapheme's edge; longer clusters are not written, only made up."""


def has_unspaced(text: str) -> bool:
    """Whether a script without spaces occurs in ``text``."""
    if text.isascii():
        return False
    # Without its ASCII bytes the text says the same and is short: the patterns need ten times as long for a character.
    letters = text.encode().translate(None, _ASCII).decode()
    found = _MAYBE.search(letters)
    return found is not None and _ANY_UNSPACED.search(letters, found.start()) is not None


def count_words(text: str, *, unspaced: bool | None = None, raw: bytes | None = None) -> int:
    """Number of words of ``text``.

    ``unspaced``: what `has_unspaced` says of it, or of a text that holds it. ``raw``: its UTF-8 form, if at hand.
    """
    if has_unspaced(text) if unspaced is None else unspaced:
        # Each letter is set apart, then the runs are counted: only what may be such a letter is looked at closely.
        return len(_MAYBE_RUN.sub(lambda run: _LETTER.sub(" x ", run[0]), text).split())
    return _count_bytes(text.encode() if raw is None else raw)


def word_spans(text: str, *, longest: int) -> list[tuple[int, int]]:
    """Start and end (characters, end excluded) of each word; words longer than ``longest`` come in pieces.

    A piece ends between two graphemes.
    """
    return list(zip(*word_edges(text, longest=longest, unspaced=has_unspaced(text)), strict=True))


def word_edges(text: str, *, longest: int, unspaced: bool) -> tuple[Sequence[int], Sequence[int]]:
    """The starts and the ends of these words. ``unspaced`` as in `count_words`."""
    if not unspaced:
        lead = len(text) - len(text.lstrip())
        runs: list[str] = _RUN.findall(text)
        if max(map(len, runs), default=0) <= longest:
            starts = list(accumulate(map(len, runs), initial=lead))
            return starts[:-1], _Ends(runs, starts)
    starts, ends = [], []
    for match in (_MIXED if unspaced else _PLAIN).finditer(text):
        start, end = match.span()
        while end - start > longest:
            cut = grapheme_edge(text, start, start + longest)
            starts.append(start)
            ends.append(cut)
            start = cut
        starts.append(start)
        ends.append(end)
    return starts, ends


class _Ends(Sequence[int]):
    """Where words end, reckoned when asked: few of the ends are."""

    def __init__(self, runs: list[str], starts: list[int]) -> None:
        self._runs, self._starts = runs, starts

    def __len__(self) -> int:
        return len(self._runs)

    @overload
    def __getitem__(self, number: int) -> int: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[int]: ...
    def __getitem__(self, number: int | slice) -> int | Sequence[int]:
        if isinstance(number, slice):
            return [self[each] for each in range(*number.indices(len(self)))]
        return self._starts[number] + len(self._runs[number].rstrip())


def grapheme_edge(text: str, start: int, cut: int) -> int:
    """The last edge between graphemes in ``start < edge <= cut``; ``cut`` itself when there is none in reach."""
    if cut >= len(text):
        return len(text)
    base = max(start, cut - _LOOK_BACK)
    # The cluster that holds the character at `cut` decides, so that character is read too, with what may follow it.
    edge = base
    for match in _GRAPHEME.finditer(text, base, min(len(text), cut + _LOOK_BACK)):
        if match.end() > cut:
            break
        edge = match.end()
    return edge if edge > start and edge > base else cut
