"""What source code gives: symbols, references, imports and literals that name documents. Frozen, no database.

Lines count from 1, ends included; byte offsets refer to the UTF-8 form of the text, ends excluded.
What a file has by the thousand is a named tuple, which costs a third of a frozen dataclass to make and to send between
processes.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal, NamedTuple

SymbolKind = Literal[
    "module",
    "class",
    "interface",
    "struct",
    "enum",
    "trait",
    "type",
    "function",
    "method",
    "constructor",
    "constant",
    "variable",
    "field",
    "namespace",
    "macro",
]
TYPE_KINDS = frozenset({"class", "interface", "struct", "enum", "trait", "type"})
CALLABLE_KINDS = frozenset({"function", "method", "constructor", "macro"})

ReferenceKind = Literal["calls", "imports", "inherits"]


class Symbol(NamedTuple):
    kind: SymbolKind
    name: str
    qualified_name: str
    """With module and enclosing symbols, by the separator of the language."""
    signature: str
    doc: str
    start_line: int
    end_line: int
    start_byte: int
    end_byte: int
    parent: int | None
    """Index of the enclosing symbol in the file; the module itself has none."""
    exported: bool
    test: bool

    def key(self, path: str) -> bytes:
        """Stable name of the symbol: a change of its body keeps it, a change of its signature does not."""
        text = "\0".join((path, self.qualified_name, self.signature))
        return hashlib.blake2b(text.encode(), digest_size=16).digest()


class Reference(NamedTuple):
    """A call, or a base that a type inherits from, as written."""

    kind: ReferenceKind
    name: str
    """Last part, for example ``c`` of ``a.b.c()``."""
    qualifier: str
    """What stands before the name: ``a.b``; ``?`` when it is no plain chain of names; empty without one."""
    line: int
    symbol: int
    """Index of the symbol that holds it."""
    subject: str = ""
    """Name of the type that inherits, when the reference does not stand inside it."""
    column: int = 1
    """Of the place where it begins, in characters from 1."""


@dataclass(frozen=True, slots=True)
class Import:
    """One name that a file brings in: ``from module import member as local``."""

    module: str
    member: str
    """Empty: the module itself; ``*``: everything of it."""
    local: str
    line: int


@dataclass(frozen=True, slots=True)
class DocumentLiteral:
    """A run of a string literal that names a document, with its place (``retrieval.md`` 13)."""

    text: str
    """As written."""
    path: str
    """Decoded, ``/`` between the parts; empty when the literal is an address."""
    fragment: str
    url: str
    """The whole address when the run belongs to one; empty otherwise."""
    line: int
    column: int
    symbol: int


@dataclass(frozen=True, slots=True)
class ParsedCode:
    path: str
    language: str
    symbols: tuple[Symbol, ...]
    """The module first, then in source order."""
    references: tuple[Reference, ...]
    imports: tuple[Import, ...]
    literals: tuple[DocumentLiteral, ...]
    package: str
    """Package clause or dotted module path: what imports of the same repository call this file."""
    exports: tuple[tuple[str, str], ...] = ()
    """Names under which others import a symbol of the file, with its name here, where the two differ."""
    error_line: int | None = None
    """First line that the grammar could not read; what stands around it is indexed all the same."""
    generated: bool = False


@dataclass(frozen=True, slots=True)
class NotParsed:
    """A file that gives no symbols. ``reason``: minified, too_large, unknown_language."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Unit:
    """A stretch of lines that belongs together, for the chunker of code files."""

    name: str
    start_line: int
    end_line: int
    children: tuple[Unit, ...] = ()
