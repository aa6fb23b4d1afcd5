"""Units of data files: keys of YAML, members of JSON, tables of TOML and INI."""

from __future__ import annotations

import re
from collections.abc import Sequence

from apps.markup.chunking.units import LONGEST_NAME, Unit, is_comment, spans

_YAML_KEY = re.compile(r"[^\s#\-?\[\]{},&*!|>%@`][^:]*(?::(?!\s|$)[^:]*)*:(?=\s|$)")
_YAML_BLOCK_SCALAR = re.compile(r":\s+[|>][-+0-9]*\s*(?:#.*)?$")
_YAML_ITEM_NAME = re.compile(r"-\s+(?:name|id):\s+(\S.*)$")
_JSON_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|[{}\[\]:,\n]')
_TABLE = re.compile(r"\[{1,2}([^\[\]\n]+)\]{1,2}")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _key(line: str) -> str | None:
    found = _YAML_KEY.match(line)
    return found.group()[:-1].strip().strip("\"'") if found else None


def _yaml_entries(lines: Sequence[str], first: int, last: int) -> list[tuple[str, int, int]]:
    """Keys or items at the smallest indentation of a range of lines (from 1)."""
    indent: int | None = None
    starts: list[tuple[int, str]] = []
    for number in range(first, last + 1):
        line = lines[number - 1]
        body = line.lstrip(" ")
        if not body or body[0] == "#" or body[0] == "\t":
            continue
        here = len(line) - len(body)
        if indent is None:
            indent = here
        if here != indent:
            continue
        if body.startswith("- ") or body == "-":
            named = _YAML_ITEM_NAME.match(body)
            starts.append((number, named.group(1).strip("\"' ") if named else ""))
        elif (key := _key(body)) is not None:
            starts.append((number, key))
    return spans(starts, last) if starts else []


def _yaml_keys(lines: Sequence[str], first: int, last: int) -> tuple[Unit, ...]:
    found: list[Unit] = []
    keys = [(number, key) for number in range(first, last + 1) if (key := _key(lines[number - 1])) is not None]
    if not keys:
        return tuple(Unit(*entry) for entry in _yaml_entries(lines, first, last))
    for name, start, end in spans(keys, last):
        end = _without_leading_comments(lines, start, end)
        scalar = _YAML_BLOCK_SCALAR.search(lines[start - 1]) is not None
        inner = [] if scalar else _yaml_entries(lines, start + 1, end)
        found.append(Unit(name, start, end, tuple(Unit(*entry) for entry in inner)))
    return tuple(found)


def _without_leading_comments(lines: Sequence[str], start: int, end: int) -> int:
    """Leave comments and blank lines at the end of a unit to the unit that follows."""
    while end > start and (not lines[end - 1].strip() or lines[end - 1].startswith("#")):
        end -= 1
    return end


def scan_yaml(lines: Sequence[str]) -> tuple[Unit, ...]:
    """Documents when there are several, else top-level keys; each key with its child keys."""
    marks = [number for number, line in enumerate(lines, 1) if line.rstrip() == "---" or line.startswith("--- ")]
    starts = sorted({1, *marks})
    documents = [
        (first, last)
        for first, last in zip(starts, [*(mark - 1 for mark in starts[1:]), len(lines)], strict=True)
        if any(line.strip() and not is_comment(line) and line.rstrip() != "---" for line in lines[first - 1 : last])
    ]
    if len(documents) <= 1:
        return _yaml_keys(lines, 1, len(lines))
    return tuple(
        Unit(f"document {number}", first, last, _yaml_keys(lines, first, last))
        for number, (first, last) in enumerate(documents, 1)
    )


def scan_json(lines: Sequence[str]) -> tuple[Unit, ...]:
    """Members of the outermost object, each with its own members. Brackets that do not match give nothing."""
    line = 1
    depth = 0
    # One list of (first line, name) for each open level that is of use, the members of the root and theirs.
    members: list[tuple[str, int, int, list[tuple[int, str]]]] = []
    pending: tuple[str, int] | None = None
    for match in _JSON_TOKEN.finditer("\n".join(lines)):
        token = match.group()
        first = token[0]
        if first == "\n":
            line += 1
        elif first == '"':
            pending = (token[1:-1][:LONGEST_NAME], line)
        elif first == ":":
            if pending is not None and depth == 1:
                members.append((pending[0], pending[1], line, []))
            elif pending is not None and depth == 2 and members:
                members[-1][3].append((pending[1], pending[0]))
            pending = None
        elif first in "{[":
            depth += 1
            pending = None
        elif first in "}]":
            depth -= 1
            pending = None
            if depth < 0:
                return ()
            if depth <= 1 and members:
                name, start, _, inner = members[-1]
                members[-1] = (name, start, line, inner)
    if depth:
        return ()
    return _json_units(members)


def _json_units(members: list[tuple[str, int, int, list[tuple[int, str]]]]) -> tuple[Unit, ...]:
    # A member's own line is no child's: what stands on it (`"a": {"b": 1,`) goes with the key.
    return tuple(
        Unit(name, start, end, tuple(Unit(*entry) for entry in spans(inner, end) if entry[1] > start) if inner else ())
        for name, start, end, inner in members
    )


def scan_tables(lines: Sequence[str]) -> tuple[Unit, ...]:
    """Tables of TOML, sections of INI and ``.cfg``: headers at the line's start, outside of long strings."""
    starts: list[tuple[int, str]] = []
    quote = ""
    for number, line in enumerate(lines, 1):
        if quote:
            if line.count(quote) % 2:
                quote = ""
            continue
        if line.startswith("[") and (found := _TABLE.match(line)):
            starts.append((number, found.group(1).strip()))
            continue
        for mark in ('"""', "'''"):
            if line.count(mark) % 2:
                quote = mark
                break
    return tuple(
        Unit(name, first, _without_leading_comments(lines, first, last))
        for name, first, last in (spans(starts, len(lines)) if starts else [])
    )
