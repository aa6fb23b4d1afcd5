"""Starting and ending child processes so that none outlives its parent.

Linux ends a child with its parent by PR_SET_PDEATHSIG. The signal follows the *thread* that started the child and is
forgotten at a change of user, so children are started from the main thread and ask for it after that change.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def end_with_parent(death_signal: int) -> Callable[[], None]:
    """A function for the new child (preexec_fn): ask for `death_signal` when the parent dies."""
    parent = os.getpid()

    def ask() -> None:
        if _libc is not None:
            _libc.prctl(PR_SET_PDEATHSIG, death_signal, 0, 0, 0)
        if os.getppid() != parent:  # it died in between: nobody would ever send the signal
            os._exit(1)

    return ask


def spawn(
    arguments: Sequence[str],
    *,
    death_signal: int = signal.SIGTERM,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    output: IO[bytes] | int | None = None,
    options: Mapping[str, Any] | None = None,
) -> subprocess.Popen[bytes]:
    """Start a child as leader of its own session, so that the terminal's Ctrl-C reaches only us and its whole group
    can be ended at once."""
    return subprocess.Popen(
        arguments,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT if output is not None else None,
        env=environment,
        cwd=folder,
        start_new_session=True,
        preexec_fn=end_with_parent(death_signal),
        **(options or {}),
    )


def signal_group(pid: int, number: int) -> bool:
    """Send a signal to a child's process group; False when nobody is left in it."""
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        return False
    except PermissionError:  # macOS answers so for a group of zombies only
        return False
    return True


def wait_gone(children: Sequence[subprocess.Popen[bytes]], seconds: float) -> list[subprocess.Popen[bytes]]:
    """Wait until the children have ended; those that have not after `seconds` are returned."""
    deadline = time.monotonic() + seconds
    left = list(children)
    while left and time.monotonic() < deadline:
        left = [child for child in left if child.poll() is None]
        if left:
            time.sleep(0.02)
    return left


def alive(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return not Path("/proc/self/stat").exists()
    return state != "Z"


def reap_strangers(known: Collection[int]) -> None:
    """Collect ended processes that are no children of ours by birth. As process 1 of a container we inherit orphans,
    and nobody else would ever collect them."""
    if os.getpid() != 1:
        return
    while True:
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if ended is None or ended.si_pid in known:
            return  # one of ours comes first: it is collected by its owner, the rest at the next look
        os.waitpid(ended.si_pid, 0)
