"""``manage.py jobs_cluster``: one queue cluster of one worker."""

from __future__ import annotations

import os
import signal
import tempfile
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.db import connections

from apps.jobs import heartbeat
from apps.jobs.parent import end_with_parent


class Command(BaseCommand):
    help = "Runs one worker for queued jobs until it is stopped. `up` starts several, each in its own process group."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--folder", type=Path, help="existing folder for the worker's signs of life")
        parser.add_argument(
            "--with-parent", action="store_true", help="kill the process group when the starting process ends"
        )

    def handle(self, *args: Any, folder: Path | None = None, with_parent: bool = False, **options: Any) -> None:
        from django_q.cluster import Cluster

        own = tempfile.TemporaryDirectory(prefix="cograph-cluster-") if folder is None else None
        run = folder or Path(own.name if own else "")
        os.environ[heartbeat.FOLDER_VARIABLE] = str(run)
        heartbeat.beat()
        connections.close_all()  # children are forked and must not share a connection
        cluster = Cluster()

        def end(*_: object) -> None:
            heartbeat.ask_to_end(run)
            cluster.stop()

        signal.signal(signal.SIGTERM, end)
        signal.signal(signal.SIGINT, end)
        cluster.start()
        if with_parent:
            end_with_parent(lambda: os.killpg(os.getpgid(0), signal.SIGKILL))
        cluster.sentinel.join()
        if own is not None:
            own.cleanup()
