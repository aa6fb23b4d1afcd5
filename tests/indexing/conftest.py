from __future__ import annotations

import dataclasses

import pytest

from tests.indexing import shelf
from tests.indexing.service import start


@pytest.fixture(scope="session")
def _shelf_tables(django_db_setup, django_db_blocker):
    with django_db_blocker.unblock():
        shelf.make_tables()


@pytest.fixture
def shelves(_shelf_tables, db):
    """The test source is registered while the test runs, and unknown to other rooms' tests."""
    from apps.access import registry
    from apps.indexing import stores

    shelf.register()
    yield
    registry.unregister_source(shelf.Shelf)
    for store in (shelf.STORE, shelf.CODE):
        stores._stores.pop(store.name, None)


@pytest.fixture
def embed_kind(monkeypatch, shelves):
    """The room's jobs, for the test source."""
    from apps.indexing.embedding import jobs
    from apps.jobs import kinds
    from apps.jobs.kinds import JobKind, register_kind

    monkeypatch.setattr(kinds, "_KINDS", dict(kinds._KINDS))
    register_kind(JobKind("embed", jobs.embed, sources=frozenset({"shelf"}), attempts=5))


@pytest.fixture
def embedding(settings):
    """Sets the embedder of the test: ``embedding(backend="hashing", dimension=64)``."""

    def choose(**options):
        area = dataclasses.replace(settings.COGRAPH.embedding, **{"backend": "hashing", "dimension": 64, **options})
        settings.COGRAPH = dataclasses.replace(settings.COGRAPH, embedding=area, allowed_private_hosts=("127.0.0.1",))

    choose()
    return choose


@pytest.fixture
def endpoint(embedding):
    """An embedding service that runs, and is set."""
    service, server = start()
    embedding(backend="endpoint", url=service.url, model="tried", dimension=64, api_key="sesame")
    yield service
    server.shutdown()
    server.server_close()
