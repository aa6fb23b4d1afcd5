"""Making frozen values fast.

A frozen dataclass sets each field through ``object.__setattr__``: a ``Link`` costs 1.16 microseconds, a quarter of the
time in which its line is parsed. A plain twin with the same slots is filled at full speed (0.25) and then becomes the
frozen class. Only the loops over syntax events use this; everything else calls the classes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

P = ParamSpec("P")
T = TypeVar("T")


def fast(value: Callable[P, T]) -> Callable[P, T]:
    """A constructor of ``value`` (a frozen, slotted dataclass) with the same parameters; the result is a ``value``."""
    frozen = cast("type[Any]", value)
    fields = dataclasses.fields(frozen)
    names = [each.name for each in fields]
    parameters = [
        each.name if each.default is dataclasses.MISSING else f"{each.name}=defaults[{each.name!r}]" for each in fields
    ]
    body = "\n    ".join(f"self.{name} = {name}" for name in names)
    source = f"def __init__(self, {', '.join(parameters)}):\n    {body}\n    self.__class__ = frozen\n"
    # The dataclass module writes its constructors the same way; no text from outside gets in here.
    scope: dict[str, Any] = {"frozen": frozen, "defaults": {each.name: each.default for each in fields}}
    exec(source, scope)  # noqa: S102
    twin = type(f"{frozen.__name__}Draft", (), {"__slots__": tuple(names), "__init__": scope["__init__"]})
    return cast("Callable[P, T]", twin)
