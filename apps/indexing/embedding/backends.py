"""The embedder that the settings name, loaded once a process as Django loads caches."""

from __future__ import annotations

import dataclasses
import functools
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from django.conf import settings
from django.utils.module_loading import import_string

from apps.indexing.composition import Embedded

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CHECK_TEXT = "Restart the search worker after changing the embedding model."
"""What a probe sends: the answer shows that the embedder works, and whether it is still the same one."""

BUILT_IN = {
    "minilm": "apps.indexing.embedding.local.MiniLm",
    "endpoint": "apps.indexing.embedding.endpoint.Endpoint",
    "static": "apps.indexing.embedding.static.Static",
    "hashing": "apps.indexing.embedding.hashing.Hashing",
    "none": "",
}


class EmbedderUnavailable(Exception):
    """The embedder cannot answer now, or cannot start at all (``lasting``); the text says why, without secrets."""

    def __init__(self, message: str, *, retry_after: float | None = None, lasting: bool = False) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.lasting = lasting


@dataclass(frozen=True, slots=True)
class Made:
    """The answer for one text: a vector of length 1, or why there is none. ``tokens`` counts the whole text."""

    vector: NDArray[np.float32] | None
    tokens: int = 0
    truncated: bool = False
    error: str = ""


@dataclass(frozen=True, slots=True)
class Traits:
    """What a profile records. Equal fingerprints mean that vectors may be compared."""

    fingerprint: str
    label: str
    dimension: int
    weight: float = 1.0
    min_cosine: float = 0.0
    max_tokens: int | None = None


class Embedder(Protocol):
    """A backend. ``documents`` answers every text in order and never raises for one bad text."""

    address: str
    """What jobs share among themselves: one at a time for each address; empty for a local model."""

    def traits(self) -> Traits:
        """May load a model or ask an endpoint; raises EmbedderUnavailable."""
        ...

    def documents(self, pieces: Sequence[Embedded]) -> list[Made]: ...

    def query(self, text: str) -> NDArray[np.float32]: ...

    def tokens(self, piece: Embedded) -> int | None:
        """Tokens of the embedded string by the model's own count; None where nobody knows."""
        ...


_lock = threading.Lock()


def embedder() -> Embedder | None:
    """The embedder of this deployment; None where search is by words alone. Raises EmbedderUnavailable."""
    return make(settings.COGRAPH.embedding)


def make(area: Any) -> Embedder | None:
    """The embedder that the settings ``area`` describe, kept for the process."""
    with _lock:
        return _make(tuple(sorted((field.name, getattr(area, field.name)) for field in dataclasses.fields(area))))


@functools.lru_cache(maxsize=4)
def _make(options: tuple[tuple[str, object], ...]) -> Embedder | None:
    values = dict(options)
    name = str(values["backend"])
    path = BUILT_IN.get(name, name)
    if not path:
        return None
    try:
        made: Embedder = import_string(path)(**{key: value for key, value in values.items() if key != "backend"})
    except ImportError as problem:
        raise EmbedderUnavailable(f"The embedder {name!r} cannot be loaded: {problem}", lasting=True) from problem
    return made


def tuned(traits: Traits, weight: float | None, min_cosine: float | None) -> Traits:
    """Traits with what the settings say in place of the backend's own values."""
    return dataclasses.replace(
        traits,
        weight=traits.weight if weight is None else weight,
        min_cosine=traits.min_cosine if min_cosine is None else min_cosine,
    )
