"""Small vector arithmetic shared by the backends."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

HEADING_SHARE = 0.3
"""Part of the heading path in a stored vector (``retrieval.md`` 4.1)."""


def normalised(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    length = np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-9)
    made: NDArray[np.float32] = (vectors / length).astype(np.float32)
    return made


def blended(text: NDArray[np.float32], heading: NDArray[np.float32]) -> NDArray[np.float32]:
    return normalised((1 - HEADING_SHARE) * text + HEADING_SHARE * heading)


def fingerprint(*parts: object) -> str:
    return hashlib.sha256("\x00".join(str(part) for part in parts).encode()).hexdigest()


def problem_with(vector: NDArray[np.float32]) -> str:
    """Why a vector cannot be stored; empty if it can."""
    if not np.isfinite(vector).all():
        return "the vector holds values that are no numbers"
    if not vector.any():
        return "the vector is zero"
    return ""
