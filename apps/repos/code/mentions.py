"""Names that stand in the text of a document and may mean symbols, flags or environment variables
(``repository-documents.md`` 8.1). Pure; every pattern is bounded, so the time is linear in the text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

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
_CALL_RUN, _DOTTED_RUN = re.compile(r"[\w.$:#]*"), re.compile(r"[\w.$]*")
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


_named: Callable[[tuple[str, int, int, int]], Named] = partial(tuple.__new__, Named)
"""As ``Named(...)`` at a third of its price: a large documentation has a million of them."""


def names_in(text: str, fences: Sequence[tuple[int, int]], *, prose: bool) -> list[Named]:
    """All names of a text. ``fences`` are the line ranges of its code blocks, in order; without ``prose`` all of the
    text is code."""
    starts = [start for start, _ in fences]
    found: list[Named] = []
    at = 0
    for number, line in enumerate(text.split("\n"), 1):
        if _TELLING.search(line):
            place = bisect_right(starts, number) - 1
            if not prose or (place >= 0 and number <= fences[place][1]):
                _settings(line, number, at, found)
                _of_code(line, number, at, found)
            else:
                _of_prose(line, number, at, found)
        at += len(line) + 1
    return found


def _of_prose(line: str, number: int, at: int, found: list[Named]) -> None:
    if "`" in line:
        pieces: list[str] = []
        done = 0
        for span in _SPAN.finditer(line):
            content = span[2]
            if "--" in content or "$" in content or ("_" in content and not content.islower()):
                _settings(content, number, at + span.start(2), found)
            name = content
            if not content.isidentifier():
                whole = _WHOLE.fullmatch(content.strip())
                if whole is None:
                    continue
                name = whole[1]
            if _is_name(name):
                found.append(_named((name, CODE, number, at + span.start(2))))
            start, end = span.span()
            pieces += (line[done:start], " " * (end - start))
            done = end
        if done:
            line = "".join([*pieces, line[done:]])
    _of_code(line, number, at, found)


def _of_code(line: str, number: int, at: int, found: list[Named]) -> None:
    if "(" in line:
        _calls(line, number, at, found)
    if "." in line:
        _dotted(line, number, at, found)


def _calls(line: str, number: int, at: int, found: list[Named]) -> None:
    """Looked for from their brackets: far fewer than words."""
    for bracket in _BEFORE_CALL.finditer(line):
        end = bracket.start()
        start = line.rfind(" ", 0, end) + 1
        name = line[start:end]
        if not _CALLED.fullmatch(name):
            start = _run_start(line, end, _CALL_RUN)
            name = line[start:end]
            if (start and line[start - 1] in _NOT_BEFORE) or not _CALLED.fullmatch(name):
                continue
        if _is_name(name) and _closes(line, end + 1):
            found.append(_named((name, CALL, number, at + start)))


def _dotted(line: str, number: int, at: int, found: list[Named]) -> None:
    done = 0
    for dot in _SOME_DOT.finditer(line):
        if dot.start() < done:
            continue
        start = _run_start(line, dot.start(), _DOTTED_RUN)
        if start and line[start - 1] in _NOT_BEFORE:
            continue
        plain = _PLAIN.match(line, start)
        if plain is None:
            continue
        done = plain.end()
        last = plain[1].rsplit(".", 1)[-1]
        if last.lower() not in _FILE_ENDINGS and _is_name(plain[1]) and _has_word(plain[1]):
            found.append(_named((plain[1], DOTTED, number, at + start)))


def _run_start(line: str, end: int, run: re.Pattern[str]) -> int:
    """Where the ``run`` before ``end`` begins; of a very long one, a later place."""
    before = line[max(0, end - 2 * LONGEST) : end][::-1]
    found = run.match(before)
    return end - (found.end() if found else 0)


def _settings(code: str, number: int, at: int, found: list[Named]) -> None:
    if "--" in code:
        found += [_named((flag.group(), FLAG, number, at + flag.start())) for flag in _FLAG.finditer(code)]
    if "$" in code or ("_" in code and not code.islower()):
        found += [_named((one[1] or one[2], ENV, number, at + one.start())) for one in _ENV.finditer(code)]


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
_START = attrgetter("start_byte")
ChunkRow = tuple[int, list[list[str | int]]]


def by_chunk(text: str, named: Iterable[Named], chunks: Sequence[Place]) -> Iterator[ChunkRow]:
    """For each chunk the names in it: [name, form, count, line in the chunk from 0], the best form of each name."""
    ascii_only = text.isascii()
    # A variable in inline code is a name and a setting: both are kept, settings under a key of their own.
    found: dict[int, dict[str | tuple[str], list[Any]]] = {chunk.id: {} for chunk in chunks}
    ordered = sorted(chunks, key=_START)
    count = len(ordered)
    offset = _Offsets(text)
    last = 0
    for name, form, line, at in sorted(named, key=_IN_ORDER):
        byte = at if ascii_only else offset.byte(at)
        while last < count and ordered[last].start_byte <= byte:
            last += 1
        key = name if form <= CALL else (name,)
        for chunk in ordered[last - OVERLAPPING if last > OVERLAPPING else 0 : last]:
            if byte >= chunk.end_byte:
                continue
            names = found[chunk.id]
            entry = names.get(key)
            if entry is None:
                names[key] = [name, form, 1, line - chunk.start_line]
            else:
                entry[1] = min(entry[1], form)
                entry[2] += 1
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
