"""Chunks of files that are not prose: along keys, tables, stages, targets and symbols, never overlapping.

Units are packed in order while they fit the profile's words and characters; one that does not fit is divided by its
children, else between lines; a line that does not fit is cut at words (``repository-documents.md`` 5.8, 5.9).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from posixpath import basename

from apps.markup.chunking.offsets import TextMap
from apps.markup.chunking.scan_build import scan_dockerfile, scan_go_mod, scan_makefile
from apps.markup.chunking.scan_data import scan_json, scan_tables, scan_yaml
from apps.markup.chunking.units import Scanner, Unit, is_comment
from apps.markup.chunking.words import count_words, word_spans
from apps.markup.values import Chunk, ChunkedDocument, WordWindow

_DEEPEST = 20
"""Levels of units that are told apart; symbols nested deeper are cut between lines."""


def scanner_for(path: str) -> Scanner | None:
    """The scanner for a file name, or None where groups between blank lines are the units."""
    name = basename(path).lower()
    if name.startswith(".env"):
        return None
    if name in ("dockerfile", "containerfile") or name.startswith("dockerfile."):
        return scan_dockerfile
    if name in ("makefile", "gnumakefile") or name.endswith(".mk"):
        return scan_makefile
    if name in ("go.mod", "go.work"):
        return scan_go_mod
    if name.endswith((".yml", ".yaml")):
        return scan_yaml
    if name.endswith((".json", ".jsonc")):
        return scan_json
    if name.endswith((".toml", ".ini", ".cfg", ".conf")):
        return scan_tables
    return None


@dataclass(frozen=True, slots=True)
class _Piece:
    names: tuple[str, ...]
    start: int
    end: int
    part: int = 1
    parts: int = 1
    flags: tuple[str, ...] = ()


class _Packer:
    def __init__(self, places: TextMap, lines: Sequence[str], profile: WordWindow) -> None:
        self.places = places
        self.lines = lines
        self.profile = profile
        self.words = [0, *accumulate(count_words(line) for line in lines)]
        self.starts = [*places.line_starts(), len(places.text) + 1]

    def fits(self, first: int, last: int) -> bool:
        """Whether the lines (from 1) are within both limits of the profile."""
        start, end = self.edges(first, last)
        return self.words[last] - self.words[first - 1] <= self.profile.max_words and (
            end - start <= self.profile.max_chars
        )

    def edges(self, first: int, last: int) -> tuple[int, int]:
        """Characters from the start of the first visible line to the last visible character, indentation kept."""
        while first < last and not self.lines[first - 1].strip():
            first += 1
        while last > first and not self.lines[last - 1].strip():
            last -= 1
        return self.starts[first - 1], self.starts[last - 1] + len(self.lines[last - 1].rstrip())

    def pack(self, units: Sequence[Unit], names: tuple[str, ...], depth: int = 0) -> Iterator[_Piece]:
        """Pieces of consecutive units."""
        held: list[Unit] = []
        for unit in units:
            if held and self.fits(held[0].start_line, unit.end_line):
                held.append(unit)
                continue
            yield from self.emit(held, names)
            held = []
            if self.fits(unit.start_line, unit.end_line):
                held = [unit]
                continue
            inside = (*names, unit.name) if unit.name else names
            if unit.children and depth < _DEEPEST:
                yield from self.pack(self.cover(unit.children, unit.start_line, unit.end_line), inside, depth + 1)
            else:
                yield from self.between_lines(unit, inside)
        yield from self.emit(held, names)

    def emit(self, units: Sequence[Unit], names: tuple[str, ...]) -> Iterator[_Piece]:
        """One piece. A single unit gives its name; several share only the names above them."""
        if not units or self.words[units[-1].end_line] == self.words[units[0].start_line - 1]:
            return
        if len(units) == 1 and units[0].name:
            names = (*names, units[0].name)
        yield _Piece(names, *self.edges(units[0].start_line, units[-1].end_line))

    def between_lines(self, unit: Unit, names: tuple[str, ...]) -> Iterator[_Piece]:
        """Parts of a unit that nothing inside divides."""
        cuts: list[tuple[int, int, tuple[str, ...]]] = []
        first = unit.start_line
        for number in range(unit.start_line, unit.end_line + 1):
            if number > first and not self.fits(first, number):
                cuts.append((*self.edges(first, number - 1), ()))
                first = number
            if not self.fits(number, number):
                cuts += [(start, end, ("cut_inside_line",)) for start, end in self.inside_line(number)]
                first = number + 1
        if first <= unit.end_line:
            cuts.append((*self.edges(first, unit.end_line), ()))
        cuts = [cut for cut in cuts if self.places.text[cut[0] : cut[1]].strip()]
        for part, (start, end, flags) in enumerate(cuts, 1):
            yield _Piece(names, start, end, part, len(cuts), flags)

    def inside_line(self, number: int) -> Iterator[tuple[int, int]]:
        """Cuts of one line that is over the limits alone: at words, a longer word between graphemes."""
        base = self.starts[number - 1]
        spans = word_spans(self.lines[number - 1], longest=self.profile.max_chars)
        first = 0
        for index in range(1, len(spans) + 1):
            if index == len(spans) or (
                index - first == self.profile.max_words or spans[index][1] - spans[first][0] > self.profile.max_chars
            ):
                yield base + spans[first][0], base + spans[index - 1][1]
                first = index

    def cover(self, units: Sequence[Unit], first: int, last: int) -> list[Unit]:
        """Make the units cover all lines: comments right above join a unit, the rest falls into groups."""
        covered: list[Unit] = []
        free = first
        for unit in units:
            start, end = max(unit.start_line, free), min(unit.end_line, last)
            if end < start:
                continue
            while start > free and is_comment(self.lines[start - 2]):
                start -= 1
            covered += self.groups(free, start - 1)
            covered.append(Unit(unit.name, start, end, unit.children))
            free = end + 1
        return covered + self.groups(free, last)

    def groups(self, first: int, last: int) -> list[Unit]:
        """Groups of lines between blank lines."""
        found: list[Unit] = []
        start: int | None = None
        for number in range(first, last + 1):
            if self.lines[number - 1].strip():
                start = number if start is None else start
            elif start is not None:
                found.append(Unit("", start, number - 1))
                start = None
        if start is not None:
            found.append(Unit("", start, last))
        return found


def chunk_structure(
    text: str, path: str, profile: WordWindow, label: str, units: Sequence[Unit] | None = None
) -> ChunkedDocument:
    """Cut a file by its structure.

    ``label`` is the kind's name and the first element of each heading path. ``units`` are the symbols of a source
    file, found by the caller; without them the scanner for the file's name looks for units.
    """
    places = TextMap(text)
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    if not text.strip():
        return ChunkedDocument(())
    if units is None:
        scanner = scanner_for(path)
        units = scanner(lines) if scanner else ()
    packer = _Packer(places, lines, profile)
    if packer.fits(1, len(lines)):
        pieces = [_Piece((), *packer.edges(1, len(lines)))]
    else:
        pieces = list(packer.pack(packer.cover(units, 1, len(lines)), ()))
    return ChunkedDocument(tuple(_chunk(places, index, label, piece) for index, piece in enumerate(pieces)))


def _chunk(places: TextMap, index: int, label: str, piece: _Piece) -> Chunk:
    source = places.text[piece.start : piece.end]
    return Chunk(
        chunk_index=index,
        heading_path=(label, *piece.names),
        heading_level=1 + len(piece.names),
        section_anchor="",
        start_line=places.line(piece.start),
        end_line=places.line(piece.end - 1),
        start_byte=places.byte(piece.start),
        end_byte=places.byte(piece.end),
        source=source,
        text=source,
        part=piece.part,
        parts=piece.parts,
        flags=piece.flags,
    )
