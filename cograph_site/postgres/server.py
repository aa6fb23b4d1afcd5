"""Starting, watching and stopping the embedded server."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from cograph_site import processes
from cograph_site.postgres import PostgresError, home
from cograph_site.postgres.account import Account, server_account
from cograph_site.postgres.binaries import Binaries, find

START_SECONDS = 300.0  # recovery after a power cut may take minutes; a line of progress is shown meanwhile
STOP_SECONDS = 3.0
LOG_BYTES = 10_000_000
SMALL_SHARED_MEMORY = 1 << 30


class Server:
    """One PostgreSQL as our direct child. The caller holds the lock of the data folder.

    `settings` are `name=value` pairs on top of the ones for every deployment.
    """

    def __init__(
        self,
        data_folder: Path,
        *,
        say: Callable[[str], None],
        binaries: Binaries | None = None,
        settings: Sequence[str] = (),
        elsewhere: Path = home.ELSEWHERE,
    ) -> None:
        self.account: Account = server_account()
        self.home = home.make(data_folder, self.account, say=say, elsewhere=elsewhere)
        self.binaries = home.usable_binaries(binaries or find(), self.home, self.account, say=say)
        self._say = say
        self._settings = settings
        self._child: subprocess.Popen[bytes] | None = None

    def prepare(self) -> None:
        """Make the cluster when there is none and end a server that an earlier supervisor left behind."""
        if not (self.home.data / "PG_VERSION").exists():
            self._say("making the database cluster")
        home.initialise(self.binaries, self.home, self.account)
        self._end_orphan()

    def start(self) -> None:
        """Start the server and wait until it answers. Raises PostgresError with the end of its log."""
        self.spawn()
        self.wait_ready()

    def spawn(self) -> subprocess.Popen[bytes]:
        """Start the server without waiting."""
        if self.home.log.exists() and self.home.log.stat().st_size > LOG_BYTES:
            self.home.log.replace(self.home.log.with_suffix(".log.1"))
        pairs = [*_settings(), *self._settings]
        arguments = [
            self.binaries.program("postgres"),
            "-D",
            str(self.home.data),
            "-h",
            "",
            "-k",
            str(self.home.sockets),
        ]
        with self.home.log.open("ab") as log:
            self._child = processes.spawn(
                arguments + [part for pair in pairs for part in ("-c", pair)],
                death_signal=signal.SIGINT,  # a fast, clean shutdown
                environment=home.environment(),
                folder=self.home.folder,
                output=log,
                options=self.account.spawn_options(),
            )
        return self._child

    def wait_ready(self) -> None:
        began = told = time.monotonic()
        while not self.answers():
            now = time.monotonic()
            if self._child is not None and self._child.poll() is not None:
                raise PostgresError(f"PostgreSQL did not start; the end of {self.home.log}:\n{self.log_end()}")
            if now - began > START_SECONDS:
                raise PostgresError(f"PostgreSQL does not answer after {START_SECONDS:.0f} s; see {self.home.log}")
            if now - told > 2:
                told = now
                self._say(f"waiting for PostgreSQL to recover ({now - began:.0f} s)")
            time.sleep(0.02)

    def answers(self) -> bool:
        done = subprocess.run(
            [self.binaries.program("pg_isready"), "-q", "-h", str(self.home.sockets)],
            env=home.environment(),
            check=False,
        )
        return done.returncode == 0

    def running(self) -> bool:
        return self._child is not None and self._child.poll() is None

    @property
    def pid(self) -> int:
        if self._child is None:
            raise PostgresError("the server was not started")
        return self._child.pid

    def revive(self) -> bool:
        """Start the server again when it has died. Answers whether it had.

        After a `kill -9` its backends notice within moments and let go of the shared memory; until then a start fails
        and the next call tries again.
        """
        if self.running():
            return False
        self._end_orphan()
        self.spawn()
        return True

    def stop(self) -> None:
        """Stop fast: open transactions are rolled back, clients disconnected, all data written."""
        child = self._child
        if child is None or child.poll() is not None:
            return
        for number, seconds in ((signal.SIGINT, STOP_SECONDS), (signal.SIGQUIT, 1.0), (signal.SIGKILL, 1.0)):
            child.send_signal(number)
            if not processes.wait_gone([child], seconds):
                return

    def log_end(self, lines: int = 6) -> str:
        try:
            return "\n".join(self.home.log.read_text(errors="replace").splitlines()[-lines:])
        except OSError:
            return "(no log)"

    def _end_orphan(self) -> None:
        """End a server of this very cluster whose supervisor is gone (we hold the lock, so nobody watches it)."""
        pid = self._running_elsewhere()
        if pid is None:
            return
        self._say("stopping a database server that an earlier run left behind")
        for number, seconds in ((signal.SIGINT, 5.0), (signal.SIGQUIT, 2.0), (signal.SIGKILL, 2.0)):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                return
            deadline = time.monotonic() + seconds
            while time.monotonic() < deadline:
                if not processes.alive(pid):
                    return
                time.sleep(0.02)
        raise PostgresError(f"the database server with process id {pid} cannot be stopped")

    def _running_elsewhere(self) -> int | None:
        """The process in postmaster.pid, if it lives, serves this folder and is not our child."""
        try:
            pid = int((self.home.data / "postmaster.pid").read_text().split("\n", 1)[0])
        except (OSError, ValueError):
            return None
        if not processes.alive(pid) or (self._child is not None and pid == self._child.pid):
            return None
        if not Path("/proc/self/cwd").exists():
            return pid  # no way to look closer: the pid file is taken at its word
        try:
            return pid if Path(f"/proc/{pid}/cwd").readlink() == self.home.data else None
        except OSError:
            return None  # it ended just now, or belongs to a stranger who got the number after it


def _settings() -> list[str]:
    """Settings of every embedded server.

    synchronous_commit: a small commit takes 0.07 ms instead of 6.9; a power cut may lose the last second, never the
    database. jit: neither source of binaries has a working one. Shared memory: containers often give /dev/shm 64 MB,
    too little for a parallel index build, so such machines use files.
    """
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    pairs = [
        "synchronous_commit=off",
        "max_connections=100",
        "unix_socket_permissions=0700",
        "logging_collector=off",
        "log_timezone=UTC",
        "jit=off",
        "random_page_cost=1.1",
        "work_mem=16MB",
        "max_wal_size=2GB",
        f"shared_buffers={min(max(memory // 8, 128), 1024)}MB",
        f"effective_cache_size={max(memory // 2, 256)}MB",
    ]
    try:
        shared = os.statvfs("/dev/shm")  # noqa: S108  asked for its size only
        if shared.f_bsize * shared.f_blocks < SMALL_SHARED_MEMORY:
            pairs.append("dynamic_shared_memory_type=mmap")
    except OSError:
        pass
    return pairs
