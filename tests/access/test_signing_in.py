"""Sessions and the sign-in throttle (fact 29, rules 17 and 18)."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from django.contrib.auth import get_user
from django.test import Client, RequestFactory
from django.utils import timezone

from apps.access import signing_in, throttle
from apps.access.errors import Invalid, Throttled
from apps.access.models import AuditRecord, LoginFailure, Session, User
from apps.access.origin import client_address
from apps.access.sessions import SessionStore, account_of

PASSWORD = "the right one, long enough"


@pytest.fixture
def user(db: None) -> User:
    return User.objects.create_user("dana", password=PASSWORD)


def request(address: str = "203.0.113.7", session: Any = None, **headers: str) -> Any:
    made = RequestFactory().post("/login", REMOTE_ADDR=address, **headers)
    made.session = session or SessionStore()
    made.user = get_user(made)
    return made


def fail(name: str = "dana", address: str = "203.0.113.7") -> None:
    with pytest.raises(Invalid):
        signing_in.sign_in(request(address), username=name, password="wrong")


@pytest.mark.parametrize("name", ["dana", "nobody-of-that-name"])
def test_access_fact_29_the_sixth_attempt_is_refused_right_password_included(user: User, name: str) -> None:
    for number in range(5):
        fail(name, f"203.0.113.{number}")
    with pytest.raises(Throttled) as refused:
        signing_in.sign_in(request("198.51.100.1"), username=name, password=PASSWORD)
    assert refused.value.status == 429
    assert 0 < (refused.value.retry_after or 0) <= 900
    assert refused.value.message == throttle.MESSAGE
    old = timezone.now() - datetime.timedelta(minutes=15, seconds=1)
    LoginFailure.objects.update(at=old)
    if name == "dana":
        assert signing_in.sign_in(request(), username=name, password=PASSWORD) == user
    else:
        fail(name)


def test_texts_and_queries_are_the_same_for_known_and_unknown_names(user: User, django_assert_num_queries: Any) -> None:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    seen = []
    for name in ("dana", "nobody"):
        with (
            CaptureQueriesContext(
                connection,
            ) as queries,
            pytest.raises(Invalid) as refused,
        ):
            signing_in.sign_in(request(), username=name, password="wrong")
        seen.append((str(refused.value), len(queries)))
    assert seen[0] == seen[1]


def test_twenty_failures_of_one_address_close_it_for_every_name(user: User) -> None:
    for number in range(20):
        fail(f"name{number}")
    with pytest.raises(Throttled):
        signing_in.sign_in(request(), username="dana", password=PASSWORD)
    assert signing_in.sign_in(request("198.51.100.1"), username="dana", password=PASSWORD) == user


def test_success_does_not_count_as_failure(user: User) -> None:
    for _ in range(8):
        signing_in.sign_in(request(), username="dana", password=PASSWORD)
    assert not LoginFailure.objects.exists()


def test_names_that_cannot_be_are_wrong_like_others(user: User) -> None:
    for name in ("da\0na", "x" * 151):
        fail(name)
    with pytest.raises(Invalid):
        signing_in.sign_in(request(), username="dana", password="x" * 5000)


def test_typed_names_are_not_kept(user: User) -> None:
    fail("my secret password")
    assert "secret" not in str(LoginFailure.objects.values_list())
    row = AuditRecord.objects.get(act="sign_in_failed")
    assert "secret" not in str(vars(row))


def test_an_inactive_account_does_not_open(user: User) -> None:
    User.objects.update(is_active=False)
    with pytest.raises(Invalid) as refused:
        signing_in.sign_in(request(), username="dana", password=PASSWORD)
    assert str(refused.value) == signing_in.WRONG


@pytest.mark.parametrize(
    ("proxies", "header", "expected"),
    [
        (0, "198.51.100.1", "203.0.113.7"),
        (1, "198.51.100.1", "198.51.100.1"),
        (1, "6.6.6.6, 198.51.100.1", "198.51.100.1"),
        (2, "6.6.6.6, 198.51.100.1, 192.0.2.1", "198.51.100.1"),
        (2, "", "203.0.113.7"),
        (1, "not an address", "203.0.113.7"),
    ],
)
def test_the_address_comes_from_as_many_proxies_as_are_trusted(
    configure: Any, proxies: int, header: str, expected: str
) -> None:
    configure(trusted_proxies=proxies)
    assert client_address(request(HTTP_X_FORWARDED_FOR=header)) == expected


def test_one_network_of_ipv6_is_one_address(db: None) -> None:
    assert throttle.address_key("2001:db8:1:2::1") == throttle.address_key("2001:db8:1:2:ffff::9")
    assert throttle.address_key("2001:db8:1:2::1") != throttle.address_key("2001:db8:1:3::1")
    assert throttle.address_key("::ffff:203.0.113.7") == "203.0.113.7"


def test_a_session_gets_a_new_key_and_its_time(user: User) -> None:
    first = SessionStore()
    first["seen"] = 1
    first.save()
    before = first.session_key
    signing_in.sign_in(request(session=first), username="dana", password=PASSWORD)
    assert first.session_key != before
    assert first.get_expiry_age() == 8 * 3600
    second = SessionStore()
    signing_in.sign_in(request(session=second), username="dana", password=PASSWORD, remember=True)
    assert second.get_expiry_age() == 30 * 86400


def test_sessions_slide(user: User) -> None:
    client = Client()
    client.force_login(user)
    client.get("/api/me")
    row = Session.objects.get()
    first = row.expire_date
    session = SessionStore(row.session_key)
    session["_slid_at"] = int(timezone.now().timestamp()) - 301
    session.save()
    Session.objects.update(expire_date=first - datetime.timedelta(hours=1))
    client.get("/api/me")
    assert Session.objects.get().expire_date >= first


def test_a_new_password_ends_the_other_sessions(user: User) -> None:
    here, elsewhere = Client(), Client()
    here.force_login(user)
    elsewhere.force_login(user)
    made = request(session=here.session)
    made.user = user
    signing_in.change_password(made, old=PASSWORD, new="another one, long enough")
    made.session.save()
    here.cookies["sessionid"] = made.session.session_key
    assert here.get("/api/me").status_code == 200
    assert elsewhere.get("/api/me").status_code == 401
    with pytest.raises(Invalid) as refused:
        signing_in.change_password(made, old="wrong", new="x")
    assert refused.value.field == "old"
    with pytest.raises(Invalid) as weak:
        signing_in.change_password(made, old="another one, long enough", new="1234")
    assert weak.value.field == "new"


def test_deactivation_ends_every_session_for_good(user: User) -> None:
    admin = User.objects.create_superuser("ada")
    client = Client()
    client.force_login(user)
    assert client.get("/api/me").status_code == 200
    signing_in.deactivate(user=user, by=admin)
    assert client.get("/api/me").status_code == 401
    User.objects.update(is_active=True)
    assert client.get("/api/me").status_code == 401


def test_where_to_after_signing_in() -> None:
    made = RequestFactory().get("/login")
    assert signing_in.next_page(made, "/repos/a?b=c") == "/repos/a?b=c"
    for evil in ("https://evil.example/", "//evil.example/", "javascript:alert(1)", "/\\evil.example", ""):
        assert signing_in.next_page(made, evil) == "/"


def test_who_is_asking_costs_one_statement(user: User, django_assert_num_queries: Any) -> None:
    client = Client()
    client.force_login(user)
    client.get("/account")
    made = RequestFactory().get("/")
    made.session = SessionStore(client.session.session_key)
    with django_assert_num_queries(1):
        assert account_of(made) == user
    assert Session.objects.get().user == user


@pytest.mark.parametrize("change", ["epoch", "inactive", "other user", "backend", "hash"])
def test_a_session_that_does_not_hold_opens_nothing(user: User, change: str) -> None:
    client = Client()
    client.force_login(user)
    session = client.session
    if change == "epoch":
        signing_in.end_sessions(user=user)
    elif change == "inactive":
        User.objects.update(is_active=False)
    elif change == "other user":
        # The column helps; what counts is the signed content.
        Session.objects.update(user=User.objects.create_superuser("ada"))
    else:
        session["_auth_user_backend" if change == "backend" else "_auth_user_hash"] = "x"
        session.save()
    made = RequestFactory().get("/")
    made.session = SessionStore(session.session_key)
    found = account_of(made)
    assert found == user if change == "other user" else not found.is_authenticated


def test_a_session_ends_with_its_account(user: User) -> None:
    client = Client()
    client.force_login(user)
    user.delete()
    assert not Session.objects.exists()
    assert client.get("/api/me").status_code == 401
