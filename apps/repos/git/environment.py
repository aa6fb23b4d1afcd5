"""How git is started: an argument list, a clean environment, one allowed protocol, a limit of time.

Rules: ``repository-documents.md`` 1.3 and 1.4, ``access-and-jobs.md`` 27 to 29.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from apps.repos.git.errors import GitFailure, GitTimeout

LOW_SPEED_BYTES = 1000
LOW_SPEED_SECONDS = 60
OUTPUT_LIMIT = 64 * 1024
MOST_OUTPUT = 1 << 30
"""SECURITY: a remote, or a crafted tree, must not fill our memory."""

FIXED_CONFIG = (
    "core.hooksPath=/dev/null",  # SECURITY: nothing that came with a repository may run
    "core.fsmonitor=false",
    "core.alternateRefsCommand=",
    "core.symlinks=false",
    "core.quotePath=false",
    "credential.helper=",
    "fetch.recurseSubmodules=false",
    "submodule.recurse=false",
    "protocol.ext.allow=never",
    "http.followRedirects=false",  # SECURITY: git follows a first redirect to any host, past the check of the address
    f"http.lowSpeedLimit={LOW_SPEED_BYTES}",
    f"http.lowSpeedTime={LOW_SPEED_SECONDS}",
    "gc.auto=0",
    "maintenance.auto=false",
    "advice.detachedHead=false",
)


@dataclass(frozen=True, slots=True)
class Access:
    """How one remote is reached: its scheme, pinned addresses, and files that hand over a secret."""

    scheme: str = "file"
    resolve: str = ""
    """``host:port:ip[,ip]`` for ``http.curloptResolve``: the checked address is the one connected to."""
    askpass: Path | None = None
    ssh_command: str = ""
    secrets: tuple[str, ...] = field(default=(), repr=False)


LOCAL = Access()


def command(arguments: Sequence[str], *, directory: Path | None, access: Access) -> list[str]:
    """The argument list of a git call; options of the call come before ``--`` and names after it (caller's duty)."""
    config = [*FIXED_CONFIG]
    if access.resolve:
        config.append(f"http.curloptResolve={access.resolve}")
    head = ["git"]
    for entry in config:
        head += ["-c", entry]
    if directory is not None:
        head += ["-c", f"safe.directory={directory}", f"--git-dir={directory}"]
    return [*head, *arguments]


def environment(home: str, access: Access) -> dict[str, str]:
    """Nothing of our own environment but PATH: no user or system configuration, no prompt, no second protocol."""
    values = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": home,
        "XDG_CONFIG_HOME": home,
        "LC_ALL": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": str(access.askpass) if access.askpass else "false",
        "SSH_ASKPASS": "false",
        "GIT_ALLOW_PROTOCOL": access.scheme,
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_LFS_SKIP_SMUDGE": "1",
        "GIT_FLUSH": "0",
    }
    if access.ssh_command:
        values["GIT_SSH_COMMAND"] = access.ssh_command
        values["GIT_SSH_VARIANT"] = "ssh"
    return values


def run(
    arguments: Sequence[str],
    *,
    directory: Path | None = None,
    access: Access = LOCAL,
    seconds: float = 120,
    check: Callable[[], None] | None = None,
    pass_fds: Sequence[int] = (),
    most: int = MOST_OUTPUT,
) -> bytes:
    """Standard output of one git call.

    ``check`` is called about twice a second and stops the call by raising (cancelled, lease lost). Raises GitFailure
    with the (still unredacted) error text, also for more than ``most`` bytes of output, or GitTimeout.
    """
    with tempfile.TemporaryDirectory(prefix="cograph-git-") as home:
        process = subprocess.Popen(
            command(arguments, directory=directory, access=access),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(home, access),
            cwd=home,
            pass_fds=tuple(pass_fds),
        )
        try:
            output, errors = _collect(process, seconds=seconds, check=check, most=most)
        finally:
            end(process)
    if process.returncode != 0:
        raise GitFailure(errors.decode("utf-8", "replace"), process.returncode)
    return output


def _collect(
    process: subprocess.Popen[bytes], *, seconds: float, check: Callable[[], None] | None, most: int
) -> tuple[bytes, bytes]:
    stdout, stderr = opened(process.stdout), opened(process.stderr)
    ends_at = time.monotonic() + seconds
    output = bytearray()
    errors = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(stdout, selectors.EVENT_READ, output)
        selector.register(stderr, selectors.EVENT_READ, errors)
        while selector.get_map():
            if check is not None:
                check()
            if time.monotonic() > ends_at:
                raise GitTimeout(seconds)
            for key, _ in selector.select(timeout=0.5):
                data = os.read(key.fd, 1 << 16)
                if not data:
                    selector.unregister(key.fileobj)
                    continue
                key.data.extend(data)
                if key.data is output and len(output) > most:
                    raise GitFailure(f"fatal: more than {most} bytes of output", 1)
                if key.data is errors and len(errors) > OUTPUT_LIMIT:
                    del errors[: len(errors) - OUTPUT_LIMIT]
    process.wait(timeout=max(1.0, ends_at - time.monotonic()))
    return bytes(output), bytes(errors)


@contextlib.contextmanager
def running(
    arguments: Sequence[str], *, directory: Path, stdin: bool = False, access: Access = LOCAL
) -> Iterator[subprocess.Popen[bytes]]:
    """A git process to talk to; it is ended when the block is left, however that happens."""
    with tempfile.TemporaryDirectory(prefix="cograph-git-") as home:
        process = subprocess.Popen(
            command(arguments, directory=directory, access=access),
            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(home, access),
            cwd=home,
        )
        try:
            yield process
        finally:
            end(process)


def opened(pipe: IO[bytes] | None) -> IO[bytes]:
    """A pipe that was asked for when the process was started."""
    if pipe is None:
        raise RuntimeError("the process has no such pipe")
    return pipe


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends ``process`` if it still runs and closes its pipes."""
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
