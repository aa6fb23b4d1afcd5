"""Which symbol a name in a document means (``repository-documents.md`` 8.2 and 8.3). Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from apps.repos.discovery import EXAMPLE_FOLDERS, SIDE_FOLDERS, TEST_FOLDERS
from apps.symbols.names import parts_of
from apps.symbols.values import CALLABLE_KINDS, TYPE_KINDS

WHOLE, ENDING, HOLDER, ONLY, NEAREST = 100, 90, 80, 70, 50
MANY = 20
_SET_ASIDE = SIDE_FOLDERS | EXAMPLE_FOLDERS | TEST_FOLDERS
_TOLD = CALLABLE_KINDS | TYPE_KINDS


@dataclass(frozen=True, slots=True)
class Symbol:
    """A node as far as names need it."""

    id: Hashable
    kind: str
    name: str
    qualified_name: str
    path: str
    line: int
    test: bool


class _Entry:
    __slots__ = ("folders", "holders", "is_aside", "order", "parts", "symbol")

    def __init__(self, symbol: Symbol) -> None:
        self.symbol = symbol
        self.parts = tuple(parts_of(symbol.qualified_name))
        *folders, file = symbol.path.split("/")
        self.folders = tuple(folders)
        self.is_aside = symbol.test or _is_aside(symbol.path)
        self.holders = {*self.parts[-2:-1], file.split(".", 1)[0], *folders[-1:]}
        if symbol.kind == "module":
            self.holders = {*self.parts[-2:-1], *folders[-1:]}
        self.order = (symbol.kind not in _TOLD, len(symbol.qualified_name), symbol.path, symbol.line)


def _is_aside(path: str) -> bool:
    return not _SET_ASIDE.isdisjoint(path.lower().split("/")[:-1])


class Resolver:
    """Asked for every name of every document; what it finds for a name depends on the document's folder only."""

    def __init__(self, symbols: Iterable[Symbol]) -> None:
        self._symbols: dict[str, list[Symbol]] = defaultdict(list)
        for symbol in symbols:
            self._symbols[symbol.name].append(symbol)
        self._aside: dict[str, bool] = {}
        self._entries: dict[str, list[_Entry]] = {}
        self._known: dict[tuple[str, str], tuple[Hashable, int] | None] = {}

    def resolve(self, name: str, document_path: str) -> tuple[Hashable, int] | None:
        """(id of the symbol, confidence), or None. Case counts."""
        folder = document_path.rpartition("/")[0]
        key = (name, folder)
        if key not in self._known:
            self._known[key] = self._find(name, tuple(folder.split("/")) if folder else ())
        return self._known[key]

    def _single(self, symbol: Symbol, name: str) -> tuple[Hashable, int]:
        """The common case: one plain name, one symbol that bears it."""
        if symbol.qualified_name == name:
            return symbol.id, WHOLE
        aside = self._aside.get(symbol.path)
        if aside is None:
            aside = self._aside[symbol.path] = _is_aside(symbol.path)
        return symbol.id, NEAREST if aside or symbol.test else ONLY

    def _named(self, name: str) -> list[_Entry]:
        """What bears a name; worked out when it is first asked for, which most names of a repository never are."""
        found = self._entries.get(name)
        if found is None:
            found = self._entries[name] = [_Entry(symbol) for symbol in self._symbols.get(name, ())]
        return found

    def _find(self, name: str, folders: tuple[str, ...]) -> tuple[Hashable, int] | None:
        alone = self._symbols.get(name, ())
        if len(alone) == 1 and name.isidentifier():
            return self._single(alone[0], name)
        parts = tuple(parts_of(name))
        found = self._named(parts[-1]) if parts else []
        if not found:
            return None
        whole = [entry for entry in found if entry.parts == parts]
        if whole:
            return _best(whole, folders, WHOLE)
        if len(parts) > 1:
            ending = [entry for entry in found if entry.parts[-len(parts) :] == parts]
            if ending:
                return _best(ending, folders, ENDING)
            held = [entry for entry in found if parts[-2] in entry.holders]
            return _best(held, folders, HOLDER) if held else None
        plain = [entry for entry in found if not entry.is_aside]
        if len(plain) == 1:
            return plain[0].symbol.id, ONLY
        return _best(found, folders, NEAREST)


def _best(entries: list[_Entry], folders: tuple[str, ...], confidence: int) -> tuple[Hashable, int] | None:
    ranked = min(entries, key=lambda entry: (entry.is_aside, -_shared(entry.folders, folders), *entry.order))
    if len(entries) > MANY and not any(_shared(entry.folders, folders) for entry in entries):
        return None
    return ranked.symbol.id, confidence


def _shared(left: tuple[str, ...], right: tuple[str, ...]) -> int:
    count = 0
    for one, other in zip(left, right, strict=False):
        if one != other:
            break
        count += 1
    return count
