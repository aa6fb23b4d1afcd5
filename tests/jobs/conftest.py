"""Fixtures of the room: kinds and sources of the test's own, and real worker processes on the test database."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import quote

import pytest
from django.conf import settings
from django.db import connection

from apps.jobs import kinds
from apps.jobs.models import Job
from apps.repos.models import Repository
from cograph_site.processes import end_with_parent
from tests.jobs import breaking_kinds

ROOT = Path(__file__).parents[2]
LEASE, RENEW, SWEEP = 2.0, 0.4, 0.5


@pytest.fixture
def own_kinds(monkeypatch):
    """The registries, put back after the test."""
    monkeypatch.setattr(kinds, "_KINDS", dict(kinds._KINDS))
    monkeypatch.setattr(kinds, "_PURGERS", list(kinds._PURGERS))
    monkeypatch.setattr(kinds, "_PRUNERS", list(kinds._PRUNERS))


@pytest.fixture
def kind(own_kinds):
    """``kind(function, name=..., **options)`` registers a kind and returns its name."""

    def make(run, name="tried", **more):
        kinds.register_kind(kinds.JobKind(name, run, **more))
        return name

    return make


@pytest.fixture
def make_repository(db):
    numbers = iter(range(1000))

    def make(**fields):
        slug = f"example.org/team/{next(numbers)}"
        return Repository.objects.create(**{"slug": slug, "git_url": f"https://{slug}", **fields})

    return make


def wait_for(condition, *, seconds=30.0, what=""):
    """Poll until ``condition()`` is true and return its value; fail with the state of all jobs otherwise."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if value := condition():
            return value
        time.sleep(0.05)
    jobs = list(Job.objects.values("kind", "status", "stage", "attempts", "error_code", "error_message"))
    raise AssertionError(f"not within {seconds} s: {what} {jobs}")


def finished(job, **more):
    """Wait for the end of a job and return it freshly read."""
    return wait_for(lambda: Job.objects.filter(pk=job.pk, finished_at__isnull=False).first(), **more)


class Workers:
    """Real clusters and a real sweep, as `up` runs them, with short lease and sweep."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        database = connection.settings_dict
        self.environment = {
            **os.environ,
            "DATABASE_URL": f"postgresql://{database['USER']}@{quote(database['HOST'], safe='')}/{database['NAME']}",
            "DJANGO_SETTINGS_MODULE": "tests.jobs.worker_settings",
            "PYTHONPATH": str(ROOT),
            "BREAK_FOLDER": str(folder),
            "COGRAPH_JOBS__LEASE_SECONDS": str(LEASE),
            "COGRAPH_JOBS__RENEW_SECONDS": str(RENEW),
            "COGRAPH_JOBS__SWEEP_SECONDS": str(SWEEP),
        }
        self.command = [sys.executable, str(ROOT / "manage.py")]

    def start(self) -> None:
        prepare = end_with_parent(signal.SIGTERM)
        self.process = subprocess.Popen([*self.command, "run_workers"], env=self.environment, preexec_fn=prepare)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(20)

    def arm(self, point: str) -> None:
        (self.folder / point).touch()

    def calm(self) -> None:
        for file in self.folder.iterdir():
            file.unlink()


@pytest.fixture(scope="module")
def worker_processes(django_db_setup, django_db_blocker, tmp_path_factory):
    with django_db_blocker.unblock():
        workers = Workers(tmp_path_factory.mktemp("break"))
        workers.start()
        yield workers
        workers.stop()
        connection.close()


@pytest.fixture
def workers(worker_processes, transactional_db, own_kinds, monkeypatch):
    """The module's workers, with an empty table for derived rows; jobs left over are ended before the next test."""
    monkeypatch.setenv("BREAK_FOLDER", str(worker_processes.folder))
    breaking_kinds.register()
    monkeypatch.setattr(settings, "COGRAPH", _short(settings.COGRAPH))
    with connection.cursor() as cursor:
        cursor.execute(breaking_kinds.TABLE)
    yield worker_processes
    Job.objects.live().update(cancel_requested=True)
    with contextlib.suppress(AssertionError):
        wait_for(lambda: not Job.objects.filter(status="running").exists(), seconds=10)
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE breaking_rows")
    worker_processes.calm()


@contextlib.contextmanager
def breakable_workers(folder, monkeypatch):
    """Workers without an embedder that end where a file below ``folder`` tells them to, for kinds of other rooms."""
    monkeypatch.setattr(settings, "COGRAPH", _short(settings.COGRAPH))
    (folder / "break").mkdir()
    started = Workers(folder / "break")
    started.environment |= {
        "DJANGO_SETTINGS_MODULE": "tests.repos.worker_settings",
        "COGRAPH_DATA_DIR": str(folder / "var"),
        "COGRAPH_EMBEDDING__BACKEND": "none",
    }
    started.start()
    yield started
    started.stop()


def _short(configuration):
    from dataclasses import replace

    jobs = replace(configuration.jobs, lease_seconds=LEASE, renew_seconds=RENEW, sweep_seconds=SWEEP)
    return replace(configuration, jobs=jobs)


def digest(repository) -> str:
    """Of all derived rows of a repository, and of its last sync's report."""
    text = []
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT path, content, vector FROM breaking_rows WHERE repository = %s ORDER BY path", [repository.pk]
        )
        text += [repr(row) for row in cursor.fetchall()]
    job = Job.objects.filter(source_id=repository.pk, kind="b_sync").first()
    text += [repr(row) for row in job.items.order_by("path").values_list("path", "state", "chunks")]
    text.append(repr((job.status, job.counters, job.done, job.total, job.outcome)))
    return hashlib.sha256("\n".join(text).encode()).hexdigest()
