"""The thread beside a running job: renews the lease, hears of a cancel, ends what does not stop."""

from __future__ import annotations

import logging
import os
import threading
import time
from datetime import timedelta
from types import TracebackType
from typing import Self

from django.conf import settings
from django.db import connection, transaction
from django.db.utils import Error

from apps.jobs import heartbeat
from apps.jobs.errors import Cancelled, DeadlineOver, LeaseLost, WorkerEnds
from apps.jobs.models import Job, Status
from apps.jobs.running import JobRun

logger = logging.getLogger(__name__)

POLL_SECONDS = 1.0
CANCEL_SECONDS = 5.0
"""A cancelled run that has not ended by itself after this long is settled from here; its fence does the rest."""
STOP_SECONDS = 30.0
"""A run that has not ended this long after its stop flag was raised takes the process with it."""

_RENEW = """
UPDATE jobs_job SET lease_expires = statement_timestamp() + %s * interval '1 second'
WHERE id = %s AND lease_token = %s AND status = 'running' RETURNING cancel_requested
"""
_LOOK = "SELECT cancel_requested FROM jobs_job WHERE id = %s AND lease_token = %s AND status = 'running'"


class LeaseKeeper(threading.Thread):
    """Holds the lease of one run for as long as it is entered. It has a database connection of its own, so that a long
    batch, or a progress that stands still, is no reason to lose the lease."""

    def __init__(self, run: JobRun, *, deadline: timedelta) -> None:
        super().__init__(name=f"lease of {run.job.pk}", daemon=True)
        self._run = run
        self._deadline = time.monotonic() + deadline.total_seconds()
        self._over = threading.Event()
        self._stopping_since: float | None = None
        self._settled = False

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self.join(timeout=10)

    def run(self) -> None:
        jobs = settings.COGRAPH.jobs
        renewed = time.monotonic()
        try:
            while not self._over.wait(min(POLL_SECONDS, jobs.renew_seconds)):
                now = time.monotonic()
                try:
                    if now - renewed >= jobs.renew_seconds:
                        self._renew()
                        renewed = now
                    elif not self._run.stopping.is_set():
                        self._look()
                except Error:
                    connection.close()
                    if now - renewed >= jobs.lease_seconds:
                        self._run.stop(LeaseLost)
                heartbeat.beat()
                if heartbeat.must_end():
                    self._run.stop(WorkerEnds)
                if now >= self._deadline:
                    self._run.stop(DeadlineOver)
                self._press(now)
        finally:
            connection.close()

    def _renew(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute(_RENEW, [settings.COGRAPH.jobs.lease_seconds, self._run.job.pk, self._run.token])
            self._hear(cursor.fetchone())

    def _look(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute(_LOOK, [self._run.job.pk, self._run.token])
            self._hear(cursor.fetchone())

    def _hear(self, row: tuple[bool] | None) -> None:
        if row is None:
            self._run.stop(LeaseLost)
        elif row[0]:
            self._run.stop(Cancelled)

    def _press(self, now: float) -> None:
        """What happens to a run that was told to stop and goes on."""
        if not self._run.stopping.is_set():
            return
        if self._stopping_since is None:
            self._stopping_since = now
        waited = now - self._stopping_since
        if self._run.stop_reason is Cancelled and waited >= CANCEL_SECONDS and not self._settled:
            self._settled = self._cancel()
        if waited >= STOP_SECONDS and not self._over.is_set():
            logger.error("job %s did not stop; its worker ends", self._run.job.pk)
            os._exit(1)

    def _cancel(self) -> bool:
        from apps.jobs.finishing import settle

        try:
            with transaction.atomic():
                with connection.cursor() as cursor:
                    cursor.execute("SET LOCAL lock_timeout = '500ms'")
                job = (
                    Job.objects.filter(pk=self._run.job.pk, lease_token=self._run.token, status=Status.RUNNING)
                    .select_for_update()
                    .first()
                )
                if job is not None:
                    settle(job, Status.CANCELLED)
        except Error:
            return False
        return True
