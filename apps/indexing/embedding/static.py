"""Static word vectors (extra package `wordllama`): very fast, English, clearly weaker than the default.

Licence note: the package is MIT; its vectors were distilled from the token table of Llama 2, and whether that licence
reaches them is open. That is why it is no part of the default installation.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.indexing.composition import Embedded
from apps.indexing.embedding.arithmetic import HEADING_SHARE, blended, fingerprint, normalised
from apps.indexing.embedding.backends import EmbedderUnavailable, Made, Traits, tuned

WEIGHT = 0.3
DIMENSION = 256


class Static:
    address = ""

    def __init__(self, *, weight: float | None = None, min_cosine: float | None = None, **_: object) -> None:
        self._tuning = (weight, min_cosine)

    def traits(self) -> Traits:
        tokenizer, table = _load()
        del tokenizer
        identity = fingerprint("wordllama", table.shape, float(table.sum()), HEADING_SHARE)
        return tuned(Traits(identity, "static word vectors", int(table.shape[1]), weight=WEIGHT), *self._tuning)

    def documents(self, pieces: Sequence[Embedded]) -> list[Made]:
        made = []
        for piece in pieces:
            vector, tokens = _mean(piece.text)
            made.append(Made(blended(vector, _mean(piece.heading)[0]) if piece.heading else vector, tokens))
        return made

    def query(self, text: str) -> NDArray[np.float32]:
        return _mean(text)[0]

    def tokens(self, piece: Embedded) -> int:
        return _mean(piece.text)[1]


def _mean(text: str) -> tuple[NDArray[np.float32], int]:
    tokenizer, table = _load()
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    vector = table[ids].mean(axis=0) if ids else table.mean(axis=0)
    return normalised(vector.astype(np.float32)), len(ids)


@functools.cache
def _load() -> tuple[Any, NDArray[np.float32]]:
    """Tokenizer and table, read from the package's two files: its own loader looks for them on the network."""
    spec = importlib.util.find_spec("wordllama")
    if spec is None or not spec.submodule_search_locations:
        raise EmbedderUnavailable("Static vectors need the extra package wordllama.", lasting=True)
    folder = Path(next(iter(spec.submodule_search_locations)))
    weights = sorted(folder.rglob(f"*{DIMENSION}.safetensors"))
    configurations = sorted(folder.rglob("*tokenizer*.json"))
    if not weights or not configurations:
        raise EmbedderUnavailable("The files of wordllama were not found.", lasting=True)
    from tokenizers import Tokenizer

    tensors = importlib.import_module("safetensors.numpy").load_file(str(weights[0]))
    return Tokenizer.from_file(str(configurations[0])), next(iter(tensors.values())).astype(np.float32)
