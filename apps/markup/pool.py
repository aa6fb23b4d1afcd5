"""Parsing in child processes that can be killed (``markup.md`` 1.7).

A file that takes too long, too much memory or crashes a native parser costs itself and nothing else: its child is
killed, a new one goes on with the next file. Work is handed out in batches, so one file costs one pickle each way and
no process. Results come in the order of the payloads.

Plain subprocesses, not ``multiprocessing``: workers of a task queue are daemons, and these may not have children by
that module; a fork of a process with threads and database connections is no option either.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import selectors
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from apps.markup.pool_child import LENGTH, dump
from apps.markup.values import Limits, Skipped

START_SECONDS = 60.0
"""A child that has not loaded its modules by then will not come."""
BATCH_FILES = 32
BATCH_BYTES = 1 << 20
_READ = 1 << 18
_ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "SYSTEMROOT", "TMPDIR")


class PoolClosed(Exception):
    """The pool was closed while work was under way (a cancelled job)."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The function raised for this payload: a fault of ours, told with the exception's name and text."""

    message: str


class _Child:
    """One process and the batch it works on."""

    def __init__(self, function: str, limits: Limits) -> None:
        code = f"import sys; sys.path[:] = {sys.path!r}; from apps.markup.pool_child import main; main(sys.argv[1:])"
        command = [sys.executable, "-c", code, function, str(limits.parse_seconds), str(limits.parse_memory_mb)]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # SECURITY: what parses hostile files gets no secret of the deployment in its environment.
            env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
            start_new_session=True,
        )
        if self.process.stdin is None or self.process.stdout is None:
            raise RuntimeError("a parser process has no pipes")
        self.writing = self.process.stdin
        self.output = self.process.stdout
        self.reading = self.output.fileno()
        self.ready = False
        self.fresh = True
        self.batch: int | None = None
        self.waiting: deque[tuple[Any, ...]] = deque()
        self.since = time.monotonic()
        self._buffer = bytearray()
        os.set_blocking(self.reading, False)

    def send(self, batch: int, payloads: Iterable[tuple[Any, ...]]) -> None:
        """Hand over a batch. The child reads it whole before it answers, so this cannot block for ever."""
        self.batch = batch
        self.waiting = deque(payloads)
        frame = dump(list(self.waiting))
        self.since = time.monotonic()
        try:
            self.writing.write(LENGTH.pack(len(frame)))
            self.writing.write(frame)
            self.writing.flush()
        except BrokenPipeError:
            return  # the end of its output tells the rest

    def frames(self) -> tuple[list[tuple[str, Any]], bool]:
        """Whole frames that have arrived, and whether the child has closed its pipe."""
        ended = False
        while True:
            try:
                data = os.read(self.reading, _READ)
            except BlockingIOError:
                break
            if not data:
                ended = True
                break
            self._buffer += data
            if len(data) < _READ:
                break
        found: list[tuple[str, Any]] = []
        at = 0
        while len(self._buffer) - at >= LENGTH.size:
            (size,) = LENGTH.unpack_from(self._buffer, at)
            if len(self._buffer) - at - LENGTH.size < size:
                break
            at += LENGTH.size
            found.append(pickle.loads(memoryview(self._buffer)[at : at + size]))  # noqa: S301 our own child's pickle
            at += size
        del self._buffer[:at]
        return found, ended

    def kill(self) -> int:
        """End the process and give its return code."""
        self.process.kill()
        code = self.process.wait()
        with contextlib.suppress(BrokenPipeError):  # what was buffered for a child that died
            self.writing.close()
        self.output.close()
        return code


class ParserPool:
    """A few killable child processes that call one function of the project for many payloads.

    Use it as a context manager; ``close`` (from any thread) ends all children at once.
    """

    def __init__(self, limits: Limits, *, processes: int = 1) -> None:
        self._limits = limits
        self._processes = processes
        self._idle: dict[str, list[_Child]] = {}
        self._busy: list[_Child] = []
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Kill all children; a ``run`` under way raises `PoolClosed`."""
        self._closed = True
        for child in list(self._busy):
            child.process.kill()
        while self._idle:  # a run that ends right now, in its own thread, may still put children there
            _, children = self._idle.popitem()
            for child in children:
                child.kill()

    def run(self, function: str, payloads: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        """Call ``package.module:function`` with each payload as arguments; yield the results in order.

        A result is what the function returned, a `Skipped` (``time_limit``, ``memory_limit``, ``nesting``) or a
        `Failure`. Payloads are taken as they are needed: two batches for each child at most.
        """
        if self._closed:
            raise PoolClosed
        run = _Run(self._limits, function, payloads)
        run.children = [self._take(function) for _ in range(self._processes)]
        self._busy = run.children
        try:
            while (batch := run.next_batch()) is not None:
                while not run.complete(batch):
                    self._step(run)
                yield from run.take(batch)
            while run.unsettled():
                self._step(run)
        finally:
            self._busy = []
            for child in run.children:
                if child.batch is None and not self._closed and child.process.poll() is None:
                    self._idle.setdefault(function, []).append(child)
                else:
                    child.kill()
            self._end_late_comers()
            run.selector.close()

    def _end_late_comers(self) -> None:
        """Children that were set aside while the pool was being closed."""
        if self._closed:
            self.close()

    def _step(self, run: _Run) -> None:
        try:
            if not self._closed:
                run.step()
        except RuntimeError:
            if not self._closed:
                raise
        if self._closed:
            raise PoolClosed

    def _take(self, function: str) -> _Child:
        idle = self._idle.get(function)
        return idle.pop() if idle else _Child(function, self._limits)


class _Run:
    """The state of one `ParserPool.run`: batches by number, results by batch."""

    def __init__(self, limits: Limits, function: str, payloads: Iterable[tuple[Any, ...]]) -> None:
        self.limits = limits
        self.function = function
        self.children: list[_Child] = []
        self.selector = selectors.DefaultSelector()
        self._payloads = iter(payloads)
        self._results: dict[int, list[Any]] = {}
        self._sizes: dict[int, int] = {}
        self._queue: deque[tuple[int, list[tuple[Any, ...]]]] = deque()
        self._made = 0
        self._taken = 0

    def next_batch(self) -> int | None:
        """Number of the batch whose results are due next, None at the end."""
        self._fill()
        return self._taken if self._taken < self._made else None

    def _fill(self) -> None:
        while self._made - self._taken < 2 * len(self.children):
            batch: list[tuple[Any, ...]] = []
            size = 0
            for payload in self._payloads:
                batch.append(payload)
                size += sum(len(part) for part in payload if isinstance(part, (bytes, str)))
                if len(batch) >= BATCH_FILES or size >= BATCH_BYTES:
                    break
            if not batch:
                return
            self._queue.append((self._made, batch))
            self._sizes[self._made] = len(batch)
            self._results[self._made] = []
            self._made += 1

    def complete(self, batch: int) -> bool:
        return len(self._results[batch]) == self._sizes[batch]

    def unsettled(self) -> bool:
        """Whether a child has answered all of its batch but not yet said that it is free."""
        return any(child.batch is not None for child in self.children)

    def take(self, batch: int) -> list[Any]:
        self._taken += 1
        del self._sizes[batch]
        return self._results.pop(batch)

    def step(self) -> None:
        """Feed idle children, wait for one answer or deadline, deal with it."""
        for child in self.children:
            if child.ready and child.batch is None and self._queue:
                child.send(*self._queue.popleft())
            if child.reading not in self.selector.get_map():
                self.selector.register(child.reading, selectors.EVENT_READ, child)
        working = [child for child in self.children if child.waiting or not child.ready]
        now = time.monotonic()
        wait = min((self._deadline(child) - now for child in working), default=1.0)
        for key, _ in self.selector.select(min(max(wait, 0.0), 1.0)):
            self._read(key.data)
        now = time.monotonic()
        for child in [child for child in self.children if child.waiting and child.ready]:
            # What arrived is read before anybody is judged: a slow reader must not cost a file.
            if now >= self._deadline(child) and not self._read(child):
                limit = f"not done within {self.limits.parse_seconds:g} seconds"
                self._lose(child, Skipped("time_limit", limit))
        for child in [child for child in self.children if not child.ready]:
            if now >= self._deadline(child):
                child.kill()
                raise RuntimeError("a parser process did not start")

    def _deadline(self, child: _Child) -> float:
        return child.since + (self.limits.parse_seconds if child.ready else START_SECONDS)

    def _read(self, child: _Child) -> bool:
        """Take over what a child has sent; say whether there was anything (an end counts)."""
        frames, ended = child.frames()
        for kind, value in frames:
            child.since = time.monotonic()
            if kind == "ready":
                child.ready = True
            elif kind == "end":
                child.batch = None
                if value:
                    self._replace(child)
                    return True
            elif kind == "memory" and not child.fresh:
                # Other files' leftovers may have filled the space: a second try in a new child is the fair one.
                self._replace(child)
                return True
            else:
                self._answer(child, self._result(kind, value))
        if ended:
            if not child.ready:
                raise RuntimeError(f"a parser process could not start (code {child.kill()})")
            self._died(child)
        return bool(frames) or ended

    def _result(self, kind: str, value: Any) -> Any:
        if kind == "value":
            return value
        if kind == "memory":
            return Skipped("memory_limit", f"needs more than {self.limits.parse_memory_mb} MiB")
        if kind == "nesting":
            return Skipped("nesting", "nested too deep")
        return Failure(value)

    def _answer(self, child: _Child, result: Any) -> None:
        child.waiting.popleft()
        child.fresh = False
        if child.batch is not None:
            self._results[child.batch].append(result)

    def _died(self, child: _Child) -> None:
        if not child.waiting:
            self._replace(child)
        elif child.fresh:
            code = child.kill()
            self._lose(child, Skipped("memory_limit", f"the parser process ended (signal {-code})"))
        else:
            self._replace(child)

    def _lose(self, child: _Child, result: Skipped) -> None:
        """Give up the file under way and hand the rest of its batch to a new child."""
        self._answer(child, result)
        self._replace(child)

    def _replace(self, child: _Child) -> None:
        self.selector.unregister(child.reading)
        child.kill()
        fresh = _Child(self.function, self.limits)
        self.children[self.children.index(child)] = fresh
        if child.batch is not None and child.waiting:
            self._queue.appendleft((child.batch, list(child.waiting)))
