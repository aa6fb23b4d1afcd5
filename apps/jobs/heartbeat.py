"""Signs of life of one cluster: a file that its worker touches, and a file that tells it to end.

Files, not rows: they must work while the database is away, and they concern one machine only.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

FOLDER_VARIABLE = "Q_CLUSTER_FOLDER"
BEAT_SECONDS = 5.0


def _folder() -> Path | None:
    folder = os.environ.get(FOLDER_VARIABLE)
    return Path(folder) if folder else None


def beat() -> None:
    """The worker is alive: run by a canary message when it is idle, and by the lease thread while it works."""
    folder = _folder()
    if folder is not None and folder.is_dir():
        (folder / "beat").touch()


def beat_age(folder: Path) -> float | None:
    """Seconds since the last beat of the cluster of ``folder``; None before the first."""
    try:
        return max(0.0, time.time() - (folder / "beat").stat().st_mtime)
    except FileNotFoundError:
        return None


def ask_to_end(folder: Path) -> None:
    (folder / "end").touch()


def must_end() -> bool:
    """Whether this cluster is being stopped: running jobs go back into the queue, and no other is begun."""
    folder = _folder()
    return folder is not None and (folder / "end").exists()
