"""String literals that name documents (``retrieval.md`` 13.1 to 13.3). Linear in the length of the literal."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import unquote

from apps.symbols.values import DocumentLiteral

_ENDING = re.compile(r"\.(?:mdx|markdown|md|rst)(?![0-9A-Za-z_])", re.IGNORECASE)
_NOT_PATH = frozenset("\"'`<>|*?#(){}[],;:=&!^$\0 \t\r\n")
_TAIL = re.compile(r"(\?[^\s#\"'`<>(){}]*)?(#[^\s\"'`<>(){}]*)?")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*\Z")
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
MAX_RUN_CHARS = 1024


def find_documents(literal: str, line: int, column: int, symbol: int, *, raw: bool) -> Iterator[DocumentLiteral]:
    """Every document that a literal names. ``line`` and ``column`` (from 1) are those of its first character."""
    text = literal if raw else _without_escapes(literal)
    for ending in _ENDING.finditer(text):
        end = ending.end()
        start = ending.start()
        floor = max(0, start - MAX_RUN_CHARS)
        while start > floor and text[start - 1] not in _NOT_PATH:
            start -= 1
        run = text[start:end]
        if start == ending.start() or "%s" in run or "%d" in run:
            continue  # a bare ending, as in a glob, or a format string
        before = text[start - 1] if start else ""
        tail = _TAIL.match(text, end)
        fragment = (tail.group(2) or "")[1:] if tail else ""
        written = text[start : tail.end() if tail else end]
        url = ""
        if before == ":" and run.startswith("//"):
            scheme = _SCHEME.search(text[max(0, start - 32) : start - 1])
            if scheme is None:
                continue
            url = f"{scheme.group()}:{written}"
        elif run.startswith("//") or before in {"*", "}", "{", "$", ")", "]", "?"}:
            continue  # a host without scheme, a placeholder, a pattern
        at = line + literal.count("\n", 0, start)
        newline = literal.rfind("\n", 0, start)
        place = start - newline if newline >= 0 else column + start
        path = "" if url else _path(run)
        yield DocumentLiteral(written, path, unquote(fragment), url, at, place, symbol)


def _without_escapes(literal: str) -> str:
    """The literal with escapes replaced by text of the same length, so that columns stay true."""
    if "\\" not in literal:
        return literal
    return re.sub(
        r"\\(.)", lambda match: {"n": "  ", "t": "  ", "r": "  ", "\\": "\\\\"}.get(match[1], match[0]), literal
    )


def _path(run: str) -> str:
    path = re.sub(r"\\+", "/", run)
    return path if _BROKEN_ESCAPE.search(path) else unquote(path)
