"""Chunking: a text becomes pieces that can be searched, embedded and quoted."""

from apps.markup.chunking.character_budget import chunk_budget
from apps.markup.chunking.structure import chunk_structure
from apps.markup.chunking.units import Unit
from apps.markup.chunking.word_window import chunk_words

__all__ = ["Unit", "chunk_budget", "chunk_structure", "chunk_words"]
