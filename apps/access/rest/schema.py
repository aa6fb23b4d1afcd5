"""OpenAPI from the doors of a view: input, output, query, rights and errors are stated once."""

from __future__ import annotations

import functools
from typing import Any

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiResponse
from rest_framework import serializers

from apps.access.rest.examples import example_of

SESSION = "session"
BEARER = "token"
PROBLEM = "application/problem+json"
_WORDS = {
    204: "Done; no body.",
    301: "It has moved; `Location` says where to.",
    304: "Not modified: the caller holds this very representation.",
}


class ProblemSerializer(serializers.Serializer[Any]):
    """The body of every error."""

    status = serializers.IntegerField()
    code = serializers.CharField()
    message = serializers.CharField()
    field = serializers.CharField(allow_null=True)
    errors = serializers.ListField(child=serializers.DictField())  # type: ignore[assignment]


@functools.cache
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
        answers: dict[Any, Any] = {int(door.status): self._success(door)}
        for kind, text in door.media:
            shown = OpenApiExample(door.summary, value=text, media_type=kind, response_only=True)
            answers[(str(door.status), kind)] = OpenApiResponse(
                OpenApiTypes.STR, description=door.summary, examples=[shown]
            )
        for status in door.also:
            answers[status] = (
                self._success(door) if status < 300 and status != 204 else OpenApiResponse(description=_WORDS[status])
            )
        if door.tagged and self.method == "GET":
            answers[304] = OpenApiResponse(description=_WORDS[304])
        for status, codes in self._refusals(door).items():
            told = ", ".join(f"`{code}`" for code in codes)
            answers[(str(status), PROBLEM)] = OpenApiResponse(ProblemSerializer, description=told)
        return answers

    def _success(self, door: Any) -> OpenApiResponse:
        if door.output is None:
            return OpenApiResponse(description="Done; no body." if door.status == 204 else "Done.")
        example = OpenApiExample(door.summary, value=door.example or example_of(door.output), response_only=True)
        return OpenApiResponse(door.output, description=door.summary, examples=[example])

    def _refusals(self, door: Any) -> dict[int, tuple[str, ...]]:
        """Status and codes of what the conventions may answer, beside what ``door.codes`` adds."""
        found: dict[int, list[str]] = {400: ["invalid", "unknown_field", "out_of_range"], 429: ["throttled"]}
        if "cursor" in door.query._declared_fields:
            found[400].append("stale_cursor")
        if door.right != "open":
            found[401] = ["unauthenticated"]
            found[403] = ["insufficient_scope", "forbidden"]
        if "{" in self.path:
            found[404] = ["not_found"]
        if door.input is not None:
            found[413] = ["payload_too_large"]
            found[415] = ["unsupported_type"]
            found[422] = ["invalid", "required", "unknown_field", "out_of_range"]
        if door.tagged and self.method != "GET":
            found[412] = ["conflict"]
        if door.creates:
            found[409] = ["idempotency_in_progress"]
            found.setdefault(422, []).append("idempotency_mismatch")
        for status, codes in door.codes.items():
            found.setdefault(status, []).extend(code for code in codes if code not in found.get(status, []))
        return {status: tuple(found[status]) for status in sorted(found)}
