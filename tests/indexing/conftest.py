from __future__ import annotations

import pytest

from tests.indexing import shelf


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
