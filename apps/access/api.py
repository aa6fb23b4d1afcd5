"""REST: who am I, and my tokens."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.response import Response

from apps.access import audit, rules, tokens
from apps.access.audit import Act
from apps.access.models import ApiToken, AuditRecord, TokenScope
from apps.access.registry import source_entries
from apps.access.rest.cursors import page_of_rows
from apps.access.rest.schema import list_of
from apps.access.rest.strict import Choice, Integer, Listed, ListQuery, StrictSerializer, Text
from apps.access.rest.views import ApiView, Door


class MeOutput(serializers.Serializer[Any]):
    """The caller as the rules see them."""

    name = serializers.CharField()
    is_administrator = serializers.BooleanField()
    groups = serializers.ListField(child=serializers.CharField())
    token_scopes = serializers.ListField(child=serializers.CharField(), allow_null=True)
    readable = serializers.DictField(child=serializers.IntegerField())


class TokenInput(StrictSerializer):
    """A new token."""

    name = Text(min_length=1, max_length=tokens.NAME_LENGTH)
    scopes = Listed(child=Choice(TokenScope.choices), min_length=1, max_length=3)
    expires_in_days = Integer(min_value=1, max_value=tokens.LONGEST_DAYS, default=tokens.DEFAULT_DAYS, allow_null=True)


class TokenOutput(serializers.Serializer[Any]):
    """A token without its text."""

    id = serializers.CharField()
    name = serializers.CharField()
    prefix = serializers.CharField()
    scopes = serializers.ListField(child=serializers.CharField())
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(allow_null=True)
    last_used_at = serializers.DateTimeField(allow_null=True)


class NewTokenOutput(TokenOutput):
    """A token with its text, which is shown once; a repeated answer has null there."""

    token = serializers.CharField(allow_null=True)


class AuditQuery(ListQuery):
    """Filters of the audit trail; all of them together."""

    act = Choice(Act.choices, required=False)
    actor = Text(max_length=150, default="", help_text="Name of the account that acted.")
    how = Choice(["session", "token", "command", "provider", "system"], required=False)
    target_kind = Text(max_length=40, default="")
    target_id = Text(max_length=64, default="")
    since = Text(max_length=40, default="", help_text="ISO 8601, first moment that counts.")
    until = Text(max_length=40, default="", help_text="ISO 8601, first moment that no longer counts.")


class AuditOutput(serializers.Serializer[Any]):
    """One act."""

    id = serializers.CharField()
    time = serializers.DateTimeField()
    actor = serializers.CharField()
    how = serializers.CharField()
    token_id = serializers.CharField()
    act = serializers.CharField()
    target_kind = serializers.CharField()
    target_id = serializers.CharField()
    target_name = serializers.CharField()
    before = serializers.JSONField()
    after = serializers.JSONField()
    request_id = serializers.CharField()
    address = serializers.CharField()


class MeView(ApiView):
    doors = {"GET": Door(right="self", summary="Who the caller is and how much they can read", output=MeOutput)}

    def get(self, request: Any) -> Response:
        user = self.user
        return Response(
            {
                "name": user.get_username(),
                "is_administrator": rules.is_administrator(user),
                "groups": sorted(user.groups.values_list("name", flat=True)),
                "token_scopes": self.token.scopes if self.token else None,
                "readable": {
                    entry.model.kind: entry.model.objects.visible_to(self.viewer).count() for entry in source_entries()
                },
            }
        )


class MyTokensView(ApiView):
    doors = {
        "GET": Door(
            right="self",
            summary="The caller's tokens, without their text",
            session_only=True,
            query=ListQuery,
            output=list_of(TokenOutput),
        ),
        "POST": Door(
            right="self",
            summary="Make a token; its text is in this answer and nowhere else",
            scope=TokenScope.WRITE,
            session_only=True,
            input=TokenInput,
            output=NewTokenOutput,
            status=201,
            creates=True,
        ),
    }

    def get(self, request: Any) -> Response:
        rows = ApiToken.objects.filter(user=self.user, revoked_at__isnull=True)
        page = page_of_rows(rows, order=("-created_at", "id"), viewer=self.user, question=self.query)
        return Response(page.body(present))

    def post(self, request: Any) -> Response:
        asked = self.body()
        token, text = tokens.create_token(user=self.user, **asked)
        return Response(
            {**present(token), "token": text}, status=201, headers={"Location": f"/api/me/tokens/{token.pk}"}
        )

    def kept_body(self, data: Any) -> Any:
        return {**data, "token": None}


class MyTokenView(ApiView):
    doors = {"DELETE": Door(right="self", summary="End a token", scope=TokenScope.WRITE, session_only=True, status=204)}

    def delete(self, request: Any, token_id: str) -> Response:
        tokens.revoke_token(token_id=token_id, by=self.user)
        return Response(status=204)


class AuditView(ApiView):
    doors = {
        "GET": Door(
            right="administer",
            summary="The audit trail, newest first",
            query=AuditQuery,
            output=list_of(AuditOutput),
        )
    }

    def get(self, request: Any) -> Response:
        rows = audit.matching(self.query)
        page = page_of_rows(rows, order=("-time", "id"), viewer=self.viewer, question=self.query)
        return Response(page.body(present_act))


def present_act(row: AuditRecord) -> dict[str, Any]:
    return {
        "id": str(row.pk),
        "time": row.time,
        "actor": row.actor_name,
        "how": row.how,
        "token_id": row.token_id,
        "act": row.act,
        "target_kind": row.target_kind,
        "target_id": row.target_id,
        "target_name": row.target_name,
        "before": row.before,
        "after": row.after,
        "request_id": row.request_id,
        "address": row.address,
    }


def present(token: ApiToken) -> dict[str, Any]:
    return {
        "id": str(token.pk),
        "name": token.name,
        "prefix": token.prefix,
        "scopes": list(token.scopes),
        "created_at": token.created_at,
        "expires_at": token.expires_at,
        "last_used_at": token.last_used_at,
    }
