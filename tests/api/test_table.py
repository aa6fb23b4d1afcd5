"""The whole table of endpoints: `api-and-mcp.md` facts 2, 6, 8, 9, and the golden schema."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apps.access.grants import revoke
from apps.access.rest import throttles
from apps.access.tokens import create_token
from tests.api.conftest import World, operations

JSON = "application/json"
GOLDEN = Path(__file__).parent / "openapi.json"
HOLE = re.compile(r"\{(\w+)\}")


def filled(path: str, names: dict[str, str]) -> str:
    return HOLE.sub(lambda hole: names.get(hole[1], "x"), path)


def test_the_schema_is_the_golden_one(schema: dict[str, Any]) -> None:
    known = json.loads(GOLDEN.read_text(encoding="utf-8")) if GOLDEN.exists() else {}
    assert schema == known, (
        "The API has changed. If that is meant, write the golden file anew with\n"
        "    python manage.py spectacular --format openapi-json --file tests/api/openapi.json\n"
        "and read its difference before you commit it."
    )


def test_api_fact_08_hidden_answers_as_absent_behind_every_verb(
    world: World, schema: dict[str, Any], signed_in: Any
) -> None:
    _, text = create_token(user=world.otto, name="t", scopes=["read", "write"])
    clients = {"session": signed_in(world.otto), "token": Client(headers={"Authorization": f"Bearer {text}"})}
    for client in clients.values():
        client.get("/api/me")  # the first request of a session, or of a token, notes that it was used
    asked = 0
    for method, path, operation in operations(schema):
        if not HOLE.search(path):
            continue
        for name, client in clients.items():
            if name == "token" and "session only" in operation["description"]:
                continue
            throttles.reset()
            answers = []
            for names in (world.names(path), world.absent()):
                with CaptureQueriesContext(connection) as seen:
                    answer = getattr(client, method)(
                        filled(path, names), content_type=JSON, headers={"If-None-Match": "*", "If-Match": "*"}
                    )
                answers.append((answer.status_code, answer.content, len(seen)))
            assert answers[0] == answers[1], (name, method, path)
            assert answers[0][0] == 404, (name, method, path, answers[0])
            asked += 1
    assert asked > 60


def test_what_is_there_is_answered(world: World, schema: dict[str, Any], signed_in: Any) -> None:
    """The walk above means something only while the same addresses lead somewhere for those who may."""
    client = signed_in(world.ada)
    lost = set()
    for method, path, _ in operations(schema):
        if method != "get" or "token" in path:
            continue
        status = client.get(filled(path, world.names(path))).status_code
        if status != 200:
            lost.add((path, status))
    # These want a parameter, which the guide and the rooms' own tests give.
    assert lost == {
        ("/api/graph/collection/{collection_id}/path", 400),
        ("/api/graph/repo/{slug}/path", 400),
        ("/api/repos/{host}/{owner}/{name}/files/range", 400),
        ("/api/suggest", 400),
    }


def test_api_fact_09_no_verb_fails_on_empty_huge_and_nul_input(
    world: World, schema: dict[str, Any], signed_in: Any
) -> None:
    client = signed_in(world.ada)
    bodies = ["", "{}", "[]", '"\\u0000"', "{" * 5000, '{"x": "' + "y" * 300_000 + '"}']
    queries = ["?limit=" + "9" * 3000, "?q=%00", "?path=%00&cursor=%00", "?cursor=" + "a" * 2000, "?job=%00", "?%00=1"]
    for method, path, operation in operations(schema):
        place = filled(path, world.names(path))
        fields = _fields(schema, operation)
        more = [json.dumps(dict.fromkeys(fields, value)) for value in ("\0", "", "x" * 20_000, None, -1, [], {}, True)]
        for given in [*bodies, *(more if fields else [])] if method != "get" else queries:
            throttles.reset()
            with transaction.atomic():
                if method == "get":
                    answer = client.get(place + given)
                else:
                    answer = getattr(client, method)(place, given, content_type=JSON)
                transaction.set_rollback(True)
            assert answer.status_code < 500, (method, path, given[:60], answer.content)
            if answer.status_code >= 400:
                body = answer.json()
                assert (body["status"], answer["Content-Type"]) == (answer.status_code, "application/problem+json")
                assert set(body) >= {"code", "message", "field", "errors"}


def test_api_fact_02_every_list_has_the_same_bounds(world: World, schema: dict[str, Any], signed_in: Any) -> None:
    client = signed_in(world.ada)
    lists = 0
    for method, path, operation in operations(schema):
        names = {one["name"] for one in operation.get("parameters", ()) if one["in"] == "query"}
        if method != "get" or not {"limit", "cursor"} <= names:
            continue
        lists += 1
        place = filled(path, world.names(path))
        for query, code, word in (
            ("?limit=101", "out_of_range", "1..100"),
            ("?limit=0", "out_of_range", "1..100"),
            ("?limit=ten", "invalid", "limit"),
            ("?lmit=5", "unknown_field", "limit"),
            ("?cursor=nonsense", "stale_cursor", "cursor"),
        ):
            answer = client.get(place + query)
            assert (answer.status_code, answer.json()["code"]) == (400, code), (path, query, answer.content)
            assert word in answer.content.decode()
        page = client.get(place + "?limit=1").json()
        assert len(page["items"]) <= 1 <= page["total"] or page["total"] == 0
    assert lists > 12


def test_api_fact_06_every_creating_post_takes_an_idempotency_key(world: World, signed_in: Any) -> None:
    client = signed_in(world.olga)
    repository = f"/api/repos/{world.repository.slug}"
    collection = f"/api/md-collections/{world.collection.pk}"
    for place, body, other in (
        ("/api/md-collections", {"name": "New"}, {"name": "Other"}),
        (f"{collection}/documents", {"source_key": "n.md", "content": "# N"}, {"source_key": "m.md", "content": ""}),
        (f"{repository}/sync", {"force": True}, {"force": False}),
    ):
        key = {"Idempotency-Key": f"key of {place}"}
        first = client.post(place, body, content_type=JSON, headers=key)
        again = client.post(place, body, content_type=JSON, headers=key)
        mismatch = client.post(place, other, content_type=JSON, headers=key)
        assert first.status_code in (201, 202), (place, first.content)
        assert (again.status_code, again.content) == (first.status_code, first.content), place
        assert again["Idempotent-Replayed"] == "true"
        assert (mismatch.status_code, mismatch.json()["code"]) == (422, "idempotency_mismatch")


def test_api_fact_07_no_replay_after_the_caller_lost_access(world: World, signed_in: Any) -> None:
    client = signed_in(world.wim)
    place = f"/api/md-collections/{world.collection.pk}/documents"
    body, key = {"source_key": "n.md", "content": "# N"}, {"Idempotency-Key": "k"}
    assert client.post(place, body, content_type=JSON, headers=key).status_code == 201
    assert client.post(place, body, content_type=JSON, headers=key).status_code == 201
    revoke(source=world.collection, to=world.wim, by=world.olga)
    assert client.post(place, body, content_type=JSON, headers=key).status_code == 404


def _fields(schema: dict[str, Any], operation: dict[str, Any]) -> list[str]:
    content = operation.get("requestBody", {}).get("content", {})
    reference = content.get(JSON, {}).get("schema", {}).get("$ref", "")
    component = schema["components"]["schemas"].get(reference.rpartition("/")[2], {})
    return list(component.get("properties", ()))
