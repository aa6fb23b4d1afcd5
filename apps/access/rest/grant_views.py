"""Grants of a source by REST. A room mixes these with its own look-up of the source."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import Group
from rest_framework import serializers
from rest_framework.response import Response

from apps.access import grants
from apps.access.errors import NotFound
from apps.access.grants import GrantValue
from apps.access.models import TokenScope, User
from apps.access.rest.cursors import page_of_list
from apps.access.rest.schema import list_of
from apps.access.rest.strict import Choice, ListQuery, StrictSerializer
from apps.access.rest.views import ApiView, Door
from apps.access.rules import Level
from apps.access.sources import Source


class GrantInput(StrictSerializer):
    """What is given; it takes the place of an earlier grant to the same person or group."""

    level = Choice(Level.choices)


class GrantOutput(serializers.Serializer[Any]):
    """A grant to a user or a group."""

    kind = serializers.CharField()
    name = serializers.CharField()
    level = serializers.CharField()
    granted_by = serializers.CharField()
    granted_as_administrator = serializers.BooleanField()
    granted_at = serializers.DateTimeField()


class SourceGrantsView(ApiView):
    """The room's ``authorize`` sets ``source`` after testing the door's right over it."""

    source: Source
    doors = {
        "GET": Door(
            right="manage",
            of_source=True,
            summary="Who was granted what, groups first",
            query=ListQuery,
            output=list_of(GrantOutput),
        )
    }

    def get(self, request: Any, **names: Any) -> Response:
        question = {**self.query, "source": str(self.source.pk)}
        page = page_of_list(grants.grants_of(self.source), viewer=self.viewer, question=question)
        return Response(page.body(present_grant))


class SourceGrantView(ApiView):
    """As above, with ``kind`` (user or group) and ``grantee`` (its name) in the path."""

    source: Source
    doors = {
        "PUT": Door(
            right="manage",
            of_source=True,
            summary="Grant a user or a group the right to read, or to read and write",
            scope=TokenScope.WRITE,
            input=GrantInput,
            output=GrantOutput,
            codes={422: ("grant_not_allowed",)},
        ),
        "DELETE": Door(right="manage", of_source=True, summary="End a grant", scope=TokenScope.WRITE, status=204),
    }

    def put(self, request: Any, *, kind: str, grantee: str, **names: Any) -> Response:
        level = self.body()["level"]
        value = grants.grant(source=self.source, to=grantee_named(kind, grantee), level=level, by=self.user)
        return Response(present_grant(value))

    def delete(self, request: Any, *, kind: str, grantee: str, **names: Any) -> Response:
        grants.revoke(source=self.source, to=grantee_named(kind, grantee), by=self.user)
        return Response(status=204)


def grantee_named(kind: str, name: str) -> User | Group:
    """Raises NotFound. Whoever manages a source may know who has an account; others never come this far."""
    found = grants.find_grantee(kind, name)
    if found is None:
        raise NotFound(f"There is no {'group' if kind == 'group' else 'user'} of this name.")
    return found


def present_grant(value: GrantValue) -> dict[str, Any]:
    return {
        "kind": value.kind,
        "name": value.name,
        "level": value.level.value,
        "granted_by": value.granted_by,
        "granted_as_administrator": value.granted_as_admin,
        "granted_at": value.granted_at,
    }
