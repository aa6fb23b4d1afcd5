"""Children that must not outlive the process that started them, also when that was killed."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

PARENT_SECONDS = 1.0


def end_with_parent(end: Callable[[], object]) -> None:
    """Call ``end`` from a thread when the parent process is gone. Portable, where a death signal is Linux's own."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PARENT_SECONDS)
        end()

    threading.Thread(target=watch, name="parent watch", daemon=True).start()
