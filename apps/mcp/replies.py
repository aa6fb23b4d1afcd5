"""A tool's answer as values, and as the one text block that the client gets."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from apps.collections import catalogue as collections
from apps.mcp.bounds import Room, fitting
from apps.repos import catalogue as repos

if TYPE_CHECKING:
    from apps.access.sources import Source
    from apps.access.viewers import Viewer

T = TypeVar("T")

META_KEY = "cograph/result"
META_BYTES = 32 * 1024
"""Of ``_meta``: enough for ids, scores and ranges, never for bodies."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call: who asks, with what checked arguments, when."""

    viewer: Viewer
    arguments: Mapping[str, Any]
    now: datetime.datetime
    room: Room
    tool: str = ""
    named: Mapping[str, Source] = field(default_factory=dict)
    """The sources that the arguments name, by argument, as far as they were looked up already."""

    def repository(self) -> Any:
        """The repository that the argument of that name means, with its state. Raises NotFound."""
        return self.named.get("repository") or repos.repository_at(self.viewer, self["repository"])

    def collection(self) -> Any:
        """The collection that the argument of that name means. Raises NotFound."""
        return self.named.get("collection") or collections.collection_at(self.viewer, self["collection"])

    def __getitem__(self, name: str) -> Any:
        return self.arguments[name]

    def get(self, name: str) -> Any:
        return self.arguments.get(name)

    def question(self, **more: Any) -> dict[str, Any]:
        """What a cursor is bound to: tool, arguments, and the state of what it pages through."""
        asked = {name: value for name, value in self.arguments.items() if name not in ("cursor", "limit")}
        return {"tool": self.tool, **asked, **more}


@dataclass(slots=True)
class Reply:
    """``sources`` are the keys of what the answer shows, one for each result, for the query log."""

    freshness: Sequence[str] = ()
    blocks: Sequence[str] = ()
    closing: Sequence[str] = ()
    meta: dict[str, Any] = field(default_factory=dict)
    next_cursor: str | None = None
    sources: Sequence[tuple[str, Any]] = ()

    def text(self) -> str:
        parts = ["\n".join(self.freshness), *self.blocks, "\n".join(self.closing)]
        if self.next_cursor:
            parts.append(f"next_cursor: {self.next_cursor}")
        return "\n\n".join(part for part in parts if part)

    def result(self) -> dict[str, Any]:
        """The value of ``_meta``, brought under its limit by leaving out the ends of its longest lists."""
        found = {**self.meta, "next_cursor": self.next_cursor}
        left_out = 0
        while _size(found) > META_BYTES:
            lists = [name for name, value in found.items() if isinstance(value, list) and value]
            if not lists:
                break
            name = max(lists, key=lambda one: _size(found[one]))
            cut = max(1, len(found[name]) // 8)
            left_out += cut
            found = {**found, name: found[name][:-cut], "left_out": left_out}
        return found


@dataclass(frozen=True, slots=True)
class Listed(Generic[T]):
    """A page of items with their blocks of text, as many as fit."""

    items: list[T]
    blocks: list[str]
    total: int
    next_cursor: str | None


def list_within(
    room: Room,
    limit: int,
    fetch: Callable[[int], tuple[list[T], int, str | None]],
    present: Callable[[T], str],
) -> Listed[T]:
    """At most ``limit`` items of each block. ``fetch(n)`` gives n of each, the total and the cursor behind them.

    Where fewer fit, fewer are fetched, so that the cursor stands exactly behind the last one shown.
    """
    while True:
        items, total, cursor = fetch(limit)
        blocks = [present(item) for item in items]
        count = fitting(blocks, room)
        if count >= len(items) or limit == 1:
            return Listed(items, blocks, total, cursor)
        # Of an answer in blocks the next page mixes them otherwise: it is measured again.
        limit = max(1, min(limit - 1, count * limit // len(items)))


def _size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str).encode("utf-8", "replace"))
