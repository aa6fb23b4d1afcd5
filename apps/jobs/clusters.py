"""Worker clusters as `up` runs them: each a process group, watched from outside, replaced when it hangs.

The supervisor makes one ``Clusters``, calls ``start()``, ``watch()`` every second or so, and ``stop()`` at the end::

    clusters = Clusters(settings.COGRAPH.jobs.workers)
    clusters.start()
    while not stopping:
        clusters.watch()
        ...
    clusters.stop()

It needs no database connection. Elsewhere ``manage.py jobs_cluster`` under any process supervisor does the same work.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from django.conf import settings
from django.utils import timezone

from apps.jobs import heartbeat

logger = logging.getLogger(__name__)

HANG_SECONDS = 60.0
"""A cluster without a beat for this long hangs: an idle worker beats every 5 s, a working one every second."""
STOP_SECONDS = 10.0
SHORT_LIFE_SECONDS = 5.0
LONGEST_PAUSE_SECONDS = 30.0


class Process(Protocol):
    """What is asked of a cluster's process: subprocess.Popen, or a fork that behaves alike."""

    @property
    def pid(self) -> int: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def terminate(self) -> None: ...


@dataclass(slots=True)
class _Cluster:
    process: Process
    folder: Path
    started: float
    pause: float = 0.5
    """Seconds before the next start, if this one dies young."""
    ended: float | None = None

    @property
    def silent_for(self) -> float:
        age = heartbeat.beat_age(self.folder)
        since_start = time.monotonic() - self.started
        return since_start if age is None else min(age, since_start)


class Clusters:
    """A number of worker clusters on this machine."""

    def __init__(
        self,
        count: int,
        *,
        command: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        hang_seconds: float = HANG_SECONDS,
        spawn: Callable[[Path], Process] | None = None,
    ) -> None:
        """``command`` is how ``manage.py`` is called (default: as this process was), ``environment`` replaces the
        inherited one. ``spawn`` starts a cluster on its folder in another way, as leader of a process group."""
        self._count = count
        self._command = [*(command or (sys.executable, sys.argv[0])), "jobs_cluster", "--with-parent"]
        self._environment = dict(environment) if environment is not None else None
        self._hang_seconds = hang_seconds
        self._spawn = spawn or self._popen
        self._clusters: list[_Cluster] = []
        self.restarts = 0

    def start(self) -> None:
        while len(self._clusters) < self._count:
            self._clusters.append(self._start())

    def watch(self) -> None:
        """Replace clusters that died or hang. Quick; call it about once a second."""
        for at, cluster in enumerate(self._clusters):
            code = cluster.process.poll()
            now = time.monotonic()
            if code is None and cluster.silent_for < self._hang_seconds and not heartbeat.is_stuck(cluster.folder):
                continue
            if cluster.ended is None:
                why = "hangs" if code is None else f"ended ({code})"
                logger.warning("worker cluster %s %s; starting another", cluster.process.pid, why)
                self._kill(cluster)
                cluster.ended = now
            young = cluster.ended - cluster.started < SHORT_LIFE_SECONDS
            if young and now - cluster.ended < cluster.pause:
                continue  # one that dies at once is not started in a tight loop
            self._clusters[at] = self._start()
            if young:
                self._clusters[at].pause = min(LONGEST_PAUSE_SECONDS, 2 * cluster.pause)
            self.restarts += 1

    def stop(self, seconds: float = STOP_SECONDS) -> None:
        """Ask all to end, which puts running jobs back into the queue; what has not ended in time is killed, and its
        job goes on after its lease."""
        for cluster in self._clusters:
            heartbeat.ask_to_end(cluster.folder)
            if cluster.process.poll() is None:
                cluster.process.terminate()
        until = time.monotonic() + seconds
        for cluster in self._clusters:
            try:
                cluster.process.wait(max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                logger.warning("worker cluster %s did not end in time", cluster.process.pid)
            self._kill(cluster)
        self._clusters.clear()

    @property
    def pids(self) -> list[int]:
        """Process (and group) ids of the clusters."""
        return [cluster.process.pid for cluster in self._clusters]

    def _start(self) -> _Cluster:
        folder = Path(tempfile.mkdtemp(prefix="cograph-cluster-"))
        return _Cluster(self._spawn(folder), folder, time.monotonic())

    def _popen(self, folder: Path) -> Process:
        return subprocess.Popen(
            [*self._command, "--folder", str(folder)],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            process_group=0,
        )

    def _kill(self, cluster: _Cluster) -> None:
        """End every process of the group: a killed leader leaves children that work on."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(cluster.process.pid, signal.SIGKILL)
        cluster.process.wait()
        shutil.rmtree(cluster.folder, ignore_errors=True)


def hung(older_than: timedelta = timedelta(seconds=HANG_SECONDS)) -> bool:
    """Whether a message has waited in the queue for longer than that although not every worker is at work: clusters are
    gone or hang. For health pages; needs the database."""
    from django_q.models import OrmQ

    from apps.jobs.models import Job, Status

    if not OrmQ.objects.filter(lock__lt=timezone.now() - older_than).exists():
        return False
    at_work = Job.objects.filter(status=Status.RUNNING, lease_expires__gt=timezone.now()).count()
    return bool(at_work < settings.COGRAPH.jobs.workers)
