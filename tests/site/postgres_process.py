"""An embedded server under a supervisor of its own, as tests see it."""

from __future__ import annotations

import contextlib
import os
import pwd
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from cograph_site.postgres import account
from cograph_site.postgres.account import Account
from tests.site.portal_process import ROOT

START = [sys.executable, "-m", "cograph_site.postgres"]


@contextlib.contextmanager
def running(folder: Path, *options: str, user: str | None = None) -> Iterator[subprocess.Popen[str]]:
    """A supervisor of a server of its own, as a process; its address stands in `.address`."""
    python = sys.executable if user is None else python_of_everybody()
    process = subprocess.Popen(
        [python, *START[1:], str(folder), *options],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        user=user,
        group=pwd.getpwnam(user).pw_gid if user else None,
        extra_groups=[] if user else None,
    )
    try:
        assert process.stdout is not None
        yield process
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=10)
        process.kill()
        process.communicate()


def python_of_everybody() -> str:
    """An interpreter like ours that any user may run; ours may be below the home of root."""
    if not others_read(ROOT, Path(psycopg.__file__).parent):
        pytest.skip("this project and its environment lie below a folder that no other user may enter")
    if others_read(Path(sys.executable).resolve().parent):
        return sys.executable
    system = Path(f"/usr/bin/python3.{sys.version_info.minor}")
    if not system.exists():
        pytest.skip("no Python that another user may run")
    return str(system)


def others_read(*folders: Path) -> bool:
    """Whether any other user may enter these folders."""
    stranger = Account("stranger", uid=54321, gid=54321, switched=True)
    return all(account.closed_folder(stranger, folder) is None for folder in folders)


def address_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    if not line:
        process.wait(10)
        assert process.stderr is not None
        pytest.fail(process.stderr.read())
    return line


def postmaster(folder: Path) -> int:
    return int((folder / "postgres" / "data" / "postmaster.pid").read_text().split("\n", 1)[0])


def wal_writer(server: int) -> int:
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(words[1]) == server and b"walwriter" in (entry / "cmdline").read_bytes():
                return int(entry.name)
    raise AssertionError("no WAL writer")
