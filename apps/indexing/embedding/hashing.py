"""A deterministic embedder without a model, for tests: words hashed into signed dimensions."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from apps.indexing.composition import Embedded
from apps.indexing.embedding.arithmetic import fingerprint, normalised
from apps.indexing.embedding.backends import Made, Traits, tuned

_WORD = re.compile(r"\w+")


class Hashing:
    address = ""

    def __init__(
        self,
        *,
        dimension: int | None = None,
        weight: float | None = None,
        min_cosine: float | None = None,
        **_: object,
    ) -> None:
        self._dimension = dimension or 64
        self._tuning = (weight, min_cosine)

    def traits(self) -> Traits:
        made = Traits(fingerprint("hashing", self._dimension), "hashing", self._dimension)
        return tuned(made, *self._tuning)

    def documents(self, pieces: Sequence[Embedded]) -> list[Made]:
        return [Made(self.query(piece.text), len(piece.text.split())) for piece in pieces]

    def query(self, text: str) -> NDArray[np.float32]:
        vector = np.zeros(self._dimension, np.float32)
        vector[0] = 0.01  # a text without words has a direction too
        for word in _WORD.findall(text.lower()):
            digest = hashlib.blake2b(word.encode(), digest_size=8).digest()
            vector[int.from_bytes(digest[:4], "big") % self._dimension] += 1 if digest[4] & 1 else -1
        return normalised(vector)

    def tokens(self, piece: Embedded) -> int:
        return len(piece.text.split())
