"""The code of a sync: files of known languages are read, parsed and stored, then their references are resolved.

It works from the rows of ``repo_files`` that the sync has just written, by blob id, and reads no document row: the
result is the same with and without documents.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

from django.db import connection

from apps.jobs.models import ItemState
from apps.jobs.running import JobRun
from apps.markup.pool import Failure, ParserPool, PoolClosed
from apps.markup.values import Limits, Skipped
from apps.repos.code.alike import settle
from apps.repos.code.reading import CODE_VERSION, READ_CODE, CodeRead
from apps.repos.code.resolving import resolve
from apps.repos.code.storing import Changes, SourceFile, remove, store
from apps.repos.code.surroundings import configuration_of, layout_of
from apps.repos.discovery import Filters, in_excluded_folder, split
from apps.repos.git.blobs import BlobReader, blob_reader
from apps.repos.git.values import SUBMODULE, SYMLINK
from apps.repos.globs import matches_any
from apps.repos.known import filters_of
from apps.repos.models import Repository, RepositoryFile
from apps.repos.models_code import CodeFile, CodeFileState, CodeState
from apps.repos.reading import is_lfs_pointer
from apps.symbols.languages import language_of

BATCH_FILES = 100
BATCH_BYTES = 2 * 1024 * 1024
REMOVE_AT_ONCE = 200


def takes_code(path: str, filters: Filters) -> bool:
    """Whether a source file is read: of a known language, in no excluded folder, not filtered out."""
    if not language_of(path):
        return False
    folders, _, _ = split(path)
    if in_excluded_folder(folders) and not (filters.include and matches_any(path, filters.include)):
        return False
    if filters.only and not matches_any(path, filters.only):
        return False
    return not (filters.exclude and matches_any(path, filters.exclude))


class CodeStage:
    """Brings files, symbols and edges up to the synced commit. ``changes`` then says what moved."""

    def __init__(self, run: JobRun, repository: Repository, *, mirror: Path, limits: Limits) -> None:
        self.run = run
        self.repository = repository
        self.mirror = mirror
        self.limits = limits
        self.changes = Changes()
        self.state, _ = CodeState.objects.get_or_create(repository=repository)

    def work(self, *, forced: bool = False) -> Changes:
        wanted, gone, problems = self._difference()
        if wanted or gone:
            self._open()
        for at in range(0, len(gone), REMOVE_AT_ONCE):
            with self.run.batch():
                remove(self.repository, gone[at : at + REMOVE_AT_ONCE], self.changes)
        self._read(wanted)
        self._report(problems)
        if self.changes.added or not self.state.next_number:
            settle(self.run, self.repository)
        configuration = configuration_of(self.repository)
        everything = forced or not self.state.is_resolved or self.state.layout != configuration.digest
        if everything or wanted or gone:
            layout = layout_of(configuration, self.mirror)
            resolve(self.run, self.repository, self.changes, layout, everything=everything)
        with self.run.batch():
            CodeState.objects.filter(pk=self.state.pk).update(
                is_resolved=True, layout=configuration.digest, commit=self.repository.synced_commit
            )
        return self.changes

    def _open(self) -> None:
        """From here on a run that dies leaves work to the next one. What this run can tell apart itself, it keeps: the
        state in memory stays as it was."""
        with self.run.batch():
            CodeState.objects.filter(pk=self.state.pk).update(is_resolved=False, is_linked=False)

    def _difference(self) -> tuple[list[SourceFile], list[uuid.UUID], list[uuid.UUID]]:
        """Files to read, files that are gone, and files that stay as they are but have something to tell."""
        filters = filters_of(self.repository)
        known = {
            path: (pk, blob, version, state, reason)
            for pk, path, blob, version, state, reason in CodeFile.objects.filter(
                repository=self.repository
            ).values_list("pk", "path", "blob", "version", "state", "reason")
        }
        wanted: list[SourceFile] = []
        problems: list[uuid.UUID] = []
        rows = (
            RepositoryFile.objects.filter(repository=self.repository, raw_path=None)
            .exclude(mode__in=(SYMLINK, SUBMODULE))
            .extra(select={"has_text": "text IS NOT NULL"})
            .order_by("path")
            .values_list("pk", "path", "blob", "size", "kind", "has_text")
        )
        for pk, path, blob, size, kind, has_text in rows.iterator(chunk_size=5000):
            if not takes_code(path, filters):
                continue
            entry = known.pop(path, None)
            if entry is None or entry[1:3] != (blob, CODE_VERSION) or not has_text:
                if entry is not None and entry[1:4] == (blob, CODE_VERSION, CodeFileState.SKIPPED):
                    problems.append(entry[0])
                    continue
                known_as, was = entry[:2] if entry is not None else (None, "")
                wanted.append(SourceFile(pk, path, blob, size or 0, known_as, bool(kind), was == blob))
            elif entry[4]:
                problems.append(entry[0])
        return wanted, [entry[0] for entry in known.values()], problems

    def _read(self, wanted: Sequence[SourceFile]) -> None:
        if not wanted:
            return
        done = 0
        self.run.progress("code", 0, len(wanted))
        with blob_reader(self.mirror) as blobs, ParserPool(self.limits) as pool, self.run.on_stop(pool.close):
            for group in _groups(wanted):
                for portion in self.run.portions(group, size=len(group), key=_key):
                    batch = list(self._outcomes(portion, blobs, pool))
                    with self.run.batch():
                        store(self.repository, batch, self.changes)
                        for source, read in batch:
                            if read.reason:
                                self._item(source, read)
                    done += len(portion)
                    self.run.progress("code", done, len(wanted))

    def _outcomes(
        self, portion: Sequence[SourceFile], blobs: BlobReader, pool: ParserPool
    ) -> Iterator[tuple[SourceFile, CodeRead]]:
        readable: list[tuple[SourceFile, bytes]] = []
        for source, raw in zip(portion, blobs.read_many([source.blob for source in portion]), strict=True):
            if raw is None:
                yield source, _nothing(source, "unreadable", "The object is missing in the local copy.")
            elif is_lfs_pointer(raw):
                yield source, _nothing(source, "LFS pointer, content not fetched", "A pointer of Git LFS.")
            else:
                readable.append((source, raw))
        results = pool.run(READ_CODE, ((raw, source.path, self.limits) for source, raw in readable))
        try:
            for (source, _), result in zip(readable, results, strict=True):
                outcome = cast("CodeRead | Skipped | Failure", result)
                if isinstance(outcome, Skipped):
                    yield source, _nothing(source, outcome.reason, outcome.message)
                elif isinstance(outcome, Failure):
                    yield source, _nothing(source, "internal", outcome.message)
                else:
                    yield source, outcome
        except PoolClosed:
            self.run.check()
            raise

    def _item(self, source: SourceFile, read: CodeRead) -> None:
        """Source files have an item only when something is to be told; documents have theirs already."""
        if source.document:
            return
        known = ItemState.REPLACED if source.known else ItemState.CREATED
        state = ItemState.SKIPPED if read.code is None else known
        line = read.code.error_line if read.code is not None else None
        self.run.item(
            source.path,
            state,
            reason=read.reason,
            message=read.message,
            line=line,
            size=source.size,
            milliseconds=read.milliseconds,
            chunks=len(read.chunks),
            warning=False,
        )

    def _report(self, problems: Sequence[uuid.UUID]) -> None:
        """What earlier runs found in files that stay as they are."""
        if not problems:
            return
        with self.run.batch(), connection.cursor() as cursor:
            cursor.execute(
                "SELECT c.path, c.state, c.reason, c.message, c.error_line, f.size FROM code_files c JOIN repo_files f"
                " ON f.repository_id = c.repository_id AND f.path = c.path AND f.raw_path IS NULL"
                " WHERE c.id = ANY(%s) AND f.kind = '' ORDER BY c.path",
                [list(problems)],
            )
            for path, state, reason, message, line, size in cursor.fetchall():
                kept = ItemState.SKIPPED if state == CodeFileState.SKIPPED else ItemState.UNCHANGED
                self.run.item(path, kept, reason=reason, message=message, line=line, size=size, warning=False)


def _nothing(source: SourceFile, reason: str, message: str) -> CodeRead:
    return CodeRead(None, language_of(source.path), None, (), (), (), (), 0, reason[:40], message, 0)


def _key(source: SourceFile) -> tuple[str, str]:
    return source.path, source.blob


def _groups(wanted: Sequence[SourceFile]) -> Iterator[list[SourceFile]]:
    group: list[SourceFile] = []
    size = 0
    for source in wanted:
        if group and (len(group) >= BATCH_FILES or size + source.size > BATCH_BYTES):
            yield group
            group, size = [], 0
        group.append(source)
        size += source.size
    if group:
        yield group
