"""Chunks for curated collections: whole sections, packed up to a budget of characters (``collections.md`` 4)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace

from apps.markup.chunking.derive import Derivation
from apps.markup.chunking.dividing import Divider
from apps.markup.chunking.offsets import TextMap
from apps.markup.values import Block, CharacterBudget, Chunk, ChunkedDocument, ParsedDocument


@dataclass(frozen=True, slots=True)
class _Piece:
    """A chunk in the making. ``end`` follows its last visible character, ``stop`` is where its source ends."""

    start: int
    end: int
    stop: int
    first: int
    """Number of the first section it touches; ``last`` alike."""
    last: int
    cut: bool = False
    """An edge lies inside a block."""
    groups: tuple[int, ...] = ()
    """Numbers of the cut blocks of which it holds a part."""
    flags: tuple[str, ...] = ()


def chunk_budget(parsed: ParsedDocument, profile: CharacterBudget) -> ChunkedDocument:
    """Cut a parsed document by the character budget."""
    if parsed.empty:
        return ChunkedDocument(())
    return _Budget(parsed, profile).chunks()


class _Budget:
    def __init__(self, parsed: ParsedDocument, profile: CharacterBudget) -> None:
        self.parsed = parsed
        self.profile = profile
        self.most = profile.max_chars
        self.hard = 2 * profile.max_chars
        self.places = TextMap(parsed.text)
        self.derivation = Derivation(parsed, self.places, longest=profile.max_chars)
        self.divider = Divider(self.places, self.derivation, profile)
        self.block_starts: list[int] | None = None
        self.groups = 0

    def chunks(self) -> ChunkedDocument:
        pieces = self.floor(list(self.pack()))
        places = self.places
        if self.parsed.removed_spans:
            pieces = [each for each in pieces if not self.derivation.removed(*self.bytes_of(each))]
        dropped = pieces[self.profile.max_chunks] if len(pieces) > self.profile.max_chunks else None
        numbers = self.number(pieces)
        made: list[Chunk] = []
        line = 1
        at = 0
        for index, piece in enumerate(pieces[: self.profile.max_chunks]):
            line += places.text.count("\n", at, piece.start)
            at = piece.start
            made.append(self.chunk(index, piece, line, *numbers[index]))
        return ChunkedDocument(tuple(made), places.line(dropped.start) if dropped else None)

    def bytes_of(self, piece: _Piece) -> tuple[int, int]:
        return self.places.byte(piece.start), self.places.byte(piece.stop)

    def sections(self) -> Iterator[tuple[int, int, int]]:
        """Number, first and past-last visible character of each section with anything visible."""
        text, character = self.places.text, self.places.character
        for number, section in enumerate(self.parsed.sections):
            start, end = character(section.start_byte), character(section.end_byte)
            while end > start and text[end - 1].isspace():
                end -= 1
            while start < end and text[start].isspace():
                start += 1
            if start < end:
                yield number, start, end

    # -- 4.3, 4.4: packing

    def pack(self) -> Iterator[_Piece]:
        """Pieces of whole sections, and of the blocks of sections that are too long."""
        held: _Piece | None = None
        for number, start, end in self.sections():
            if held is not None and end - held.start <= self.most:
                held = _Piece(held.start, end, end, held.first, number)
                continue
            if held is not None:
                yield held
            if end - start > self.most:
                held = None
                yield from self.divide(number, start, end)
            else:
                held = _Piece(start, end, end, number, number)
        if held is not None:
            yield held

    def divide(self, number: int, start: int, end: int) -> Iterator[_Piece]:
        """Pieces of one section over the budget: its blocks, the heading fastened to the first."""
        held: _Piece | None = None
        for block, first, last in self.blocks_of(number, start, end):
            if held is not None and last - held.start <= self.most:
                held = replace(held, end=last, stop=last)
                continue
            if held is not None:
                yield held
                held = None
            if last - first <= self.most:
                held = _Piece(first, last, last, number, number)
            elif self.divider.stands_whole(block):
                yield _Piece(first, last, last, number, number)
            else:
                yield from self.parts(block, first, last, number)
        if held is not None:
            yield held

    def blocks_of(self, number: int, start: int, end: int) -> Iterator[tuple[Block, int, int]]:
        """Blocks of a section with their visible ranges; the first one begins where its heading does.

        A paragraph of blanks that CommonMark does not take for blank (no-break, ideographic) has none and is left out.
        """
        parsed, places = self.parsed, self.places
        section = parsed.sections[number]
        if self.block_starts is None:
            self.block_starts = [block.start_byte for block in parsed.blocks]
        low = bisect_left(self.block_starts, section.start_byte)
        high = bisect_left(self.block_starts, section.end_byte)
        blocks = parsed.blocks[low:high]
        if section.heading is not None and len(blocks) > 1:
            blocks = blocks[1:]
        for place, block in enumerate(blocks):
            last = end if place == len(blocks) - 1 else min(places.character(block.end_byte), end)
            first = start if place == 0 else self.visible_from(places.character(block.start_byte), last)
            if first < last:
                yield block, first, last

    def visible_from(self, place: int, end: int) -> int:
        text = self.places.text
        while place < end and text[place].isspace():
            place += 1
        return place

    def parts(self, block: Block, first: int, last: int, number: int) -> Iterator[_Piece]:
        group = self.groups
        self.groups += 1
        text = self.places.text
        for part in self.divider.cut(block, first, last):
            body = text[part.start : part.end].rstrip()
            if body.strip():
                yield _Piece(part.start, part.start + len(body), part.end, number, number, True, (group,), part.flags)

    # -- 4.7: the floor

    def floor(self, pieces: list[_Piece]) -> list[_Piece]:
        """Join chunks under the minimum to a neighbour, from left to right."""
        done: list[_Piece] = []
        number = 0
        while number < len(pieces):
            piece = pieces[number]
            number += 1
            while piece.end - piece.start < self.profile.min_chars:
                before = self.joined(done[-1], piece) if done else None
                after = self.joined(piece, pieces[number]) if number < len(pieces) else None
                for limit in (self.most, self.hard):
                    if before is not None and self.length(before) <= limit:
                        done.pop()
                        piece = before
                        break
                    if after is not None and self.length(after) <= limit:
                        number += 1
                        piece = after
                        break
                else:
                    break
            done.append(piece)
        return done

    def joined(self, left: _Piece, right: _Piece) -> _Piece:
        return _Piece(
            left.start,
            right.end,
            right.stop,
            left.first,
            right.last,
            left.cut or right.cut,
            tuple(dict.fromkeys(left.groups + right.groups)),
            tuple(dict.fromkeys(left.flags + right.flags)),
        )

    def length(self, piece: _Piece) -> int:
        """Characters of the piece, with the lines that are repeated around a part."""
        size = piece.end - piece.start
        if piece.cut:
            before, after = self.derivation.frame(*self.bytes_of(piece))
            size += len(before) + len(after)
        return size

    # -- 4.6, 4.8: numbers and names

    def number(self, pieces: list[_Piece]) -> list[tuple[int, int]]:
        """Part and parts of each piece."""
        counts = [0] * self.groups
        for piece in pieces:
            for group in piece.groups:
                counts[group] += 1
        seen = [0] * self.groups
        numbers: list[tuple[int, int]] = []
        for piece in pieces:
            for group in piece.groups:
                seen[group] += 1
            divided = [group for group in piece.groups if counts[group] > 1]
            numbers.append((seen[divided[0]], counts[divided[0]]) if divided else (1, 1))
        return numbers

    def names(self, piece: _Piece) -> tuple[int, ...]:
        """Headings of the deepest path that all sections of the piece share, else of the first section's path.

        A bare heading right above its own first subsection says nothing that this one's path does not say too.
        """
        first = self.parsed.sections[piece.first].path_headings
        shared: tuple[int, ...] | None = None
        for number in range(piece.first, piece.last + 1):
            if number < piece.last and self.bare(number):
                continue
            path = self.parsed.sections[number].path_headings
            if shared is None:
                shared = path
                continue
            size = 0
            while size < len(shared) and size < len(path) and shared[size] == path[size]:
                size += 1
            shared = shared[:size]
            if not shared:
                return first
        return shared or first

    def bare(self, number: int) -> bool:
        """Whether a section is a heading without text whose next section lies below it."""
        section, following = self.parsed.sections[number : number + 2]
        if section.heading is None or following.path_headings[: len(section.path_headings)] != section.path_headings:
            return False
        return not self.derivation.visible(self.parsed.heading_tree[section.heading].end_byte, section.end_byte)

    def chunk(self, index: int, piece: _Piece, line: int, part: int, parts: int) -> Chunk:
        headings = self.parsed.heading_tree
        path = self.names(piece)
        start_byte, end_byte = self.bytes_of(piece)
        source = self.places.text[piece.start : piece.stop]
        return Chunk(
            chunk_index=index,
            heading_path=tuple(headings[number].text for number in path),
            heading_level=headings[path[-1]].level if path else 0,
            section_anchor=headings[path[-1]].anchor if path else "",
            start_line=line,
            end_line=line + self.places.text.count("\n", piece.start, piece.end),
            start_byte=start_byte,
            end_byte=end_byte,
            source=source,
            text=self.derivation.text(start_byte, end_byte, source, cut=piece.cut),
            part=part,
            parts=parts,
            flags=piece.flags,
        )
