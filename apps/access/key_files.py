"""Key files in the data folder, for keys that the operator does not set."""

from __future__ import annotations

import os
from pathlib import Path


def read_key(path: Path) -> str | None:
    """The key in ``path``, or None when there is no such file."""
    try:
        return path.read_text(encoding="ascii").strip() or None
    except FileNotFoundError:
        return None


def ensure_key(path: Path, new: str) -> tuple[str, bool]:
    """The key in ``path``, which gets ``new`` when it is missing, and whether it was made now.

    The file is readable by its owner only. Two processes that start at once agree on one key.
    """
    present = read_key(path)
    if present is not None:
        return present, False
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(f"{new}\n")
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(fresh, path)
        made = True
    except FileExistsError:
        made = False
    finally:
        fresh.unlink()
    present = read_key(path)
    if present is None:
        raise RuntimeError(f"the key file {path} is empty")
    return present, made
