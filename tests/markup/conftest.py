"""Corpora and other material that is too large for the repository; tests that need it are skipped without it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from apps.markup.decoding import decode
from apps.markup.parsing import parse
from apps.markup.values import Decoded, Limits, ParsedDocument


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared material: ``SHARED_FOLDER``, else ``shared`` beside the checkout."""
    given = os.environ.get("SHARED_FOLDER")
    folder = Path(given) if given else Path(__file__).parents[3] / "shared"
    if not folder.is_dir():
        pytest.skip("no shared material (set SHARED_FOLDER)")
    return folder


@pytest.fixture(scope="session")
def read() -> Callable[..., ParsedDocument]:
    """Decode and parse: ``read(text or bytes, path="a.md", limits=Limits())``."""

    def read(source: str | bytes, path: str = "a.md", limits: Limits | None = None) -> ParsedDocument:
        limits = limits or Limits()
        decoded = decode(source.encode() if isinstance(source, str) else source, limits)
        assert isinstance(decoded, Decoded), decoded
        document = parse(decoded, path, limits)
        assert isinstance(document, ParsedDocument), document
        return document

    return read
