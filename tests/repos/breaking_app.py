"""An app for real workers in tests: an observer of documents that ends its process where the test says."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from django.apps import AppConfig

from apps.indexing.observers import DocumentChange, DocumentRef, register_document_observer

KILLER = "killer.md"


class BreakingObserver:
    """SIGKILL in the second batch when the file ``mid_batch`` is there, and at ``killer.md`` while ``killer`` is."""

    def __init__(self) -> None:
        self.calls = 0

    def stored(self, changes: Sequence[DocumentChange]) -> None:
        folder = Path(os.environ.get("BREAK_FOLDER", "/nonexistent"))
        self.calls += 1
        mark = folder / "mid_batch"
        if mark.exists() and self.calls >= 2:
            mark.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        if (folder / "killer").exists() and any(change.ref.path == KILLER for change in changes):
            os.kill(os.getpid(), signal.SIGKILL)

    @contextmanager
    def removing(self, documents: Sequence[DocumentRef]) -> Iterator[None]:
        yield


class Breaking(AppConfig):
    name = "tests.repos"
    label = "breaking_documents"

    def ready(self) -> None:
        register_document_observer(BreakingObserver())
