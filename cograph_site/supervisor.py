"""Keeps the portal's processes running: starts them, starts again what dies, ends all of them together.

One thread, no Django: it stays small and has little that can fail.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cograph_site import guard, processes

STEADY_SECONDS = 10.0  # a process that lived so long has recovered from earlier failures
LONGEST_PAUSE = 15.0
STOP_SECONDS = 5.0


@dataclass(slots=True)
class Service:
    """One program that must run. `failures` counts quick deaths in a row; each doubles the pause before a restart."""

    name: str
    arguments: Sequence[str]
    environment: Mapping[str, str]
    child: subprocess.Popen[bytes] | None = None
    began: float = 0.0
    failures: int = 0
    not_before: float = 0.0

    def running(self) -> bool:
        return self.child is not None and self.child.poll() is None


class Guard:
    """Our end of the pipe to the process of `guard.py`."""

    def __init__(self, lock: Path) -> None:
        self._lock = lock
        self._child: subprocess.Popen[bytes] | None = None

    def earlier_one_is_busy(self) -> bool:
        """Whether the guard of an earlier supervisor is still ending that one's processes."""
        with self._lock.open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def start(self) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-I", "-S", guard.__file__, str(self._lock)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={},
            cwd="/",
        )

    def watch(self, pid: int, death_signal: int) -> None:
        self._tell(f"+{pid} {int(death_signal)}\n")

    def forget(self, pid: int) -> None:
        self._tell(f"-{pid}\n")

    def leave(self) -> None:
        if self._child is not None and self._child.stdin is not None:
            self._child.stdin.close()
            processes.wait_gone([self._child], guard.PATIENCE_SECONDS + 1)

    def _tell(self, line: str) -> None:
        if self._child is None or self._child.stdin is None:
            return
        try:
            os.write(self._child.stdin.fileno(), line.encode())
        except BrokenPipeError:
            self._child = None  # somebody killed it; the signal at the parent's death remains


class Supervisor:
    """The services of one data folder, in the order in which they were added."""

    def __init__(self, *, folder: Path, say: Callable[[str], None], guard: Guard) -> None:
        self.services: list[Service] = []
        self._folder = folder
        self._say = say
        self._guard = guard

    def add(self, name: str, arguments: Sequence[str], environment: Mapping[str, str]) -> Service:
        """Start a service; from now on it is kept running."""
        service = Service(name, arguments, environment)
        self.services.append(service)
        self._start(service)
        return service

    def look(self) -> None:
        """Start again what has died. A process that dies at once again and again is tried ever more slowly."""
        now = time.monotonic()
        for service in self.services:
            if service.running():
                continue
            if service.child is not None:
                self._bury(service, now)
            if now >= service.not_before:
                self._start(service)

    def pause(self) -> float:
        """Seconds until the next look is due at the latest."""
        waiting = [service.not_before for service in self.services if not service.running()]
        return max(0.0, min([1.0, *(moment - time.monotonic() for moment in waiting)]))

    def stop(self) -> None:
        """End all services: politely, together, and by force what is left after some seconds."""
        children = [service.child for service in self.services if service.child is not None]
        for child in children:
            processes.signal_group(child.pid, signal.SIGTERM)
        processes.wait_gone(children, STOP_SECONDS)
        for child in children:
            # Whole groups: helpers of a killed process live on in its group.
            processes.signal_group(child.pid, signal.SIGKILL)
        processes.wait_gone(children, 1.0)
        for child in children:
            self._guard.forget(child.pid)

    def _start(self, service: Service) -> None:
        service.began = time.monotonic()
        service.child = processes.spawn(service.arguments, environment=service.environment, folder=self._folder)
        self._guard.watch(service.child.pid, signal.SIGTERM)

    def _bury(self, service: Service, now: float) -> None:
        child = service.child
        if child is None:
            return
        processes.signal_group(child.pid, signal.SIGKILL)
        self._guard.forget(child.pid)
        service.child = None
        service.failures = 0 if now - service.began > STEADY_SECONDS else service.failures + 1
        pause = 0.0 if service.failures <= 1 else min(2.0 ** (service.failures - 2) * 0.5, LONGEST_PAUSE)
        service.not_before = now + pause
        code = child.returncode
        how = f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
        self._say(f"the {service.name} {how}; starting it again" + (f" in {pause:.0f} s" if pause >= 1 else ""))
