"""Edges between files: references as written to the symbols they mean, over what changed (``apps/symbols``)."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from django.db import connection

from apps.jobs.running import JobRun
from apps.repos.code.storing import Changes
from apps.repos.code.surroundings import around, everything_around, modules_of, note_handed_on
from apps.repos.models import Repository
from apps.repos.models_code import CodeFile
from apps.symbols.layout import Layout
from apps.symbols.modules import FileScope
from apps.symbols.resolution import Edge, Known, SymbolIndex
from apps.symbols.values import TYPE_KINDS, Import, Reference

FEW_FILES = 200
MANY_NAMES = 5000
FILES_AT_ONCE = 500
WRITE_AT_ONCE = 10_000


@dataclass(frozen=True, slots=True)
class _File:
    """A file to be resolved, with every name that its references use."""

    id: uuid.UUID
    scope: FileScope
    names: tuple[str, ...]


_ALL_NODES = """
    SELECT n.id, n.kind, n.name, n.qualified_name, f.path, n.language, f.package, n.parent_id, n.test
    FROM code_nodes n JOIN code_files f ON f.id = n.file_id WHERE n.repository_id = %s
"""
_SOME_NODES = (
    _ALL_NODES  # noqa: S608 - joined of fixed texts
    + """ AND (n.file_id = ANY(%s) OR n.parent_id IS NULL OR n.name = ANY(%s) OR n.kind = ANY(%s)
        OR n.id IN (SELECT parent_id FROM code_nodes WHERE repository_id = %s AND name = ANY(%s)))
"""
)


def resolve(run: JobRun, repository: Repository, changes: Changes, layout: Layout, *, everything: bool) -> int:
    """Resolve the references of changed files and of files that use a changed name. Gives how many edges changed."""
    modules = None if everything else modules_of(repository, layout)
    if modules is not None:
        note_handed_on(repository, changes, modules)
    files = _files(repository, changes, everything=everything)
    if not files:
        return 0
    if modules is None or len(files) > FEW_FILES:
        surroundings = everything_around(repository)
    else:
        surroundings = around(repository, {file.scope.path: file.names for file in files}, modules)
    index = SymbolIndex(
        _known(repository, files, surroundings.names),
        layout=layout,
        bindings=surroundings.bindings,
        exports=surroundings.exports,
    )
    changed = 0
    waiting: list[tuple[int, uuid.UUID | None, int]] = []
    for at in range(0, len(files), FILES_AT_ONCE):
        run.check()
        waiting += _changed(index, files[at : at + FILES_AT_ONCE])
        if len(waiting) >= WRITE_AT_ONCE or at + FILES_AT_ONCE >= len(files):
            with run.batch():
                _update(waiting)
            changed += len(waiting)
            waiting = []
    return changed


def _files(repository: Repository, changes: Changes, *, everything: bool) -> list[_File]:
    rows = CodeFile.objects.filter(repository=repository).order_by("path")
    if not everything and len(changes.names) <= MANY_NAMES:
        users = rows.filter(names__overlap=sorted(changes.names)) if changes.names else rows.none()
        wanted = changes.files | set(users.values_list("pk", flat=True))
        rows = rows.filter(pk__in=wanted)
    return [
        _File(pk, FileScope(path, language, package, ()), tuple(names))
        for pk, path, language, package, names in rows.values_list("pk", "path", "language", "package", "names")
    ]


def _known(repository: Repository, files: Sequence[_File], handed_on: Set[str]) -> Iterator[Known]:
    with connection.cursor() as cursor:
        if len(files) > FEW_FILES:
            cursor.execute(_ALL_NODES, [repository.pk])
        else:
            names = sorted({name for file in files for name in file.names} | handed_on)
            ids = [file.id for file in files]
            cursor.execute(_SOME_NODES, [repository.pk, ids, names, list(TYPE_KINDS), repository.pk, names])
        while rows := cursor.fetchmany(5000):
            for row in rows:
                yield Known(*row)


def _changed(index: SymbolIndex, files: Sequence[_File]) -> Iterator[tuple[int, uuid.UUID | None, int]]:
    """(edge, target, confidence) of the references whose meaning is not the stored one."""
    with connection.cursor() as cursor:
        cursor.execute(
            'SELECT id, file_id, source_id, kind, qualifier, name, subject, line, "column", target_id, confidence'
            " FROM code_edges WHERE file_id = ANY(%s) AND kind <> 'declares' ORDER BY id",
            [[file.id for file in files]],
        )
        rows = cursor.fetchall()
    by_file: dict[uuid.UUID, list[Any]] = defaultdict(list)
    for row in rows:
        by_file[row[1]].append(row)
    for file in files:
        own = by_file[file.id]
        imports = [row for row in own if row[3] == "imports"]
        others = [row for row in own if row[3] != "imports"]
        scope = replace(
            file.scope,
            imports=tuple(
                Import(module, member, local, line) for _, _, _, _, module, member, local, line, *_ in imports
            ),
        )
        references = [
            (source, Reference(kind, name, qualifier, line, 0, subject, column))
            for _, _, source, kind, qualifier, name, subject, line, column, *_ in others
        ]
        yield from _differing(imports, index.imports(scope))
        yield from _differing(others, index.resolve(scope, references))


def _differing(rows: Sequence[Any], edges: Iterator[Edge]) -> Iterator[tuple[int, uuid.UUID | None, int]]:
    for row, edge in zip(rows, edges, strict=True):
        target = edge.target if isinstance(edge.target, uuid.UUID) else None
        if (target, edge.confidence) != (row[9], row[10]):
            yield row[0], target, edge.confidence


def _update(rows: Sequence[tuple[int, uuid.UUID | None, int]]) -> None:
    if not rows:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE code_edges AS old SET target_id = new.target, confidence = new.confidence"
            " FROM unnest(%s::bigint[], %s::uuid[], %s::int2[]) AS new(id, target, confidence) WHERE old.id = new.id",
            [list(column) for column in zip(*rows, strict=True)],
        )
