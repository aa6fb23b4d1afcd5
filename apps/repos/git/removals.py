"""Which commit took a name out of the code, and which deleted a path: one walk over the changes, newest first."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from apps.repos.git.environment import opened, running
from apps.repos.git.values import shown_path

WALK_SECONDS = 30.0
MOST_LINE_BYTES = 2000
_TOKEN = re.compile(r"--[A-Za-z][\w-]*|[A-Za-z_$][\w$]*")
_QUOTED = re.compile(r"\"([a-z][a-z0-9-]*)\"")
_DEFINES = (
    r"^\s*(?:(?:export|default|pub(?:\([^)]*\))?|public|private|protected|static|async|abstract|final|unsafe|declare)\s+)*"
    r"(?:def|class|func|function|fn|struct|enum|trait|interface|type|const|let|var|module|macro_rules!)\s+"
    r"(?:\([^)]*\)\s*)?"
)
_DEFINITION = re.compile(rf"{_DEFINES}([A-Za-z_$][\w$]*)|^(?:export\s+)?([A-Za-z_$][\w$]*)\s*(?::[^=]*)?=[^=]")
"""A definition by keyword, or a value at the left margin."""
_METHOD = re.compile(r"^\s+(?:[\w<>\[\],.?@*]+\s+){0,6}([A-Za-z_$][\w$]*)(?:<[^>]{0,80}>)?\([^;]*\)[^;{}]*\{\s*$")
"""A method by its head alone, as TypeScript, JavaScript and Java write it."""
_NO_METHOD = re.compile(r"^\s*(?:\}\s*)?(?:return|else|new|throw|await|if|for|while|switch|catch|do|with|function)\b")


@dataclass(frozen=True, slots=True)
class Removal:
    """``path`` is the file that held the name; ``defined``: the line that went looks like its definition."""

    commit: str
    path: str
    defined: bool


def removed_names(
    mirror: Path,
    commit: str,
    names: Collection[str],
    *,
    since: str = "",
    endings: Collection[str] = (),
    check: Callable[[], None] | None = None,
    seconds: float = WALK_SECONDS,
) -> dict[str, Removal]:
    """For each of ``names`` the newest commit that took out a line with it; one that took out its definition wins.

    ``since`` bounds the walk to what came after a commit, ``endings`` to files of these extensions. The walk ends when
    it has taken ``seconds``; what it has not met is missing from the answer.
    """
    wanted = set(names)
    found: dict[str, Removal] = {}
    if not wanted:
        return found
    arguments = [
        "log", "--format=%x00%H", "-p", "-U0", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames",
        "--no-prefix", "--root", commit,
    ]  # fmt: skip
    if since:
        arguments.append(f"^{since}")
    arguments += ["--", *(f"*{ending}" for ending in sorted(endings))]
    for current, path, line in _removed_lines(mirror, arguments, check, seconds):
        defined = defined_in(line)
        for name in wanted.intersection(_tokens(line, path)):
            known = found.get(name)
            is_definition = name in defined
            if known is None or (is_definition and not known.defined):
                found[name] = Removal(current, path, is_definition)
            if is_definition:
                wanted.discard(name)
        if not wanted:
            break
    return found


def _tokens(line: str, path: str) -> list[str]:
    tokens = _TOKEN.findall(line)
    if path.endswith(".go"):  # whose flags are spelled without hyphens
        tokens += [f"--{name}" for name in _QUOTED.findall(line)]
    return tokens


def defined_in(line: str) -> set[str]:
    """The names that a line of code defines, as far as a single line tells."""
    found = {name for match in _DEFINITION.finditer(line) for name in match.groups() if name}
    method = _METHOD.match(line) if line.rstrip().endswith("{") else None
    if method is not None and not _NO_METHOD.match(line):
        found.add(method[1])
    return found


def _removed_lines(
    mirror: Path, arguments: list[str], check: Callable[[], None] | None, seconds: float
) -> Iterator[tuple[str, str, str]]:
    """(commit, path, text) of every line that a commit takes out."""
    ends_at = time.monotonic() + seconds
    current = path = ""
    in_header = False
    with running(arguments, directory=mirror) as process:
        for raw in opened(process.stdout):
            if raw.startswith(b"\0"):
                current = raw[1:].strip().decode("ascii", "replace")
                if check is not None:
                    check()
                if time.monotonic() > ends_at:
                    return
            elif raw.startswith(b"diff --git "):
                in_header = True
            elif in_header and raw.startswith(b"--- "):
                path = shown_path(raw[4:].strip().removesuffix(b"\t"))
            elif raw.startswith(b"@@"):
                in_header = False
            elif not in_header and raw.startswith(b"-"):
                yield current, path, raw[1:MOST_LINE_BYTES].decode("utf-8", "replace").rstrip("\n")


def removed_paths(
    mirror: Path,
    commit: str,
    *,
    since: str = "",
    check: Callable[[], None] | None = None,
    seconds: float = WALK_SECONDS,
) -> Mapping[str, str]:
    """Every path that a commit deleted, with the newest such commit."""
    arguments = ["log", "--format=%x00%H", "--name-only", "--diff-filter=D", "--no-renames", "--root", commit]
    if since:
        arguments.append(f"^{since}")
    ends_at = time.monotonic() + seconds
    found: dict[str, str] = defaultdict(str)
    current = ""
    with running([*arguments, "--"], directory=mirror) as process:
        for raw in opened(process.stdout):
            if raw.startswith(b"\0"):
                current = raw[1:].strip().decode("ascii", "replace")
                if check is not None:
                    check()
                if time.monotonic() > ends_at:
                    break
            elif raw.strip() and not raw.startswith(b'"'):
                found.setdefault(shown_path(raw.rstrip(b"\n")), current)
    return found
