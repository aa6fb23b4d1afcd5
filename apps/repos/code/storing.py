"""Writing the rows of source files: nodes by stable key, edges, literals, chunks, text; set-based, batch by batch."""

from __future__ import annotations

import hashlib
import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import connection

from apps.indexing.chunks import DocumentText, store_documents
from apps.indexing.chunks import remove_documents as remove_chunks
from apps.repos.code import alike
from apps.repos.code.edges import (
    copy_rows,
    delete_edges,
    note_bindings,
    old_imports,
    old_targets,
    write_edges,
    write_literals,
)
from apps.repos.code.reading import CODE_VERSION, CodeRead
from apps.repos.discovery import is_side
from apps.repos.models import Repository
from apps.repos.models_code import CodeFile, CodeFileState, CodeNode
from apps.repos.stores import CODE_STORE
from apps.symbols.modules import FileScope
from apps.symbols.names import search_keys, segments, trigrams
from apps.symbols.values import Import, ParsedCode, Symbol

NODE_COLUMNS = (
    "id, repository_id, file_id, parent_id, key, language, kind, name, qualified_name, signature, doc, start_line,"
    " end_line, start_byte, end_byte, exported, test, side, segments, search_keys, number"
)
_PLACE = ("kind", "doc", "start_line", "end_line", "start_byte", "end_byte", "exported", "test")
_PLACE_TYPES = ("text", "text", "int4", "int4", "int4", "int4", "boolean", "boolean")


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A source file of the synced commit. ``row`` is its row among ``repo_files``; ``known`` the row it has already;
    ``document``: it is one too."""

    row: int
    path: str
    blob: str
    size: int
    known: uuid.UUID | None
    document: bool
    is_same: bool = False
    """Its content is what was stored: it is read anew because what reads it has changed."""


@dataclass(frozen=True, slots=True)
class Gone:
    """A symbol that a file no longer has."""

    name: str
    qualified_name: str
    kind: str
    path: str


@dataclass(slots=True)
class Changes:
    """What one run did to the names of a repository, for the steps that depend on it."""

    files: set[uuid.UUID] = field(default_factory=set)
    """Files that were stored."""
    names: set[str] = field(default_factory=set)
    """Names that came, went, or mean another symbol now; last parts of packages too."""
    symbols: int = 0
    added: int = 0
    gone: list[Gone] = field(default_factory=list)
    flags: dict[str, str] = field(default_factory=dict)
    """Command line flags that changed files spelled before, with a path of each."""
    env_names: dict[str, str] = field(default_factory=dict)
    bindings: list[tuple[FileScope, Import]] = field(default_factory=list)
    """Imports that came or went, with their files."""

    def merge_package(self, package: str) -> None:
        parts = package.replace("::", ".").replace("/", ".").split(".")
        self.names.update(parts[-2:])


_New = tuple[str, tuple[Any, ...]]
"""Name and row of a new symbol; its number comes last."""


@dataclass(slots=True)
class _Old:
    id: uuid.UUID
    name: str
    qualified_name: str
    place: tuple[Any, ...]


def store(repository: Repository, batch: Sequence[tuple[SourceFile, CodeRead]], changes: Changes) -> None:
    """Make the rows of these files what was read. The caller is inside a batch."""
    ids = {source.path: source.known or uuid.uuid4() for source, _ in batch}
    _write_files(repository, batch, ids, changes)
    _write_texts(batch)
    known = [source.known for source, _ in batch if source.known]
    old = _old_nodes(known)
    targets = old_targets(known)
    note_bindings(batch, old_imports(known), changes)
    gone: list[uuid.UUID] = []
    new: list[_New] = []
    moved: list[tuple[Any, ...]] = []
    nodes: dict[str, list[uuid.UUID]] = {}
    for source, read in batch:
        file_id = ids[source.path]
        nodes[source.path] = _compare(
            repository, file_id, source, read, old.pop(file_id, {}), new, moved, gone, changes
        )
    _forget_nodes(gone)
    delete_edges(known)
    _write_nodes(repository, new, moved)
    write_edges(repository, batch, ids, nodes, targets)
    write_literals(repository, batch, ids, nodes)
    store_documents(
        CODE_STORE,
        source_id=repository.pk,
        documents=[
            DocumentText(
                document_id=ids[source.path],
                title=source.path.rsplit("/", 1)[-1],
                path=source.path,
                chunks=[
                    chunk._replace(section_anchor=str(nodes[source.path][int(chunk.section_anchor)]))
                    for chunk in read.chunks
                ],
                language=repository.language,
                side=is_side(source.path),
                profile=f"code:{CODE_VERSION}",
            )
            for source, read in batch
        ],
    )
    changes.files.update(ids.values())


def remove(repository: Repository, files: Sequence[uuid.UUID], changes: Changes) -> None:
    """Take files that are gone, with all that hangs on them. The caller is inside a batch."""
    if not files:
        return
    ids = list(files)
    for package, _ in _remember(ids, changes).values():
        changes.merge_package(package)
    remove_chunks(CODE_STORE, source_id=repository.pk, document_ids=ids)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT n.id, n.name, n.qualified_name, n.kind, f.path FROM code_nodes n JOIN code_files f"
            " ON f.id = n.file_id WHERE n.file_id = ANY(%s)",
            [ids],
        )
        rows = cursor.fetchall()
        # Whoever imported from them what they imported themselves gets it no more.
        cursor.execute(
            "SELECT DISTINCT subject FROM code_edges WHERE file_id = ANY(%s) AND kind = 'imports'"
            " AND target_id IS NOT NULL AND subject NOT IN ('', '*')",
            [ids],
        )
        changes.names.update(name for (name,) in cursor.fetchall())
    changes.names.update(name for _, name, *_ in rows)
    changes.gone += [Gone(*row) for _, *row in rows]
    delete_edges(ids)
    _forget_nodes([pk for pk, *_ in rows])
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM code_files WHERE id = ANY(%s)", [ids])


def _remember(files: Sequence[uuid.UUID], changes: Changes) -> dict[uuid.UUID, tuple[str, Mapping[str, str]]]:
    """What files were called and spelled before they change. Gives their packages and exports."""
    packages: dict[uuid.UUID, tuple[str, Mapping[str, str]]] = {}
    rows = CodeFile.objects.filter(pk__in=files).values_list("pk", "path", "package", "exports", "flags", "env_names")
    for pk, path, package, exports, flags, env_names in rows:
        packages[pk] = (package, exports)
        changes.flags.update(dict.fromkeys(flags, path))
        changes.env_names.update(dict.fromkeys(env_names, path))
    return packages


def _write_files(
    repository: Repository,
    batch: Sequence[tuple[SourceFile, CodeRead]],
    ids: Mapping[str, uuid.UUID],
    changes: Changes,
) -> None:
    before = _remember([source.known for source, _ in batch if source.known], changes)
    rows: list[CodeFile] = []
    for source, read in batch:
        package = read.code.package if read.code is not None else ""
        id_ = ids[source.path]
        exports = dict(read.code.exports) if read.code is not None else {}
        if (old := before.get(id_, ("", {}))) != (package, exports) or id_ not in before:
            changes.merge_package(package)
            changes.merge_package(old[0])
        rows.append(
            CodeFile(
                id=id_,
                repository=repository,
                path=source.path,
                blob=source.blob,
                language=read.language,
                package=package,
                version=CODE_VERSION,
                state=_state(read),
                reason=read.reason,
                message=read.message,
                error_line=read.code.error_line if read.code is not None else None,
                test=bool(read.code is not None and read.code.symbols[0].test),
                side=is_side(source.path),
                line_count=read.line_count,
                names=list(read.names),
                exports=exports,
                flags=list(read.flags),
                env_names=list(read.env_names),
            )
        )
    written = [field.name for field in CodeFile._meta.concrete_fields if field.name not in {"id", "repository"}]
    CodeFile.objects.bulk_create(rows, update_conflicts=True, unique_fields=["id"], update_fields=written)


def _state(read: CodeRead) -> str:
    if read.code is None:
        return CodeFileState.SKIPPED
    return CodeFileState.PARTIAL if read.reason else CodeFileState.INDEXED


def _write_texts(batch: Sequence[tuple[SourceFile, CodeRead]]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE repo_files AS old SET text = new.text FROM unnest(%s::bigint[], %s::text[]) AS new(id, text)"
            " WHERE old.id = new.id",
            [[source.row for source, _ in batch], [read.text for _, read in batch]],
        )


def _old_nodes(files: Sequence[uuid.UUID]) -> dict[uuid.UUID, dict[bytes, _Old]]:
    found: dict[uuid.UUID, dict[bytes, _Old]] = defaultdict(dict)
    rows = CodeNode.objects.filter(file__in=files).values_list(
        "file_id", "key", "id", "name", "qualified_name", "parent_id", *_PLACE
    )
    for file_id, key, id_, name, qualified, parent, *place in rows:
        found[file_id][bytes(key)] = _Old(id_, name, qualified, (parent, *place))
    return found


def keys_of(code: ParsedCode, path: str) -> list[bytes]:
    """Stable names of the symbols of a file; of several alike (overloads, branches) the later ones get a number."""
    counted: dict[bytes, int] = defaultdict(int)
    keys: list[bytes] = []
    for symbol in code.symbols:
        key = symbol.key(path)
        counted[key] += 1
        if counted[key] > 1:
            key = hashlib.blake2b(key + counted[key].to_bytes(4, "big"), digest_size=16).digest()
        keys.append(key)
    return keys


def _compare(
    repository: Repository,
    file_id: uuid.UUID,
    source: SourceFile,
    read: CodeRead,
    old: dict[bytes, _Old],
    new: list[_New],
    moved: list[tuple[Any, ...]],
    gone: list[uuid.UUID],
    changes: Changes,
) -> list[uuid.UUID]:
    """Ids of the symbols of one file in order; what has to be written is added to the lists."""
    code = read.code
    ids: list[uuid.UUID] = []
    side = is_side(source.path)
    for key, symbol in zip(keys_of(code, source.path), code.symbols, strict=True) if code is not None else ():
        known = old.pop(key, None)
        id_ = known.id if known is not None else uuid.uuid4()
        ids.append(id_)
        parent = ids[symbol.parent] if symbol.parent is not None else None
        place = tuple(getattr(symbol, name) for name in _PLACE)
        if known is None:
            changes.names.add(symbol.name)
            changes.added += 1
            row = _node_row(repository, file_id, id_, parent, key, read.language, symbol, side=side)
            new.append((symbol.name, row))
        elif known.place != (parent, *place):
            if known.place[1] != symbol.kind:
                changes.names.add(symbol.name)
            moved.append((id_, parent, *place))
    for left in old.values():
        changes.names.add(left.name)
        if not source.is_same:  # else it was never there, or is called otherwise now
            changes.gone.append(Gone(left.name, left.qualified_name, left.place[1], source.path))
        gone.append(left.id)
    changes.symbols += len(ids)
    return ids


def _node_row(
    repository: Repository,
    file_id: uuid.UUID,
    id_: uuid.UUID,
    parent: uuid.UUID | None,
    key: bytes,
    language: str,
    symbol: Symbol,
    *,
    side: bool,
) -> tuple[Any, ...]:
    return (
        id_, repository.pk, file_id, parent, key, language, symbol.kind, symbol.name, symbol.qualified_name,
        symbol.signature, symbol.doc, symbol.start_line, symbol.end_line, symbol.start_byte, symbol.end_byte,
        symbol.exported, symbol.test, side, "".join(f" {word}" for word in segments(symbol.name)),
        search_keys(symbol.name, symbol.qualified_name),
    )  # fmt: skip


def _write_nodes(repository: Repository, new: Sequence[_New], moved: Sequence[tuple[Any, ...]]) -> None:
    first = alike.add(repository, [trigrams(name) for name, _ in new])
    rows = [(*row, number) for number, (_, row) in enumerate(new, first)]
    with connection.cursor() as cursor:
        copy_rows(cursor, "code_nodes", NODE_COLUMNS, rows)
        if moved:
            names = ("parent_id", *_PLACE)
            types = ("uuid", "uuid", *_PLACE_TYPES)
            cursor.execute(
                f"UPDATE code_nodes AS old SET {', '.join(f'{name} = new.{name}' for name in names)}"  # noqa: S608
                f" FROM unnest({', '.join(f'%s::{kind}[]' for kind in types)}) AS new(id, {', '.join(names)})"
                " WHERE old.id = new.id",
                [list(column) for column in zip(*moved, strict=True)],
            )


def _forget_nodes(gone: Sequence[uuid.UUID]) -> None:
    """Delete nodes and what hangs on them; references to them become unresolved."""
    if not gone:
        return
    ids = list(gone)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM repo_document_chunk_mentions WHERE node_id = ANY(%s)", [ids])
        cursor.execute("DELETE FROM code_document_links WHERE node_id = ANY(%s)", [ids])
        cursor.execute("DELETE FROM code_edges WHERE source_id = ANY(%s)", [ids])
        cursor.execute("UPDATE code_edges SET target_id = NULL, confidence = 0 WHERE target_id = ANY(%s)", [ids])
        cursor.execute("DELETE FROM code_nodes WHERE id = ANY(%s)", [ids])
