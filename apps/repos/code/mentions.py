"""Names that stand in the text of a document and may mean symbols, flags or environment variables
(``repository-documents.md`` 8.1). Pure; every pattern is bounded, so the time is linear in the text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

CODE, DOTTED, CALL, FLAG, ENV = 1, 2, 3, 4, 5
"""Forms: inline code, plain dotted name, call; a command line flag; an environment variable."""

SHORTEST = 3
LONGEST = 200
OVERLAPPING = 3
"""Windows overlap by at most half of one, so no place stands in more chunks than this."""
_IDENTIFIER = r"[^\W\d][\w$]*"
_JOINED = rf"{_IDENTIFIER}(?:(?:\.|::|#){_IDENTIFIER})*"
# A literal in front lets the search skip what cannot match.
_SPAN = re.compile(r"`(?<!``)(`?)(?!`)([^`\n]{1,200})`\1(?!`)")
_SOME_DOT = re.compile(r"\w\.[^\W\d]")
_WHOLE = re.compile(rf"[~!.]?({_JOINED})(?:\(\))?")
_CALL = re.compile(rf"(?<![\w.$/\\@#:~-])({_JOINED})\(")
_PLAIN = re.compile(rf"(?<![\w.$/\\@#:~-])({_IDENTIFIER}(?:\.{_IDENTIFIER})+)(?![\w$(/\\@-]|://|\.\w|::)")
_TELLING = re.compile(r"[`.(_$]|--")
"""What a line with a name holds at least."""
_BEFORE_CALL = re.compile(r"[\w$]\(")
_FLAG = re.compile(r"(?<![\w-])--[A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)*(?![\w-])")
_ENV = re.compile(r"(?<![\w.])\$?\{?([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)(?!\w)|\$\{?([A-Z][A-Z0-9_]{2,})(?!\w)")
_LETTERS = re.compile(r"[^\W\d_]{3}")
_ENDINGS = (
    "bat c cc cfg cjs com conf cpp cs css csv cts dev gif go gz h hpp htm html ini io ipynb java jpeg jpg js json jsx"
    " key kt lock log map markdown md mdx mjs mts net org pdf pem php png proto py pyc pyi rb rs rst scss sh so sql"
    " svg swift tar toml ts tsx txt vue wasm whl xml yaml yml zip zsh"
)
_FILE_ENDINGS = frozenset(_ENDINGS.split())


@dataclass(frozen=True, slots=True)
class Named:
    """A name at one place of a text: ``line`` from 1, ``at`` in characters from the start of the text."""

    name: str
    form: int
    line: int
    at: int


def names_in(text: str, fences: Sequence[tuple[int, int]], *, prose: bool) -> Iterator[Named]:
    """All names of a text. ``fences`` are the line ranges of its code blocks, in order; without ``prose`` all of the
    text is code."""
    starts = [start for start, _ in fences]
    at = 0
    for number, line in enumerate(text.split("\n"), 1):
        place = bisect_right(starts, number) - 1
        in_code = not prose or (place >= 0 and number <= fences[place][1])
        if _TELLING.search(line):
            yield from _of_line(line, number, at, in_code=in_code)
        at += len(line) + 1


def _of_line(line: str, number: int, at: int, *, in_code: bool) -> Iterator[Named]:
    if in_code:
        yield from _settings(line, number, at)
    elif "`" in line:
        pieces: list[str] = []
        done = 0
        for span in _SPAN.finditer(line):
            content = span[2].strip()
            yield from _settings(span[2], number, at + span.start(2))
            whole = _WHOLE.fullmatch(content)
            pieces.append(line[done : span.start()])
            if whole is not None:
                if _is_name(whole[1]):
                    yield Named(whole[1], CODE, number, at + span.start(2))
                pieces.append(" " * (span.end() - span.start()))
            else:
                pieces.append(line[span.start() : span.end()])
            done = span.end()
        line = "".join([*pieces, line[done:]])
    if _BEFORE_CALL.search(line):
        for call in _CALL.finditer(line):
            if _is_name(call[1]) and _closes(line, call.end()):
                yield Named(call[1], CALL, number, at + call.start())
    if "." in line and _SOME_DOT.search(line):
        for plain in _PLAIN.finditer(line):
            last = plain[1].rsplit(".", 1)[-1]
            if last.lower() not in _FILE_ENDINGS and _is_name(plain[1]) and _has_word(plain[1]):
                yield Named(plain[1], DOTTED, number, at + plain.start())


def _settings(code: str, number: int, at: int) -> Iterator[Named]:
    if "--" in code:
        for flag in _FLAG.finditer(code):
            yield Named(flag.group(), FLAG, number, at + flag.start())
    if "$" in code or ("_" in code and not code.islower()):
        for variable in _ENV.finditer(code):
            yield Named(variable[1] or variable[2], ENV, number, at + variable.start())


def _is_name(name: str) -> bool:
    return len(name) <= LONGEST and (len(name) >= SHORTEST if name.isidentifier() else True)


def _has_word(name: str) -> bool:
    return any(_LETTERS.search(part) for part in name.split("."))


def _closes(line: str, start: int) -> bool:
    """Whether the bracket before ``start`` closes on the line; ``(s)`` and ``(es)`` are plurals, no calls."""
    if line.startswith(("s)", "es)"), start):
        return False
    depth = 1
    for character in line[start : start + 1000]:
        if character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
            if not depth:
                return True
    return False


@dataclass(frozen=True, slots=True)
class Place:
    """A chunk as far as names need it."""

    id: int
    start_line: int
    start_byte: int
    end_byte: int


ChunkRow = tuple[int, list[list[str | int]]]


def by_chunk(text: str, named: Iterable[Named], chunks: Sequence[Place]) -> Iterator[ChunkRow]:
    """For each chunk the names in it: [name, form, count, line in the chunk from 0], the best form of each name."""
    ascii_only = text.isascii()
    found: dict[int, dict[tuple[str, bool], list[str | int]]] = {chunk.id: {} for chunk in chunks}
    ordered = sorted(chunks, key=lambda chunk: chunk.start_byte)
    starts = [chunk.start_byte for chunk in ordered]
    offset = _Offsets(text)
    for one in sorted(named, key=lambda one: (one.at, one.form)):
        byte = one.at if ascii_only else offset.byte(one.at)
        last = bisect_right(starts, byte)
        for chunk in ordered[max(0, last - OVERLAPPING) : last]:
            if byte < chunk.end_byte:
                # A variable in inline code is a name and a setting: both are kept.
                key = (one.name, one.form > CALL)
                entry = found[chunk.id].setdefault(key, [one.name, one.form, 0, one.line - chunk.start_line])
                entry[1] = min(int(entry[1]), one.form)
                entry[2] = int(entry[2]) + 1
    for id_, names in found.items():
        yield id_, list(names.values())


class _Offsets:
    """Byte offsets of ascending character offsets, by one walk over the text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._characters = 0
        self._bytes = 0

    def byte(self, at: int) -> int:
        self._bytes += len(self._text[self._characters : at].encode("utf-8", "surrogatepass"))
        self._characters = at
        return self._bytes
