"""The progress of a job in a terminal."""

from __future__ import annotations

import threading
from typing import TextIO

from django.db import connection

from apps.jobs.models import Job

WIDTH = 30
POLL_SECONDS = 0.5


class Bar:
    """A progress bar in a terminal, drawn from the row of the job by a thread with a connection of its own."""

    def __init__(self, job: Job, out: TextIO) -> None:
        self.job = job
        self.out = out
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._draw, daemon=True) if out.isatty() else None

    def __enter__(self) -> Bar:
        if self.thread:
            self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        if self.thread:
            self.thread.join()
            self.out.write("\r\x1b[K")
            self.out.flush()

    def _draw(self) -> None:
        try:
            while not self.ended.wait(POLL_SECONDS):
                job = Job.objects.filter(pk=self.job.pk).first()
                if job is None:
                    return
                share = job.percentage
                filled = "#" * (WIDTH * (share or 0) // 100)
                count = f"{job.done} of {job.total}" if job.total else ""
                words = f"{share:3d} %" if share is not None else "  …  "
                self.out.write(f"\r\x1b[K[{filled:<{WIDTH}}] {words} {job.stage or job.state_words} {count}")
                self.out.flush()
        finally:
            connection.close()
