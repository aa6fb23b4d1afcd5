"""The data folder: made once, held by one supervisor, with the key files in it."""

from __future__ import annotations

import base64
import fcntl
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import IO

LOCK = "cograph.lock"
DJANGO_KEY = "django-secret-key"
SECRETS_KEY = "secrets-key"


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


def make_keys(folder: Path) -> list[str]:
    """Make the key files that are not there yet, readable by their owner only. Answers the names of new ones."""
    makers: dict[str, Callable[[], str]] = {
        DJANGO_KEY: lambda: secrets.token_urlsafe(50),
        SECRETS_KEY: lambda: base64.urlsafe_b64encode(os.urandom(32)).decode(),
    }
    made = []
    for name, maker in makers.items():
        target = folder / name
        if target.exists():
            continue
        unfinished = folder / f".{name}.{os.getpid()}"
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(maker() + "\n")
            file.flush()
            os.fsync(file.fileno())
        unfinished.rename(target)
        made.append(name)
    return made


def read_key(folder: Path, name: str) -> str:
    """The key in a key file; empty when there is none."""
    try:
        return (folder / name).read_text().strip()
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return ""
