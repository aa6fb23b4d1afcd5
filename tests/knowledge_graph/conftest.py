"""Pages from texts, sample sources, and sources in the database."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
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
