"""Corpora and other material that is too large for the repository; tests that need it are skipped without it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared material: ``COGRAPH_SHARED``, else ``shared`` beside the checkout."""
    given = os.environ.get("COGRAPH_SHARED")
    folder = Path(given) if given else Path(__file__).parents[3] / "shared"
    if not folder.is_dir():
        pytest.skip("no shared material (set COGRAPH_SHARED)")
    return folder
