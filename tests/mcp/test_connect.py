"""The page that connects an agent, and the page of one's own queries."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

from django.conf import settings
from django.test import Client

from apps.access.models import ApiToken, User
from apps.access.tokens import revoke_token
from apps.retrieval.models import QueryLogEntry
from tests.mcp.conftest import Land
from tests.mcp.test_door import call, post


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def text_of(page: Any, id_: str) -> str:
    found = re.search(rf'id="{id_}">(.*?)</code>', page.content.decode(), re.DOTALL)
    assert found, id_
    return html.unescape(found[1])


def test_api_26_the_configuration_is_for_the_readers_own_host(land: Land) -> None:
    client = signed_in(land.people["otto"])
    page = client.get("/connect", SERVER_NAME="localhost", SERVER_PORT="8123")
    assert page.status_code == 200
    assert json.loads(text_of(page, "cg-http-text")) == {
        "mcpServers": {
            "cograph": {
                "type": "http",
                "url": "http://localhost:8123/mcp",
                "headers": {"Authorization": "Bearer ${COGRAPH_TOKEN}"},
            }
        }
    }
    stdio = json.loads(text_of(page, "cg-stdio-text"))["mcpServers"]["cograph"]
    assert stdio["args"] == ["manage.py", "mcp_stdio"]
    assert stdio["env"] == {"COGRAPH_TOKEN": "${COGRAPH_TOKEN}", "COGRAPH_DATA_DIR": "~/.local/share/cograph"}
    told = json.loads(text_of(signed_in(land.people["ada"]).get("/connect"), "cg-stdio-text"))
    whole = told["mcpServers"]["cograph"]
    assert whole["env"]["COGRAPH_DATA_DIR"] == str(settings.COGRAPH.data_path)
    program, command = whole["args"]
    assert (Path(whole["command"]).is_absolute(), Path(program).is_file(), command) == (True, True, "mcp_stdio")
    lines = text_of(page, "cg-lines-text")
    assert lines.startswith("Before you read files to learn how something works here, or why, ask the `cograph` MCP")
    assert lines.endswith("Cite path and lines.")


def test_portal_j10_make_a_token_call_see_the_call_revoke(land: Land) -> None:
    otto = land.people["otto"]
    client = signed_in(otto)
    assert b"None yet." in client.get("/connect").content
    made = client.post("/connect", {"name": "claude"})
    token = text_of(made, "cg-token")
    assert token.startswith("cgr_")
    assert token not in client.get("/connect").content.decode()
    row = ApiToken.objects.get(user=otto)
    assert (row.name, row.scopes) == ("claude", ["mcp"])
    said = post(call("retrieve", query="why are jobs leased"), token).json()["result"]
    assert not said["isError"]
    page = client.get("/connect").content.decode()
    assert "why are jobs leased" in page
    assert "claude" in page
    assert "why are jobs leased" not in signed_in(land.people["olga"]).get("/connect").content.decode()
    revoke_token(token_id=row.pk, by=otto)
    assert post(call("retrieve", query="x"), token).status_code == 401


def test_a_try_shows_what_an_agent_would_be_told(land: Land) -> None:
    client = signed_in(land.people["otto"])
    page = client.get("/connect", {"q": "how are jobs leased"})
    assert land.api.slug in text_of(page, "cg-tried")
    assert not QueryLogEntry.objects.exists()
    page = client.get("/connect", {"q": "zeppelin"})
    assert land.plans.slug not in page.content.decode()
    page = client.get("/connect", {"q": "<script>alert(1)</script>"})
    assert b"<script>alert" not in page.content


def test_a_name_that_is_too_long_is_told(land: Land) -> None:
    answer = signed_in(land.people["otto"]).post("/connect", {"name": "x" * 101})
    assert answer.status_code == 422
    assert b"1 to 100 characters" in answer.content


def test_api_27_own_queries_are_shown_and_erased(land: Land) -> None:
    otto, olga = signed_in(land.people["otto"]), signed_in(land.people["olga"])
    otto.get("/search", {"q": "leases"})
    olga.get("/search", {"q": "zeppelin"})
    page = otto.get("/account/queries").content.decode()
    assert "leases" in page
    assert "zeppelin" not in page
    assert land.api.slug in page
    assert "zeppelin" in olga.get("/account/queries").content.decode()
    assert otto.post("/account/queries").status_code == 302
    assert "Nothing is kept" in otto.get("/account/queries").content.decode()
    assert QueryLogEntry.objects.count() == 1


def test_api_facts_53_57_what_is_logged_of_agents(land: Land) -> None:
    agent = land.agent("otto")
    for query in ("leases", "jobs", "install", "shop", "queue", "glossary lease"):
        agent.call("retrieve", query=query)
    for query in ("qqqq", "wwww", "zzzz"):
        agent.call("collection_search", query=query)
    agent.call("retrieve", query="x", top_k=99)
    agent.call("doc_page", repository=land.api.slug, page="docs/jobs.md")
    agent.call("repositories")
    rows = list(QueryLogEntry.objects.order_by("at"))
    assert [row.outcome for row in rows] == ["ok"] * 6 + ["empty"] * 3 + ["error"]
    assert rows[-1].code == "out_of_range"
    assert {row.tool for row in rows} == {"retrieve", "collection_search"}
    assert all(row.door == "mcp" for row in rows)
    assert all(row.tokens > 0 for row in rows[:6])
    land.api.logs_queries = False
    land.api.save(update_fields=["logs_queries"])
    QueryLogEntry.objects.all().delete()
    agent.call("retrieve", query="leases", repository=land.api.slug)
    assert not QueryLogEntry.objects.exists()
    agent.call("retrieve", query="leases")
    assert f"repository:{land.api.pk}" not in QueryLogEntry.objects.get().found
