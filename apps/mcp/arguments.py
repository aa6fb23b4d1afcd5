"""Arguments of tools: their JSON schema, and a check as strict as the schema says.

A misspelt argument is an error with the nearest known name, never ignored: a search without the filter that was meant
would answer another question.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from apps.access.rest.strict import nearest
from apps.mcp.errors import ToolError

WORDS = {"string": "a string", "integer": "a whole number", "boolean": "true or false", "array": "a list of strings"}
LONGEST_LIST = 20
LONGEST_ITEM = 60


@dataclass(frozen=True, slots=True)
class Argument:
    """``low`` and ``high`` are lengths of a string, else values. ``sizes`` marks arguments that ask for more text."""

    type: Literal["string", "integer", "boolean", "array"]
    about: str
    default: Any = None
    required: bool = False
    low: int | None = None
    high: int | None = None
    choices: tuple[str, ...] = ()
    day: bool = False
    query: bool = False
    """Query text: a NUL counts as a space."""
    sizes: bool = False

    def schema(self) -> dict[str, Any]:
        found: dict[str, Any] = {"type": self.type, "description": self.about}
        if self.type == "string":
            if self.low:
                found["minLength"] = self.low
            if self.high is not None:
                found["maxLength"] = self.high
            if self.choices:
                found["enum"] = list(self.choices)
            if self.day:
                found["format"] = "date"
        elif self.type == "integer":
            if self.low is not None:
                found["minimum"] = self.low
            if self.high is not None:
                found["maximum"] = self.high
        elif self.type == "array":
            found["items"] = {"type": "string"}
            if self.choices:
                found["items"]["enum"] = list(self.choices)
            found["maxItems"] = LONGEST_LIST
        if self.default not in (None, ""):
            found["default"] = self.default
        return found


def text(about: str, *, high: int, low: int = 0, **options: Any) -> Argument:
    return Argument("string", about, low=low, high=high, **options)


def number(about: str, default: int | None, low: int, high: int | None = None, *, sizes: bool = False) -> Argument:
    return Argument("integer", about, default=default, low=low, high=high, sizes=sizes)


def flag(about: str, *, default: bool) -> Argument:
    return Argument("boolean", about, default=default)


def choice(about: str, default: str, *choices: str) -> Argument:
    return Argument("string", about, default=default, choices=choices)


def words(about: str, *choices: str) -> Argument:
    return Argument("array", about, choices=choices)


def schema_of(arguments: Mapping[str, Argument], exactly_one: Sequence[str] = ()) -> dict[str, Any]:
    """The input schema. Which of ``exactly_one`` is given is told in words: not every client reads ``oneOf``."""
    found: dict[str, Any] = {
        "type": "object",
        "properties": {name: argument.schema() for name, argument in arguments.items()},
        "additionalProperties": False,
    }
    required = [name for name, argument in arguments.items() if argument.required]
    if required:
        found["required"] = required
    return found


def check(
    arguments: Mapping[str, Argument], given: Mapping[str, Any], exactly_one: Sequence[str] = ()
) -> dict[str, Any]:
    """Every argument with its value or default. Raises ToolError naming the argument and its bounds."""
    for name in given:
        if name not in arguments:
            raise ToolError("invalid_argument", _unknown(name, tuple(arguments)))
    found: dict[str, Any] = {}
    for name, argument in arguments.items():
        if name not in given:
            if argument.required:
                raise ToolError("invalid_argument", f'the argument "{name}" is required: {argument.about}')
            found[name] = argument.default
        else:
            found[name] = _value(name, argument, given[name])
    chosen = [name for name in exactly_one if found[name]]
    if exactly_one and len(chosen) != 1:
        both = " and ".join(f'"{name}"' for name in exactly_one)
        raise ToolError("invalid_argument", f"give exactly one of {both}; {len(chosen)} were given")
    return found


def asks_for_more(arguments: Mapping[str, Argument], checked: Mapping[str, Any]) -> bool:
    """Whether a size was chosen above its default, so that a longer answer is welcome."""
    return any(
        argument.sizes and checked[name] is not None and (argument.default is None or checked[name] > argument.default)
        for name, argument in arguments.items()
    )


def _unknown(name: str, known: Sequence[str]) -> str:
    shown = "".join(letter if letter.isprintable() and letter != '"' else "?" for letter in name[:100])
    meant = nearest(name, known)
    guess = f'; did you mean "{meant}"?' if meant else "."
    return f'unknown argument "{shown}"{guess} Arguments: {", ".join(known)}'


def _value(name: str, argument: Argument, value: Any) -> Any:
    kinds: dict[str, type] = {"string": str, "integer": int, "boolean": bool, "array": list}
    right = isinstance(value, kinds[argument.type])
    if argument.type == "integer" and isinstance(value, bool):
        right = False
    if not right:
        raise ToolError("invalid_argument", f'"{name}" is {WORDS[argument.type]}{_bounds(argument)}')
    if argument.type == "integer":
        return _within(name, argument, value, "is")
    if argument.type == "array":
        return _list(name, argument, value)
    if argument.type == "string":
        return _string(name, argument, value)
    return value


def _string(name: str, argument: Argument, value: str) -> Any:
    if argument.query:
        value = value.replace("\0", " ")
    if "\0" in value or any("\ud800" <= letter <= "\udfff" for letter in value):
        raise ToolError("invalid_argument", f'"{name}" holds a NUL or half a character')
    if argument.choices and value not in argument.choices:
        meant = nearest(value, argument.choices)
        guess = f'; did you mean "{meant}"?' if meant else ""
        raise ToolError("invalid_argument", f'"{name}" is one of {", ".join(argument.choices)}{guess}')
    if argument.low and not value.strip():
        raise ToolError("invalid_argument", f'"{name}" is empty: {argument.about}')
    _within(name, argument, len(value), "has")
    if argument.day and value:
        try:
            return datetime.date.fromisoformat(value)
        except ValueError:
            raise ToolError("invalid_argument", f'"{name}" is a day such as 2026-01-31') from None
    return value or (argument.default if argument.day else value)


def _list(name: str, argument: Argument, values: list[Any]) -> tuple[str, ...]:
    if any(not isinstance(value, str) or len(value) > LONGEST_ITEM or "\0" in value for value in values):
        raise ToolError("invalid_argument", f'"{name}" is a list of strings of at most {LONGEST_ITEM} characters')
    if len(values) > LONGEST_LIST:
        raise ToolError("out_of_range", f'"{name}" holds 0..{LONGEST_LIST} entries; {len(values)} were given')
    for value in values:
        if argument.choices and value not in argument.choices:
            raise ToolError("invalid_argument", f'"{name}" holds any of {", ".join(argument.choices)}')
    return tuple(values)


def _within(name: str, argument: Argument, value: int, verb: str) -> int:
    low, high = argument.low, argument.high
    if (low is not None and value < low) or (high is not None and value > high):
        unit = " characters" if argument.type == "string" else ""
        bounds = f"{low or 0}..{high}" if high is not None else f"at least {low}"
        raise ToolError("out_of_range", f'"{name}" {verb} {bounds}{unit}; {value} was given')
    return value


def _bounds(argument: Argument) -> str:
    if argument.type != "integer":
        return ""
    return f", {argument.low}..{argument.high}" if argument.high is not None else f", at least {argument.low}"
