"""A small library in a collection."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser

from apps.access.models import User
from apps.collections.curation import create_collection
from apps.collections.models import Collection
from apps.collections.uploads import upload_document
from apps.jobs.worker import drain
from apps.markup.shared_pool import close_shared_pool
from apps.retrieval.search import search
from apps.retrieval.values import Answer, Question

Ask = Callable[..., Answer]


@pytest.fixture(scope="session", autouse=True)
def _end_readers() -> Iterator[None]:
    yield
    close_shared_pool()


@pytest.fixture
def olga(db: None) -> User:
    return User.objects.create_user("olga")


@pytest.fixture
def otto(db: None) -> User:
    return User.objects.create_user("otto")


@pytest.fixture
def nobody() -> AnonymousUser:
    return AnonymousUser()


@pytest.fixture
def shelf(olga: User) -> Collection:
    return create_collection(by=olga, name="Shelf")


@pytest.fixture
def fill(olga: User, shelf: Collection) -> Callable[..., None]:
    """Store texts by key, and embed them unless told otherwise."""

    def store(files: dict[str, str], *, collection: Collection | None = None, embed: bool = True) -> None:
        for key, text in files.items():
            upload_document(collection=collection or shelf, by=olga, source_key=key, raw=text.encode())
        if embed:
            drain()

    return store


@pytest.fixture
def asking(olga: User) -> Ask:
    def ask(query: str, viewer: Any = None, **options: Any) -> Answer:
        return search(viewer=viewer or olga, question=Question(query=query, **options))

    return ask


def keys(answer: Answer) -> list[str]:
    return [hit.path for hit in answer.hits]
