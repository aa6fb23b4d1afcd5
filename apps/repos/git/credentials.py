"""How a secret reaches git: a file that only we can read, made for one fetch and deleted after it.

SECURITY: never an argument (seen in the process list), an environment variable (inherited by helpers and readable in
/proc), a remote address or a configuration file. Rules: ``access-and-jobs.md`` 29.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shlex
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from apps.repos.git.environment import Access

ASKPASS = """#!/bin/sh
case "$1" in
    Username*) cat {user} ;;
    *) cat {secret} ;;
esac
"""


@dataclass(frozen=True, slots=True)
class Credential:
    """A token (with the user name that the host wants) or an ssh private key."""

    kind: Literal["token", "ssh_key"]
    user: str
    secret: str = field(repr=False)


def secret_forms(secret: str) -> tuple[str, ...]:
    """Every form in which a secret may turn up in git's output: as it is and URL-encoded."""
    return tuple(dict.fromkeys(form for form in (secret, quote(secret, safe=""), quote(secret)) if form))


@contextlib.contextmanager
def handed_over(
    access: Access, credential: Credential | None, *, ssh_host: str = "", known_hosts: Path | None = None
) -> Iterator[Access]:
    """``access`` with what one git call needs to use ``credential``; the files are gone when the block is left."""
    with tempfile.TemporaryDirectory(prefix="cograph-secret-") as folder:
        Path(folder).chmod(0o700)
        if access.scheme == "ssh":
            yield _for_ssh(access, credential, Path(folder), ssh_host, known_hosts)
        elif credential is not None and credential.kind == "token":
            yield _for_http(access, credential, Path(folder))
        else:
            yield access


def _for_http(access: Access, credential: Credential, folder: Path) -> Access:
    user = _private(folder / "user", credential.user or "x-access-token")
    secret = _private(folder / "secret", credential.secret)
    script = _private(
        folder / "askpass", ASKPASS.format(user=shlex.quote(str(user)), secret=shlex.quote(str(secret))), mode=0o700
    )
    return dataclasses.replace(access, askpass=script, secrets=secret_forms(credential.secret))


def _for_ssh(
    access: Access, credential: Credential | None, folder: Path, host: str, known_hosts: Path | None
) -> Access:
    options = [
        "BatchMode=yes",
        "IdentitiesOnly=yes",
        "StrictHostKeyChecking=yes",
        f"UserKnownHostsFile={known_hosts or os.devnull}",
        "GlobalKnownHostsFile=/dev/null",
        "PasswordAuthentication=no",
        "ForwardAgent=no",
        "ProxyCommand=none",
        "PermitLocalCommand=no",
        "ConnectTimeout=30",
        "ServerAliveInterval=30",
    ]
    if host:
        options.append(f"HostName={host}")
    parts = ["ssh", "-F", os.devnull]
    for option in options:
        parts += ["-o", option]
    secrets: tuple[str, ...] = ()
    if credential is not None and credential.kind == "ssh_key":
        key = _private(folder / "key", credential.secret.rstrip() + "\n")
        parts += ["-i", str(key)]
        secrets = (credential.secret,)
    else:
        parts += ["-i", os.devnull]
    return dataclasses.replace(access, ssh_command=shlex.join(parts), secrets=secrets)


def _private(path: Path, text: str, mode: int = 0o600) -> Path:
    """Writes ``text`` to a new file that never was readable by others."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    return path
