"""What git told us, as values."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

SYMLINK = 0o120000
SUBMODULE = 0o160000


@dataclass(frozen=True, slots=True)
class Entry:
    """A tracked path of one commit. ``size`` in bytes is None for submodules, and for objects that the mirror has lost;
    ``raw_path`` are the exact bytes."""

    raw_path: bytes
    path: str
    mode: int
    blob: str
    size: int | None

    @property
    def key(self) -> bytes:
        return self.raw_path

    @property
    def is_missing(self) -> bool:
        """Whether the mirror should have the object and has it not, or damaged."""
        return self.size is None and self.mode != SUBMODULE


@dataclass(frozen=True, slots=True)
class RemoteHead:
    """Where the followed branch stands upstream. ``commit`` is empty when the repository has no commit at all."""

    branch: str
    commit: str


@dataclass(frozen=True, slots=True)
class CommitInfo:
    commit: str
    committed_at: datetime.datetime


def shown_path(raw: bytes) -> str:
    """A path as text: UTF-8, with bytes that are no UTF-8 percent-escaped (``docs/%E9.md``)."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return "".join(
            f"%{ord(character) - 0xDC00:02X}" if 0xDC80 <= ord(character) <= 0xDCFF else character
            for character in raw.decode("utf-8", "surrogateescape")
        )


def raw_or_none(entry_path: str, raw: bytes) -> bytes | None:
    """What is stored beside the shown path: the bytes only when the shown path is not the path itself."""
    return None if entry_path.encode("utf-8", "surrogatepass") == raw else raw
