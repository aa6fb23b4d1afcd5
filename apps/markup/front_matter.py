"""Front matter: where it stands, what it says, what is wrong with it (``markup.md`` 2)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from apps.markup.values import Limits, Link, MetadataValue, Warning_
from apps.markup.wikilinks import find_in_text, to_link
from apps.markup.yaml_core import YamlFault, load

_OPENING = re.compile(r"---[ \t]*(?:\n|\Z)")
_CLOSING = re.compile(r"^(?:---|\.\.\.)[ \t]*$", re.MULTILINE)
_INDENTED_CLOSING = re.compile(r"^[ \t]+(?:---|\.\.\.)[ \t]*$", re.MULTILINE)
_KEY = re.compile(r"[^:\n]+:(?:[ \t]|$)", re.MULTILINE)
_TOML_KEY = re.compile(r"[ \t]*(?:[\w.\"'-]+[ \t]*=|\[)")
_NEAR_OPENING = re.compile(r"(?:[-\u2010-\u2015\u2212]+|\+\+\+)[ \t]*(?:\n|\Z)")


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The outcome for one file. Lines are those of the file."""

    metadata: Mapping[str, object] = field(default_factory=dict)
    values: tuple[MetadataValue, ...] = ()
    span: tuple[int, int] | None = None
    title: str | None = None
    body_line: int = 1
    """First line of the body; a broken block belongs to it."""
    hidden_lines: int = 0
    """So many lines at the top are not Markdown: the block, broken or not."""
    links: tuple[Link, ...] = ()
    warnings: tuple[Warning_, ...] = ()


def read_front_matter(text: str, path: str, limits: Limits) -> FrontMatter:
    """Split and read the block at the top. Never raises; errors are warnings and leave the metadata empty."""
    opening = _OPENING.match(text)
    if not opening:
        return _near_miss(text)
    closing = _CLOSING.search(text, opening.end())
    if not closing:
        return _unclosed(text, opening.end())
    block = text[opening.end() : closing.start()]
    last = block.count("\n") + 2
    size = len(block.encode()) if len(block) * 4 > limits.max_front_matter_bytes else 0
    try:
        if size > limits.max_front_matter_bytes:
            raise YamlFault(f"{size} bytes; the limit is {limits.max_front_matter_bytes}", -1, 0)
        document = load(block)
    except YamlFault as fault:
        if not _begins_with_key(block):
            return FrontMatter()
        line, column = fault.line + 2, fault.column + 1
        message = f"{path}, line {line}, column {column}: {fault.message}"
        warning = Warning_("front_matter_error", line, column, message)
        return FrontMatter(hidden_lines=last, warnings=(warning,))
    if not document.absent and not isinstance(document.root, dict):
        return FrontMatter()
    metadata: dict[str, Any] = document.root or {}
    values = tuple(
        MetadataValue(each.path, each.line + 1, each.column, each.resolved, each.source) for each in document.values
    )
    title, warnings = _title(metadata, values)
    return FrontMatter(
        metadata=metadata,
        values=values,
        span=(1, last),
        title=title,
        body_line=last + 1,
        hidden_lines=last,
        links=tuple(_links(values)),
        warnings=warnings,
    )


def _title(metadata: Mapping[str, Any], values: tuple[MetadataValue, ...]) -> tuple[str | None, tuple[Warning_, ...]]:
    title = metadata.get("title")
    if isinstance(title, (list, dict)):
        place = next(each for each in values if each.path == ("title",))
        kind = "a list" if isinstance(title, list) else "a mapping"
        return None, (Warning_("front_matter_value", place.line, place.column, f"title is {kind}, not text"),)
    return (" ".join(str(title).split()) or None) if title is not None else None, ()


def _links(values: tuple[MetadataValue, ...]) -> list[Link]:
    links: list[Link] = []
    for value in values:
        if value.resolved == "str" and "[[" in value.source:
            links += [
                to_link(
                    found, value.line, value.line, column=value.column, in_front_matter=True, field=str(value.path[0])
                )
                for found in find_in_text(value.source)
            ]
    return links


def _begins_with_key(block: str) -> bool:
    """Whether the first line that is neither blank nor comment looks like ``key:``."""
    for line in block.split("\n"):
        stripped = line.strip()
        if stripped and not stripped.startswith("#"):
            return _KEY.match(line) is not None
    return False


def _unclosed(text: str, place: int) -> FrontMatter:
    if not _KEY.match(text, place):
        return FrontMatter()
    indented = _INDENTED_CLOSING.search(text, place)
    if indented:
        line = text.count("\n", 0, indented.start()) + 1
        message = "the closing line of the front matter is indented"
        return FrontMatter(warnings=(Warning_("front_matter_near_miss", line, 1, message),))
    return FrontMatter(warnings=(Warning_("front_matter_unclosed", 1, 1, "the front matter is never closed"),))


def _near_miss(text: str) -> FrontMatter:
    if text[:1] not in "\n \t-+\u2010\u2011\u2012\u2013\u2014\u2015\u2212":
        return FrontMatter()
    place = len(text) - len(text.lstrip(" \t\n"))
    opening = _NEAR_OPENING.match(text, place)
    if not opening:
        return FrontMatter()
    marks = opening[0].strip()
    toml = marks == "+++"
    if not toml and len(marks) < 3 and marks.isascii():
        return FrontMatter()
    if not (_TOML_KEY if toml else _KEY).match(text, opening.end()):
        return FrontMatter()
    if toml:
        message = "TOML front matter is not read; use YAML between lines of ---"
    elif marks != "---":
        message = "the front matter must open with three hyphens"
    else:
        message = "the front matter must begin in the first line, without blanks before it"
    line = text.count("\n", 0, place) + 1
    column = place - text.rfind("\n", 0, place)
    return FrontMatter(warnings=(Warning_("front_matter_near_miss", line, column, message),))
