"""Calls, bases and named documents of one file, each with its place and the symbol that holds it.

A file has thousands of calls: nodes are asked for their range only, the rest is read off the bytes.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate

from tree_sitter import Node

from apps.symbols.languages.base import LONGEST_CHAIN, Grammar, chain, text_of
from apps.symbols.literals import find_documents
from apps.symbols.values import DocumentLiteral, Reference, ReferenceKind

LONGEST_TEXT = 200
_RAW_PREFIX = re.compile(r"[A-Za-z]*r[A-Za-z]*[\"'#]|`", re.IGNORECASE)
_DOCUMENT = re.compile(rb"\.(?:mdx?|markdown|rst)(?![0-9A-Za-z_])", re.IGNORECASE)


class Places:
    """Lines and columns of byte offsets."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._starts = [0, *accumulate(len(line) + 1 for line in data.split(b"\n"))]
        self._is_ascii = data.isascii()

    def line(self, byte: int) -> int:
        """From 1."""
        return bisect_right(self._starts, byte)

    def column(self, byte: int) -> int:
        """In characters from 1; tree-sitter counts bytes."""
        start = self._starts[bisect_right(self._starts, byte) - 1]
        if self._is_ascii:
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
    # (start, order, kind, qualifier and name, offset whose line counts, subject)
    entries: list[tuple[int, int, ReferenceKind, tuple[str, str], int, str]] = []
    kinds: tuple[tuple[ReferenceKind, Sequence[Node]], ...] = (("calls", calls), ("inherits", bases))
    for kind, nodes in kinds:
        for node in nodes:
            start, end = node.byte_range
            pair = _chain(data[max(start, end - LONGEST_CHAIN) : end])
            if pair is not None:
                subject = grammar.subject(node) if kind == "inherits" else ""
                entries.append((start, len(entries), kind, pair, end, subject))
    for node in invocations:
        pair = grammar.invocation(node)
        if pair is not None:
            entries.append((node.start_byte, len(entries), "calls", pair, node.start_byte, ""))
    entries.sort()
    held = holders([start for start, *_ in entries], spans)
    return [
        Reference(kind, name, qualifier, places.line(counts), holder, subject, places.column(start))
        for (start, _, kind, (qualifier, name), counts, subject), holder in zip(entries, held, strict=True)
    ]


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
    likely = sorted((node for node in strings if _DOCUMENT.search(node.text or b"")), key=lambda node: node.start_byte)
    found: list[DocumentLiteral] = []
    for node, symbol in zip(likely, holders([node.start_byte for node in likely], spans), strict=True):
        text = text_of(node)
        line, column = places.line(node.start_byte), places.column(node.start_byte)
        found += find_documents(text, line, column, symbol, raw=bool(_RAW_PREFIX.match(text)))
    return list(dict.fromkeys(found))
