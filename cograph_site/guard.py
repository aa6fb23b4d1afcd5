"""The last line against orphans: a tiny process that outlives a killed supervisor and then ends all it had started.

Run as a script, without the rest of the project. The supervisor writes `+PID SIGNAL` for each process group that it
starts and `-PID` for each that has ended. When it closes the pipe, by leaving or by being killed, the groups that are
left get their signal, and what is still there eight seconds later is killed. (A cluster whose worker was lost ignores
SIGTERM, so the signal at the parent's death is not enough.)
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import sys
import time

PATIENCE_SECONDS = 8.0


def main(lock_path: str) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    groups: dict[int, int] = {}
    with open(lock_path, "a") as lock:  # noqa: PTH123  pathlib would double this process's start time
        fcntl.flock(lock, fcntl.LOCK_EX)
        for line in sys.stdin:
            sign, rest = line[0], line[1:].split()
            if sign == "+":
                groups[int(rest[0])] = int(rest[1])
            else:
                groups.pop(int(rest[0]), None)
        end(groups)


def end(groups: dict[int, int]) -> None:
    for group, number in groups.items():
        send(group, number)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while groups and time.monotonic() < deadline:
        time.sleep(0.05)
        groups = {group: number for group, number in groups.items() if send(group, 0)}
    for group in groups:
        send(group, signal.SIGKILL)


def send(group: int, number: int) -> bool:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
        return True
    return False


if __name__ == "__main__":
    main(sys.argv[1])
