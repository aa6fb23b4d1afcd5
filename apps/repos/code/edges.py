"""Writing what source files refer to: calls, bases, imports, and the documents that literals name."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from django.db import connection

from apps.repos.code.reading import CodeRead
from apps.repos.models import Repository
from apps.repos.models_code import CodeNode, EdgeKind
from apps.symbols.modules import FileScope
from apps.symbols.values import TYPE_KINDS, Import, ParsedCode

if TYPE_CHECKING:
    from apps.repos.code.storing import Changes, SourceFile

EDGE_COLUMNS = (
    'repository_id, file_id, source_id, target_id, kind, qualifier, name, subject, line, "column", confidence'
)
LITERAL_COLUMNS = (
    'repository_id, file_id, node_id, written, path, fragment, url, line, "column", state, anchor, candidates'
)


def old_imports(files: Sequence[uuid.UUID]) -> dict[uuid.UUID, set[tuple[str, str, str]]]:
    """(module, member, local name) of every stored import, by file."""
    found: dict[uuid.UUID, set[tuple[str, str, str]]] = defaultdict(set)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT file_id, qualifier, name, subject FROM code_edges WHERE kind = 'imports' AND file_id = ANY(%s)",
            [list(files)],
        )
        for file_id, *entry in cursor.fetchall():
            found[file_id].add(tuple(entry))
    return found


def note_bindings(
    batch: Sequence[tuple[SourceFile, CodeRead]],
    old: Mapping[uuid.UUID, set[tuple[str, str, str]]],
    changes: Changes,
) -> None:
    """Imports that came or went: whoever imports from the file may get something else."""
    for source, read in batch:
        code = read.code
        before = old.get(source.known, set()) if source.known else set()
        now = {(entry.module, entry.member, entry.local) for entry in code.imports} if code is not None else set()
        scope = FileScope(source.path, read.language, code.package if code is not None else "", ())
        changes.bindings += [(scope, Import(*entry, 0)) for entry in sorted(before ^ now) if entry[2]]


def old_targets(files: Sequence[uuid.UUID]) -> dict[tuple[Any, ...], tuple[uuid.UUID, int]]:
    """Where references of the files led until now: they lead there until all are resolved anew."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT source_id, kind, qualifier, name, subject, target_id, confidence FROM code_edges"
            " WHERE file_id = ANY(%s) AND target_id IS NOT NULL AND kind <> 'declares'",
            [list(files)],
        )
        return {tuple(key): (target, confidence) for *key, target, confidence in cursor.fetchall()}


def delete_edges(files: Sequence[uuid.UUID]) -> None:
    if not files:
        return
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM code_edges WHERE file_id = ANY(%s)", [list(files)])
        cursor.execute("DELETE FROM code_document_links WHERE file_id = ANY(%s)", [list(files)])


def write_edges(
    repository: Repository,
    batch: Sequence[tuple[SourceFile, CodeRead]],
    ids: Mapping[str, uuid.UUID],
    nodes: Mapping[str, Sequence[uuid.UUID]],
    targets: Mapping[tuple[Any, ...], tuple[uuid.UUID, int]],
) -> None:
    rows: list[tuple[Any, ...]] = []
    alive = _alive({target for target, _ in targets.values()})
    for source, read in batch:
        if read.code is None:
            continue
        own, file_id = nodes[source.path], ids[source.path]
        for place, symbol in enumerate(read.code.symbols):
            if symbol.parent is not None:
                rows.append(
                    (
                        repository.pk, file_id, own[symbol.parent], own[place], EdgeKind.DECLARES.value, "",
                        symbol.name, "", symbol.start_line, 1, 100,
                    )
                )  # fmt: skip
        for kind, holder, qualifier, name, subject, line, column in _references(read.code):
            target, confidence = targets.get((own[holder], kind, qualifier, name, subject), (None, 0))
            if target not in alive:
                target, confidence = None, 0
            rows.append(
                (
                    repository.pk, file_id, own[holder], target, kind, qualifier, name, subject, line, column,
                    confidence,
                )
            )  # fmt: skip
    with connection.cursor() as cursor:
        copy_rows(cursor, "code_edges", EDGE_COLUMNS, rows)


def _references(code: ParsedCode) -> Iterable[tuple[str, int, str, str, str, int, int]]:
    """(kind, symbol, qualifier, name, subject, line, column), each once; imports stand on the module."""
    types = {
        symbol.name: place for place, symbol in reversed(list(enumerate(code.symbols))) if symbol.kind in TYPE_KINDS
    }
    found: dict[tuple[str, int, str, str, str, int, int], None] = {}
    for reference in code.references:
        holder = types.get(reference.subject, reference.symbol) if reference.subject else reference.symbol
        found[
            reference.kind, holder, reference.qualifier, reference.name, reference.subject, reference.line,
            reference.column,
        ] = None  # fmt: skip
    for entry in code.imports:
        found["imports", 0, entry.module, entry.member, entry.local, entry.line, 1] = None
    return found


def _alive(targets: set[uuid.UUID]) -> set[uuid.UUID]:
    return set(CodeNode.objects.filter(pk__in=targets).values_list("pk", flat=True)) if targets else set()


def write_literals(
    repository: Repository,
    batch: Sequence[tuple[SourceFile, CodeRead]],
    ids: Mapping[str, uuid.UUID],
    nodes: Mapping[str, Sequence[uuid.UUID]],
) -> None:
    rows: list[tuple[Any, ...]] = []
    for source, read in batch:
        seen: set[tuple[int, int, str]] = set()
        for literal in read.code.literals if read.code is not None else ():
            place = (literal.line, literal.column, literal.text)
            if place in seen:
                continue
            seen.add(place)
            rows.append(
                (
                    repository.pk, ids[source.path], nodes[source.path][literal.symbol], literal.text, literal.path,
                    literal.fragment, literal.url, literal.line, literal.column, "unresolved", "", [],
                )
            )  # fmt: skip
    with connection.cursor() as cursor:
        copy_rows(cursor, "code_document_links", LITERAL_COLUMNS, rows)


def copy_rows(cursor: Any, table: str, columns: str, rows: Sequence[tuple[Any, ...]]) -> None:
    if not rows:
        return
    with cursor.copy(f"COPY {table} ({columns}) FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)
