"""Examples of answers for the schema, from the serializers themselves, so that none can go stale."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

MOMENT = "2026-01-31T09:30:00Z"
SOME_ID = "6f1c0f0e-3f57-4a0e-9a65-2f9f2f3a1c10"


def example_of(serializer: Any) -> Any:
    """A plausible value of a serializer class or instance."""
    made = serializer() if isinstance(serializer, type) else serializer
    if isinstance(made, serializers.ListSerializer):
        return [example_of(made.child)]
    if not isinstance(made, serializers.Serializer):
        return _of_field("", made)
    return {name: _of_field(name, field) for name, field in made.fields.items()}


def _of_field(name: str, field: Any) -> Any:
    if isinstance(field, serializers.BaseSerializer):
        return example_of(field)
    if isinstance(field, serializers.ListField):
        return [_of_field(name, field.child)]
    if isinstance(field, serializers.DictField | serializers.JSONField):
        return {}
    if isinstance(field, serializers.BooleanField):
        return True
    if isinstance(field, serializers.ChoiceField):
        return next(iter(field.choices), "")
    if isinstance(field, serializers.IntegerField):
        return max(1, field.min_value or 1)
    if isinstance(field, serializers.FloatField):
        return 0.5
    if isinstance(field, serializers.DateTimeField):
        return MOMENT
    if name == "next_cursor":
        return None
    if name == "id" or name.endswith("_id"):
        return SOME_ID
    return name.replace("_", " ") or "text"
