"""The folder of the embedded server: where it is, and how it is made once.

`postgres/` in the data folder holds `data/` (the cluster), `run/` (the socket), `server.log`, and a copy of the
programs when the server's account cannot read those of the Python environment. It is a link to a folder elsewhere when
root keeps the data where the server's account may not go (a home folder with mode 0700).
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from cograph_site.postgres import PostgresError
from cograph_site.postgres.account import Account, closed_folder, own_name
from cograph_site.postgres.binaries import Binaries

FOLDER = "postgres"
ELSEWHERE = Path("/var/lib/cograph")
OWNER_ROLE = "postgres"
ROLE = "cograph"
DATABASE = "cograph"
LONGEST_SOCKET_PATH = 103  # sun_path holds 108 bytes on Linux and 104 on macOS
SOCKET_NAME = ".s.PGSQL.5432"


@dataclass(frozen=True, slots=True)
class ServerHome:
    folder: Path

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def log(self) -> Path:
        return self.folder / "server.log"

    @property
    def sockets(self) -> Path:
        """The folder of the socket: ours, or a short one elsewhere whose address stands in the file `socket-folder`."""
        try:
            return Path((self.folder / "socket-folder").read_text().strip())
        except OSError:
            return self.folder / "run"

    def url(self, *, role: str = ROLE, database: str = DATABASE) -> str:
        """The address of the database as DATABASE_URL spells it."""
        return f"postgresql://{role}@{quote(str(self.sockets), safe='')}/{database}"


def existing(data_folder: Path) -> ServerHome:
    """The server's home in a data folder, made or not; nothing is touched."""
    return ServerHome(data_folder / FOLDER)


def make(data_folder: Path, account: Account, *, say: Callable[[str], None], elsewhere: Path = ELSEWHERE) -> ServerHome:
    """Make the server's home, or find it again. Raises PostgresError when the account could not use it."""
    place = data_folder / FOLDER
    if place.is_symlink() and not place.exists():
        raise PostgresError(
            f"{place} points to {place.readlink()}, which is gone: restore that folder or remove the link"
        )
    if not place.exists():
        if account.switched:
            _let_in(data_folder, account)
        closed = closed_folder(account, data_folder)
        target = place if closed is None else _make_elsewhere(place, account, closed, elsewhere, say)
        if closed is None:
            target.mkdir(mode=0o700)
        account.give(target)
    home = ServerHome(place.resolve())
    closed = closed_folder(account, home.folder)
    if closed is not None:
        raise PostgresError(
            f"the server runs as user {account.name}, who may not enter {closed}: keep the data in another folder "
            "(--data-dir), or let that user in"
        )
    _make_sockets(home, account)
    return home


def _let_in(data_folder: Path, account: Account) -> None:
    """Let the server's group pass through the data folder (not list it). Folders above stay as they are."""
    status = data_folder.stat()
    if status.st_uid == 0 and not status.st_mode & 0o001 and not any(data_folder.glob("*/")):
        os.chown(data_folder, 0, account.gid)
        data_folder.chmod((status.st_mode & 0o707) | 0o010)


def _make_elsewhere(place: Path, account: Account, closed: Path, elsewhere: Path, say: Callable[[str], None]) -> Path:
    try:
        elsewhere.mkdir(mode=0o755, parents=True, exist_ok=True)
        target = elsewhere / f"database-{secrets.token_hex(4)}"
        target.mkdir(mode=0o700)
    except OSError as error:
        raise PostgresError(
            f"the server runs as user {account.name}, who may not enter {closed}, and {elsewhere} cannot be used "
            f"({error.strerror}): keep the data in another folder (--data-dir)"
        ) from None
    place.symlink_to(target)
    say(f"user {account.name} may not enter {closed}: the database is kept in {target}")
    return target


def _make_sockets(home: ServerHome, account: Account) -> None:
    folder = home.sockets
    if len(os.fsencode(folder / SOCKET_NAME)) > LONGEST_SOCKET_PATH or (
        folder != home.folder / "run" and not folder.is_dir()
    ):
        folder = Path(tempfile.mkdtemp(prefix="cograph-", dir="/tmp"))
        (home.folder / "socket-folder").write_text(f"{folder}\n")
    elif not folder.exists():
        folder.mkdir(mode=0o700)
    account.give(folder)


def usable_binaries(binaries: Binaries, home: ServerHome, account: Account, *, say: Callable[[str], None]) -> Binaries:
    """The programs as the account can read them: where they are, or a copy (37 MB) in the server's home."""
    if closed_folder(account, binaries.folder) is None and os.access(binaries.program("postgres"), os.X_OK):
        return binaries
    version = _version(binaries)
    package = binaries.root.parent  # the programs find their libraries beside it: ../../../<package>.libs
    target = home.folder / f"programs-{version}"
    copied = Binaries(target / package.name / binaries.root.name / "bin", binaries.source)
    if not target.exists():
        say(f"copying PostgreSQL {version} to where user {account.name} can read it")
        unfinished = home.folder / "programs-unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        skip = shutil.ignore_patterns("include", "*.a", "__pycache__")
        shutil.copytree(binaries.root, unfinished / package.name / binaries.root.name, symlinks=True, ignore=skip)
        libraries = package.with_name(f"{package.name}.libs")
        if libraries.is_dir():
            shutil.copytree(libraries, unfinished / libraries.name, symlinks=True)
        unfinished.rename(target)
    return copied


def _version(binaries: Binaries) -> str:
    text = subprocess.run(
        [binaries.program("postgres"), "--version"], capture_output=True, text=True, check=True
    ).stdout
    match = re.search(r"(\d+(\.\d+)*)", text)
    return match.group(1) if match else "unknown"


def initialise(binaries: Binaries, home: ServerHome, account: Account) -> None:
    """initdb, once. Only the operating-system account of this process may connect, through the socket."""
    if (home.data / "PG_VERSION").exists():
        _check_version(binaries, home)
        return
    unfinished = home.folder / "data-unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    locales = (["--locale=C.UTF-8"], ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"])
    command = [binaries.program("initdb"), "-D", str(unfinished), "-U", OWNER_ROLE, "-E", "UTF8"]
    for locale in locales:  # the second for systems that do not have C.UTF-8
        done = subprocess.run(
            [*command, *locale, "--auth-local=peer", "--auth-host=reject", "--no-instructions"],
            capture_output=True,
            text=True,
            env=environment(),
            cwd=home.folder,
            check=False,
            **account.spawn_options(),
        )
        if done.returncode == 0:
            break
        shutil.rmtree(unfinished, ignore_errors=True)
    else:
        raise PostgresError(f"initdb failed: {done.stderr.strip() or done.stdout.strip()}")
    me = own_name()
    (unfinished / "pg_hba.conf").write_text("local all all peer map=cograph\n")
    (unfinished / "pg_ident.conf").write_text("".join(f'cograph "{me}" {role}\n' for role in (OWNER_ROLE, ROLE)))
    unfinished.rename(home.data)


def _check_version(binaries: Binaries, home: ServerHome) -> None:
    made_by = (home.data / "PG_VERSION").read_text().strip()
    major = _version(binaries).split(".")[0]
    if made_by != major:
        raise PostgresError(
            f"the database in {home.data} was made by PostgreSQL {made_by}, the programs found are PostgreSQL {major}: "
            "move the data with pg_dump and pg_restore"
        )


def environment() -> dict[str, str]:
    """What the server's programs see of our environment: no settings, no secrets."""
    return {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C.UTF-8", "TZ": "UTC"}
