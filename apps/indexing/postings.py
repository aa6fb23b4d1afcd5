"""Postings and statistics: written with the chunks, in the same transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from apps.indexing.models import IndexedSource
    from apps.indexing.stores import ChunkStore

ANALYZER_VERSION = 1


@dataclass(frozen=True, slots=True)
class Piece:
    """What the postings of one chunk are made of."""

    ref: int
    title: str
    path: str
    side: bool
    heading_path: Sequence[str]
    text: str


def pieces_of(store: ChunkStore, entry: IndexedSource, refs: Sequence[int]) -> list[Piece]:
    return []


def change(store: ChunkStore, entry: IndexedSource, *, entered: Sequence[Piece], left: Sequence[Piece]) -> None:
    entry.chunks += len(entered) - len(left)


def rebuild(store: ChunkStore, entry: IndexedSource, *, language: str) -> None:
    entry.language = language
