"""API tokens at the REST door (facts 26 to 28) and the rules of rule 19."""

from __future__ import annotations

import datetime
import hashlib
import json
from typing import Any

import pytest
from django.apps import apps
from django.core import serializers
from django.db import connection
from django.test import Client
from django.utils import timezone

from apps.access import tokens
from apps.access.errors import Invalid, NotFound
from apps.access.models import ApiToken, AuditRecord, User
from tests.access.conftest import World


def bearer(text: str) -> Client:
    return Client(headers={"Authorization": f"Bearer {text}"})


def test_access_fact_26_scopes_are_checked_before_any_look_up(world: World, with_token: Any) -> None:
    for scopes in (("mcp",),):
        answer = with_token(world.dana, *scopes).get("/api/me")
        assert answer.status_code == 403
        assert answer.json()["code"] == "insufficient_scope"
    assert with_token(world.dana, "read").get("/api/me").status_code == 200
    assert with_token(world.dana, "write").get("/api/me").status_code == 200


def test_access_fact_27_bad_tokens_are_all_alike(world: World) -> None:
    def make(user: User) -> tuple[ApiToken, str]:
        return tokens.create_token(user=user, name="one", scopes=["read"])

    expired, expired_text = make(world.dana)
    ApiToken.objects.filter(pk=expired.pk).update(expires_at=timezone.now() - datetime.timedelta(seconds=1))
    revoked, revoked_text = make(world.dana)
    tokens.revoke_token(token_id=revoked.pk, by=world.dana)
    _, of_the_deactivated = make(world.wim)
    User.objects.filter(pk=world.wim.pk).update(is_active=False)
    bodies = set()
    for text in (expired_text, revoked_text, "cgr_" + "x" * 43, of_the_deactivated, "", "cgr_short", "é" * 47):
        answer = bearer(text).get("/api/me")
        assert answer.status_code == 401
        assert answer["Content-Type"] == "application/problem+json"
        assert answer["WWW-Authenticate"].startswith("Bearer")
        bodies.add(answer.content)
    assert len(bodies) == 1


def test_a_bad_token_is_refused_even_with_a_session_or_public_reading(
    world: World, signed_in: Any, configure: Any
) -> None:
    configure(public_read=True)
    client = signed_in(world.dana)
    assert client.get("/api/me", headers={"Authorization": "Bearer cgr_" + "x" * 43}).status_code == 401


def test_a_good_token_wins_over_a_session(world: World, signed_in: Any) -> None:
    _, text = tokens.create_token(user=world.wim, name="one", scopes=["read"])
    answer = signed_in(world.dana).get("/api/me", headers={"Authorization": f"Bearer {text}"})
    assert answer.json()["name"] == "wim"


def test_access_fact_28_only_a_session_makes_tokens_and_the_text_is_nowhere(
    world: World, signed_in: Any, with_token: Any
) -> None:
    body = {"name": "laptop", "scopes": ["read", "mcp"], "expires_in_days": 30}
    denied = with_token(world.dana, "write").post("/api/me/tokens", body, content_type="application/json")
    assert denied.status_code == 403
    assert with_token(world.dana, "write").get("/api/me/tokens").status_code == 403
    answer = signed_in(world.dana).post(
        "/api/me/tokens", body, content_type="application/json", headers={"Idempotency-Key": "once"}
    )
    assert answer.status_code == 201
    text = answer.json()["token"]
    assert text.startswith("cgr_")
    assert len(text) == 47
    dump = database_dump()
    assert text not in dump
    assert text[8:] not in dump
    assert dump.count(hashlib.sha256(text.encode()).hexdigest()) == 1
    listed = signed_in(world.dana).get("/api/me/tokens")
    assert text not in listed.content.decode()
    assert listed.json()["items"][0]["prefix"] == text[:8]


def test_a_repeated_answer_does_not_show_the_text_again(world: World, signed_in: Any) -> None:
    client = signed_in(world.dana)
    send = {
        "data": {"name": "laptop", "scopes": ["read"]},
        "content_type": "application/json",
        "headers": {"Idempotency-Key": "k"},
    }
    first, second = client.post("/api/me/tokens", **send), client.post("/api/me/tokens", **send)
    assert (first.status_code, second.status_code) == (201, 201)
    assert second["Idempotent-Replayed"] == "true"
    assert second.json()["id"] == first.json()["id"]
    assert second.json()["token"] is None
    assert world.dana.api_tokens.count() == 1


def test_use_is_noted_at_most_once_a_minute(world: World, django_assert_num_queries: Any) -> None:
    token, text = tokens.create_token(user=world.dana, name="one", scopes=["read"])
    with django_assert_num_queries(2):
        assert tokens.authenticate(text) is not None
    with django_assert_num_queries(1):
        assert tokens.authenticate(text) is not None
    ApiToken.objects.filter(pk=token.pk).update(last_used_at=timezone.now() - datetime.timedelta(seconds=61))
    with django_assert_num_queries(2):
        assert tokens.authenticate(text) is not None


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"name": " "}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"scopes": []}, "scopes"),
        ({"scopes": ["admin"]}, "scopes"),
        ({"expires_in_days": 0}, "expires_in_days"),
        ({"expires_in_days": 3651}, "expires_in_days"),
    ],
)
def test_what_a_token_may_be(world: World, values: dict[str, Any], field: str) -> None:
    good: dict[str, Any] = {"name": "one", "scopes": ["read"], "expires_in_days": 90}
    with pytest.raises(Invalid) as refused:
        tokens.create_token(user=world.dana, **{**good, **values})
    assert refused.value.field == field


def test_expiry_is_ninety_days_and_never_is_a_choice(world: World) -> None:
    token, _ = tokens.create_token(user=world.dana, name="one", scopes=["read"])
    assert token.expires_at is not None
    assert (token.expires_at - token.created_at).days == 90
    endless, _ = tokens.create_token(user=world.dana, name="two", scopes=["read"], expires_in_days=None)
    assert endless.expires_at is None


def test_tokens_of_others_are_absent(world: World, signed_in: Any) -> None:
    token, _ = tokens.create_token(user=world.dana, name="one", scopes=["read"])
    hidden = signed_in(world.wim).delete(f"/api/me/tokens/{token.pk}")
    absent = signed_in(world.wim).delete("/api/me/tokens/00000000-0000-4000-8000-000000000000")
    assert hidden.status_code == absent.status_code == 404
    assert hidden.content == absent.content
    assert signed_in(world.dana).delete(f"/api/me/tokens/{token.pk}").status_code == 204
    with pytest.raises(NotFound):
        tokens.revoke_token(token_id=token.pk, by=world.dana)


def test_a_token_in_the_query_string_is_refused(world: World) -> None:
    _, text = tokens.create_token(user=world.dana, name="one", scopes=["read"])
    assert Client().get(f"/api/me?token={text}").status_code == 401
    answer = bearer(text).get(f"/api/me?access_token={text}")
    assert answer.status_code == 400
    assert answer.json()["code"] == "unknown_field"


def test_acts_by_token_are_recorded_as_such(world: World, signed_in: Any) -> None:
    client = signed_in(world.dana)
    made = client.post("/api/me/tokens", {"name": "a", "scopes": ["read"]}, content_type="application/json")
    row = AuditRecord.objects.get(act="token_made", target_id=made.json()["id"])
    assert (row.how, row.actor_name, row.address) == ("session", "dana", "127.0.0.1")
    assert row.request_id == made["X-Request-ID"]


def database_dump() -> str:
    """Every row of every table as text."""
    parts = [
        serializers.serialize("json", model._base_manager.all()) for model in apps.get_models() if model._meta.managed
    ]
    with connection.cursor() as cursor:
        cursor.execute("SELECT headers::text, encode(body, 'escape') FROM access_keptanswer")
        parts.append(json.dumps(cursor.fetchall()))
    return "\n".join(parts)
