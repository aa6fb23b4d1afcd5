"""What a proposer gets and gives. A proposer is a function named by a dotted path in ``COGRAPH_GRAPH__PROPOSERS``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

Reason = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ProposerPage:
    """A real page. ``prose``: line number and text of what is neither code, link nor heading. ``symbols``: code symbols
    that it names, id to name. ``vector``: mean of its chunks' vectors, of length 1; None without vectors."""

    uid: str
    node_type: str
    label: str
    aliases: tuple[str, ...]
    document: UUID
    prose: tuple[tuple[int, str], ...] = ()
    symbols: Mapping[str, str] = field(default_factory=dict)
    vector: NDArray[np.float32] | None = None


@dataclass(frozen=True, slots=True)
class Proposal:
    """An edge that somebody may want to write. ``confidence``: above 0, at most 1. ``reasons`` are JSON objects."""

    from_uid: str
    to_uid: str
    confidence: float
    reasons: tuple[Reason, ...]


Proposer = Callable[[Sequence[ProposerPage]], Iterable[Proposal]]
