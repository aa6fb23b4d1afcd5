"""Values of configuration files that stand below their key: block scalars, strings over lines, a string on a line of
its own. Lists and tables are not among them: they hold names of secrets more often than secrets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

OPEN_ENDS = (":", "=", "|", ">", "|-", ">-", "|+", ">+", '"""', "'''")
# The key may stand anywhere in the line (`{"auth": {"token":`); after it comes at most the mark of a block.
OPEN_KEY = re.compile(
    r"(?:.*[\s{,\[(\-])?[\"']?(?P<key>[A-Za-z_][\w.\-]{0,120})[\"']?[ \t]*[:=][ \t]*(?P<mark>[|>][-+]?|\"\"\"|'''|)\s*"
)
LONGEST_END = 300
"""Characters at the end of a line in which an open key is looked for."""
WORD = re.compile(r"\s*(?P<quote>[\"']?)(?P<value>[^\s\"'{}\[\],#]+)(?P=quote)[\s,}\]]*")
"""A line that is one word, quoted or not, with what closes the table around it."""


def words_below(lines: list[str], wanted: Callable[[str], bool]) -> Iterator[tuple[int, re.Match[str]]]:
    """Lines (from 0) that are one word each, as ``WORD`` finds it, and belong to the value of a ``wanted`` key."""
    at = 0
    while at < len(lines):
        line = lines[at].rstrip()
        at += 1
        found = OPEN_KEY.fullmatch(line[-LONGEST_END:]) if line.endswith(OPEN_ENDS) else None
        if found is None or not wanted(found["key"]):
            continue
        end = _end(lines, at, found["mark"], _indent(line))
        for number in range(at, end):
            word = WORD.fullmatch(lines[number])
            if word is not None:
                yield number, word
        at = end


def _end(lines: list[str], at: int, mark: str, indent: int) -> int:
    """The first line from ``at`` on that is no part of the value."""
    if mark in ('"""', "'''"):
        return next((n for n in range(at, len(lines)) if mark in lines[n]), at)
    if mark:
        deeper = (n for n in range(at, len(lines)) if lines[n].strip() and _indent(lines[n]) <= indent)
        return next(deeper, len(lines))
    below = next((n for n in range(at, len(lines)) if lines[n].strip()), at)
    if below == len(lines) or lines[below].rstrip().endswith(":"):
        return at
    is_value = _indent(lines[below]) > indent or lines[below].lstrip().startswith(('"', "'"))
    return below + 1 if is_value else at


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
