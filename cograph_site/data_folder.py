"""The data folder: made once, held by one supervisor."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import IO

LOCK = "cograph.lock"
DJANGO_KEY = "django.key"


class FolderHeld(Exception):
    """Another supervisor holds the folder; the text says which."""


class FolderUnusable(Exception):
    """The folder cannot be made or written; the text says why."""


def make(path: Path) -> Path:
    """The folder, made when it is not there, as an absolute path without links. Only its owner may enter a new one."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.access(path, os.W_OK | os.X_OK):
            raise PermissionError(13, "not writable for this user")
    except OSError as error:
        raise FolderUnusable(f"the data folder {path} cannot be used: {error.strerror}") from None
    return path.resolve()


class Lock:
    """The hold of one supervisor on a data folder. It ends with the process, however that ends."""

    def __init__(self, folder: Path, name: str = LOCK) -> None:
        self.path = folder / name
        self._file: IO[str] | None = None

    def take(self, holder: str) -> None:
        """Take the lock and write down who holds it. Raises FolderHeld."""
        file = self.path.open("a+", encoding="utf-8")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            text = file.read().strip() or "another process"
            file.close()
            raise FolderHeld(f"{self.path.parent} is in use by {text}") from None
        self._file = file
        self.describe(holder)

    def describe(self, holder: str) -> None:
        """Replace the words by which a second supervisor will be told who is there."""
        if self._file is None:
            raise ValueError("describe() needs a lock that is taken")
        self._file.truncate(0)
        self._file.write(holder)
        self._file.flush()

    def fileno(self) -> int:
        if self._file is None:
            raise ValueError("the lock is not taken")
        return self._file.fileno()

    def release(self) -> None:
        if self._file is not None:
            self._file.truncate(0)
            self._file.close()
            self._file = None
