"""Characters, bytes and lines of one text, each turned into the others in short steps."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

_STEP = 1024


class TextMap:
    """Places in a text. ``text`` and its UTF-8 form ``raw`` are kept; a step costs at most 1,024 characters."""

    __slots__ = ("_ascii", "_marks", "_newlines", "raw", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.raw = text.encode()
        self._ascii = len(self.raw) == len(text)
        self._marks: list[int] | None = None
        self._newlines: list[int] | None = None

    def _steps(self) -> list[int]:
        if self._marks is None:
            text = self.text
            sizes = (len(text[at : at + _STEP].encode()) for at in range(0, len(text), _STEP))
            self._marks = [0, *accumulate(sizes)]
        return self._marks

    def byte(self, character: int) -> int:
        """Byte offset of a character offset."""
        if self._ascii:
            return character
        step = character // _STEP
        marks = self._steps()
        if step >= len(marks):
            return len(self.raw)
        return marks[step] + len(self.text[step * _STEP : character].encode())

    def character(self, byte: int) -> int:
        """Character offset of a byte offset; inside a character, the offset of that character."""
        if self._ascii:
            return byte
        marks = self._steps()
        # The last mark is the end of the text, where no step begins.
        step = max(min(bisect_right(marks, byte), len(marks) - 1) - 1, 0)
        return step * _STEP + len(self.raw[marks[step] : byte].decode(errors="ignore"))

    def line_starts(self) -> list[int]:
        """Character offset of the first character of each line."""
        if self._newlines is None:
            lengths = [len(line) + 1 for line in self.text.split("\n")]
            self._newlines = [0, *accumulate(lengths[:-1])]
        return self._newlines

    def line(self, character: int) -> int:
        """Number (from 1) of the line that holds the character."""
        return bisect_right(self.line_starts(), character)
