"""One embedded PostgreSQL for the whole run, the same server that a new user gets."""

from __future__ import annotations

import atexit
import dataclasses
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dj_database_url
import pytest
from django.conf import settings
from django.db import connection
from django.template import engines
from django.test import Client
from hypothesis import HealthCheck
from hypothesis import settings as property_settings

from cograph_site.postgres.database import make_database
from cograph_site.postgres.server import Server

# A busy machine makes examples slowly and runs them slowly: neither says anything about the product.
property_settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
property_settings.load_profile("patient")

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

LONGEST = (
    "site/test_up.py",
    "retrieval/test_vite_docs.py",
    "api/test_conformance.py",
    "portal/browser/test_journeys.py",
    "portal/browser/test_every_page.py",
    "jobs/test_workers.py",
    "jobs/test_crashes.py",
    "portal/browser/test_collections.py",
    "mcp/test_live.py",
    "portal/browser/test_context_and_graph.py",
    "access/test_every_address.py",
    "api/test_table.py",
    "site/test_postgres.py",
)
"""Modules that take longest, the longest first."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest modules first: begun last, one of them would be waited for by the other processes."""
    here = Path(__file__).parent
    ranks = {name: rank for rank, name in enumerate(LONGEST)}
    items.sort(key=lambda item: ranks.get(item.path.relative_to(here).as_posix(), len(ranks)))


@pytest.fixture(autouse=True)
def _fresh_throttles() -> Iterator[None]:
    """Requests are counted per process; no test may use up the minute of the next one."""
    yield
    from apps.access.rest import throttles

    throttles.reset()


NEEDS_A_TRANSACTION = re.compile(
    r"\bFOR (NO KEY )?UPDATE\b|\bFOR (KEY )?SHARE\b|\bSET LOCAL\b|pg_advisory_xact_lock|INTO \"access_auditrecord",
    re.IGNORECASE,
)


@pytest.fixture(autouse=True)
def _no_borrowed_transaction() -> Iterator[None]:
    """Locks and audit rows need a transaction of our own: that of the test would hide its absence until production."""

    def guard(execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
        if NEEDS_A_TRANSACTION.search(str(sql)):
            blocks = context["connection"].atomic_blocks
            assert any(not block._from_testcase for block in blocks), f"outside a transaction: {str(sql)[:200]}"
        return execute(sql, params, many, context)

    with connection.execute_wrapper(guard):
        yield


@pytest.fixture
def signed_in() -> Callable[[Any], Client]:
    """``signed_in(user)``: a client with a session of its own."""

    def sign_in(user: Any) -> Client:
        client = Client()
        client.force_login(user)
        return client

    return sign_in


class Loud(str):
    """Takes the place of Django's silent empty string."""

    def __contains__(self, key: object) -> bool:
        return True

    def __mod__(self, variable: object) -> str:
        raise AssertionError(f"a template asks for {variable}, which is not there")


@pytest.fixture
def loud_templates() -> Iterator[None]:
    engine = engines["django"].engine  # type: ignore[attr-defined]
    before = engine.string_if_invalid
    engine.string_if_invalid = Loud("invalid")
    yield
    engine.string_if_invalid = before
