"""Signing in by a provider, over the wire (rule 20, fact 30)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from django.conf import settings
from django.contrib.auth.models import Group
from django.test import Client

from apps.access import oidc
from apps.access.models import AuditRecord, GroupProfile, ProviderIdentity, User
from tests.access.oidc_provider import CLIENT, SECRET, Provider

pytestmark = pytest.mark.django_db


@pytest.fixture
def change(configure: Any) -> Any:
    def apply(**values: Any) -> None:
        configure(oidc=dataclasses.replace(settings.COGRAPH.oidc, **values))

    return apply


@pytest.fixture
def provider(configure: Any, change: Any) -> Iterator[Provider]:
    found = Provider()
    server = found.serve()
    configure(allowed_private_hosts=("127.0.0.1",))
    change(issuer=found.issuer, client_id=CLIENT, client_secret=SECRET, trusted_domains=("example.org",))
    found.people["dana"] = {
        "sub": "d-1",
        "preferred_username": "dana",
        "email": "dana@example.org",
        "email_verified": True,
        "groups": ["docs", "admins"],
    }
    oidc.forget()
    yield found
    oidc.forget()
    server.shutdown()
    server.server_close()


def begin(client: Client, next_page: str = "") -> str:
    answer = client.post("/login/provider", {"next": next_page})
    assert answer.status_code == 302, answer.content.decode()
    return str(answer["Location"])


def come_back(client: Client, provider: Provider, person: str = "dana", next_page: str = "") -> Any:
    return client.get(provider.authorize(begin(client, next_page), person))


def who(client: Client) -> str:
    answer = client.get("/api/me")
    return str(answer.json()["name"]) if answer.status_code == 200 else ""


def test_access_fact_30_the_first_sign_in_makes_an_account_in_the_providers_groups_only(provider: Provider) -> None:
    for name, managed in (("docs", True), ("admins", False)):
        GroupProfile.objects.create(group=Group.objects.create(name=name), managed_by_provider=managed)
    client = Client()
    assert f"Sign in with 127.0.0.1:{provider.port}" in client.get("/login").content.decode()
    answer = come_back(client, provider, next_page="/repos")
    assert answer["Location"] == "/repos"
    assert who(client) == "dana"
    user = User.objects.get(username="dana")
    assert set(user.groups.values_list("name", flat=True)) == {"docs"}
    assert not user.is_superuser and not user.has_usable_password() and user.email == "dana@example.org"
    rows = AuditRecord.objects.filter(how="provider")
    assert set(rows.values_list("act", flat=True)) == {"user_created", "membership_changed", "signed_in"}
    # The next time it is the same account, by the subject and by nothing else.
    provider.people["dana"] |= {"preferred_username": "renamed", "groups": []}
    again = Client()
    come_back(again, provider)
    assert who(again) == "dana"
    assert not user.groups.exists()
    assert User.objects.count() == ProviderIdentity.objects.count() == 1
    assert provider.asked.count("/.well-known/openid-configuration") == provider.asked.count("/keys") == 1


def test_without_a_provider_there_is_no_such_page(change: Any) -> None:
    client = Client()
    assert "/login/provider" not in client.get("/login").content.decode()
    assert client.post("/login/provider").status_code == 404
    assert client.get("/login/provider/callback?state=x&code=y").status_code == 404
    change(issuer="https://id.example.org")
    assert client.post("/login/provider").status_code == 404, "a client id is needed too"


def test_begin_is_a_form_of_ours(provider: Provider) -> None:
    assert Client(enforce_csrf_checks=True).post("/login/provider").status_code == 403
    assert Client().get("/login/provider").status_code == 405
    policy = Client().get("/login")["Content-Security-Policy"]
    assert f"form-action 'self' {provider.issuer}" in policy


def test_an_open_redirect_is_not_offered(provider: Provider) -> None:
    assert come_back(Client(), provider, next_page="https://evil.example/")["Location"] == "/"


@pytest.mark.parametrize(
    "claims",
    [
        {"email_verified": False},
        {"email_verified": "true"},
        {"email": "dana@other.example"},
        {"email": None},
    ],
)
def test_an_account_is_not_linked_by_what_is_not_verified(provider: Provider, claims: dict[str, Any]) -> None:
    local = User.objects.create_user("dana", email="dana@example.org", password="x")
    provider.people["dana"] |= claims
    client = Client()
    come_back(client, provider)
    assert who(client) == "dana-2"
    assert not local.identities.exists()
    made = User.objects.get(username="dana-2")
    assert made.email == ("dana@other.example" if claims.get("email") else "")


def test_an_account_is_linked_by_a_verified_address_of_a_trusted_domain(provider: Provider) -> None:
    local = User.objects.create_user("d.local", email="Dana@Example.org", password="x")
    client = Client()
    come_back(client, provider)
    assert who(client) == "d.local"
    assert local.identities.get().subject == "d-1"


def test_a_closed_account_stays_closed(provider: Provider) -> None:
    come_back(Client(), provider)
    User.objects.update(is_active=False)
    client = Client()
    answer = come_back(client, provider)
    assert answer.status_code == 422 and "This account is closed" in answer.content.decode()
    assert who(client) == ""
    assert AuditRecord.objects.filter(act="sign_in_failed", how="provider").count() == 1


OTHER = ec.generate_private_key(ec.SECP256R1())
LIES: dict[str, Any] = {
    "nonce of another": {"lie": {"nonce": "x"}},
    "no nonce": {"lie": {"nonce": None}},
    "another audience": {"lie": {"aud": "other"}},
    "several audiences": {"lie": {"aud": [CLIENT, "other"]}},
    "for another party": {"lie": {"aud": [CLIENT, "other"], "azp": "other"}},
    "another issuer": {"lie": {"iss": "https://evil.example"}},
    "expired": {"lie": {"exp": 1}},
    "no subject": {"lie": {"sub": None}},
    "another key": {"sign": lambda claims: jwt.encode(claims, OTHER, algorithm="ES256", headers={"kid": "first"})},
    "unknown key": {"sign": lambda claims: jwt.encode(claims, OTHER, algorithm="ES256", headers={"kid": "second"})},
    "unsigned": {"sign": lambda claims: jwt.encode(claims, None, algorithm="none", headers={"kid": "first"})},
    "signed by the secret": {
        "sign": lambda claims: jwt.encode(claims, SECRET * 4, algorithm="HS256", headers={"kid": "first"})
    },
    "no token": {"sign": lambda claims: ""},
}


@pytest.mark.parametrize("name", LIES)
def test_what_does_not_prove_opens_nothing(provider: Provider, name: str) -> None:
    for attribute, value in LIES[name].items():
        setattr(provider, attribute, value)
    client = Client()
    answer = come_back(client, provider)
    assert answer.status_code == 422
    assert "does not prove who you are" in answer.content.decode()
    assert who(client) == "" and not User.objects.exists()


def test_a_state_is_good_once_here_and_not_for_long(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client()
    back = provider.authorize(begin(client), "dana")
    assert Client().get(back).status_code == 422, "not in another browser"
    assert client.get(back.replace("state=", "state=x")).status_code == 422
    assert client.get(back).status_code == 302
    assert Client().get(back).status_code == client.get(back).status_code == 422
    late = Client()
    back = provider.authorize(begin(late), "dana")
    session = late.session
    session[oidc.PENDING] = {state: [*one[:3], one[3] - 601] for state, one in session[oidc.PENDING].items()}
    session.save()
    assert late.get(back).status_code == 422 and who(late) == ""
    for _ in range(9):
        begin(late)
    assert len(late.session[oidc.PENDING]) == oidc.MOST_PENDING


def test_an_answer_of_another_provider_is_refused(provider: Provider) -> None:
    client = Client()
    back = provider.authorize(begin(client), "dana").replace("iss=http", "iss=https")
    assert client.get(back).status_code == 422
    assert "/token" not in provider.asked, "the code was not given away"


def test_refused_at_the_provider(provider: Provider) -> None:
    client = Client()
    state = begin(client).partition("state=")[2].partition("&")[0]
    said = client.get(f"/login/provider/callback?state={state}&error=access_denied").content.decode()
    assert "did not sign you in (access_denied)" in said
    state = begin(client).partition("state=")[2].partition("&")[0]
    said = client.get(f"/login/provider/callback?state={state}&error=<img>").content.decode()
    assert "<img" not in said and "(an error)" in said


def test_keys_are_rolled_over(provider: Provider) -> None:
    come_back(Client(), provider)
    provider.key, provider.kid = ec.generate_private_key(ec.SECP256R1()), "later"
    client = Client()
    come_back(client, provider)
    assert who(client) == "dana"


@pytest.mark.parametrize("methods", [["client_secret_post"], ["client_secret_basic"]])
def test_the_secret_goes_as_the_provider_wants_it(provider: Provider, methods: list[str]) -> None:
    provider.methods = methods
    client = Client()
    come_back(client, provider)
    assert who(client) == "dana"


def test_more_is_believed_of_the_same_person_only_and_never_against_the_token(provider: Provider) -> None:
    GroupProfile.objects.create(group=Group.objects.create(name="docs"), managed_by_provider=True)
    person = provider.people["dana"]
    del person["groups"]
    provider.more = {"sub": "d-1", "groups": ["docs"], "email": "root@example.org"}
    come_back(Client(), provider)
    user = User.objects.get()
    assert [group.name for group in user.groups.all()] == ["docs"] and user.email == "dana@example.org"
    provider.more = {"sub": "d-2", "groups": ["docs"]}
    come_back(Client(), provider)
    assert not user.groups.exists()


def test_a_provider_that_does_not_answer_is_told(provider: Provider) -> None:
    provider.metadata = {"issuer": "https://evil.example"}
    answer = Client().post("/login/provider")
    assert answer.status_code == 503 and "otherwise than it is configured" in answer.content.decode()
    provider.metadata = {"token_endpoint": f"{provider.issuer}/nothing"}
    oidc.forget()
    answer = come_back(Client(), provider)
    assert answer.status_code == 422
    oidc.forget()
    provider.metadata = {"token_endpoint": "http://127.0.0.1:9/"}
    assert come_back(Client(), provider).status_code == 503
    # SECURITY: a provider's own description leads to no machine that the operator has not named.
    oidc.forget()
    provider.metadata = {"token_endpoint": "http://localhost:1/"}
    assert come_back(Client(), provider).status_code == 422
