"""What lies around files whose references are resolved: configuration, and the files that they import from."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from django.db import connection

from apps.repos.code.storing import Changes
from apps.repos.discovery import in_excluded_folder, split
from apps.repos.git.blobs import blob_reader
from apps.repos.git.values import SUBMODULE, SYMLINK
from apps.repos.models import Repository, RepositoryFile
from apps.repos.models_code import CodeFile, CodeNode
from apps.symbols.layout import CONFIGURATIONS, MOST_BYTES, Layout, read_layout
from apps.symbols.modules import FileScope, ModulePaths
from apps.symbols.values import Import

MOST_ROUNDS = 6
"""Files that may hand an import on, one after the other."""
_IMPORTS = """
    SELECT f.path, e.qualifier, e.name, e.subject, e.line FROM code_edges e JOIN code_files f ON f.id = e.file_id
    WHERE e.kind = 'imports' AND f.repository_id = %s AND (%s OR f.path = ANY(%s)) ORDER BY e.id
"""


@dataclass(frozen=True, slots=True)
class Configuration:
    """``digest`` changes with what the configuration says: then every import may mean something else."""

    blobs: tuple[tuple[str, str], ...]

    @property
    def digest(self) -> str:
        return hashlib.sha256(repr(self.blobs).encode()).hexdigest() if self.blobs else ""


def configuration_of(repository: Repository) -> Configuration:
    endings = "|".join(name.replace(".", r"\.") for name in CONFIGURATIONS)
    rows = (
        RepositoryFile.objects.filter(
            repository=repository, raw_path=None, size__lte=MOST_BYTES, path__regex=f"(^|/)({endings})$"
        )
        .exclude(mode__in=(SYMLINK, SUBMODULE))
        .order_by("path")
        .values_list("path", "blob")
    )
    return Configuration(tuple((path, blob) for path, blob in rows if not in_excluded_folder(split(path)[0])))


def layout_of(configuration: Configuration, mirror: Path) -> Layout:
    if not configuration.blobs:
        return Layout()
    with blob_reader(mirror) as reader:
        texts = reader.read_many([blob for _, blob in configuration.blobs])
        pairs = zip(configuration.blobs, texts, strict=True)
        return read_layout({path: raw.decode("utf-8", "replace") for (path, _), raw in pairs if raw is not None})


@dataclass(slots=True)
class Surroundings:
    """What files hand on that others import from them: ``bindings`` and ``exports`` as a ``SymbolIndex`` takes them,
    ``names`` those that symbols bear at the end of such chains."""

    bindings: dict[str, list[Import]] = field(default_factory=lambda: defaultdict(list))
    exports: dict[str, Mapping[str, str]] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)


def modules_of(repository: Repository, layout: Layout) -> ModulePaths:
    rows = CodeFile.objects.filter(repository=repository).values_list("path", "language", "package")
    return ModulePaths((FileScope(path, language, package, ()) for path, language, package in rows), layout)


def everything_around(repository: Repository) -> Surroundings:
    found = Surroundings()
    _load(repository, found, None)
    return found


def around(repository: Repository, files: Mapping[str, Iterable[str]], modules: ModulePaths) -> Surroundings:
    """For some files, with the names that each uses: only what their imports can lead to is read."""
    found = Surroundings()
    _load(repository, found, list(files))
    loaded = set(files)
    asked: dict[str, set[str]] = {path: set(names) for path, names in files.items()}
    is_first = True
    for _ in range(MOST_ROUNDS):
        following: dict[str, set[str]] = defaultdict(set)
        for path, names in asked.items():
            wanted = {found.exports.get(path, {}).get(name, name) for name in names}
            for entry in found.bindings.get(path, ()):
                if not (is_first or entry.local == "*" or entry.local in wanted):
                    continue
                members = wanted if entry.member in {"", "*"} else {entry.member}
                for target in modules.find(modules.scopes[path], entry.module):
                    following[target] |= members
        missing = [path for path in following if path not in loaded]
        _load(repository, found, missing)
        loaded.update(missing)
        for path, names in following.items():
            found.names.update(names, (found.exports.get(path, {}).get(name, name) for name in names))
        if not following or (not missing and not is_first):
            break
        asked, is_first = following, False
    return found


def _load(repository: Repository, found: Surroundings, paths: Sequence[str] | None) -> None:
    """Imports and exports of files, of all without ``paths``."""
    if paths is not None and not paths:
        return
    with connection.cursor() as cursor:
        cursor.execute(_IMPORTS, [repository.pk, paths is None, list(paths or ())])
        for path, module, member, local, line in cursor.fetchall():
            found.bindings[path].append(Import(module, member, local, line))
    rows = CodeFile.objects.filter(repository=repository).exclude(exports={})
    if paths is not None:
        rows = rows.filter(path__in=paths)
    found.exports.update(rows.values_list("path", "exports"))


def note_handed_on(repository: Repository, changes: Changes, modules: ModulePaths) -> None:
    """Files that import what a changed file imports itself may mean something else now: its names count as changed,
    as long as they lead to files of the repository."""
    everything: set[str] = set()
    for scope, entry in changes.bindings:
        targets = modules.find(scope, entry.module)
        if targets and entry.local == "*":
            everything.update(targets)
        elif targets:
            changes.names.add(entry.local)
    if everything:
        nodes = CodeNode.objects.filter(repository=repository, file__path__in=everything)
        changes.names.update(nodes.values_list("name", flat=True))
