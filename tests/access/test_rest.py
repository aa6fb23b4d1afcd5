"""The conventions of the REST door on endpoints of these tests' own (facts 1 to 7 of the API page)."""

from __future__ import annotations

import json
import threading
import uuid
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import close_old_connections, connection
from django.test import Client
from django.urls import path
from rest_framework import serializers
from rest_framework.parsers import MultiPartParser
from rest_framework.response import Response

from apps.access.models import KeptAnswer, TokenScope, User
from apps.access.rest.cursors import page_of_list, page_of_rows
from apps.access.rest.etags import check_if_match, etag_of, not_modified, tagged
from apps.access.rest.parsers import BoundedJsonParser
from apps.access.rest.schema import list_of
from apps.access.rest.strict import Boolean, Choice, Integer, Listed, ListQuery, Number, StrictSerializer, Text
from apps.access.rest.views import ApiView, Door
from cograph_site import urls as site_urls
from tests.access.conftest import World, make_repository
from tests.access.samples import Leaf, Shelf


class ShelfInput(StrictSerializer):
    name = Text(min_length=1, max_length=20)
    visibility = Choice(["public", "private"], default="private")
    size = Integer(min_value=1, max_value=100, required=False)
    weight = Number(min_value=0, max_value=1, required=False)
    open = Boolean(required=False)
    words = Listed(child=Text(min_length=1, max_length=5), max_length=3, required=False)


class SearchInput(StrictSerializer):
    query = Text(min_length=1, max_length=20, query_text=True)


class LeafQuery(ListQuery):
    text = Text(max_length=20, default="")


class LeafOutput(serializers.Serializer[Any]):
    id = serializers.CharField()
    text = serializers.CharField()


class ShelvesView(ApiView):
    parser_classes = [BoundedJsonParser, MultiPartParser]
    doors = {
        "POST": Door(
            right="self",
            summary="Make a shelf",
            scope=TokenScope.WRITE,
            input=ShelfInput,
            status=201,
            creates=True,
        )
    }
    started: threading.Event | None = None
    go_on: threading.Event | None = None

    def post(self, request: Any) -> Response:
        asked = self.body()
        group = Group.objects.create(name=f"{asked['name']}-{uuid.uuid4()}")
        if self.started and self.go_on:
            self.started.set()
            assert self.go_on.wait(10)
        return Response({"id": str(group.pk), **asked}, status=201, headers={"Location": f"/groups/{group.pk}"})


class LeavesView(ApiView):
    doors = {
        "GET": Door(right="read", summary="Leaves", query=LeafQuery, output=list_of(LeafOutput)),
        "POST": Door(
            right="write", summary="Grow", scope=TokenScope.WRITE, input=SearchInput, creates=True, status=201
        ),
    }

    def authorize(self, shelf_id: str) -> None:
        right = "write" if self.request.method == "POST" else "read"
        self.shelf = Shelf.objects.get_for(self.viewer, right, pk=shelf_id)

    def get(self, request: Any, shelf_id: str) -> Response:
        rows = Leaf.objects.visible_to(self.viewer).filter(shelf=self.shelf, text__contains=self.query["text"])
        page = page_of_rows(rows, order=("text", "-id"), viewer=self.viewer, question={**self.query, "shelf": shelf_id})
        return Response(page.body(lambda leaf: {"id": str(leaf.pk), "text": leaf.text}))

    def post(self, request: Any, shelf_id: str) -> Response:
        leaf = Leaf.objects.create(shelf=self.shelf, text=self.body()["query"])
        return Response({"id": str(leaf.pk), "text": leaf.text}, status=201)


class LeafView(ApiView):
    doors = {
        "GET": Door(right="read", summary="A leaf", output=LeafOutput),
        "PATCH": Door(right="write", summary="Write on it", scope=TokenScope.WRITE, input=SearchInput),
    }

    def authorize(self, leaf_id: str) -> None:
        right = "write" if self.request.method == "PATCH" else "read"
        self.leaf = Leaf.objects.get_for(self.viewer, right, pk=leaf_id)

    def get(self, request: Any, leaf_id: str) -> Any:
        etag = etag_of(self.leaf.text)
        return not_modified(request, etag) or tagged(Response({"text": self.leaf.text}), etag)

    def patch(self, request: Any, leaf_id: str) -> Response:
        check_if_match(request, etag_of(self.leaf.text))
        self.leaf.text = self.body()["query"]
        self.leaf.save()
        return Response({"text": self.leaf.text})


class RankedView(ApiView):
    doors = {
        "POST": Door(right="read", summary="Ranked", input=SearchInput),
        "GET": Door(right="administer", summary="For administrators", query=ListQuery),
    }

    def post(self, request: Any) -> Response:
        return Response({"query": self.body()["query"]})

    def get(self, request: Any) -> Response:
        return Response(page_of_list(list("abcde"), viewer=self.viewer, question=self.query).body(str))


class FailingView(ApiView):
    doors = {"GET": Door(right="self", summary="Fails")}

    def get(self, request: Any) -> Response:
        raise RuntimeError("secret detail")


urlpatterns = [
    path("api/shelves", ShelvesView.as_view()),
    path("api/shelves/<str:shelf_id>/leaves", LeavesView.as_view()),
    path("api/leaves/<str:leaf_id>", LeafView.as_view()),
    path("api/ranked", RankedView.as_view()),
    path("api/failing", FailingView.as_view()),
    *site_urls.urlpatterns,
]

pytestmark = [pytest.mark.urls(__name__)]


def post(client: Client, address: str, body: Any, key: str = "") -> Any:
    headers = {"Idempotency-Key": key} if key else {}
    return client.post(address, json.dumps(body), content_type="application/json", headers=headers)


@pytest.fixture
def otto(world: World, signed_in: Any) -> Client:
    made: Client = signed_in(world.otto)
    return made


@pytest.fixture
def olga(world: World, signed_in: Any) -> Client:
    made: Client = signed_in(world.olga)
    return made


@pytest.fixture
def shelf(world: World) -> Shelf:
    made = Shelf.objects.create(name="one", owner=world.olga)
    for number in range(6):
        Leaf.objects.create(shelf=made, text=f"same {number % 2}")
    return made


def test_api_fact_01_unknown_fields_are_named_with_the_nearest(otto: Client) -> None:
    before = Group.objects.count()
    answer = post(otto, "/api/shelves", {"name": "A", "visability": "public"})
    assert answer.status_code == 422
    body = answer.json()
    assert (body["code"], body["field"]) == ("unknown_field", "visability")
    assert "`visibility`" in body["message"]
    assert set(body) == {"status", "code", "message", "field", "errors"}
    assert answer["Content-Type"] == "application/problem+json"
    assert Group.objects.count() == before


@pytest.mark.parametrize(
    ("query", "code", "word"),
    [
        ("limit=101", "out_of_range", "1..100"),
        ("limit=0", "out_of_range", "1..100"),
        ("limit=ten", "invalid", ""),
        ("limit=1&limit=2", "invalid", ""),
        ("lmit=5", "unknown_field", "`limit`"),
        ("text=a%00b", "invalid", ""),
        ("text=" + "x" * 21, "out_of_range", "0..20"),
        ("limit=%F0%9F%98%80", "invalid", ""),
        ("limit=٣", "invalid", ""),
    ],
)
def test_api_fact_02_query_strings(olga: Client, shelf: Shelf, query: str, code: str, word: str) -> None:
    answer = olga.get(f"/api/shelves/{shelf.pk}/leaves?{query}")
    assert answer.status_code == 400
    assert answer.json()["code"] == code
    assert word in answer.json()["message"]


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        ({"name": "A", "size": 101}, "out_of_range", "size"),
        ({"name": "A", "size": "10"}, "invalid", "size"),
        ({"name": "A", "size": True}, "invalid", "size"),
        ({"name": "A", "size": 1.0}, "invalid", "size"),
        ({"name": "A", "size": 10**400}, "out_of_range", "size"),
        ({"name": 5}, "invalid", "name"),
        ({"name": None}, "invalid", "name"),
        ({"name": ""}, "invalid", "name"),
        ({"name": "a\0b"}, "invalid", "name"),
        ({"name": "\ud800"}, "invalid", "name"),
        ({}, "required", "name"),
        ({"name": "A", "visibility": "hidden"}, "invalid", "visibility"),
        ({"name": "A", "visibility": ["public"]}, "invalid", "visibility"),
        ({"name": "A", "open": "true"}, "invalid", "open"),
        ({"name": "A", "open": 1}, "invalid", "open"),
        ({"name": "A", "weight": "0.5"}, "invalid", "weight"),
        ({"name": "A", "words": ["a", "b", "c", "d"]}, "out_of_range", "words"),
        ({"name": "A", "words": ["a", "toolong"]}, "out_of_range", "words[1]"),
        ({"name": "A", "words": "a"}, "invalid", "words"),
        ([], "invalid", None),
        ("text", "invalid", None),
    ],
)
def test_api_fact_02_bodies_are_not_coerced(otto: Client, body: Any, code: str, field: str | None) -> None:
    answer = post(otto, "/api/shelves", body)
    assert answer.status_code == 422
    assert (answer.json()["code"], answer.json()["field"]) == (code, field)


def test_several_problems_are_all_listed(otto: Client) -> None:
    answer = post(otto, "/api/shelves", {"name": "", "size": "x"})
    assert {one["field"] for one in answer.json()["errors"]} == {"name", "size"}


@pytest.mark.parametrize("body", [b"{", b"\xff", b"[" * 100_000, b'{"name": NaN}', b"9" * 5000])
def test_what_cannot_be_read_is_400(otto: Client, body: bytes) -> None:
    answer = otto.post("/api/shelves", body, content_type="application/json")
    assert answer.status_code in (400, 422)
    assert answer["Content-Type"] == "application/problem+json"
    assert otto.post("/api/ranked", body, content_type="text/csv").status_code == 415


def test_forms_are_read_as_text(otto: Client) -> None:
    answer = otto.post("/api/shelves", {"name": "A", "size": "10", "open": "true"})
    assert answer.status_code == 201
    assert (answer.json()["size"], answer.json()["open"]) == (10, True)
    assert otto.post("/api/shelves", {"name": "A", "size": "1.5"}).status_code == 422


def test_a_nul_in_query_text_counts_as_a_space(otto: Client) -> None:
    assert post(otto, "/api/ranked", {"query": "a\0b"}).json() == {"query": "a b"}


def test_api_fact_03_order_is_total_and_pages_hold_each_once(olga: Client, shelf: Shelf) -> None:
    seen = set()
    for _ in range(20):
        ids: list[str] = []
        cursor = ""
        while True:
            page = olga.get(f"/api/shelves/{shelf.pk}/leaves?limit=2&cursor={cursor}").json()
            assert page["total"] == 6
            ids += [item["id"] for item in page["items"]]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        assert len(set(ids)) == len(ids) == 6
        seen.add(tuple(ids))
    assert len(seen) == 1


def test_api_fact_04_cursors_are_bound_to_user_and_question(
    world: World, olga: Client, shelf: Shelf, signed_in: Any
) -> None:
    address = f"/api/shelves/{shelf.pk}/leaves"
    cursor = olga.get(f"{address}?limit=2").json()["next_cursor"]
    assert olga.get(f"{address}?limit=3&cursor={cursor}").status_code == 200
    for client, query in (
        (signed_in(world.ada), f"limit=2&cursor={cursor}"),
        (olga, f"limit=2&text=same&cursor={cursor}"),
        (olga, f"limit=2&cursor={cursor[:-2]}xx"),
        (olga, "limit=2&cursor=forged"),
    ):
        answer = client.get(f"{address}?{query}")
        assert (answer.status_code, answer.json()["code"]) == (400, "stale_cursor")


def test_api_fact_05_etags_come_after_the_scope(world: World, olga: Client, otto: Client, shelf: Shelf) -> None:
    leaf = Leaf.objects.filter(shelf=shelf).first()
    assert leaf is not None
    address = f"/api/leaves/{leaf.pk}"
    etag = olga.get(address)["ETag"]
    held = {"If-None-Match": etag}
    answer = olga.get(address, headers=held)
    assert (answer.status_code, answer.content, answer["ETag"]) == (304, b"", etag)
    assert otto.get(address, headers=held).status_code == 404
    assert (
        olga.patch(address, {"query": "new"}, content_type="application/json", headers={"If-Match": etag}).status_code
        == 200
    )
    assert olga.get(address, headers=held).status_code == 200
    stale = olga.patch(address, {"query": "newer"}, content_type="application/json", headers={"If-Match": etag})
    assert stale.status_code == 412


def test_access_fact_11_revoked_between_two_requests(world: World, signed_in: Any, shelf: Shelf) -> None:
    from apps.access.grants import grant

    grant(source=shelf, to=world.docs, level="read", by=world.olga)
    dana = signed_in(world.dana)
    leaf = Leaf.objects.filter(shelf=shelf).first()
    assert leaf is not None
    cursor = dana.get(f"/api/shelves/{shelf.pk}/leaves?limit=2").json()["next_cursor"]
    etag = dana.get(f"/api/leaves/{leaf.pk}")["ETag"]
    world.dana.groups.clear()
    assert dana.get(f"/api/shelves/{shelf.pk}/leaves?limit=2&cursor={cursor}").status_code == 404
    assert dana.get(f"/api/leaves/{leaf.pk}", headers={"If-None-Match": etag}).status_code == 404


def test_access_fact_12_and_13_hidden_is_absent(world: World, otto: Client, shelf: Shelf) -> None:
    from django.test.utils import CaptureQueriesContext

    leaf = Leaf.objects.filter(shelf=shelf).first()
    assert leaf is not None
    nothing = uuid.uuid4()
    otto.get("/api/me")
    pairs = [
        (f"/api/shelves/{shelf.pk}/leaves", f"/api/shelves/{nothing}/leaves"),
        (f"/api/leaves/{leaf.pk}", "/api/leaves/999999999"),
    ]
    for hidden, absent in pairs:
        answers = []
        for address in (hidden, absent):
            with CaptureQueriesContext(connection) as queries:
                answer = otto.get(address, headers={"If-None-Match": etag_of(leaf.text)})
            answers.append((answer.status_code, answer.content, len(queries)))
        assert answers[0] == answers[1]
        assert answers[0][0] == 404
    for address in (pairs[0][0], pairs[0][1]):
        assert post(otto, address, {"query": "x"}).status_code == 404
        assert post(otto, address, {"nonsense": "x"}).status_code == 404


def test_readable_but_not_writable_is_403(world: World, otto: Client) -> None:
    shelf = Shelf.objects.create(name="open", owner=world.olga, visibility="public")
    answer = post(otto, f"/api/shelves/{shelf.pk}/leaves", {"query": "x"})
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")


def test_access_fact_26_scope_before_look_up(world: World, with_token: Any, shelf: Shelf) -> None:
    client = with_token(world.otto, "read")
    answer = post(client, f"/api/shelves/{shelf.pk}/leaves", {"query": "x"})
    assert (answer.status_code, answer.json()["code"]) == (403, "insufficient_scope")
    assert post(client, "/api/ranked", {"query": "x"}).status_code == 200


def test_api_fact_06_same_key_same_answer(otto: Client) -> None:
    before = Group.objects.count()
    first = post(otto, "/api/shelves", {"name": "A", "size": 1}, key="k")
    second = otto.post(
        "/api/shelves", '{"size":1, "name":"A"}', content_type="application/json", headers={"Idempotency-Key": "k"}
    )
    assert (first.status_code, second.status_code) == (201, 201)
    assert second["Idempotent-Replayed"] == "true"
    assert "Idempotent-Replayed" not in first
    assert (second.content, second["Location"]) == (first.content, first["Location"])
    assert Group.objects.count() == before + 1
    other = post(otto, "/api/shelves", {"name": "B"}, key="k")
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_mismatch")
    assert post(otto, "/api/shelves", {"name": "A"}, key="x" * 201).status_code == 400


def test_a_refused_request_keeps_no_answer(otto: Client) -> None:
    assert post(otto, "/api/shelves", {"name": ""}, key="k").status_code == 422
    assert not KeptAnswer.objects.exists()
    assert post(otto, "/api/shelves", {"name": "A"}, key="k").status_code == 201


def test_api_fact_07_replay_after_the_caller_lost_access(world: World, olga: Client, shelf: Shelf) -> None:
    address = f"/api/shelves/{shelf.pk}/leaves"
    assert post(olga, address, {"query": "x"}, key="k").status_code == 201
    assert post(olga, address, {"query": "x"}, key="k")["Idempotent-Replayed"] == "true"
    Shelf.objects.filter(pk=shelf.pk).update(owner=None)
    assert post(olga, address, {"query": "x"}, key="k").status_code == 404


@pytest.mark.django_db(transaction=True)
def test_api_fact_06_two_at_the_same_moment() -> None:
    user = User.objects.create_user("twice")
    started, go_on = threading.Event(), threading.Event()
    ShelvesView.started, ShelvesView.go_on = started, go_on
    answers: dict[str, Any] = {}

    def first() -> None:
        try:
            answers["first"] = post(clients[0], "/api/shelves", {"name": "A"}, key="k")
        finally:
            close_old_connections()
            connection.close()

    clients = [Client(), Client()]
    for client in clients:
        client.force_login(user)
    thread = threading.Thread(target=first)
    try:
        thread.start()
        assert started.wait(10)
        second = post(clients[1], "/api/shelves", {"name": "A"}, key="k")
        assert (second.status_code, second.json()["code"]) == (409, "idempotency_in_progress")
    finally:
        go_on.set()
        thread.join()
        ShelvesView.started = ShelvesView.go_on = None
    assert answers["first"].status_code == 201
    assert Group.objects.count() == 1
    assert post(clients[1], "/api/shelves", {"name": "A"}, key="k")["Idempotent-Replayed"] == "true"


def test_verbs_that_are_not_stated_are_405(otto: Client) -> None:
    for method in ("put", "delete", "patch", "get"):
        answer = getattr(otto, method)("/api/shelves")
        assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")
        assert answer["Allow"] == "POST"
    assert otto.head("/api/me").status_code == 200
    options = otto.options("/api/me")
    assert (options.status_code, options["Allow"]) == (204, "GET, HEAD, OPTIONS")


def test_a_trailing_slash_is_404(otto: Client) -> None:
    answer = otto.get("/api/me/")
    assert answer.status_code == 404
    assert answer["Content-Type"] == "application/problem+json"


def test_administrators_only(world: World, otto: Client, signed_in: Any) -> None:
    assert otto.get("/api/ranked").status_code == 403
    ada = signed_in(world.ada)
    page = ada.get("/api/ranked?limit=2").json()
    assert (page["items"], page["total"]) == (["a", "b"], 5)
    last = ada.get(f"/api/ranked?limit=3&cursor={page['next_cursor']}").json()
    assert (last["items"], last["next_cursor"]) == (["c", "d", "e"], None)


def test_public_reading_opens_reads_and_no_more(world: World, configure: Any) -> None:
    configure(public_read=True)
    shelf = Shelf.objects.create(name="open", visibility="public")
    client = Client()
    assert client.get(f"/api/shelves/{shelf.pk}/leaves").status_code == 200
    assert post(client, "/api/ranked", {"query": "x"}).status_code == 200
    assert post(client, f"/api/shelves/{shelf.pk}/leaves", {"query": "x"}).status_code == 401
    assert client.get("/api/me").status_code == 401


def test_a_failure_tells_only_its_request_id(otto: Client) -> None:
    otto.raise_request_exception = False
    answer = otto.get("/api/failing")
    assert answer.status_code == 500
    assert "secret" not in answer.content.decode()
    assert answer["X-Request-ID"]


def test_throttles_count_by_token_user_and_address(
    world: World, signed_in: Any, with_token: Any, configure: Any
) -> None:
    import dataclasses

    from django.conf import settings

    configure(throttle=dataclasses.replace(settings.COGRAPH.throttle, user=3, anonymous=2), public_read=True)
    client = signed_in(world.otto)
    assert [client.get("/api/me").status_code for _ in range(4)] == [200, 200, 200, 429]
    answer = client.get("/api/me")
    assert 1 <= int(answer["Retry-After"]) <= 60
    assert answer.json()["code"] == "throttled"
    assert with_token(world.otto, "read").get("/api/me").status_code == 200
    assert signed_in(world.wim).get("/api/me").status_code == 200
    answers = [post(Client(), "/api/ranked", {"query": "x"}).status_code for _ in range(3)]
    assert answers == [200, 200, 429]


def test_me_counts_what_the_caller_reads(world: World, signed_in: Any) -> None:
    make_repository("another", owner=world.ada)
    body = signed_in(world.dana).get("/api/me").json()
    assert body["name"] == "dana"
    assert body["groups"] == ["docs"]
    assert body["is_administrator"] is False
    assert body["token_scopes"] is None
    assert body["readable"]["repository"] == 3


def test_schema_of_doors_is_complete(db: None) -> None:
    from drf_spectacular.drainage import GENERATOR_STATS
    from drf_spectacular.generators import SchemaGenerator

    GENERATOR_STATS.reset()
    schema = SchemaGenerator(patterns=urlpatterns[:5]).get_schema(request=None, public=True)
    assert not GENERATOR_STATS
    get = schema["paths"]["/api/shelves/{shelf_id}/leaves"]["get"]
    assert get["summary"] == "Leaves"
    assert {one["name"] for one in get["parameters"]} == {"shelf_id", "limit", "cursor", "text"}
    assert "application/problem+json" in get["responses"]["404"]["content"]
