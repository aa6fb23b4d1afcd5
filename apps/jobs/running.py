"""What the function of a kind is given: its job, progress, the report, and the fence around every write."""

from __future__ import annotations

import copy
import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from django.conf import settings
from django.db import transaction

from apps.access.cursors import prepared_cursor
from apps.jobs import poison
from apps.jobs.errors import Cancelled, LeaseLost, Stopped
from apps.jobs.items import Item, item_counts, write_items
from apps.jobs.models import QUARANTINE_LOSSES, WARNING_STATES, ItemState, Job, JsonObject
from apps.jobs.statements import HOLD, PROGRESS, SAID

if TYPE_CHECKING:
    from apps.access.sources import Source

T = TypeVar("T")

PROGRESS_SECONDS = 1.0
ITEMS_IN_MEMORY = 1000


class JobRun:
    """One attempt of one job, in the hands of its kind's function.

    All derived rows are written inside ``with run.batch():``; network, git and parsing stay outside of it. Call
    ``check()`` often (it costs nothing) wherever no batch begins for seconds.
    """

    def __init__(self, job: Job) -> None:
        if job.lease_token is None:
            raise ValueError("only a claimed job can run")
        self.job = job
        self.token: UUID = job.lease_token
        self.params: JsonObject = job.params
        self.counters: JsonObject = dict(job.counters)
        self.stop_reason: type[Stopped] | None = None
        self.stopping = threading.Event()
        self._on_stop: list[Callable[[], object]] = []
        self._items: list[Item] = []
        self._notes: list[JsonObject] = list(job.notes)
        self._outcome = job.outcome
        self._progress: tuple[str, int | None, int | None] = ("", None, None)
        self._unwritten = False
        self._written_at = 0.0
        self._stages: list[JsonObject] = []
        self._new_stage = False
        self._written: tuple[JsonObject, list[JsonObject], str, UUID | None] | None = None
        """Counters, notes, outcome and whose report it is, as they are stored."""
        self._files_under_way = False
        self._in_batch = False
        self._source: Source | None = None
        self._last_writes: list[Callable[[], object]] = []
        self.changed_nothing = False
        """Set by a run that left everything as it was: what follows on changes has nothing to do then."""

    # -- what it is about

    @property
    def source_key(self) -> tuple[str, UUID]:
        """(kind, id) of the source. Raises ValueError for a job of the deployment."""
        key = self.job.source_key
        if key is None:
            raise ValueError(f"{self.job.kind} is about no source")
        return key

    @property
    def source(self) -> Source:
        """The source itself, freshly read. Raises Cancelled when it was deleted."""
        source, self._source = self._source, None
        return source or self._load()

    def begin(self) -> None:
        """Make sure that the source is still there; what was read for that is its first ``source``.

        Raises Cancelled."""
        if self.job.source_id is not None:
            self._source = self._load()

    def _load(self) -> Source:
        from apps.jobs.sources import load_source

        source = load_source(*self.source_key)
        if source is None:
            raise Cancelled("The source was deleted.")
        return source

    # -- stopping

    def check(self) -> None:
        """Raise Cancelled, LeaseLost, DeadlineOver or WorkerEnds when the run must end."""
        if self.stop_reason is not None:
            raise self.stop_reason

    def stop(self, reason: type[Stopped]) -> None:
        """Raise the stop flag, from any thread, and end child processes."""
        if self.stop_reason is None:
            self.stop_reason = reason
        self.stopping.set()
        for callback in list(self._on_stop):
            callback()

    @contextmanager
    def on_stop(self, callback: Callable[[], object]) -> Iterator[None]:
        """While inside, ``callback`` is called from another thread when the run must end: kill a child process, close a
        socket. It must be quick and may be called more than once."""
        self._on_stop.append(callback)
        try:
            if self.stopping.is_set():
                callback()
            yield
        finally:
            self._on_stop.remove(callback)

    # -- the fence

    @contextmanager
    def batch(self) -> Iterator[None]:
        """One transaction that holds the job's row: rows, items, counters and progress are stored together, or not.

        Raises LeaseLost when another worker may own the job, Cancelled when it was cancelled; then nothing was written.
        Do not wait for a network or compute for long inside: a transaction idle for a whole lease is ended. A batch
        within a batch is part of it.
        """
        if self._in_batch:
            yield
            return
        with self._fenced():
            yield
            self._write()
            if self._files_under_way:
                poison.clear(self.job)
        self._files_under_way = False

    @contextmanager
    def _fenced(self) -> Iterator[None]:
        self.check()
        items_before = len(self._items)
        try:
            with transaction.atomic():
                self._hold()
                self._in_batch = True
                yield
        except BaseException:
            del self._items[items_before:]
            self._distrust()
            raise
        finally:
            self._in_batch = False
        self._items.clear()

    def _hold(self) -> None:
        with prepared_cursor() as cursor:
            # A stopped process would keep the row locked for ever; the server ends its transaction after a lease.
            lease = str(int(settings.COGRAPH.jobs.lease_seconds * 1000))
            cursor.execute(HOLD, [lease, self.job.pk, self.token])
            row = cursor.fetchone()
        if row is None:
            self.stop(LeaseLost)
        elif row[0]:
            self.stop(Cancelled)
        self.check()

    # -- progress

    def progress(self, stage: str, done: int | None = None, total: int | None = None) -> None:
        """Say where the work stands. ``done`` counts through all stages of an attempt and never falls: a smaller number
        keeps the larger one. ``total`` None means unknown. Written at most once a second, stage changes at once."""
        old_stage, old_done, _ = self._progress
        if old_done is not None:
            done = max(old_done, done or 0)
        if done is not None and total is not None:
            total = max(total, done)
        if (stage, done, total) == self._progress:
            return
        self._progress = (stage, done, total)
        self._unwritten = True
        if stage != old_stage:
            self._stages.append({"stage": stage, "at": time.time()})
            self._new_stage = True
        if not self._in_batch and (stage != old_stage or time.monotonic() - self._written_at >= PROGRESS_SECONDS):
            self._write_progress()

    def _write_progress(self) -> None:
        stage, done, total = self._progress
        self._unwritten = False
        self._written_at = time.monotonic()
        stages = json.dumps(self._stages) if self._new_stage else None
        changes = {"stage": stage[:80], "done": done, "total": total}
        self.job.counting_from, self.job.counting_base = self._own_row(
            PROGRESS, {**changes, "stages": stages, "id": self.job.pk, "token": self.token}
        )
        self._new_stage = False
        self._take_over(changes)

    def _own_row(self, statement: str, values: Sequence[Any] | Mapping[str, Any]) -> tuple[Any, ...]:
        """What a statement on the job's row returned. Raises LeaseLost when the row is not this run's any more."""
        with prepared_cursor() as cursor:
            cursor.execute(statement, values)
            row: tuple[Any, ...] | None = cursor.fetchone()
        if row is None:
            self.stop(LeaseLost)
            raise self.stop_reason or LeaseLost
        return row

    def _take_over(self, changes: Mapping[str, Any]) -> None:
        for name, value in changes.items():
            setattr(self.job, name, value)

    # -- the report

    def item(
        self,
        path: str,
        state: ItemState | str,
        *,
        reason: str = "",
        message: str = "",
        line: int | None = None,
        column: int | None = None,
        size: int | None = None,
        milliseconds: int | None = None,
        chunks: int | None = None,
        warning: bool | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        """Report one file: once a path, the last word counts. Sizes in bytes. ``warning`` defaults to whether the state
        is error or quarantined; pass True for a file that was taken or skipped with something its author should mend.
        Stored with the batch it is reported in, otherwise with the next one."""
        state = ItemState(state)
        warned = state in WARNING_STATES if warning is None else warning
        self._items.append(
            Item(path, state, reason, message, line, column, size, milliseconds, chunks, warned, dict(details or {}))
        )
        if len(self._items) >= ITEMS_IN_MEMORY and not self._in_batch:
            self._store_items()

    def reports_as(self, job_id: UUID | None) -> None:
        """Make the lines of another job's report those of this one, which has none of its own (None: it has)."""
        self.job.same_as_id = job_id

    def _store_items(self) -> None:
        """Between batches; what is under way stays so."""
        with self._fenced():
            self._write()

    def item_counts(self) -> dict[str, int]:
        """Items so far by state, earlier attempts of this job included; ``warnings`` counts the warned ones."""
        if self._items and not self._in_batch:
            self._store_items()
        elif self._items:
            self._write()
        return item_counts(self.job)

    def warn(self, code: str, message: str, **details: Any) -> None:
        """A warning about the whole run. The same one twice counts once."""
        note = {"code": code, "message": message, **details}
        if note not in self._notes:
            self._notes.append(note)

    def note(self, text: str) -> None:
        """The sentence that stands first in the report."""
        self._outcome = text

    def in_the_end(self, write: Callable[[], object]) -> None:
        """Have ``write`` called in the transaction that settles the job as a success. For the few rows of a run that
        found nothing to do: a batch costs more than they do. It may be called again after a rollback."""
        self._last_writes.append(write)

    def write_last(self) -> None:
        """What was left for the end; the caller is inside the finishing transaction."""
        for write in self._last_writes:
            write()

    def flush(self) -> None:
        """Write what is still in memory; the caller is inside ``batch()`` or the finishing transaction."""
        self._write()
        self._distrust()  # the caller's transaction may fail and be tried again

    def _distrust(self) -> None:
        """What was written may have been rolled back: the next write repeats all of it."""
        self._written = None
        self._unwritten = True
        self._new_stage = bool(self._stages)

    def _write(self) -> None:
        if self._items:
            write_items(self.job, self._items)
        stage, done, _ = self._progress
        if (self._unwritten and (stage or done is not None)) or self._new_stage:
            self._write_progress()
        said = copy.deepcopy((self.counters, self._notes, self._outcome, self.job.same_as_id))
        if said != self._written:
            counters, notes, outcome, same_as = said
            values = [json.dumps(counters), json.dumps(notes), outcome, same_as, self.job.pk, self.token]
            self._own_row(SAID, values)
            self._take_over({"counters": counters, "notes": notes, "outcome": outcome})
            self._written = said

    # -- files that kill workers

    def under_way(self, files: Iterable[tuple[str, str]]) -> None:
        """Record, in a transaction of its own, the (path, content id) pairs that are worked on from now until the next
        ``batch()`` commits. Call it outside transactions, before the work that could kill the process."""
        self._files_under_way = True
        poison.record(self.job, list(files))

    def quarantined(self, path: str, content_id: str) -> bool:
        """Whether this version of the file has killed its worker too often."""
        return poison.losses(self.job).get((path, content_id), 0) >= QUARANTINE_LOSSES

    def portions(
        self, entries: Sequence[T], *, size: int, key: Callable[[T], tuple[str, str]]
    ) -> Iterator[Sequence[T]]:
        """``entries`` in portions of at most ``size``, each recorded as under way; what was under way when a worker was
        lost comes alone, and what is quarantined does not come but gets its item. ``key`` gives (path, content id). The
        caller stores each portion in one ``batch()`` before it takes the next."""
        suspects = poison.losses(self.job)
        plain: list[T] = []
        alone: list[T] = []
        for entry in entries:
            losses = suspects.get(key(entry), 0)
            if losses >= QUARANTINE_LOSSES:
                self.report_quarantined(key(entry)[0], losses)
            elif losses:
                alone.append(entry)
            else:
                plain.append(entry)
        for portion in [[entry] for entry in alone] + [plain[at : at + size] for at in range(0, len(plain), size)]:
            self.check()
            self.under_way(key(entry) for entry in portion)
            yield portion

    def report_quarantined(self, path: str, losses: int = QUARANTINE_LOSSES) -> None:
        """The item of a file that is left out."""
        self.item(
            path,
            ItemState.QUARANTINED,
            reason="worker_lost",
            message=f"A worker was lost {losses} times while it read this version of the file. It is left out until its"
            " content changes or somebody who may write retries it.",
        )
