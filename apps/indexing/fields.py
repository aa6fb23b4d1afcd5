"""Terms of chunks, counted by field, for whole batches at once. Pure but for the lexicon, which remembers tokens.

Fields (``retrieval.md`` 3.1): heading path with title, path with file name, body without its heading lines.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from apps.indexing import composition
from apps.indexing.analyzer import Lexicon

if TYPE_CHECKING:
    from apps.indexing.stores import Block

ENTRY = np.dtype(
    [
        ("slot", "<u2"),
        ("body_length", "<u2"),
        ("body", "u1"),
        ("heading", "u1"),
        ("heading_length", "u1"),
        ("path", "u1"),
    ]
)
"""One posting, 8 bytes. Counts above a field's width are stored as its largest value."""

BODY, HEADING, PATH = 0, 1, 2
_HEADING_LINE = re.compile(
    r"\s*(?:(#{1,6})[ \t]+(?P<atx>[^\n]*)|(?P<setext>[^\n]+)\n[ \t]*([=\-~^\"'`:.*+#])\4{2,}[ \t]*)(?:\n|$)"
)
_CLOSING = re.compile(r"[ \t]+#+[ \t]*$|[ \t]*\{#[^}\s]*\}[ \t]*$")
_LETTERS = re.compile(r"[^\w]+")


@dataclass(frozen=True, slots=True)
class Piece:
    """What the postings of one chunk are made of. ``slot`` counts within its source."""

    slot: int
    title: str
    path: str
    side: bool
    heading_path: Sequence[str]
    text: str


@dataclass(frozen=True, slots=True)
class Counted:
    """Postings of a batch, ordered by term, then piece. ``term`` holds numbers of the lexicon, ``piece`` places in the
    batch; the counts are plain, not yet cut to the width of an entry."""

    term: NDArray[np.int64]
    piece: NDArray[np.int64]
    counts: NDArray[np.int64]
    """Rows by field: body, heading, path."""
    lengths: NDArray[np.int64]
    """Words of each piece by field."""


def heading_field(block: Block, piece: Piece) -> str:
    """The heading path with the title; of code the last two names of the qualified name."""
    if block == "code":
        return " ".join(list(piece.heading_path)[-2:] or [piece.title])
    return composition.heading_line(piece.title, piece.heading_path)


def body_field(piece: Piece) -> str:
    """The text without the heading lines it begins with: their words count in the heading field already."""
    text = piece.text
    if not (piece.heading_path or piece.title) or _HEADING_LINE.match(text) is None:
        return text
    known = {_LETTERS.sub(" ", name).strip().casefold() for name in (*piece.heading_path, piece.title)}
    place = 0
    while match := _HEADING_LINE.match(text, place):
        line = _CLOSING.sub("", match["atx"] if match["atx"] is not None else match["setext"])
        if _LETTERS.sub(" ", line).strip().casefold() not in known:
            break
        place = match.end()
    return text[place:] if place else text


def count(lexicon: Lexicon, block: Block, pieces: Sequence[Piece]) -> Counted:
    """Terms of ``pieces`` with their number in each field."""
    total = len(pieces)
    texts = (
        [body_field(piece) for piece in pieces],
        [heading_field(block, piece) for piece in pieces],
        ["" if piece.side else piece.path for piece in pieces],
    )
    keys: list[NDArray[np.int64]] = []
    values: list[NDArray[np.int64]] = []
    lengths = np.zeros((3, total), np.int64)
    encoded = [_encoded(lexicon, field) for field in texts]
    flat = np.array(lexicon.flat, np.int64)
    starts = np.array(lexicon.starts, np.int64)
    words = np.array(lexicon.words, np.int64)
    for field, (codes, sizes) in enumerate(encoded):
        owner = np.repeat(np.arange(total), sizes)
        lengths[field] = np.bincount(owner, weights=words[codes], minlength=total).astype(np.int64)
        first = starts[codes]
        parts = starts[codes + 1] - first
        ends = np.cumsum(parts)
        places = np.arange(ends[-1] if len(ends) else 0) + np.repeat(first - (ends - parts), parts)
        key = flat[places] * total + np.repeat(owner, parts)
        unique, number = _tally(key)
        keys.append(unique)
        values.append(number)
    every, _ = _tally(np.concatenate(keys))
    counts = np.zeros((3, len(every)), np.int64)
    for field in range(3):
        counts[field, np.searchsorted(every, keys[field])] = values[field]
    return Counted(every // max(total, 1), every % max(total, 1), counts, lengths)


def _tally(keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Distinct keys in order, and how often each occurs. Sorting is several times faster here than `numpy.unique`,
    which hashes."""
    keys = np.sort(keys)
    firsts = np.flatnonzero(np.diff(keys, prepend=-1))
    return keys[firsts], np.diff(np.append(firsts, len(keys)))


def _encoded(lexicon: Lexicon, texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Codes of all tokens of all texts, and how many of them each text has. Equal neighbours are encoded once."""
    codes: list[int] = []
    sizes: list[int] = []
    before: str | None = None
    last: list[int] = []
    for text in texts:
        if text != before:
            before, last = text, lexicon.encode(text)
        codes.extend(last)
        sizes.append(len(last))
    return np.array(codes, np.int64), np.array(sizes, np.int64)


def entries(counted: Counted, slots: NDArray[np.int64]) -> NDArray[np.void]:
    """The entries of all postings, in the same order; ``slots`` are those of the pieces, whole."""
    made = np.empty(len(counted.term), ENTRY)
    made["slot"] = slots[counted.piece] & 0xFFFF
    made["body_length"] = np.minimum(counted.lengths[BODY], 0xFFFF)[counted.piece]
    made["body"] = np.minimum(counted.counts[BODY], 0xFF)
    made["heading"] = np.minimum(counted.counts[HEADING], 0xFF)
    made["heading_length"] = np.minimum(counted.lengths[HEADING], 0xFF)[counted.piece]
    made["path"] = np.minimum(counted.counts[PATH], 0xFF)
    return made
