"""The tree of source files: one folder at a time, each with the number of its symbols."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count, QuerySet

from apps.repos.models_code import CodeFile, CodeNode


@dataclass(frozen=True, slots=True)
class Folder:
    name: str
    path: str
    files: int
    symbols: int


@dataclass(frozen=True, slots=True)
class File:
    name: str
    path: str
    language: str
    symbols: int
    reason: str


@dataclass(frozen=True, slots=True)
class Level:
    """What stands directly in a folder; ``path`` is empty for the root."""

    path: str
    folders: Sequence[Folder]
    files: Sequence[File]


@dataclass(frozen=True, slots=True)
class OutlineEntry:
    """A symbol in the outline of its file; ``depth`` 0 stands at the top."""

    node: CodeNode
    depth: int


def level_of(files: QuerySet[CodeFile], folder: str) -> Level:
    """The folders and files right below ``folder``, by one query over what lies below it."""
    prefix = f"{folder}/" if folder else ""
    rows = files.filter(path__startswith=prefix) if prefix else files
    counted = rows.annotate(symbols=Count("nodes")).values_list("path", "language", "symbols", "reason")
    folders: dict[str, list[int]] = {}
    found: list[File] = []
    for path, language, symbols, reason in counted.order_by("path"):
        rest = path[len(prefix) :]
        name, slash, _ = rest.partition("/")
        if slash:
            entry = folders.setdefault(name, [0, 0])
            entry[0] += 1
            entry[1] += symbols
        else:
            found.append(File(name, path, language, symbols, reason))
    return Level(folder, [Folder(name, f"{prefix}{name}", *counts) for name, counts in sorted(folders.items())], found)


def outline_of(nodes: QuerySet[CodeNode]) -> list[OutlineEntry]:
    """The symbols of one file in order, each with its depth below the module."""
    depths: dict[object, int] = {}
    entries: list[OutlineEntry] = []
    for node in nodes.order_by("start_byte", "-end_byte", "id").defer("search_keys"):
        if node.parent_id is None:
            depths[node.pk] = -1
            continue
        depth = depths.get(node.parent_id, -1) + 1
        depths[node.pk] = depth
        entries.append(OutlineEntry(node, min(depth, 3)))
    return entries
