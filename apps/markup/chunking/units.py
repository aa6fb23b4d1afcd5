"""Named line spans of a file that is not prose, and the choice of the scanner that finds them.

Scanners look at indentation and brackets only: no data is loaded, nothing is evaluated, every one is linear in the
text. What a scanner cannot read gives no units; the chunker then falls back to groups between blank lines
(``repository-documents.md`` 5.8).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

LONGEST_NAME = 200
"""Characters of a unit's name that go into a heading path."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A named stretch of lines (from 1, ends included) with the stretches inside it, in order and disjoint."""

    name: str
    start_line: int
    end_line: int
    children: tuple[Unit, ...] = ()


Scanner = Callable[[Sequence[str]], tuple[Unit, ...]]


def spans(starts: Sequence[tuple[int, str]], last: int) -> list[tuple[str, int, int]]:
    """Turn (first line, name) pairs into (name, first, last): each runs up to the line before the next."""
    ends = [start - 1 for start, _ in starts[1:]] + [last]
    return [(name[:LONGEST_NAME], start, end) for (start, name), end in zip(starts, ends, strict=True)]


def is_comment(line: str) -> bool:
    """Whether the line is nothing but a comment, in any of the languages that are cut by structure."""
    return line.lstrip().startswith(("#", "//", "/*", "*", ";"))
