"""The operating-system account that the server runs under.

PostgreSQL refuses to run as root. Started by root, the server therefore runs as a user that exists already; no user is
created and no folder above ours changes its mode. Started by anybody else it runs as oneself.
"""

from __future__ import annotations

import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cograph_site.postgres import PostgresError

USERS_FOR_ROOT = ("postgres", "nobody")


@dataclass(frozen=True, slots=True)
class Account:
    """`switched` says that it is another account than the one of this process (which then is root)."""

    name: str
    uid: int
    gid: int
    switched: bool

    def spawn_options(self) -> dict[str, Any]:
        """Arguments of subprocess.Popen that run a program under this account, with no group of root's left."""
        return {"user": self.uid, "group": self.gid, "extra_groups": []} if self.switched else {}

    def give(self, path: Path) -> None:
        if self.switched:
            os.chown(path, self.uid, self.gid)


def own_name() -> str:
    """The name of the account of this process. Raises PostgresError when it has none: peer authentication needs it."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        raise PostgresError(
            f"user id {os.geteuid()} has no name in the user database, and PostgreSQL needs one: "
            "run as a named user, or set DATABASE_URL to a server of yours"
        ) from None


def server_account() -> Account:
    if os.geteuid() != 0:
        return Account(own_name(), os.geteuid(), os.getegid(), switched=False)
    for name in USERS_FOR_ROOT:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        if entry.pw_uid != 0:
            return Account(name, entry.pw_uid, entry.pw_gid, switched=True)
    raise PostgresError(
        "PostgreSQL does not run as root, and neither user postgres nor user nobody exists: "
        "run Cograph as an ordinary user, or set DATABASE_URL to a server of yours"
    )


def closed_folder(account: Account, path: Path) -> Path | None:
    """The uppermost folder on the way to `path` (itself included) that the account may not enter, or None."""
    if not account.switched:
        return None
    real = path.resolve()
    for folder in [*reversed(real.parents), real]:
        status = folder.stat()
        if status.st_uid == account.uid:
            allowed = status.st_mode & stat.S_IXUSR
        elif status.st_gid == account.gid:
            allowed = status.st_mode & stat.S_IXGRP
        else:
            allowed = status.st_mode & stat.S_IXOTH
        if not allowed:
            return folder
    return None
