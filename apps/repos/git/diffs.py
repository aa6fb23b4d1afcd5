"""What one commit changed: lines that it took out with those that it put in their place, and files that it renamed."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

from apps.repos.git.environment import opened, run, running
from apps.repos.git.values import shown_path

MOST_LINE_BYTES = 2000
MOST_LINES = 50_000
"""Of one commit: a larger one brings in or replaces whole trees and tells nothing about single names."""
RENAME_LIMIT = 1000
SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines of one place of a file before and after a commit, without any that stayed."""

    path: str
    removed: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)


def hunks_of(
    mirror: Path,
    commit: str,
    *,
    endings: Collection[str] = (),
    renames: bool = False,
    check: Callable[[], None] | None = None,
) -> list[Hunk]:
    """The changes of a commit against its parent, in files of these extensions; the first ``MOST_LINES`` of them.

    With ``renames`` a file that was renamed has the changes between its two paths, under the new one; without, all its
    lines are gone from one path and new at another.
    """
    arguments = [
        "diff-tree", "-p", "-r", "-U0", "--root", "--no-commit-id", "--no-color", "--no-ext-diff", "--no-textconv",
        *(("-M", f"-l{RENAME_LIMIT}") if renames else ("--no-renames",)),
        "--no-prefix", commit, "--", *(f"*{ending}" for ending in sorted(endings)),
    ]  # fmt: skip
    found: list[Hunk] = []
    path = ""
    in_header = True
    lines = 0
    with running(arguments, directory=mirror) as process:
        for raw in opened(process.stdout):
            if raw.startswith(b"diff --git "):
                in_header = True
                if check is not None:
                    check()
            elif in_header and raw.startswith((b"--- ", b"+++ ")):
                named = raw[4:].strip().removesuffix(b"\t")
                path = path if named == b"/dev/null" else shown_path(named)
            elif raw.startswith(b"@@"):
                in_header = False
                found.append(Hunk(path))
            elif not in_header and raw.startswith((b"-", b"+")):
                side = found[-1].removed if raw.startswith(b"-") else found[-1].added
                side.append(raw[1:MOST_LINE_BYTES].decode("utf-8", "replace").rstrip("\r\n"))
                lines += 1
                if lines > MOST_LINES:
                    break
    return found


def renamed_paths(mirror: Path, commit: str, *, check: Callable[[], None] | None = None) -> dict[str, str]:
    """Old to new path of the files that a commit renamed, changed or not, as git sees it. Raises GitFailure."""
    arguments = [
        "diff-tree", "-r", "-z", "--root", "--no-commit-id", "--name-status", "-M", f"-l{RENAME_LIMIT}",
        "--diff-filter=R", commit, "--",
    ]  # fmt: skip
    fields = run(arguments, directory=mirror, seconds=SECONDS, check=check).split(b"\0")
    return {shown_path(old): shown_path(new) for old, new in zip(fields[1::3], fields[2::3], strict=False)}
