"""Strict input: unknown names are errors with the nearest known one, nothing is coerced, bounds are told.

The same serializers read JSON bodies, where ``"10"`` is not 10, and query strings and forms, where everything is text.
"""

from __future__ import annotations

import difflib
import functools
import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from django.http import QueryDict
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail, ValidationError

from apps.access.errors import BadRequest, Invalid, Refusal
from apps.access.rest.problems import refusal_of

if TYPE_CHECKING:
    from rest_framework.request import Request

_WHOLE = re.compile(r"-?[0-9]{1,18}")
_FRACTION = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?")
LONGEST_CURSOR = 2000


def _is_text(field: serializers.Field[Any, Any, Any, Any]) -> bool:
    """Whether the input came as text (query string, form), so that numbers are written in digits."""
    return isinstance(getattr(field.root, "initial_data", None), QueryDict)


def _range(low: float | None, high: float | None) -> str:
    return f"{'' if low is None else low}..{'' if high is None else high}"


class Text(serializers.CharField):
    """A string, taken as it is. With ``query_text`` a NUL counts as a space; elsewhere it is an error."""

    def __init__(self, *, min_length: int = 0, max_length: int, query_text: bool = False, **options: Any) -> None:
        self._query_text = query_text
        bounds = f"The length is {_range(min_length, max_length)} characters."
        messages: dict[str, Any] = {"max_length": bounds, "min_length": bounds, "invalid": "A string is wanted here."}
        options.setdefault("allow_blank", min_length == 0)
        super().__init__(
            min_length=min_length or None,
            max_length=max_length,
            trim_whitespace=False,
            error_messages=messages,
            **options,
        )

    def run_validation(self, data: Any = serializers.empty) -> Any:
        if self._query_text and isinstance(data, str):
            data = data.replace("\0", " ")
        return super().run_validation(data)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        if max(data, default="") >= "\ud800" and any("\ud800" <= one <= "\udfff" for one in data):
            self.fail("invalid")
        return str(data)


class Integer(serializers.IntegerField):
    """A whole number within bounds, which the refusal names."""

    def __init__(self, *, min_value: int, max_value: int, **options: Any) -> None:
        bounds = f"Allowed are {_range(min_value, max_value)}."
        messages: dict[str, Any] = {
            "max_value": bounds,
            "min_value": bounds,
            "invalid": "A whole number is wanted here.",
        }
        super().__init__(min_value=min_value, max_value=max_value, error_messages=messages, **options)

    def to_internal_value(self, data: Any) -> int:
        if _is_text(self) and isinstance(data, str) and _WHOLE.fullmatch(data):
            return int(data)
        if isinstance(data, bool) or not isinstance(data, int):
            self.fail("invalid")
        return int(data)


class Number(serializers.FloatField):
    """A finite number within bounds."""

    def __init__(self, *, min_value: float, max_value: float, **options: Any) -> None:
        bounds = f"Allowed are {_range(min_value, max_value)}."
        messages: dict[str, Any] = {"max_value": bounds, "min_value": bounds, "invalid": "A number is wanted here."}
        super().__init__(min_value=min_value, max_value=max_value, error_messages=messages, **options)

    def to_internal_value(self, data: Any) -> float:
        if _is_text(self) and isinstance(data, str) and _FRACTION.fullmatch(data):
            return float(data)
        if isinstance(data, bool) or not isinstance(data, int | float) or not math.isfinite(data):
            self.fail("invalid")
        return float(data)


class Boolean(serializers.BooleanField):
    """``true`` or ``false``."""

    def to_internal_value(self, data: Any) -> bool:
        if _is_text(self) and data in ("true", "false"):
            return bool(data == "true")
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return bool(data)


class Choice(serializers.ChoiceField):
    """One of a few words, which the refusal lists."""

    def __init__(self, choices: Any, **options: Any) -> None:
        super().__init__(choices, **options)
        self.error_messages["invalid_choice"] = f"Allowed are {', '.join(str(one) for one in self.choices)}."

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str) or data not in self.choices:
            self.fail("invalid_choice", input="")
        return str(data)


class Listed(serializers.ListField):
    """A list within bounds. In query strings the parameter is repeated."""

    def __init__(self, *, max_length: int, min_length: int = 0, **options: Any) -> None:
        super().__init__(min_length=min_length or None, max_length=max_length, allow_empty=min_length == 0, **options)
        bounds = f"The list holds {_range(min_length, max_length)} entries."
        self.error_messages.update(max_length=bounds, min_length=bounds, empty=bounds)

    def get_value(self, dictionary: Any) -> Any:
        if isinstance(dictionary, QueryDict):
            return dictionary.getlist(self.field_name or "") or serializers.empty
        return super().get_value(dictionary)


class StrictSerializer(serializers.Serializer[Any]):
    """Input of an endpoint. Fields are those of this module; workflows check what goes beyond one field."""

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, Mapping):
            raise ValidationError({"non_field_errors": [ErrorDetail("An object is wanted here.", "invalid")]})
        problems: dict[str, list[ErrorDetail]] = {}
        for name in data:
            if name not in self.fields:
                problems[_shown(name)] = [ErrorDetail(_unknown(str(name), list(self.fields)), "unknown_field")]
            elif (
                isinstance(data, QueryDict)
                and not isinstance(self.fields[name], serializers.ListField | serializers.FileField)
                and len(data.getlist(name)) > 1
            ):
                problems[name] = [ErrorDetail("This is given more than once.", "invalid")]
        if problems:
            raise ValidationError(problems)
        return super().to_internal_value(data)


class ListQuery(StrictSerializer):
    """The query of every list. Endpoints add their filters."""

    limit = Integer(min_value=1, max_value=100, default=25, help_text="Entries a page.")
    cursor = Text(max_length=LONGEST_CURSOR, default="", help_text="`next_cursor` of the page before.")


class NoQuery(StrictSerializer):
    """The query of an endpoint that takes none."""


def read_query(request: Request, serializer: type[StrictSerializer] = NoQuery) -> dict[str, Any]:
    """The checked query string. Raises BadRequest."""
    return _checked(request.query_params, serializer, BadRequest)


def read_body(request: Request, serializer: type[StrictSerializer]) -> dict[str, Any]:
    """The checked body. Raises Invalid for its content, BadRequest for what cannot be read at all."""
    data = request.data
    return _checked(data if data is not None else {}, serializer, Invalid)


def _checked(data: Any, serializer: type[StrictSerializer], refusal: type[Refusal]) -> dict[str, Any]:
    try:
        return dict(_reader(serializer, isinstance(data, QueryDict)).run_validation(data))
    except ValidationError as failure:
        raise refusal_of(failure.detail, refusal) from None


@functools.cache
def _reader(serializer: type[StrictSerializer], is_text: bool) -> StrictSerializer:
    """One for all requests: checking keeps nothing in it, and making one copies each of its fields. Its own data only
    say which kind of input it reads (``_is_text``)."""
    return serializer(data=QueryDict() if is_text else {})


def nearest(name: str, known: Sequence[str]) -> str | None:
    """The known name that was probably meant, or None."""
    found = difflib.get_close_matches(name[:100], known, n=1, cutoff=0.6)
    return found[0] if found else None


def _unknown(name: str, known: Sequence[str]) -> str:
    meant = nearest(name, known)
    if meant:
        return f"There is no `{_shown(name)}` here; did you mean `{meant}`?"
    return f"There is no `{_shown(name)}` here" + (f"; known are {', '.join(known)}." if known else ".")


def _shown(name: object) -> str:
    return "".join(character if character.isprintable() else "?" for character in str(name)[:100])
