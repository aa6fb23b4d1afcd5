"""YAML 1.2 core schema, read from parser events; nothing is built before it is known to be harmless.

PyYAML's own constructors follow YAML 1.1 (``on`` is true, ``0755`` is octal), let the last of two equal keys win and
expand aliases without limit; so only its scanner is used. Rules: ``markup.md`` 2.3.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import yaml

from apps.markup.values import MetadataValue

MAX_DEPTH = 20
MAX_ALIAS_NODES = 1000
_MAX_DIGITS = 100
_TEXT_KEYS = frozenset({"title", "slug", "type", "id", "status", "description", "owner"})
_TEXT_LISTS = frozenset({"tags", "labels", "aliases"})
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_TAG = "tag:yaml.org,2002:"
_CORE_TAGS = frozenset({_TAG + each for each in ("str", "int", "float", "bool", "null", "map", "seq")} | {"!"})
_RESOLVED_TAGS = _CORE_TAGS - {_TAG + "str", "!"} | {None}
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Resolved = Literal["null", "bool", "int", "float", "str", "list", "map"]


class YamlFault(Exception):
    """What is wrong, at which line and column (from 0) of the YAML text. The message quotes no value."""

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(message)
        self.message, self.line, self.column = message, line, column


@dataclass(slots=True)
class YamlDocument:
    """The root value; ``absent`` when the text holds nothing but blanks and comments."""

    root: Any = None
    absent: bool = True
    values: list[MetadataValue] = field(default_factory=list)
    """Lines and columns from 1, in the YAML text."""


def load(text: str) -> YamlDocument:
    """Read one document. Raises ``YamlFault`` for syntax, tags, duplicate keys, depth, aliases, a second document."""
    try:
        document = _Builder(text).document
        if "\\" in text and _holds_nul(document.root):
            raise _nul_fault(text)
        return document
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise YamlFault(_plain(error.problem), mark.line if mark else 0, mark.column if mark else 0) from None
    except yaml.reader.ReaderError as error:
        before = text.encode()[: error.position] if isinstance(error.position, int) else b""
        line = before.count(b"\n")
        column = len(before.rpartition(b"\n")[2].decode(errors="ignore"))
        raise YamlFault("a control character is not allowed", line, column) from None
    except yaml.YAMLError as error:
        raise YamlFault(f"not readable as YAML ({type(error).__name__})", 0, 0) from None


_NUL = re.compile(r"\\(?:0|x00|u0000|U00000000)")


def _holds_nul(value: Any) -> bool:
    """Whether a key or text holds a NUL, which quoted text can spell and no database stores."""
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, dict):
        return any(_holds_nul(key) or _holds_nul(inner) for key, inner in value.items())
    return isinstance(value, list) and any(_holds_nul(inner) for inner in value)


def _nul_fault(text: str) -> YamlFault:
    found = _NUL.search(text)
    place = found.start() if found else 0
    return YamlFault(
        "a NUL character is not allowed", text.count("\n", 0, place), place - text.rfind("\n", 0, place) - 1
    )


def resolve(text: str) -> tuple[Any, Resolved]:
    """Value and type of a plain scalar. What JSON cannot hold (NaN, infinity) stays text."""
    if text in _NULL:
        return None, "null"
    if text in _BOOL:
        return _BOOL[text], "bool"
    if text[0] in "+-.0123456789" and len(text) <= _MAX_DIGITS:
        if _INT.fullmatch(text):
            base = 8 if text.startswith("0o") else 16 if text.startswith("0x") else 10
            return int(text, base), "int"
        if _FLOAT.fullmatch(text) and math.isfinite(number := float(text)):
            return number, "float"
    return text, "str"


def _plain(problem: str | None) -> str:
    # A problem may quote the character it met; quoted text of the file stays out of reports.
    return re.sub(r"(['\"]).*?\1", "…", problem or "not readable as YAML", flags=re.DOTALL)


class _Builder:
    def __init__(self, text: str) -> None:
        self.document = YamlDocument()
        self._anchors: dict[str, tuple[Any, int, Resolved]] = {}
        self._alias_nodes = 0
        self._next: Callable[[], Any] = _LOADER(text).get_event
        while not isinstance(event := self._next(), yaml.StreamEndEvent):
            if isinstance(event, yaml.DocumentStartEvent):
                if not self.document.absent:
                    mark: Any = event.start_mark
                    raise YamlFault("more than one document", mark.line, mark.column)
                first = self._next()
                self.document.absent = isinstance(first, yaml.ScalarEvent) and not first.value and _unmarked(first)
                self.document.root, _ = self._value(first, (), text_only=False)

    def _value(self, event: Any, path: tuple[str | int, ...], *, text_only: bool) -> tuple[Any, int]:
        """The value that begins with ``event``, and how many nodes it holds."""
        mark = event.start_mark
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, path)
        if event.tag is not None and event.tag not in _CORE_TAGS:
            raise YamlFault("tags are not allowed", mark.line, mark.column)
        if len(path) > MAX_DEPTH:
            raise YamlFault(f"nested deeper than {MAX_DEPTH} levels", mark.line, mark.column)
        value: Any
        kind: Resolved
        place = len(self.document.values)
        if isinstance(event, yaml.ScalarEvent):
            size, source = 1, event.value
            value, kind = (source, "str")
            if event.style in (None, "") and event.tag in _RESOLVED_TAGS:
                value, kind = resolve(source)
            if text_only:
                value = source
        elif isinstance(event, yaml.SequenceStartEvent):
            value, size, kind, source = *self._sequence(path, text_only=text_only), "list", ""
        else:
            value, size, kind, source = *self._mapping(path), "map", ""
        if event.anchor:
            self._anchors[event.anchor] = (value, size, kind)
        if path:
            self.document.values.insert(place, MetadataValue(path, mark.line + 1, mark.column + 1, kind, source))
        return value, size

    def _alias(self, event: Any, path: tuple[str | int, ...]) -> tuple[Any, int]:
        mark = event.start_mark
        if event.anchor not in self._anchors:
            raise YamlFault("an alias without its anchor", mark.line, mark.column)
        value, size, kind = self._anchors[event.anchor]
        self._alias_nodes += size
        if self._alias_nodes > MAX_ALIAS_NODES:
            raise YamlFault(f"more than {MAX_ALIAS_NODES} nodes by aliases", mark.line, mark.column)
        source = value if isinstance(value, str) else ""
        self.document.values.append(MetadataValue(path, mark.line + 1, mark.column + 1, kind, source))
        return value, size

    def _sequence(self, path: tuple[str | int, ...], *, text_only: bool) -> tuple[list[Any], int]:
        items: list[Any] = []
        size = 1
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            item, nodes = self._value(event, (*path, len(items)), text_only=text_only)
            items.append(item)
            size += nodes
        return items, size

    def _mapping(self, path: tuple[str | int, ...]) -> tuple[dict[str, Any], int]:
        found: dict[str, Any] = {}
        lines: dict[str, int] = {}
        size = 1
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            mark = event.start_mark
            if not isinstance(event, yaml.ScalarEvent):
                raise YamlFault("a key must be plain text", mark.line, mark.column)
            if event.tag is not None and event.tag not in _CORE_TAGS:
                raise YamlFault("tags are not allowed", mark.line, mark.column)
            key: str = event.value
            if key in found:
                # Line numbers here count from 0 in the block, whose first line is the second of the file.
                message = f"the key {key[:60]!r} stands twice; first in line {lines[key] + 2}"
                raise YamlFault(message, mark.line, mark.column)
            lines[key] = mark.line
            if event.anchor:
                self._anchors[event.anchor] = (key, 1, "str")
            top = not path
            only = top and (key in _TEXT_KEYS or key in _TEXT_LISTS)
            found[key], nodes = self._value(self._next(), (*path, key), text_only=only)
            size += nodes + 1
        return found, size


def _unmarked(event: Any) -> bool:
    return event.tag is None and event.anchor is None and event.style in (None, "")
