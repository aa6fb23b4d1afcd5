"""The OpenAPI document and its reader (API facts 9 and 10, rule 10), and the audit endpoint."""

from __future__ import annotations

import json
import warnings
from typing import Any

import pytest
from django.test import Client
from drf_spectacular.drainage import GENERATOR_STATS

from apps.access.grants import grant
from apps.access.rest import docs
from apps.access.rest.views import ApiView
from tests.access.conftest import World


@pytest.fixture
def schema(db: None) -> dict[str, Any]:
    docs.document.cache_clear()
    found: dict[str, Any] = json.loads(docs.document())
    return found


def test_api_fact_10_generating_the_schema_yields_no_warning(db: None) -> None:
    GENERATOR_STATS.reset()
    docs.document.cache_clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        docs.document()
    assert not GENERATOR_STATS, (GENERATOR_STATS._warn_cache, GENERATOR_STATS._error_cache)


def test_every_operation_has_summary_example_errors_and_scope(schema: dict[str, Any]) -> None:
    assert schema["openapi"].startswith("3.1")
    names = set()
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            if method == "parameters":
                continue
            here = f"{method} {path}"
            assert operation["summary"], here
            assert operation["operationId"] not in names, here
            names.add(operation["operationId"])
            assert "Right: " in operation["description"], here
            assert "token scope" in operation["description"] or "session only" in operation["description"], here
            refusals = {status for status in operation["responses"] if status >= "400"}
            assert {"400", "429"} <= refusals, here
            for status in refusals:
                answer = operation["responses"][status]
                assert "`" in answer["description"], here
                assert list(answer["content"]) == ["application/problem+json"], here
            for status, answer in operation["responses"].items():
                for content in answer.get("content", {}).values() if status < "300" else ():
                    assert content.get("examples"), here


def test_schema_and_reader_are_open_and_touch_nobody(db: None, django_assert_num_queries: Any) -> None:
    client = Client()
    with django_assert_num_queries(0):
        answer = client.get("/api/schema")
        assert answer.status_code == 200
        assert "/api/me/tokens" in answer.json()["paths"]
        assert client.get("/api/schema", headers={"If-None-Match": answer["ETag"]}).status_code == 304
        page = client.get("/api/docs")
        assert page.status_code == 200
        script = client.get("/api/docs?script=")
    text = page.content.decode()
    assert "<style" not in text
    assert "style=" not in text
    assert "https://" not in text
    assert all(">" in part and part.split(">", 1)[1].startswith("</script>") for part in text.split("<script")[1:])
    assert script["Content-Type"].startswith("application/javascript")
    assert "/api/schema" in script.content.decode()
    assert client.post("/api/schema").status_code in (403, 405)


def test_every_endpoint_stands_on_the_common_base() -> None:
    from django.urls import URLPattern, URLResolver, get_resolver

    loose = []

    def walk(patterns: Any, prefix: str) -> None:
        for pattern in patterns:
            here = prefix + str(pattern.pattern)
            if isinstance(pattern, URLResolver):
                walk(pattern.url_patterns, here)
            elif isinstance(pattern, URLPattern) and here.startswith("api/"):
                view = getattr(pattern.callback, "cls", None)
                if here not in ("api/schema", "api/docs") and not (view and issubclass(view, ApiView) and view.doors):
                    loose.append(here)

    walk(get_resolver().url_patterns, "")
    assert loose == []


def test_the_audit_trail_by_rest(world: World, signed_in: Any, with_token: Any) -> None:
    assert signed_in(world.otto).get("/api/audit").status_code == 403
    assert signed_in(world.stan).get("/api/audit").status_code == 403
    grant(source=world["Cv"], to=world.otto, level="read", by=world.olga)
    client = with_token(world.ada, "read")
    page = client.get("/api/audit?act=grant_made&actor=olga&limit=1").json()
    assert page["total"] == 3
    assert page["items"][0]["after"]["grantee"] == "user otto"
    assert page["items"][0]["time"].endswith("Z")
    following = client.get(f"/api/audit?act=grant_made&actor=olga&limit=1&cursor={page['next_cursor']}").json()
    assert following["items"][0]["id"] != page["items"][0]["id"]
    assert client.get("/api/audit?until=2020-01-01").json()["total"] == 0
    assert client.get("/api/audit?since=yesterday").status_code == 400
    assert client.get("/api/audit?act=stolen").status_code == 400
