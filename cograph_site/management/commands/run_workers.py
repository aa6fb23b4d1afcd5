from __future__ import annotations

import gc
import select
import signal
import socket
from pathlib import Path
from types import FrameType
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand

from apps.jobs.clusters import Clusters
from cograph_site.forking import Forked

STOP_SECONDS = 4.0
LOOK_SECONDS = 1.0
SWEEP_PAUSE_SECONDS = 2.0


class Command(BaseCommand):
    help = "Worker clusters and the job sweep, watched and restarted; forked, so that they share memory. For `up`."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        stopping = False

        def stop(_number: int, _frame: FrameType | None) -> None:
            nonlocal stopping
            stopping = True

        wake, woken = socket.socketpair()
        wake.setblocking(False)
        woken.setblocking(False)
        signal.set_wakeup_fd(woken.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, stop)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        gc.collect()
        gc.freeze()  # or the children's collector would write to, and so copy, the memory that they share
        clusters = Clusters(settings.COGRAPH.jobs.workers, spawn=start_cluster)
        clusters.start()
        sweep = Forked(run_sweep)
        while not stopping:
            clusters.watch()
            code = sweep.poll()
            if code is not None:
                self.stderr.write(f"cograph: the job sweep ended ({code}); starting it again")
                select.select([], [], [], SWEEP_PAUSE_SECONDS)
                sweep = Forked(run_sweep)
            if select.select([wake], [], [], LOOK_SECONDS)[0]:
                wake.recv(4096)
        sweep.terminate()
        clusters.stop(STOP_SECONDS)


def start_cluster(folder: Path) -> Forked:
    return Forked(lambda: call_command("jobs_cluster", folder=folder, with_parent=True, skip_checks=True))


def run_sweep() -> None:
    call_command("jobs_sweep", with_parent=True, skip_checks=True)
