"""What happens around every request: the gate, headers, limits, errors (rules 10, 12, 16, 17, 23, 24, 26, 32, 33)."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponse
from django.test import Client, override_settings
from django.urls import path

from apps.access import middleware
from apps.access.errors import Gone, NotFound
from apps.access.limits import takes_body
from apps.access.models import User
from cograph_site import urls as site_urls
from tests.access.conftest import World

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; frame-src 'self'; frame-ancestors 'none'; base-uri 'none'"
)


def plain(request: HttpRequest) -> HttpResponse:
    return HttpResponse(request.GET.get("q", "plain"))


def sleepy(request: HttpRequest) -> HttpResponse:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SHOW statement_timeout")
        return HttpResponse(cursor.fetchone()[0])


def gone(request: HttpRequest) -> HttpResponse:
    raise Gone("It moved to another page.")


def absent(request: HttpRequest) -> HttpResponse:
    raise NotFound


@takes_body(lambda: 3 * 1024 * 1024)
def upload(request: HttpRequest) -> HttpResponse:
    return HttpResponse("taken")


urlpatterns = [
    path("samples/plain", plain),
    path("samples/sleepy", sleepy),
    path("samples/gone", gone),
    path("samples/absent", absent),
    path("samples/upload", upload),
    *site_urls.urlpatterns,
]

pytestmark = [pytest.mark.django_db, pytest.mark.urls(__name__)]


@pytest.fixture
def user() -> User:
    return User.objects.create_user("dana")


@pytest.fixture
def client(user: User) -> Client:
    made = Client()
    made.force_login(user)
    return made


def test_the_open_list_is_pinned() -> None:
    assert sorted(middleware.OPEN_PATHS) == [
        "/api/docs",
        "/api/schema",
        "/healthz",
        "/login",
        "/login/provider",
        "/login/provider/callback",
        "/readyz",
    ]
    assert middleware.OPEN_PREFIXES == ("/static/", "/webhooks/")


def test_pages_send_the_anonymous_to_sign_in(django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(0):
        for address in (
            "/samples/plain",
            "/samples/absent",
            "/nowhere",
            "/account",
            "/samples/upload",
            "/admin/",
            "/samples/plain?q=a%20b",
        ):
            answer = Client().get(address)
            assert answer.status_code == 302
            assert answer["Location"].startswith("/login?next=/")
        assert Client().get("/healthz").status_code == 200
        assert Client().get("/login").status_code != 302
        for address in ("/api/me", "/api/nowhere"):
            answer = Client().get(address)
            assert answer.status_code == 401
            assert answer["Content-Type"] == "application/problem+json"


def test_public_reading_opens_pages_but_no_account(configure: Any) -> None:
    configure(public_read=True)
    assert Client().get("/samples/plain").status_code == 200
    for address in ("/account", "/admin/", "/view-as"):
        assert Client().get(address).status_code == 302
    assert Client().get("/api/me").status_code == 401


def test_hidden_and_absent_pages_are_one_page(client: Client) -> None:
    hidden, missing = client.get("/samples/absent"), client.get("/nowhere/at/all")
    assert hidden.status_code == missing.status_code == 404
    assert hidden.content == missing.content
    assert b"nowhere" not in missing.content


def test_a_refusal_becomes_its_page(client: Client) -> None:
    answer = client.get("/samples/gone")
    assert answer.status_code == 410
    assert "It moved to another page." in answer.content.decode()


def test_a_nul_is_absent_in_paths_and_a_space_in_queries(client: Client) -> None:
    assert client.get("/samples/plain%00").status_code == 404
    assert client.get("/samples/plain?q=a%00b").content == b"a b"


@pytest.mark.parametrize(
    "address", ["/samples/plain", "/nowhere", "/samples/gone", "/api/me", "/api/nowhere", "/admin/", "/healthz"]
)
def test_every_answer_carries_the_headers(client: Client, address: str) -> None:
    answer = client.get(address)
    assert answer["Content-Security-Policy"] == POLICY
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Referrer-Policy"] == "same-origin"
    assert len(answer["X-Request-ID"]) == 32
    assert "no-store" in answer["Cache-Control"]
    assert "private" in answer["Cache-Control"]


def test_remote_images_and_the_provider_join_the_policy(client: Client, configure: Any) -> None:
    import dataclasses

    from django.conf import settings

    configure(
        external_images=("img.example.org",),
        oidc=dataclasses.replace(settings.COGRAPH.oidc, issuer="https://login.example.org/realm"),
    )
    policy = client.get("/samples/plain")["Content-Security-Policy"]
    assert "img-src 'self' data: https://img.example.org;" in policy
    assert "form-action 'self' https://login.example.org;" in policy


def test_fragments_and_pages_are_told_apart_by_caches(client: Client) -> None:
    assert "HX-Request" in client.get("/samples/plain")["Vary"]


def test_request_ids_are_never_the_callers(client: Client) -> None:
    answer = client.get("/samples/plain", headers={"X-Request-ID": "forged\nline"})
    assert "forged" not in answer["X-Request-ID"]


def test_cookies_are_secure_except_on_this_machine(user: User, configure: Any) -> None:
    from django.test import RequestFactory

    from apps.access.security import harden

    for host, secure, expected in (
        ("localhost:8000", False, ""),
        ("[::1]:8000", False, ""),
        ("[::1]", False, ""),
        ("127.0.0.1", False, ""),
        ("portal.example.org", False, True),
        ("portal.example.org", True, True),
        ("localhost", True, True),
        ("localhost.evil.example", False, True),
    ):
        request = RequestFactory(HTTP_HOST=host).get("/", secure=secure)
        request.user = AnonymousUser()
        response = HttpResponse()
        for name in ("sessionid", "csrftoken", "messages"):
            response.set_cookie(name, "x", secure=True, httponly=True, samesite="Lax")
        harden(request, response)
        for name, cookie in response.cookies.items():
            assert (cookie["secure"], cookie["httponly"]) == (expected, True), (host, name)


def test_bodies_are_bounded_by_their_address(client: Client) -> None:
    one = b"x" * (1024 * 1024 + 1)
    assert client.post("/samples/plain", one, content_type="text/plain").status_code == 413
    assert client.post("/samples/upload", one, content_type="text/plain").status_code == 200
    assert client.post("/samples/upload", one * 4, content_type="text/plain").status_code == 413
    answer = client.post("/api/me/tokens", one, content_type="application/json")
    assert answer.status_code == 413
    assert answer.json()["code"] == "payload_too_large"


def test_statements_of_requests_end_in_time(client: Client, configure: Any) -> None:
    configure(statement_seconds=7)
    assert client.get("/samples/sleepy").content == b"7s"
    configure(statement_seconds=9)
    assert client.get("/samples/sleepy").content == b"9s"


def test_unknown_hosts_are_refused(client: Client) -> None:
    with override_settings(ALLOWED_HOSTS=["localhost"]):
        assert client.get("/samples/plain", headers={"Host": "evil.example"}).status_code == 400


def test_unsafe_session_requests_need_the_csrf_token(user: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(user)
    assert client.post("/samples/plain").status_code == 403
    answer = client.post("/api/me/tokens", {"name": "a", "scopes": ["read"]}, content_type="application/json")
    assert answer.status_code == 403
    assert answer["Content-Type"] == "application/problem+json"
    assert "CSRF" in answer.json()["message"]


def test_an_address_of_forms_opened_as_a_page_says_so(world: World, signed_in: Any) -> None:
    answer = signed_in(world.otto).get("/logout")
    assert (answer.status_code, answer["Allow"]) == (405, "POST")
    assert "This address only takes a form" in answer.content.decode()
