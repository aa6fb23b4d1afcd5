"""`manage.py up` from end to end: real processes on a data folder of their own and a free port."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from cograph_site import processes
from cograph_site.postgres import home
from cograph_site.postgres.server import Server
from tests.site.portal_process import ROOT, descendants, seconds_until_back, sign_in, up, wait_until

pytestmark = pytest.mark.workers


def open_place() -> Path:
    """A new folder that the server's account may pass through, so that the database lies in the data folder."""
    path = Path(tempfile.mkdtemp(prefix="cograph-up-"))
    path.chmod(0o755)
    return path


@pytest.fixture
def folder() -> Iterator[Path]:
    path = open_place()
    yield path / "data"
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="module")
def used_folder() -> Iterator[Path]:
    """A data folder that has had its first run; its administrator's password is chosen."""
    path = open_place()
    with up(path / "data", "--no-samples", COGRAPH_ADMIN_PASSWORD="chosen by the operator") as portal:
        portal.wait_ready()
        assert "COGRAPH_ADMIN_PASSWORD" in portal.text
        assert "chosen by" not in portal.text
    yield path / "data"
    shutil.rmtree(path, ignore_errors=True)


def test_portal_fact_31_32_password_printed_once_and_stored_nowhere(folder: Path) -> None:
    with up(folder) as portal:
        portal.wait_ready()
        assert f"Cograph answers at {portal.address}/" in portal.lines
        found = re.search(r"^Password: (\S+)", portal.text, flags=re.M)
        assert found
        password = found.group(1)
        assert len(password) >= 16
        assert portal.text.count(password) == 1
        assert sign_in(portal, password) == f"{portal.address}/"
        wait_until(portal.ready)  # after the first sweep
        for key in ("django.key", "secrets.key"):
            assert (folder / key).stat().st_mode & 0o777 == 0o600
        assert portal.stop() < 10
    assert (folder / "postgres" / "data" / "PG_VERSION").is_file()
    for file in (file for file in folder.rglob("*") if file.is_file()):
        assert password.encode() not in file.read_bytes(), f"the password stands in {file}"
    with up(folder) as portal:
        portal.wait_ready()
        assert "Password" not in portal.text
        assert "Administrator" not in portal.text
        assert sign_in(portal, password) == f"{portal.address}/"


def test_static_files_have_hashes_and_are_kept_for_a_year(used_folder: Path) -> None:
    with up(used_folder) as portal:
        portal.wait_ready()
        page = portal.get("/login")[1]
        match = re.search(r'href="(/static/css/cograph\.[0-9a-f]{12}\.css)"', page)
        assert match, page
        status, _, headers = portal.get(match.group(1))
        assert status == 200
        assert "max-age=31536000" in headers["cache-control"]
        assert "immutable" in headers["cache-control"]
    collected = {file.name for file in (used_folder / "static").rglob("*")}
    assert not [name for name in collected if name.endswith(".map") or name.startswith("redoc")]


def test_a_second_up_is_told_who_holds_the_folder(used_folder: Path) -> None:
    with up(used_folder) as first:
        first.wait_ready()
        with up(used_folder) as second:
            assert second.process.wait(20) == 1
            wait_until(lambda: "in use by" in second.text)
        assert f"in use by process {first.process.pid}, which answers at {first.address}/" in second.text
        assert first.answers()


def test_a_port_in_use_is_said_before_anything_starts(folder: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        done = subprocess.run(
            [sys.executable, "manage.py", "up", "--data-dir", str(folder), "--port", str(port)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    assert done.returncode == 1
    assert "--port" in done.stderr
    assert not (folder / "postgres").exists()


def test_whatever_dies_is_healed_within_seconds(used_folder: Path) -> None:
    with up(used_folder) as portal:
        portal.wait_ready()
        wait_until(lambda: len(portal.named("run_workers")) >= 10)
        web = portal.named("granian")
        assert len(web) == 2
        os.kill(max(web), signal.SIGKILL)  # the process that answers
        wait_until(portal.answers)
        before = set(portal.named("granian"))
        os.kill(min(before), signal.SIGKILL)  # the process that watches it
        # Its child may still answer for an instant, and then nobody does until another pair has started.
        wait_until(lambda: len(portal.named("granian")) == 2 and before.isdisjoint(portal.named("granian")))
        wait_until(portal.answers)
        workers = portal.named("run_workers")
        os.kill(workers[0], signal.SIGKILL)
        wait_until(
            lambda: (
                len(set(portal.named("run_workers")) - set(workers)) >= 10 and not any(map(processes.alive, workers))
            )
        )
        database = int((used_folder / "postgres" / "data" / "postmaster.pid").read_text().split("\n", 1)[0])
        os.kill(database, signal.SIGKILL)
        wait_until(lambda: portal.ready() and not processes.alive(database))
        assert portal.stop() < 10
    assert not portal.tree()


def test_a_killed_supervisor_takes_everything_along(used_folder: Path) -> None:
    log = used_folder / "postgres" / "server.log"
    earlier = log.stat().st_size
    with up(used_folder) as portal:
        portal.wait_ready()
        wait_until(lambda: len(portal.named("run_workers")) >= 10)
        everything = portal.tree()
        hung = portal.named("run_workers")[-1]
        os.kill(hung, signal.SIGSTOP)  # one that would not even hear a SIGTERM
        portal.process.kill()
        wait_until(lambda: not any(map(processes.alive, everything)), limit=12)
        with up(used_folder) as second:  # and the folder is free at once, the database whole
            second.wait_ready()
            assert second.answers()
    assert b"was not properly shut down" not in log.read_bytes()[earlier:]


def test_ctrl_c_while_it_starts_leaves_nothing(folder: Path) -> None:
    with up(folder) as portal:
        wait_until(lambda: "the database server runs" in portal.text, limit=30)
        everything = portal.tree()
        began = time.monotonic()
        portal.process.send_signal(signal.SIGINT)
        assert portal.process.wait(15) == 0
        assert time.monotonic() - began < 10
        wait_until(lambda: not any(map(processes.alive, everything)))
        assert "Traceback" not in portal.text


def test_health_while_the_database_is_down(used_folder: Path) -> None:
    """api-and-mcp fact 28, in the running portal: the database server is stopped, not dead, so it is not replaced."""
    with up(used_folder) as portal:
        portal.wait_ready()
        (home.existing(used_folder).sockets / ".s.PGSQL.5432").unlink()
        database = int((used_folder / "postgres" / "data" / "postmaster.pid").read_text().split("\n", 1)[0])
        for pid in descendants(database):
            with contextlib.suppress(OSError):
                if b"cograph cograph" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    os.kill(pid, signal.SIGTERM)
        status, body, _ = portal.get("/healthz")
        assert (status, body) == (200, '{"status": "ok"}')
        status, body, _ = portal.get("/readyz")
        assert (status, body) == (503, '{"status": "not ready"}')


class TestDatabaseUrl:
    """Any PostgreSQL from 16 on with vector from 0.8 on; here the wheel's programs on TCP with a password."""

    @pytest.fixture
    def address(self) -> Iterator[str]:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        root = Path(tempfile.mkdtemp(prefix="cograph-server-"))
        server = Server(root, say=lambda text: None, settings=["listen_addresses=127.0.0.1", f"port={port}"])
        server.prepare()
        with (server.home.data / "pg_hba.conf").open("a") as rules:
            rules.write("host all all 127.0.0.1/32 scram-sha-256\n")
        server.spawn()
        owner = f"{server.home.url(role='postgres', database='postgres')}?port={port}"
        try:
            seconds_until_back(owner)
            with psycopg.connect(owner, autocommit=True) as connection:
                connection.execute("CREATE ROLE portal LOGIN PASSWORD 'hunter2'")
                connection.execute("CREATE DATABASE portal OWNER portal")
            with psycopg.connect(owner.replace("/postgres?", "/portal?"), autocommit=True) as connection:
                connection.execute("CREATE EXTENSION vector")
            yield f"postgresql://portal:hunter2@127.0.0.1:{port}/portal"
        finally:
            server.stop()
            shutil.rmtree(root, ignore_errors=True)

    def test_it_replaces_the_embedded_server(self, folder: Path, address: str) -> None:
        with up(folder, DATABASE_URL=address) as portal:
            portal.wait_ready()
            assert not (folder / "postgres").exists()
            wait_until(portal.ready)
            assert "hunter2" not in portal.text

    def test_one_that_does_not_answer_is_said_in_one_line(self, folder: Path) -> None:
        with up(folder, DATABASE_URL="postgresql://u:hunter2@127.0.0.1:1/d") as portal:
            assert portal.process.wait(30) == 1
            wait_until(lambda: "cannot be reached" in portal.text)
            assert "hunter2" not in portal.text
            assert "Traceback" not in portal.text
