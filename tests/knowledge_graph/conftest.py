"""Pages from texts, sample sources, and sources in the database."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared material: ``SHARED_FOLDER``, else ``shared`` beside the checkout."""
    given = os.environ.get("SHARED_FOLDER")
    folder = Path(given) if given else Path(__file__).parents[3] / "shared"
    if not folder.is_dir():
        pytest.skip("no shared material (set SHARED_FOLDER)")
    return folder


@pytest.fixture(scope="session")
def samples(shared: Path) -> Callable[[str], dict[str, str]]:
    """``samples(name)``: path -> text of one sample source."""

    def read(name: str) -> dict[str, str]:
        root = shared / "corpora" / "canonical-samples" / name
        return {str(path.relative_to(root)): path.read_text() for path in sorted(root.rglob("*.md"))}

    return read


@pytest.fixture(scope="session")
def expected(shared: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((shared / "corpora" / "canonical-samples" / "expected.json").read_text())
    return found


@pytest.fixture(scope="session", autouse=True)
def _end_readers() -> Iterator[None]:
    from apps.markup.shared_pool import close_shared_pool

    yield
    close_shared_pool()


@pytest.fixture
def olga(db: None) -> Any:
    from apps.access.models import User

    return User.objects.create_user("olga")


@pytest.fixture
def ada(db: None) -> Any:
    from apps.access.models import User

    return User.objects.create_user("ada", is_staff=True, is_superuser=True)


@pytest.fixture
def platform(olga: Any) -> Any:
    """The collection that most tests fill."""
    from apps.collections.curation import create_collection

    return create_collection(by=olga, name="Platform")


@pytest.fixture
def elsewhere(olga: Any) -> Any:
    from apps.collections.curation import create_collection

    return create_collection(by=olga, name="Elsewhere")


@pytest.fixture
def put(platform: Any, olga: Any) -> Callable[..., Any]:
    """``put(key, text, collection=platform)`` uploads; jobs wait until the test drains them."""
    from apps.collections.uploads import upload_document

    def upload(key: str, text: str | bytes, collection: Any = None) -> Any:
        raw = text if isinstance(text, bytes) else text.encode()
        return upload_document(collection=collection or platform, by=olga, source_key=key, raw=raw)

    return upload
