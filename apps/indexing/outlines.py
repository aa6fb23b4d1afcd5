"""What an outline shows of a document, whichever room keeps it."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Outlined:
    """A document as an outline needs it. ``headings`` are those of its structure."""

    id: uuid.UUID
    path: str
    title: str
    size: int
    headings: Sequence[dict[str, Any]]
