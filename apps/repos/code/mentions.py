"""Names that stand in the text of a document and may mean symbols, flags or environment variables
(``repository-documents.md`` 8.1). Pure; every pattern is bounded, so the time is linear in the text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple

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
_SOME_DOT = re.compile(r"\.(?<=\w\.)[^\W\d]")
_WHOLE = re.compile(rf"[~!.]?({_JOINED})(?:\(\))?")
_CALLED = re.compile(_JOINED)
_PLAIN = re.compile(rf"({_IDENTIFIER}(?:\.{_IDENTIFIER})+)(?![\w$(/\\@-]|://|\.\w|::)")
_NOT_BEFORE = frozenset("/\\@#:~-.$")
"""What may not stand before a call or dotted name, word characters aside: it is a part of something longer."""
_TELLING = re.compile(r"[`.(_$]|--")
"""What a line with a name holds at least."""
_BEFORE_CALL = re.compile(r"\((?<=[\w$]\()")
_FLAG = re.compile(r"(?<![\w-])--[A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)*(?![\w-])")
_ENV = re.compile(r"(?<![\w.])\$?\{?([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)(?!\w)|\$\{?([A-Z][A-Z0-9_]{2,})(?!\w)")
_LETTERS = re.compile(r"[^\W\d_]{3}")
_ENDINGS = (
    "bat c cc cfg cjs com conf cpp cs css csv cts dev gif go gz h hpp htm html ini io ipynb java jpeg jpg js json jsx"
    " key kt lock log map markdown md mdx mjs mts net org pdf pem php png proto py pyc pyi rb rs rst scss sh so sql"
    " svg swift tar toml ts tsx txt vue wasm whl xml yaml yml zip zsh"
)
_FILE_ENDINGS = frozenset(_ENDINGS.split())


class Named(NamedTuple):
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
            start, end = span.span()
            content = span[2]
            if "_" in content or "-" in content or "$" in content:
                yield from _settings(content, number, at + span.start(2))
            whole = _WHOLE.fullmatch(content.strip())
            pieces.append(line[done:start])
            if whole is not None:
                name = whole[1]
                if _is_name(name):
                    yield Named(name, CODE, number, at + span.start(2))
                pieces.append(" " * (end - start))
            else:
                pieces.append(line[start:end])
            done = end
        line = "".join([*pieces, line[done:]])
    if "(" in line:
        yield from _calls(line, number, at)
    if "." in line:
        yield from _dotted(line, number, at)


def _calls(line: str, number: int, at: int) -> Iterator[Named]:
    """Looked for from their brackets: far fewer than words."""
    for bracket in _BEFORE_CALL.finditer(line):
        end = bracket.start()
        start = _run_start(line, end, ".$:#")
        if start and line[start - 1] in _NOT_BEFORE:
            continue
        name = line[start:end]
        if _CALLED.fullmatch(name) and _is_name(name) and _closes(line, end + 1):
            yield Named(name, CALL, number, at + start)


def _dotted(line: str, number: int, at: int) -> Iterator[Named]:
    done = 0
    for dot in _SOME_DOT.finditer(line):
        if dot.start() < done:
            continue
        start = _run_start(line, dot.start(), ".$")
        if start and line[start - 1] in _NOT_BEFORE:
            continue
        plain = _PLAIN.match(line, start)
        if plain is None:
            continue
        done = plain.end()
        last = plain[1].rsplit(".", 1)[-1]
        if last.lower() not in _FILE_ENDINGS and _is_name(plain[1]) and _has_word(plain[1]):
            yield Named(plain[1], DOTTED, number, at + start)


def _run_start(line: str, end: int, joints: str) -> int:
    """Where the run of word characters and ``joints`` before ``end`` begins; of a very long one, a later place."""
    floor = max(0, end - 2 * LONGEST)
    start = end
    while start > floor and ((character := line[start - 1]).isalnum() or character == "_" or character in joints):
        start -= 1
    return start


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


_IN_ORDER = itemgetter(3, 1)
ChunkRow = tuple[int, list[list[str | int]]]


def by_chunk(text: str, named: Iterable[Named], chunks: Sequence[Place]) -> Iterator[ChunkRow]:
    """For each chunk the names in it: [name, form, count, line in the chunk from 0], the best form of each name."""
    ascii_only = text.isascii()
    found: dict[int, dict[tuple[str, bool], tuple[int, int, int]]] = {chunk.id: {} for chunk in chunks}
    ordered = sorted(chunks, key=lambda chunk: chunk.start_byte)
    starts = [chunk.start_byte for chunk in ordered]
    offset = _Offsets(text)
    for name, form, line, at in sorted(named, key=_IN_ORDER):
        byte = at if ascii_only else offset.byte(at)
        last = bisect_right(starts, byte)
        key = (name, form > CALL)  # a variable in inline code is a name and a setting: both are kept
        for chunk in ordered[max(0, last - OVERLAPPING) : last]:
            if byte >= chunk.end_byte:
                continue
            names = found[chunk.id]
            entry = names.get(key)
            if entry is None:
                names[key] = (form, 1, line - chunk.start_line)
            else:
                names[key] = (min(entry[0], form), entry[1] + 1, entry[2])
    for id_, names in found.items():
        yield id_, [[name, *entry] for (name, _), entry in names.items()]


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
