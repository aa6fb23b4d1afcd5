"""Where front matter values stand, and what YAML made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from apps.knowledge_graph.values import Problem
from apps.knowledge_graph.vocabulary import normal_word
from apps.markup.values import MetadataValue

KeyPath = tuple[str | int, ...]


class Places:
    """Looks values up by key path and collects what is wrong with them."""

    def __init__(self, values: Sequence[MetadataValue], text: str = "") -> None:
        self._values = {value.path: value for value in values}
        self._text = text
        self._lines: list[str] | None = None
        self.problems: list[Problem] = []

    def at(self, path: KeyPath) -> MetadataValue:
        found = self._values.get(path)
        # Values behind an alias have no place of their own: they stand where the alias does.
        while found is None and path:
            path = path[:-1]
            found = self._values.get(path)
        return found or MetadataValue((), 1, 1, "map", "")

    def is_own(self, path: KeyPath) -> bool:
        return path in self._values

    def line(self, number: int) -> str:
        if self._lines is None:
            self._lines = self._text.split("\n", 2000)
        return self._lines[number - 1] if number <= len(self._lines) else ""

    def stands(self, path: KeyPath, written: str) -> bool:
        """Whether the text has ``written`` where the value of ``path`` begins: not in quotes, not by an alias."""
        place = self.at(path)
        return bool(written) and self.line(place.line)[place.column - 1 :].startswith(written)

    def field_problem(
        self, path: KeyPath, message: str, hint: str = "", names: str = "", *, fix: tuple[str, str] | None = None
    ) -> None:
        """KG115: the default is used, or the item drops out. ``fix``: what is written, and what was probably meant."""
        self._add("KG115", "warning", path, message, hint, names, fix)

    def near_miss(self, path: KeyPath, written: str, meant: str, what: str) -> None:
        message = f"{what} {_short(written)!r} is not known; did you mean {meant!r}?"
        self._add("KG114", "warning", path, message, f"write {meant}", written)

    def normalised(self, path: KeyPath, message: str, hint: str = "", names: str = "") -> None:
        self._add("KG120", "info", path, message, hint, names)

    def limit(self, path: KeyPath, message: str) -> None:
        self._add("KG121", "warning", path, message, "", str(path[0]) if path else "")

    def _add(
        self,
        rule: str,
        severity: str,
        path: KeyPath,
        message: str,
        hint: str,
        names: str,
        fix: tuple[str, str] | None = None,
    ) -> None:
        place = self.at(path)
        field = ".".join(map(str, path[:1]))
        self.problems.append(
            Problem(
                rule,
                severity,  # type: ignore[arg-type]
                place.line,
                place.column,
                message,
                hint,
                f"{field} {_short(names)}".strip(),
                *(fix if fix and self.stands(path, fix[0]) else ()),
            )
        )


def by_normal_key(metadata: Mapping[str, object]) -> dict[str, str]:
    """Normalised key -> key as written. A key in its canonical spelling wins over another spelling of it."""
    found: dict[str, str] = {}
    for written in metadata:
        normal = normal_word(written)
        if normal not in found or written == normal:
            found[normal] = written
    return found


def _short(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:79]}…"


short = _short


def storable(value: Any) -> Any:
    """The value without NUL and lone surrogates, which escapes in YAML can make and no database takes."""
    if isinstance(value, str):
        return value.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {storable(key): storable(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [storable(inner) for inner in value]
    return value
