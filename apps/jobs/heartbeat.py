"""Signs of life of one cluster: files in a folder of its own.

``beat``    written by its worker: answer to a canary while idle, once a second while a job runs
``busy``    locked by the worker while it works, so that its pusher leaves messages to other clusters
``handed``  there between the pusher's giving of a message and the worker's taking of it
``end``     tells the worker to put its job back and begin no other

Files, not rows: they must work while the database is away, and they concern one machine only. Times in them are of the
machine's monotonic clock, so that neither a set clock nor a sleeping laptop makes a healthy cluster look dead.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FOLDER_VARIABLE = "Q_CLUSTER_FOLDER"
BEAT_SECONDS = 5.0
HANDED_SECONDS = 15.0
"""An idle worker takes a message in milliseconds; one that has not after this long never will."""


def _folder() -> Path | None:
    folder = os.environ.get(FOLDER_VARIABLE)
    return Path(folder) if folder else None


def beat() -> None:
    """The worker is alive: written by the lease thread while it works, and in answer to canaries."""
    folder = _folder()
    if folder is not None and folder.is_dir():
        _write_now(folder / "beat")


def answer_canary() -> None:
    """What the worker runs for a canary message."""
    folder = _folder()
    if folder is not None:
        (folder / "handed").unlink(missing_ok=True)
    beat()


def beat_age(folder: Path) -> float | None:
    """Seconds since the last beat of the cluster of ``folder``; None before the first."""
    return _age(folder / "beat")


def _write_now(path: Path) -> None:
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    fresh.write_text(str(time.monotonic()))
    fresh.replace(path)


def _age(path: Path) -> float | None:
    try:
        return max(0.0, time.monotonic() - float(path.read_text()))
    except (FileNotFoundError, ValueError):
        return None


@contextmanager
def working() -> Iterator[None]:
    """The worker has taken a message. The lock is a POSIX record lock: it goes with the process, however that ends, and
    no child inherits it."""
    folder = _folder()
    if folder is None or not folder.is_dir():
        yield
        return
    with (folder / "busy").open("a") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        (folder / "handed").unlink(missing_ok=True)
        yield


def hand_over() -> None:
    """The pusher is about to give its worker a message."""
    folder = _folder()
    if folder is not None and folder.is_dir():
        _write_now(folder / "handed")


def can_take() -> bool:
    """Whether the worker of this cluster would begin a message at once: it is idle, and took the one before. So a
    cluster that hangs swallows one message at most."""
    folder = _folder()
    if folder is None or not folder.is_dir():
        return True
    return not (folder / "handed").exists() and _is_idle(folder)


def is_stuck(folder: Path) -> bool:
    """Whether the cluster of ``folder`` has left a message lying although its worker is not at work."""
    handed = _age(folder / "handed")
    return handed is not None and handed > HANDED_SECONDS and _is_idle(folder)


def _is_idle(folder: Path) -> bool:
    with (folder / "busy").open("a") as lock:
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
    return True


def ask_to_end(folder: Path) -> None:
    (folder / "end").touch()


def must_end() -> bool:
    """Whether this cluster is being stopped: running jobs go back into the queue, and no other is begun."""
    folder = _folder()
    return folder is not None and (folder / "end").exists()
