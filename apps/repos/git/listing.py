"""Every tracked path of a commit, and when each last changed. Nothing is checked out, no blob is read."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from apps.repos.git.environment import opened, run, running
from apps.repos.git.errors import GitFailure
from apps.repos.git.values import CommitInfo, Entry, shown_path

LISTING_SECONDS = 300
LOG_SECONDS = 120


def list_tree(mirror: Path, commit: str, *, check: Callable[[], None] | None = None) -> list[Entry]:
    """``git ls-tree`` of the whole commit. Raises GitFailure: a failed listing is never an empty one."""
    output = run(
        ["ls-tree", "-r", "-z", "-l", "--full-tree", commit], directory=mirror, seconds=LISTING_SECONDS, check=check
    )
    return list(parse_tree(output))


def parse_tree(output: bytes) -> Iterator[Entry]:
    for record in output.split(b"\0"):
        if not record:
            continue
        head, raw_path = record.split(b"\t", 1)
        mode, _, blob, size = head.split()
        yield Entry(
            raw_path=raw_path,
            path=shown_path(raw_path),
            mode=int(mode, 8),
            blob=blob.decode("ascii"),
            # What is no blob has "-", an object that is missing or damaged in the mirror "BAD".
            size=int(size) if size.isdigit() else None,
        )


def commit_info(mirror: Path, commit: str) -> CommitInfo:
    output = run(["log", "-1", "--format=%H %ct", commit, "--"], directory=mirror).decode("ascii")
    name, seconds = output.split()
    return CommitInfo(name, datetime.datetime.fromtimestamp(int(seconds), datetime.UTC))


def is_ancestor(mirror: Path, earlier: str, later: str) -> bool:
    """Whether ``later`` grew out of ``earlier``; false when ``earlier`` is unknown here or history was rewritten."""
    try:
        run(["merge-base", "--is-ancestor", earlier, later], directory=mirror)
    except GitFailure:
        return False
    return True


def last_changes(
    mirror: Path, commit: str, paths: Collection[bytes], *, since: str = "", check: Callable[[], None] | None = None
) -> dict[bytes, CommitInfo]:
    """For each of ``paths`` the newest commit that touched it, by one walk that ends when all are found.

    ``since`` bounds the walk to what came after a commit. Paths that the walk does not meet (a merge that changed them
    by itself, the edge of a shallow mirror) are missing from the answer.
    """
    wanted = set(paths)
    found: dict[bytes, CommitInfo] = {}
    if not wanted:
        return found
    arguments = ["log", "--format=%x00%H %ct", "--name-only", "-z", "--no-renames", "--root", commit]
    if since:
        arguments.append(f"^{since}")
    arguments.append("--")
    current: CommitInfo | None = None
    deadline = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=LOG_SECONDS)
    with running(arguments, directory=mirror) as process:
        stdout = opened(process.stdout)
        rest = b""
        while wanted and (data := os.read(stdout.fileno(), 1 << 16)):
            if check is not None:
                check()
            if datetime.datetime.now(datetime.UTC) > deadline:
                break
            pieces = (rest + data).split(b"\0")
            rest = pieces.pop()
            for piece in pieces:
                current = _take(piece, current, wanted, found)
        if rest and wanted:
            _take(rest, current, wanted, found)
    return found


def _take(
    piece: bytes, current: CommitInfo | None, wanted: set[bytes], found: dict[bytes, CommitInfo]
) -> CommitInfo | None:
    """One field of the log: a commit line (``hash seconds``), or a path (the first of a commit after a line feed)."""
    text = piece.removeprefix(b"\n")
    if current is not None and text in wanted:
        wanted.discard(text)
        found[text] = current
        return current
    head = text.split(b"\n", 1)[0].split(b" ")
    if len(head) == 2 and len(head[0]) in (40, 64) and head[1].isdigit():
        return CommitInfo(head[0].decode("ascii"), datetime.datetime.fromtimestamp(int(head[1]), datetime.UTC))
    return current
