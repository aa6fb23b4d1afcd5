"""View as (facts 24 and 25, rule 22)."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import path

from apps.access import view_as
from apps.access.models import AuditRecord, User
from apps.access.viewers import viewer_of
from cograph_site import urls as site_urls
from tests.access.conftest import World
from tests.access.samples import Leaf, Shelf


def names(request: HttpRequest) -> HttpResponse:
    seen = [
        source.label for model in (Shelf,) for source in model.objects.visible_to(viewer_of(request)).order_by("name")
    ]
    banner = getattr(request, "view_as", None)
    return HttpResponse(f"{banner.sentence if banner else ''}|{','.join(seen)}")


def begin(request: HttpRequest) -> HttpResponse:
    view_as.begin(request, kind=request.POST["kind"], name=request.POST.get("name", ""))
    return HttpResponse("begun")


def stop(request: HttpRequest) -> HttpResponse:
    view_as.end(request)
    return HttpResponse("stopped")


urlpatterns = [
    path("samples/names", names),
    path("samples/begin", begin),
    path("view-as/stop", stop),
    *site_urls.urlpatterns,
]
pytestmark = [pytest.mark.urls(__name__)]


@pytest.fixture
def ada(world: World, signed_in: Any) -> Iterator[Client]:
    view_as.register_documents(Leaf)
    for name, values in (("a", {"visibility": "public"}), ("b", {"owner": world.olga}), ("c", {})):
        shelf = Shelf.objects.create(name=name, **values)
        Leaf.objects.create(shelf=shelf, text="leaf")
    made: Client = signed_in(world.ada)
    yield made
    view_as._counted.remove(Leaf)


def start(client: Client, kind: str, name: str = "") -> int:
    return client.post("/samples/begin", {"kind": kind, "name": name}).status_code


def test_access_fact_24_reading_only_with_banner_and_two_rows(world: World, ada: Client) -> None:
    assert ada.get("/samples/names").content == b"|a,b,c"
    assert start(ada, "user", "olga") == 200
    page = ada.get("/samples/names").content.decode()
    assert page.endswith("|a,b")
    assert "as olga: they see 2 of 3 documents" in page
    for method in ("post", "put", "patch", "delete", "options"):
        assert getattr(ada, method)("/samples/names").status_code == 403
    answer = ada.post("/api/me/tokens", {"name": "x", "scopes": ["read"]}, content_type="application/json")
    assert (answer.status_code, answer["Content-Type"]) == (403, "application/problem+json")
    for closed in ("/admin/", "/account", "/account/tokens", "/api/me", "/api/me/tokens"):
        assert ada.get(closed).status_code == 403, closed
    assert ada.post("/view-as/stop").status_code == 200
    assert ada.get("/samples/names").content == b"|a,b,c"
    assert ada.get("/admin/").status_code == 200
    rows = AuditRecord.objects.filter(act__startswith="view_as").order_by("time")
    assert [(row.act, row.actor_name) for row in rows] == [("view_as_begun", "ada"), ("view_as_ended", "ada")]


def test_access_fact_25_anonymous_is_sent_to_sign_in(world: World, ada: Client, configure: Any) -> None:
    assert start(ada, "anonymous") == 200
    page = ada.get("/samples/names")
    assert "Anonymous is sent to sign in" in page.content.decode()
    assert ada.get("/").status_code == page.status_code
    configure(public_read=True)
    assert ada.get("/samples/names").content.decode().endswith("they see 1 of 3 documents.|a")


def test_as_a_member_of_a_group(world: World, ada: Client) -> None:
    from apps.access.grants import grant

    grant(source=Shelf.objects.get(name="c"), to=world.docs, level="read", by=world.ada)
    assert start(ada, "group", "docs") == 200
    assert ada.get("/samples/names").content.decode().endswith("|a,c")


def test_it_ends_in_time_and_with_the_rank(world: World, ada: Client) -> None:
    assert start(ada, "user", "olga") == 200
    assert datetime.timedelta(minutes=30) == view_as.LASTS
    session = ada.session
    session["_view_as"] = {**session["_view_as"], "until": 0}
    session.save()
    assert ada.get("/samples/names").content == b"|a,b,c"
    assert start(ada, "user", "olga") == 200
    User.objects.filter(username="ada").update(is_superuser=False)
    assert ada.get("/samples/names").content == b"|a"


def test_only_administrators_and_only_living_people(world: World, ada: Client, signed_in: Any) -> None:
    for client in (signed_in(world.otto), signed_in(world.stan)):
        assert start(client, "user", "ada") == 403
    for kind, name in (("user", "ina"), ("user", "nobody"), ("group", "nobody"), ("planet", "")):
        assert start(ada, kind, name) == 404
    assert not AuditRecord.objects.filter(act="view_as_begun").exists()


def test_a_token_is_not_touched(world: World, ada: Client) -> None:
    from apps.access.tokens import create_token

    _, text = create_token(user=world.ada, name="one", scopes=["read"])
    assert start(ada, "user", "olga") == 200
    assert ada.get("/api/me", headers={"Authorization": f"Bearer {text}"}).json()["name"] == "ada"
