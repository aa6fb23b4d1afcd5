"""Signing in and out, the account and its tokens."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from apps.access.models import ApiToken

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loud_templates")]


def test_login_page_sends_back_to_where_one_wanted_to_go(world: Any) -> None:
    client = Client()
    sent = client.get("/jobs?state=error")
    assert sent.status_code == 302
    form = client.get(sent["Location"]).content.decode()
    wanted = re.search(r'name="next" value="([^"]*)"', form)
    assert wanted
    assert wanted[1] == "/jobs?state=error"
    wrong = client.post("/login", {"username": "otto", "password": "no", "next": "/jobs"})
    assert wrong.status_code == 422
    assert "The name or the password is wrong." in wrong.content.decode()
    right = client.post("/login", {"username": "otto", "password": "a long enough one", "next": "/jobs"})
    assert right["Location"] == "/jobs"
    assert client.post("/logout")["Location"] == "/login"
    assert client.get("/jobs").status_code == 302


def test_access_fact_29_throttled_page(world: Any) -> None:
    client = Client()
    for _ in range(5):
        client.post("/login", {"username": "otto", "password": "no"})
    known = client.post("/login", {"username": "otto", "password": "a long enough one"})
    assert known.status_code == 429
    assert int(known["Retry-After"]) > 0


def test_login_never_leads_to_another_host(world: Any) -> None:
    for target in ("https://evil.example/", "//evil.example", "javascript:alert(1)", "/\\evil.example"):
        client = Client()
        answer = client.post("/login", {"username": "otto", "password": "a long enough one", "next": target})
        assert answer["Location"] == "/"


def test_portal_fact_33_a_token_is_shown_once(world: Any) -> None:
    client = world.client("otto")
    made = client.post("/account/tokens", {"name": "pipeline", "scopes": ["read"], "expires_in_days": "90"})
    assert made.status_code == 200
    text = re.search(r"cgr_[A-Za-z0-9_-]{43}", made.content.decode())
    assert text
    again = client.get("/account/tokens").content.decode()
    assert text[0] not in again
    assert "pipeline" in again
    assert text[0][:8] in again
    assert "no-store" in made["Cache-Control"]


def test_tokens_page_names_what_is_wrong_and_keeps_what_was_typed(world: Any) -> None:
    client = world.client("otto")
    answer = client.post("/account/tokens", {"name": "mine", "expires_in_days": "90"})
    assert answer.status_code == 422
    assert 'value="mine"' in answer.content.decode()
    assert "at least one of the scopes" in answer.content.decode()
    assert client.post("/account/tokens", {"name": "x", "scopes": ["read"], "expires_in_days": "²"}).status_code == 422
    assert not ApiToken.objects.exists()


def test_tokens_are_revoked_after_a_question(world: Any) -> None:
    client = world.client("otto")
    client.post("/account/tokens", {"name": "old", "scopes": ["mcp"], "expires_in_days": "0"})
    token = ApiToken.objects.get()
    assert token.expires_at is None
    assert "Revoke “old”" in client.get(f"/account/tokens/{token.pk}/revoke").content.decode()
    assert world.client("ada").post(f"/account/tokens/{token.pk}/revoke/now").status_code == 404
    assert client.post(f"/account/tokens/{token.pk}/revoke/now").status_code == 302
    assert "No tokens yet" in client.get("/account/tokens").content.decode()


def test_account_changes_the_password_and_ends_other_sessions(world: Any) -> None:
    client, other = world.client("otto"), Client()
    other.force_login(world.people["otto"])
    new = "another long enough one"
    typo = client.post("/account", {"old": "a long enough one", "new": new, "again": "x"})
    assert typo.status_code == 422
    assert "typed differently" in typo.content.decode()
    assert client.post("/account", {"old": "a long enough one", "new": new, "again": new}).status_code == 302
    assert client.get("/account").status_code == 200
    assert other.get("/account").status_code == 302


def test_portal_fact_34_signed_in_pages_are_not_stored(world: Any) -> None:
    client = world.client("otto")
    for path in ("/", "/jobs", "/account/tokens", f"/repos/{world.public.slug}/docs/readme"):
        assert "no-store" in client.get(path)["Cache-Control"], path
