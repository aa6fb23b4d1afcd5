"""Addresses of documents: readable, stored, and kept while the path stays (``repository-documents.md`` 7)."""

from __future__ import annotations

import re
import unicodedata
import uuid
from collections.abc import Container

ROOTS = ("docs/", "doc/", "documentation/", "pages/")
ENDINGS = re.compile(r"\.(?:md|mdx|markdown|rst|txt)\Z", re.IGNORECASE)
LENGTH = 80
STEM_LENGTH = 75


def base_slug(path: str) -> str:
    """The slug that ``path`` asks for; empty when nothing of it can stand in an address."""
    lowered = path.lower()
    for root in ROOTS:
        if lowered.startswith(root):
            path = path[len(root) :]
            break
    text = ENDINGS.sub("", path).lower()
    kept = "".join(
        character if unicodedata.category(character)[0] in "LM" or _digit(character) else "-" for character in text
    )
    return re.sub("-+", "-", kept).strip("-")[:LENGTH].rstrip("-")


def _digit(character: str) -> bool:
    return unicodedata.category(character) == "Nd"


def free_slug(path: str, document_id: uuid.UUID, taken: Container[str]) -> str:
    """A slug for a new document that no living document of its repository has.

    The newcomer gets the suffix: no page ever changes its address because another one arrives.
    """
    base = base_slug(path)
    if base and base not in taken:
        return base
    digits = document_id.hex
    for length in (4, 8, 32):
        slug = f"{(base or 'page')[:STEM_LENGTH].rstrip('-')}-{digits[-length:]}"
        if slug not in taken:
            return slug
    raise AssertionError("a document id is in use twice")
