"""Calls, bases and named documents of one file, each with its place and the symbol that holds it.

A file has thousands of calls: nodes are asked for their range only, the rest is read off the bytes.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial

from tree_sitter import Node

from apps.symbols.languages.base import LONGEST_CHAIN, Grammar, chain
from apps.symbols.literals import find_documents
from apps.symbols.values import DocumentLiteral, Reference, ReferenceKind

LONGEST_TEXT = 200
_IMPORT = ("", "import")
"""``import("./a")`` is written as a call and is none."""
_LINE_END = re.compile(rb"\n")
_RAW_PREFIX = re.compile(r"[A-Za-z]*r[A-Za-z]*[\"'#]|`", re.IGNORECASE)
_DOCUMENT = re.compile(rb"\.(?:mdx?|markdown|rst)(?![0-9A-Za-z_])", re.IGNORECASE)


class Places:
    """Lines and columns of byte offsets."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.starts = [0, *[found.end() for found in _LINE_END.finditer(data)]]
        """Where each line begins."""
        self.is_ascii = data.isascii()

    def line(self, byte: int) -> int:
        """From 1."""
        return bisect_right(self.starts, byte)

    def column(self, byte: int) -> int:
        """In characters from 1; tree-sitter counts bytes."""
        start = self.starts[bisect_right(self.starts, byte) - 1]
        if self.is_ascii:
            return byte - start + 1
        return len(self.data[start:byte].decode("utf-8", "replace")) + 1


Span = tuple[int, int, int]
"""Start, end and index of a symbol."""


def holders(starts: Sequence[int], spans: Sequence[Span]) -> Iterator[int]:
    """The innermost symbol around each of these ascending offsets: one sweep over both, ``spans`` in source order."""
    stack: list[tuple[int, int]] = []
    upcoming = 0
    for start in starts:
        while upcoming < len(spans) and spans[upcoming][0] <= start:
            while stack and stack[-1][0] <= spans[upcoming][0]:
                stack.pop()
            stack.append(spans[upcoming][1:])
            upcoming += 1
        while stack and stack[-1][0] <= start:
            stack.pop()
        yield stack[-1][1] if stack else 0


def references(
    grammar: Grammar,
    places: Places,
    spans: Sequence[Span],
    calls: Sequence[Node],
    invocations: Sequence[Node],
    bases: Sequence[Node],
) -> list[Reference]:
    """All calls and bases in source order."""
    data = places.data
    # (start, minus the end, order, offset whose line counts, kind, qualifier and name, subject): those around first
    entries: list[tuple[int, int, int, int, ReferenceKind, tuple[str, str], str]] = []
    for node in calls:
        start, end = node.byte_range
        pair = _chain(data[start:end] if end - start <= LONGEST_CHAIN else data[end - LONGEST_CHAIN : end])
        if pair is not None and pair != _IMPORT:
            entries.append((start, -end, len(entries), end, "calls", pair, ""))
    for node in bases:
        start, end = node.byte_range
        pair = _chain(data[max(start, end - LONGEST_CHAIN) : end])
        if pair is not None:
            entries.append((start, -end, len(entries), end, "inherits", pair, grammar.subject(node)))
    for node in invocations:
        pair = grammar.invocation(node)
        if pair is not None:
            start, end = node.byte_range
            entries.append((start, -end, len(entries), start, "calls", pair, ""))
    entries.sort()
    lines, is_ascii = places.starts, places.is_ascii
    found: list[Reference] = []
    for entry, holder in zip(entries, holders([entry[0] for entry in entries], spans), strict=True):
        start, _, _, counted, kind, (qualifier, name), subject = entry
        line = bisect_right(lines, counted)
        begin = lines[line - 1]
        column = start - begin + 1 if is_ascii and begin <= start else places.column(start)
        found.append(_reference((kind, name, qualifier, line, holder, subject, column)))
    return found


_reference: Callable[[tuple[ReferenceKind, str, str, int, int, str, int]], Reference] = partial(
    tuple.__new__, Reference
)
"""As ``Reference(...)`` at a third of its price."""


@lru_cache(maxsize=16_384)
def _chain(written: bytes) -> tuple[str, str] | None:
    text = written.decode("utf-8", "replace")
    return chain(text) if len(text) <= LONGEST_TEXT else chain(text[-LONGEST_TEXT:], whole=False)


def literals(grammar: Grammar, root: Node, places: Places, spans: Sequence[Span]) -> list[DocumentLiteral]:
    """The documents that string literals name. Most files name none, and cost one search of their bytes."""
    spots = [match.start() for match in _DOCUMENT.finditer(places.data)]
    if not spots:
        return []
    strings = grammar.strings_between(root, spots[0], spots[-1] + 1)
    data = places.data
    likely = sorted(node.byte_range for node in strings)
    likely = [(start, end) for start, end in likely if _DOCUMENT.search(data, start, end)]
    found: list[DocumentLiteral] = []
    for (start, end), symbol in zip(likely, holders([start for start, _ in likely], spans), strict=True):
        text = data[start:end].decode("utf-8", "replace")
        line, column = places.line(start), places.column(start)
        found += find_documents(text, line, column, symbol, raw=bool(_RAW_PREFIX.match(text)))
    return list(dict.fromkeys(found))
