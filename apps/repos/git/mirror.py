"""Bare mirrors: one for each address, a cache of this machine, shared by its repositories under a lock."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from apps.repos.git.environment import Access, run
from apps.repos.git.errors import GitFailure
from apps.repos.git.values import RemoteHead

REMOTE_SECONDS = 120
LOCK_WAIT_SECONDS = 0.2
MOST_REFS = 32 * 1024 * 1024


def remove_others(folder: Path, wanted: set[Path]) -> int:
    """Delete the mirrors in ``folder`` that nobody wants any more. Gives how many."""
    others = [path for path in folder.glob("*.git") if path not in wanted]
    for path in others:
        shutil.rmtree(path, ignore_errors=True)
        path.with_suffix(".lock").unlink(missing_ok=True)
    return len(others)


class MirrorBusy(Exception):
    """Another process held the mirror for longer than we may wait."""


class BranchMissing(Exception):
    """The remote has commits, and the wanted branch is not among its branches."""


@dataclass(frozen=True, slots=True)
class Mirror:
    """A bare repository in the data folder; may be deleted at any time and is then fetched anew."""

    directory: Path

    @property
    def lock_path(self) -> Path:
        return self.directory.with_suffix(".lock")

    def exists(self) -> bool:
        return (self.directory / "HEAD").is_file()

    def has_commit(self, commit: str) -> bool:
        """Whether the commit and its tree are here."""
        if not self.exists():
            return False
        try:
            run(["cat-file", "-e", f"{commit}^{{tree}}"], directory=self.directory)
        except GitFailure:
            return False
        return True

    def remove(self) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)


def mirror_of(folder: Path, url: str, depth: int | None) -> Mirror:
    """The mirror of an address. A shallow and a full one stand apart: a fetch into one would change the other."""
    digest = hashlib.sha256(f"{url}\n{depth or 0}".encode()).hexdigest()[:40]
    return Mirror(folder / f"{digest}.git")


@contextlib.contextmanager
def locked(mirror: Mirror, *, seconds: float, check: Callable[[], None] | None = None) -> Iterator[int]:
    """Holds the lock of a mirror and gives its file descriptor.

    The lock belongs to the open file: it falls when this process and every git call that inherited the descriptor are
    gone, so a killed worker never leaves it behind, and an orphaned fetch never meets a second one. Raises MirrorBusy.
    """
    mirror.directory.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(mirror.lock_path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        ends_at = time.monotonic() + seconds
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if check is not None:
                    check()
                if time.monotonic() > ends_at:
                    raise MirrorBusy from None
                time.sleep(LOCK_WAIT_SECONDS)
        yield descriptor
    finally:
        os.close(descriptor)


def remote_head(url: str, branch: str, *, access: Access, check: Callable[[], None] | None = None) -> RemoteHead:
    """Where ``branch`` (empty: the remote HEAD) stands. Raises GitFailure, GitTimeout, BranchMissing."""
    wanted = [f"refs/heads/{branch}"] if branch else ["HEAD"]
    output = run(
        ["ls-remote", "--symref", "--", url, *wanted],
        access=access,
        seconds=REMOTE_SECONDS,
        check=check,
        most=MOST_REFS,
    ).decode("utf-8", "replace")
    named = ""
    for line in output.split("\n"):
        left, _, right = line.partition("\t")
        if left.startswith("ref: refs/heads/") and right == "HEAD":
            named = left.removeprefix("ref: refs/heads/")
        elif re.fullmatch(r"[0-9a-f]{40,64}", left) and right == wanted[0]:
            return RemoteHead(branch or named or "HEAD", left)
    if branch or _has_branches(url, access=access, check=check):
        if branch and not _has_branches(url, access=access, check=check):
            return RemoteHead(branch, "")
        raise BranchMissing(branch or named)
    return RemoteHead(named, "")


def _has_branches(url: str, *, access: Access, check: Callable[[], None] | None) -> bool:
    return bool(
        run(
            ["ls-remote", "--heads", "--", url], access=access, seconds=REMOTE_SECONDS, check=check, most=MOST_REFS
        ).strip()
    )


def fetch(
    mirror: Mirror,
    url: str,
    head: RemoteHead,
    *,
    access: Access,
    depth: int | None,
    lock: int,
    seconds: float,
    check: Callable[[], None] | None = None,
) -> str:
    """Brings the branch of ``head`` into the mirror and gives the commit that it has now. The lock must be held."""
    if not mirror.exists():
        mirror.remove()
        run(["init", "-q", "--bare", "--template=", "--", str(mirror.directory)])
    _drop_stale_locks(mirror.directory)
    source = "HEAD" if head.branch == "HEAD" else f"refs/heads/{head.branch}"
    target = f"refs/cograph/{hashlib.sha256(source.encode()).hexdigest()[:16]}"
    arguments = ["fetch", "-q", "--no-tags", "--no-write-fetch-head", "--force", "--no-auto-maintenance"]
    if depth:
        arguments.append(f"--depth={depth}")
    run(
        [*arguments, "--", url, f"+{source}:{target}"],
        directory=mirror.directory,
        access=access,
        seconds=seconds,
        check=check,
        pass_fds=[lock],
    )
    return (
        run(["rev-parse", "--verify", "--end-of-options", f"{target}^{{commit}}"], directory=mirror.directory)
        .decode()
        .strip()
    )


def _drop_stale_locks(directory: Path) -> None:
    """Lock files of a git call that was killed; while we hold the mirror's lock nobody else can own one."""
    for pattern in ("*.lock", "refs/**/*.lock"):
        for path in directory.glob(pattern):
            path.unlink(missing_ok=True)
