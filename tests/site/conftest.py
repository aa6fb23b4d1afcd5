from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A data folder in a place that every user may enter (pytest's own folders are for one user)."""
    path = Path(tempfile.mkdtemp(prefix="cograph-test-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)
