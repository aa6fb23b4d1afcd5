"""The tree of a repository's documents, as the reader and the API show it. Pure values, no queries."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from apps.repos.discovery import Kind

FIRST_STEMS = ("readme", "index", "_index", "overview")
_DIGITS = re.compile(r"(\d+)")


@dataclass(frozen=True, slots=True)
class Entry:
    """A document as the tree needs it."""

    id: UUID
    path: str
    title: str
    slug: str
    kind: str
    state: str = ""
    absence: str = ""

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def folder(self) -> str:
        return self.path.rpartition("/")[0]


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder with its pages, then its folders, in the order of the reader."""

    name: str
    path: str
    pages: Sequence[Entry] = ()
    folders: Sequence[Folder] = ()

    @property
    def total(self) -> int:
        return len(self.pages) + sum(folder.total for folder in self.folders)


@dataclass(frozen=True, slots=True)
class Tree:
    docs: Folder
    files: Folder
    """Documents of the other kinds: workflows, examples, tests, configuration."""
    order: Sequence[Entry] = ()
    """Every page of ``docs`` in the order of the tree: previous and next."""

    @property
    def total(self) -> int:
        return self.docs.total + self.files.total


@dataclass(slots=True)
class _Open:
    pages: list[Entry] = field(default_factory=list)
    folders: dict[str, _Open] = field(default_factory=dict)


def natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """A key by which ``part-2`` stands before ``part-10``."""
    return tuple(
        (0, int(part), "") if part.isascii() and part.isdigit() else (1, 0, part.casefold())
        for part in _DIGITS.split(text)
        if part
    )


def page_key(entry: Entry) -> tuple[object, ...]:
    """README, index and overview first, then by name."""
    stem = entry.name.rpartition(".")[0].casefold() or entry.name.casefold()
    first = FIRST_STEMS.index(stem) if stem in FIRST_STEMS else len(FIRST_STEMS)
    return (first, natural(entry.name), entry.path)


def build(entries: Iterable[Entry]) -> Tree:
    """The tree of ``entries``; a folder that is alone on its way keeps a joined name (``docs/guides``)."""
    docs, files = _Open(), _Open()
    for entry in entries:
        at = docs if entry.kind == Kind.REPO_DOC else files
        for part in entry.folder.split("/") if entry.folder else ():
            at = at.folders.setdefault(part, _Open())
        at.pages.append(entry)
    shown = _close(docs, "", "")
    return Tree(shown, _close(files, "", ""), tuple(_walk(shown)))


def _close(at: _Open, name: str, path: str) -> Folder:
    while name and not at.pages and len(at.folders) == 1:
        [(part, at)] = at.folders.items()
        name, path = f"{name}/{part}", f"{path}/{part}"
    folders = [
        _close(inner, part, f"{path}/{part}" if path else part)
        for part, inner in sorted(at.folders.items(), key=lambda pair: (natural(pair[0]), pair[0]))
    ]
    return Folder(name, path, tuple(sorted(at.pages, key=page_key)), tuple(folders))


def _walk(folder: Folder) -> Iterable[Entry]:
    yield from folder.pages
    for inner in folder.folders:
        yield from _walk(inner)
