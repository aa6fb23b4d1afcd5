"""The strings that are hashed and embedded for a chunk. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

_HUMP = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_]+|\d+")
COPY_CHARACTERS = 200
"""Shorter equal texts are rows of their own (``retrieval.md`` 7.7)."""


@dataclass(frozen=True, slots=True)
class Embedded:
    """``text`` is what the model reads; ``heading`` is blended in with weight 0.3, and empty where nothing is."""

    text: str
    heading: str


def heading_line(title: str, heading_path: Sequence[str]) -> str:
    """``title > heading path``, the title once."""
    parts = [part for part in heading_path if part]
    if title and parts[:1] != [title]:
        parts.insert(0, title)
    return " > ".join(parts)


def identifier_words(names: Sequence[str]) -> str:
    """The plain words of the last two names: ``Writer.write_boolean`` gives ``writer write boolean``."""
    return " ".join(word.lower() for name in names[-2:] for word in _HUMP.findall(name))


def embedded(block: str, title: str, heading_path: Sequence[str], text: str) -> Embedded:
    """What is embedded for a chunk of the docs or code block (``retrieval.md`` 4.1)."""
    if block == "code":
        words = identifier_words(heading_path or (title,))
        return Embedded(f"{words}\n{text}" if words else text, "")
    line = heading_line(title, heading_path)
    return Embedded(f"{line}\n{text}" if line else text, line)


def embed_digest(piece: Embedded) -> bytes:
    return hashlib.sha256(piece.text.encode("utf-8", "surrogatepass")).digest()


def content_digest(text: str, heading_path: Sequence[str]) -> bytes:
    return _digest(text, *heading_path)


def index_digest(*parts: str) -> bytes:
    return _digest(*parts)


def copy_digest(text: str) -> bytes | None:
    collapsed = " ".join(text.split())
    return _digest(collapsed) if len(collapsed) >= COPY_CHARACTERS else None


def _digest(*parts: str) -> bytes:
    joined = "\x00".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(joined, digest_size=16).digest()
