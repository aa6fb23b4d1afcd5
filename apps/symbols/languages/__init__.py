"""The languages that Cograph reads, by file extension. A grammar is loaded when its first file comes."""

from __future__ import annotations

from apps.symbols.languages.base import Grammar
from apps.symbols.languages.ecmascript import JavaScript, Tsx, TypeScript
from apps.symbols.languages.go import Go
from apps.symbols.languages.java import Java
from apps.symbols.languages.python import Python
from apps.symbols.languages.rust import Rust

GRAMMARS: tuple[Grammar, ...] = (Python(), Go(), TypeScript(), Tsx(), JavaScript(), Rust(), Java())

_BY_EXTENSION = {extension: grammar for grammar in GRAMMARS for extension in grammar.extensions}


def grammar_for(path: str) -> Grammar | None:
    """The grammar of a file by its extension, case ignored; None for files of no known language."""
    name = path.rsplit("/", 1)[-1].lower()
    dot = name.rfind(".")
    return _BY_EXTENSION.get(name[dot:]) if dot >= 0 else None


def language_of(path: str) -> str:
    """Name of the language of a file, empty when unknown."""
    grammar = grammar_for(path)
    return grammar.name if grammar else ""
