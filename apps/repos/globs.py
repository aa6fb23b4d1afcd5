"""git's wildmatch from the root of a repository, as a compiled pattern (``gitignore(5)``, section "PATTERN FORMAT").

``*`` and ``?`` never match a slash, ``**/`` matches any number of folders, ``/**`` everything below. A pattern that
ends with a slash means everything below that folder. Letters compare exactly.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable

MAX_PATTERN_CHARACTERS = 400
MAX_STARS = 12
"""SECURITY: each star can multiply the work of a failing match; a pattern with dozens would stall a sync."""


class BadPattern(ValueError):
    """A pattern that cannot be used; the text says why."""


def check_pattern(pattern: str) -> None:
    """Raises BadPattern when ``pattern`` is empty, too long, or has too many stars or control characters."""
    if not pattern.strip():
        raise BadPattern("a pattern is empty")
    if len(pattern) > MAX_PATTERN_CHARACTERS:
        raise BadPattern(f"a pattern has more than {MAX_PATTERN_CHARACTERS} characters")
    if len(re.findall(r"\*+", pattern)) > MAX_STARS:
        raise BadPattern(f"a pattern has more than {MAX_STARS} stars")
    if any(ord(character) < 32 or ord(character) == 127 for character in pattern):
        raise BadPattern("a pattern holds a control character")


@functools.lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> re.Pattern[str]:
    """The pattern as a regular expression for ``fullmatch`` on whole paths."""
    text = pattern.removeprefix("/")
    if text.endswith("/"):
        text += "**"
    out: list[str] = []
    at = 0
    while at < len(text):
        character = text[at]
        if character == "*":
            end = at
            while end < len(text) and text[end] == "*":
                end += 1
            opens = at == 0 or text[at - 1] == "/"
            if end - at >= 2 and opens and end < len(text) and text[end] == "/":
                out.append("(?:.*/)?")
                end += 1
            elif end - at >= 2 and opens and end == len(text):
                out.append(".+")
            else:
                out.append("[^/]*")
            at = end
        elif character == "?":
            out.append("[^/]")
            at += 1
        elif character == "[":
            piece, at = _bracket(text, at)
            out.append(piece)
        elif character == "\\" and at + 1 < len(text):
            out.append(re.escape(text[at + 1]))
            at += 2
        else:
            out.append(re.escape(character))
            at += 1
    return re.compile("".join(out), re.DOTALL)


POSIX_CLASSES = {
    "alpha": "a-zA-Z",
    "digit": "0-9",
    "alnum": "a-zA-Z0-9",
    "upper": "A-Z",
    "lower": "a-z",
    "space": r"\s",
    "punct": r"!-/:-@\[-`{-~",
    "xdigit": "0-9A-Fa-f",
}


def _bracket(text: str, at: int) -> tuple[str, int]:
    """The bracket expression that opens at ``at`` and the place after it; a bracket that never closes is itself."""
    end = at + 1
    negated = end < len(text) and text[end] in "!^"
    if negated:
        end += 1
    inner: list[str] = []
    first = True
    while end < len(text) and (first or text[end] != "]"):
        first = False
        if text.startswith("[:", end):
            close = text.find(":]", end)
            name = text[end + 2 : close] if close > 0 else ""
            if name in POSIX_CLASSES:
                inner.append(POSIX_CLASSES[name])
                end = close + 2
                continue
        character = text[end]
        if character == "\\" and end + 1 < len(text):
            end += 1
            inner.append(re.escape(text[end]))
        elif character == "-" and inner and end + 1 < len(text) and text[end + 1] != "]":
            low, high = text[end - 1], text[end + 1]
            inner.append("-" if low <= high else r"\-")
        else:
            inner.append(re.escape(character))
        end += 1
    if end >= len(text):
        return re.escape("["), at + 1
    return f"(?!/)[{'^' if negated else ''}{''.join(inner)}]", end + 1


def matches_any(path: str, patterns: Iterable[str]) -> bool:
    return any(compile_pattern(pattern).fullmatch(path) for pattern in patterns)


def is_glob(path: str) -> bool:
    return any(sign in path for sign in "*?[")


def database_pattern(pattern: str) -> str:
    """The pattern as a regular expression of PostgreSQL on whole paths."""
    return f"^(?:{compile_pattern(pattern).pattern})$"
