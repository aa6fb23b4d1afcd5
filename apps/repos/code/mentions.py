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
from typing import NamedTuple

CODE, DOTTED, CALL, FLAG, ENV = 1, 2, 3, 4, 5
"""Forms: inline code, plain dotted name, call; a command line flag; an environment variable."""

SHORTEST = 3
LONGEST = 200
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
        for start, content in _spans(line):
            length = len(content)
            if content.isidentifier():
                if "_" in content and not content.islower():
                    _settings(content, number, at + start, found)
                if length >= SHORTEST:
                    found.append(_named((content, CODE, number, at + start)))
            else:
                _settings(content, number, at + start, found)
                whole = _WHOLE.fullmatch(content.strip())
                if whole is None:
                    continue
                if _is_name(whole[1]):
                    found.append(_named((whole[1], CODE, number, at + start)))
            pieces += (line[done:start], " " * length)
            done = start + length
        if done:
            line = "".join([*pieces, line[done:]])
    _of_code(line, number, at, found)


def _spans(line: str) -> Iterable[tuple[int, str]]:
    """(start, content) of each inline code of a line."""
    pieces = line.split("`")
    contents = pieces[1::2]
    if len(pieces) % 2 == 0 or "``" in line or len(max(contents, key=len)) > LONGEST:
        return [(span.start(2), span[2]) for span in _SPAN.finditer(line)]
    # Nearly all lines: single marks, each of which has its other one.
    start = 0
    spans: list[tuple[int, str]] = []
    for before, content in zip(pieces[::2], contents, strict=False):
        start += len(before) + 1
        spans.append((start, content))
        start += len(content) + 1
    return spans


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
Entry = tuple[str, int, int, int]
"""Name, form, count, line in the chunk from 0. Plain tuples: the collector of garbage soon leaves them alone."""


def by_chunk(text: str, named: Iterable[Named], chunks: Iterable[Place]) -> Iterator[tuple[int, list[Entry]]]:
    """For each chunk, by its id, the names in it, each once in the best of its forms."""
    ascii_only = text.isascii()
    # A variable in inline code is a name and a setting: both are kept, settings under a key of their own.
    found: dict[int, dict[str | tuple[str], Entry]] = {chunk.id: {} for chunk in chunks}
    waiting = sorted(chunks, key=_START, reverse=True)
    begun: list[tuple[int, int, dict[str | tuple[str], Entry]]] = []
    offset = _Offsets(text)
    for name, form, line, at in sorted(named, key=_IN_ORDER):
        byte = at if ascii_only else offset.byte(at)
        while waiting and waiting[-1].start_byte <= byte:
            chunk = waiting.pop()
            begun = [one for one in begun if byte < one[0]]
            begun.append((chunk.end_byte, chunk.start_line, found[chunk.id]))
        key = name if form <= CALL else (name,)
        for end, first_line, names in begun:
            if byte >= end:
                continue
            known = names.get(key)
            if known is None:
                names[key] = (name, form, 1, line - first_line)
            else:
                names[key] = (name, min(known[1], form), known[2] + 1, known[3])
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
