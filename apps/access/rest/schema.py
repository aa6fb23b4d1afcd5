"""OpenAPI from the doors of a view: input, output, query, rights and errors are stated once."""

from __future__ import annotations

from typing import Any

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiResponse
from rest_framework import serializers

SESSION = "session"
BEARER = "token"


class ProblemSerializer(serializers.Serializer[Any]):
    """The body of every error."""

    status = serializers.IntegerField()
    code = serializers.CharField()
    message = serializers.CharField()
    field = serializers.CharField(allow_null=True)
    errors = serializers.ListField(child=serializers.DictField())  # type: ignore[assignment]


def list_of(item: type[serializers.BaseSerializer[Any]]) -> type[serializers.Serializer[Any]]:
    """The serializer of a list whose entries are ``item``."""
    fields: dict[str, Any] = {
        "__doc__": f"A page of {item.__name__.removesuffix('Serializer').removesuffix('Output')}.",
        "items": item(many=True),
        "total": serializers.IntegerField(),
        "next_cursor": serializers.CharField(allow_null=True),
    }
    return type(f"{item.__name__.removesuffix('Serializer')}Page", (serializers.Serializer,), fields)


class DoorSchema(AutoSchema):
    """Reads the ``Door`` of a verb; serializers and texts need no decorator on the view."""

    def _door(self) -> Any:
        return getattr(self.view, "doors", {}).get(self.method)

    def is_excluded(self) -> bool:
        return self._door() is None or bool(super().is_excluded())

    def get_summary(self) -> str | None:
        door = self._door()
        return str(door.summary) if door else None

    def get_description(self) -> str:  # type: ignore[override]
        door = self._door()
        if door is None:
            return ""
        scope = "session only" if door.session_only else f"token scope `{door.scope.value}`"
        return f"{door.description or door.summary}\n\nRight: {door.right}; {scope}."

    def get_operation_id(self) -> str:
        name = type(self.view).__name__.removesuffix("View")
        snake = "".join(f"_{one.lower()}" if one.isupper() else one for one in name).lstrip("_")
        return f"{snake}_{self.method.lower()}"

    def get_auth(self) -> list[dict[str, list[str]]]:
        door = self._door()
        if door is None or door.right == "open":
            return [{}]
        ways: list[dict[str, list[str]]] = [{SESSION: []}]
        if not door.session_only:
            ways.append({BEARER: []})
        return [*ways, {}] if door.anonymous else ways

    def get_request_serializer(self) -> Any:
        door = self._door()
        return door.input if door else None

    def get_override_parameters(self) -> list[Any]:
        door = self._door()
        return [door.query] if door and door.query._declared_fields else []

    def get_response_serializers(self) -> Any:
        door = self._door()
        if door is None:
            return {}
        empty = OpenApiResponse(description="Done; no body.")
        answers: dict[Any, Any] = {int(door.status): door.output or empty}
        for status in self._error_statuses(door):
            answers[(str(status), "application/problem+json")] = ProblemSerializer
        return answers

    def _error_statuses(self, door: Any) -> list[int]:
        statuses = [400, 429]
        if door.right != "open":
            statuses += [401, 403]
        if "{" in self.path:
            statuses.append(404)
        if door.input is not None:
            statuses += [413, 415, 422]
        if door.creates:
            statuses.append(409)
        return sorted(statuses)
