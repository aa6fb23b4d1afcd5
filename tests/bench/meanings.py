"""Vectors for generated texts, beside those of real ones.

A search of a graph of vectors takes as long, and misses as much, as its vectors are hard to tell apart: vectors of
random words say nothing about either (`performance.md` 1). Each generated text stands somewhere between two sections of
a real documentation, in a direction of its own; queries are real questions to it. The model reads those once.
"""

from __future__ import annotations

import functools
import hashlib
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from apps.indexing.composition import Embedded
from apps.indexing.embedding.arithmetic import fingerprint, normalised
from apps.indexing.embedding.backends import Made, Traits
from apps.indexing.embedding.local import DIMENSION, MIN_COSINE, MiniLm
from tests.bench.sets import folder, lines

PATH = "tests.bench.meanings.Around"
SECTIONS = 2_000
QUESTIONS = 40
APART = 0.35
"""How far into the direction that nothing else has."""


class Around:
    address = ""

    def __init__(self, **_: object) -> None:
        pass

    def traits(self) -> Traits:
        return Traits(fingerprint("around", SECTIONS, APART), "around real texts", DIMENSION, min_cosine=MIN_COSINE)

    def documents(self, pieces: Sequence[Embedded]) -> list[Made]:
        return [Made(self._between(piece.text), self.tokens(piece)) for piece in pieces]

    def query(self, text: str) -> NDArray[np.float32]:
        _, questions = _real()
        vector: NDArray[np.float32] = questions[_seed(text) % len(questions)]
        return vector

    def tokens(self, piece: Embedded) -> int:
        return len(piece.text.split())

    def _between(self, text: str) -> NDArray[np.float32]:
        sections, _ = _real()
        random = np.random.default_rng(_seed(text))
        own = normalised(random.standard_normal(DIMENSION, np.float32))
        near, far = sections[random.integers(0, len(sections), 2)]
        return normalised(near + random.random() * far + APART * own)


def _seed(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


@functools.cache
def _real() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Vectors of sections and of questions of raydocs, kept in the temporary folder."""
    kept = Path(tempfile.gettempdir()) / f"cograph-bench-meanings-{SECTIONS}.npz"
    if not kept.exists():
        model = MiniLm()
        rows = lines(folder() / "raydocs" / "corpus.jsonl.gz")[:SECTIONS]
        sections = [made.vector for made in model.documents([Embedded(row["text"], row["title"]) for row in rows])]
        questions = [model.query(row["text"]) for row in lines(folder() / "raydocs" / "queries.jsonl")[:QUESTIONS]]
        np.savez(kept, sections=np.stack(sections), questions=np.stack(questions))  # type: ignore[arg-type]
    read = np.load(kept)
    return read["sections"], read["questions"]
