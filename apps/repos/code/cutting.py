"""Bodies of symbols to chunks: every line of a file belongs to the innermost symbol that speaks for itself. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from apps.markup.values import Chunk
from apps.symbols.names import parts_of
from apps.symbols.values import CALLABLE_KINDS, TYPE_KINDS, Symbol

MAX_LINES = 80
MAX_CHARS = 4000
LONG_VALUE = 4
"""A constant over this many lines speaks for itself; shorter ones belong to what holds them."""
_COMMENT = re.compile(r"\s*(?://|/\*|\*|#(?!!)|@|--)")
_SAYS_SOMETHING = re.compile(r"\w")


@dataclass(frozen=True, slots=True)
class _Run:
    owner: int
    first: int
    """First line, from 0."""
    end: int
    """Line after the last."""


def cut(text: str, symbols: Sequence[Symbol]) -> tuple[Chunk, ...]:
    """The chunks of one file in order. ``section_anchor`` holds the place of the symbol in ``symbols``."""
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    if not lines or not symbols:
        return ()
    size = _bytes(text)
    lengths = map(len, lines) if size == len(text) else map(_bytes, lines)
    starts = [0, *accumulate(length + 1 for length in lengths)]
    pieces = [piece for run in _runs(lines, symbols) for piece in _pieces(run, lines)]
    totals: dict[int, int] = {}
    for owner, *_ in pieces:
        totals[owner] = totals.get(owner, 0) + 1
    chunks: list[Chunk] = []
    counted: dict[int, int] = {}
    for owner, first, end, left, right in pieces:
        source = "\n".join(lines[first:end])
        start_byte = starts[first]
        if right is not None:  # a slice of one long line
            start_byte += _bytes(source[:left])
            source = source[left:right]
        counted[owner] = counted.get(owner, 0) + 1
        chunks.append(
            Chunk(
                chunk_index=len(chunks),
                heading_path=tuple(parts_of(symbols[owner].qualified_name)) or (symbols[owner].name,),
                heading_level=0,
                section_anchor=str(owner),
                start_line=first + 1,
                end_line=end,
                start_byte=start_byte,
                end_byte=min(start_byte + _bytes(source), size),
                source=source,
                text=source,
                part=counted[owner],
                parts=totals[owner],
                flags=(),
            )
        )
    return tuple(chunks)


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def speakers(symbols: Sequence[Symbol]) -> list[int]:
    """Symbols with chunks of their own: the module, types, functions that stand in no function, long constants."""
    inside: set[int] = set()
    found: list[int] = []
    for place, symbol in enumerate(symbols):
        parent = symbol.parent
        if parent in inside:
            inside.add(place)
            continue
        if symbol.kind in CALLABLE_KINDS:
            inside.add(place)
            found.append(place)
        elif (
            symbol.kind in TYPE_KINDS | {"module", "namespace"} or symbol.end_line - symbol.start_line + 1 > LONG_VALUE
        ):
            found.append(place)
    return found


def _runs(lines: Sequence[str], symbols: Sequence[Symbol]) -> Iterator[_Run]:
    owner = [0] * len(lines)
    for place in speakers(symbols):
        if place == 0:
            continue
        symbol = symbols[place]
        first = symbol.start_line - 1
        while first > 0 and owner[first - 1] == owner[symbol.start_line - 1] and _COMMENT.match(lines[first - 1]):
            first -= 1
        holder = symbols[symbol.parent].start_line - 1 if symbol.parent else -1
        first = max(first, holder + 1 if holder < symbol.start_line - 1 else symbol.start_line - 1)
        for line in range(first, min(symbol.end_line, len(lines))):
            owner[line] = place
    begin = 0
    for line in range(1, len(lines) + 1):
        if line == len(lines) or owner[line] != owner[begin]:
            yield _Run(owner[begin], begin, line)
            begin = line


def _pieces(run: _Run, lines: Sequence[str]) -> Iterator[tuple[int, int, int, int, int | None]]:
    """(symbol, first line, end line, first character, end character or None) in portions that one look takes in."""
    first, end = run.first, run.end
    while first < end and not lines[first].strip():
        first += 1
    while end > first and not lines[end - 1].strip():
        end -= 1
    while first < end:
        stop = _stop(first, end, lines)
        if len(lines[first]) > MAX_CHARS:
            for left in range(0, len(lines[first]), MAX_CHARS):
                yield run.owner, first, first + 1, left, min(left + MAX_CHARS, len(lines[first]))
            first += 1
            continue
        if any(_SAYS_SOMETHING.search(lines[line]) for line in range(first, stop)):
            yield run.owner, first, stop, 0, None
        first = stop
        while first < end and not lines[first].strip():
            first += 1


def _stop(first: int, end: int, lines: Sequence[str]) -> int:
    """Where a piece that begins at ``first`` ends: as much as fits, at a blank line if one is in its second half."""
    size = 0
    stop = first
    while stop < end and stop - first < MAX_LINES:
        size += len(lines[stop]) + 1
        if size > MAX_CHARS and stop > first:
            break
        stop += 1
    if stop == end:
        return end
    half = first + (stop - first) // 2
    return next((line for line in range(stop, half, -1) if not lines[line - 1].strip()), stop)
