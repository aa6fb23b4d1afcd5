"""From bytes to chunks in one call: what the parser pool runs for every file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apps.markup.chunking.character_budget import chunk_budget
from apps.markup.chunking.structure import chunk_structure
from apps.markup.chunking.units import Unit
from apps.markup.chunking.word_window import chunk_words
from apps.markup.decoding import decode
from apps.markup.parsing import parse
from apps.markup.values import (
    CharacterBudget,
    ChunkedDocument,
    Decoded,
    Limits,
    ParsedDocument,
    Skipped,
    WordWindow,
)

INGEST_VERSION = 1
"""Raised with every change of parsing or cutting, so that rooms read their documents anew."""
READ_DOCUMENT = "apps.markup.ingest:read_document"
READ_TEXT = "apps.markup.ingest:read_text"


@dataclass(frozen=True, slots=True)
class Ingested:
    """A document ready to be stored."""

    parsed: ParsedDocument
    chunked: ChunkedDocument


def read_document(
    raw: bytes,
    path: str,
    limits: Limits,
    profile: WordWindow | CharacterBudget,
    label: str | None = None,
    units: Sequence[Unit] | None = None,
) -> Ingested | Skipped:
    """Decode, parse and chunk one file. Nothing in the content raises; what cannot be read is `Skipped`."""
    decoded = decode(raw, limits)
    return decoded if isinstance(decoded, Skipped) else read_text(decoded, path, limits, profile, label, units)


def read_text(
    decoded: Decoded,
    path: str,
    limits: Limits,
    profile: WordWindow | CharacterBudget,
    label: str | None = None,
    units: Sequence[Unit] | None = None,
) -> Ingested | Skipped:
    """Parse and chunk a decoded text (after redaction, say).

    With ``label`` (the name of a kind other than prose) the file is cut by structure, along ``units`` if given;
    without it by the profile: word window or character budget.
    """
    parsed = parse(decoded, path, limits)
    if isinstance(parsed, Skipped):
        return parsed
    return Ingested(parsed, chunk(parsed, profile, label, units))


def chunk(
    parsed: ParsedDocument,
    profile: WordWindow | CharacterBudget,
    label: str | None = None,
    units: Sequence[Unit] | None = None,
) -> ChunkedDocument:
    """Chunk a parsed document again (a profile that changed)."""
    if isinstance(profile, CharacterBudget):
        return chunk_budget(parsed, profile)
    if label is not None:
        return chunk_structure(parsed.text, parsed.path, profile, label, units)
    return chunk_words(parsed, profile)
