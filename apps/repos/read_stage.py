"""The stage of a sync that reads: blobs from the mirror, through the parser pool, into the tables, batch by batch."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

from apps.indexing.bulk import collector_paused
from apps.jobs.running import JobRun
from apps.markup.pool import Failure, ParserPool, PoolClosed
from apps.markup.values import Limits, Skipped, WordWindow
from apps.repos.git.blobs import BlobReader, blob_reader
from apps.repos.moves import MoveFinder
from apps.repos.plan import KnownDocument, Plan, Taken
from apps.repos.reading import READ_FILE, FileRead, is_lfs_pointer
from apps.repos.recording import Recorder
from apps.repos.storing import Outcome, Writer

BATCH_FILES = 256
"""Each batch writes a row for every term in it: of four times as many files less than half the rows."""
FILES_FOR_TWO = 65
"""A second child pays off only when there is enough for both."""
BATCH_BYTES = 4 * 1024 * 1024
LFS_MESSAGE = "A pointer of Git LFS; the content itself is not fetched."


class ReadStage:
    """Reads what a plan says is new. A batch is read, parsed and stored before the next one is looked at."""

    def __init__(
        self, run: JobRun, writer: Writer, recorder: Recorder, *, mirror: Path, limits: Limits, profile: WordWindow
    ) -> None:
        self.run = run
        self.writer = writer
        self.recorder = recorder
        self.mirror = mirror
        self.limits = limits
        self.profile = profile
        self.done = self.total = 0
        """Files read so far, and to be read."""

    def work_off(self, plan: Plan) -> None:
        """Read in path order. Vanished documents that go on elsewhere leave ``plan.vanished``."""
        work = [*plan.read, *(move.taken for move in plan.moved if move.reread)]
        if not work:
            return
        work.sort(key=lambda taken: taken.entry.raw_path)
        before = {move.taken.entry.raw_path: move.known for move in plan.moved if move.reread}
        finder = MoveFinder(plan.vanished)
        seen: set[bytes] = set()
        self.total = len(work)
        self.run.progress("read", 0, self.total)
        children = 2 if len(work) >= FILES_FOR_TWO and (os.cpu_count() or 1) > 1 else 1
        pool = ParserPool(self.limits, processes=children)
        with blob_reader(self.mirror) as blobs, pool, self.run.on_stop(pool.close):
            for group in _groups(work):
                for portion in self.run.portions(group, size=len(group), key=_content_key):
                    seen.update(taken.entry.raw_path for taken in portion)
                    with collector_paused():
                        self._store(self._outcomes(portion, blobs, pool, before), finder)
                    self.done += len(portion)
                    self.run.progress("read", self.done, self.total)
        plan.vanished = finder.left
        for taken in work:
            if taken.entry.raw_path not in seen:
                self.recorder.quarantined(taken)

    def _store(self, outcomes: Sequence[Outcome], finder: MoveFinder) -> None:
        resolved = finder.resolve(outcomes)
        with self.run.batch():
            for stored in self.writer.store(resolved) if resolved else ():
                self.recorder.stored(stored)
            self.recorder.tally.save(self.run)

    def _outcomes(
        self, portion: Sequence[Taken], blobs: BlobReader, pool: ParserPool, before: Mapping[bytes, KnownDocument]
    ) -> list[Outcome]:
        """What reading the files of one portion gave; files that give nothing are recorded here."""
        readable: list[tuple[Taken, bytes]] = []
        for taken, raw in zip(portion, blobs.read_many([taken.entry.blob for taken in portion]), strict=True):
            if raw is None:
                self.recorder.late_skip(taken, "unreadable", "The object is missing in the local copy.")
            elif is_lfs_pointer(raw):
                self.recorder.late_skip(taken, "LFS pointer, content not fetched", LFS_MESSAGE)
            else:
                readable.append((taken, raw))
        outcomes: list[Outcome] = []
        for number, (taken, result) in enumerate(self._read(readable, pool)):
            self.run.progress("read", self.done + number, self.total)  # a batch may take many seconds
            if isinstance(result, Skipped):
                self.recorder.late_skip(taken, result.reason, result.message)
            elif isinstance(result, Failure):
                self.recorder.error(taken, result.message)
            else:
                known = taken.known or before.get(taken.entry.raw_path)
                outcomes.append(Outcome(taken, result, known, moved=taken.known is None and known is not None))
        return outcomes

    def _read(
        self, readable: Sequence[tuple[Taken, bytes]], pool: ParserPool
    ) -> Iterator[tuple[Taken, FileRead | Skipped | Failure]]:
        payloads = ((raw, taken.entry.path, taken.kind.value, self.limits, self.profile) for taken, raw in readable)
        results = pool.run(READ_FILE, payloads)
        try:
            for (taken, _), result in zip(readable, results, strict=True):
                yield taken, cast("FileRead | Skipped | Failure", result)
        except PoolClosed:
            self.run.check()  # closed because the run must end: say why
            raise


def _content_key(taken: Taken) -> tuple[str, str]:
    return taken.entry.path, taken.entry.blob


def _groups(work: Sequence[Taken]) -> Iterator[list[Taken]]:
    """Portions that are small in number and in bytes, so that memory stays bounded whatever the files are like."""
    group: list[Taken] = []
    size = 0
    for taken in work:
        if group and (len(group) >= BATCH_FILES or size + (taken.entry.size or 0) > BATCH_BYTES):
            yield group
            group, size = [], 0
        group.append(taken)
        size += taken.entry.size or 0
    if group:
        yield group
