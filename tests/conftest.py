"""One embedded PostgreSQL for the whole run, the same server that a new user gets."""

from __future__ import annotations

import atexit
import dataclasses
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import dj_database_url
import pytest
from django.conf import settings

from cograph_site.postgres.database import make_database
from cograph_site.postgres.server import Server

FAST_AND_UNSAFE = [
    "fsync=off",
    "full_page_writes=off",
    "shared_buffers=64MB",
    "max_connections=60",
    "max_wal_size=512MB",
]


def _start() -> None:
    root = Path(tempfile.mkdtemp(prefix="cograph-tests-"))
    server = Server(root, say=lambda text: None, settings=FAST_AND_UNSAFE)

    def stop() -> None:
        server.stop()
        shutil.rmtree(root, ignore_errors=True)

    atexit.register(stop)
    server.prepare()
    server.start()
    make_database(server.home, may_create_databases=True)
    # pytest-django has read the settings before any conftest runs, so they are put right in place; child processes
    # (workers, servers) take the environment.
    os.environ["DATABASE_URL"] = server.home.url()
    os.environ["COGRAPH_DATA_DIR"] = str(root / "var")
    settings.DATABASES["default"].update(dj_database_url.parse(os.environ["DATABASE_URL"]))
    os.environ["COGRAPH_DJANGO_SECRET_KEY"] = settings.SECRET_KEY  # workers check what this process has signed
    # Vectors without a model: the tests of the model itself ask for it.
    os.environ["COGRAPH_EMBEDDING__BACKEND"] = "hashing"
    settings.COGRAPH = dataclasses.replace(
        settings.COGRAPH,
        data_dir=os.environ["COGRAPH_DATA_DIR"],
        embedding=dataclasses.replace(settings.COGRAPH.embedding, backend="hashing"),
    )
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    settings.STATIC_ROOT = settings.COGRAPH.data_path / "static"
    settings.STATIC_ROOT.mkdir(parents=True)
    # Tests render pages without collecting the static files first.
    settings.STORAGES = {
        **settings.STORAGES,
        "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    }


_start()


@pytest.fixture(autouse=True)
def _fresh_throttles() -> Iterator[None]:
    """Requests are counted per process; no test may use up the minute of the next one."""
    yield
    from apps.access.rest import throttles

    throttles.reset()
