"""People, a collection, and a hand for uploads that are worked off in this process."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator

import pytest
from django.contrib.auth.models import Group

from apps.access.models import User
from apps.collections.curation import create_collection
from apps.collections.models import Collection, Document
from apps.collections.uploads import Uploaded, upload_document
from apps.markup.shared_pool import close_shared_pool


@pytest.fixture(scope="session", autouse=True)
def _end_readers() -> Iterator[None]:
    yield
    close_shared_pool()


@pytest.fixture
def olga(db: None) -> User:
    return User.objects.create_user("olga")


@pytest.fixture
def ada(db: None) -> User:
    return User.objects.create_user("ada", is_staff=True, is_superuser=True)


@pytest.fixture
def wim(db: None) -> User:
    return User.objects.create_user("wim")


@pytest.fixture
def otto(db: None) -> User:
    return User.objects.create_user("otto")


@pytest.fixture
def readers(db: None) -> Group:
    return Group.objects.create(name="readers")


@pytest.fixture
def handbook(olga: User) -> Collection:
    return create_collection(by=olga, name="Handbook")


@pytest.fixture
def put(handbook: Collection, olga: User) -> Callable[..., Uploaded]:
    def upload(key: str, text: str | bytes, title: str | None = None) -> Uploaded:
        raw = text if isinstance(text, bytes) else text.encode()
        return upload_document(collection=handbook, by=olga, source_key=key, raw=raw, title=title)

    return upload


@pytest.fixture
def document(handbook: Collection) -> Callable[[str], Document]:
    return lambda key: Document.objects.get(collection=handbook, source_key=key)


def zipped(*files: tuple[str, bytes]) -> io.BytesIO:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files:
            archive.writestr(name, data)
    out.seek(0)
    return out
