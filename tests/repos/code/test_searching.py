"""Symbols by name: classes, order, scope (retrieval 5)."""

from __future__ import annotations

from typing import Any

import pytest

from apps.access.models import User
from apps.repos.code.searching import asked_for, search
from apps.repos.models import Repository

SERVER = {
    "src/server/index.ts": (
        "export function createServer(port: number): Server {\n  return new Server(port)\n}\n\n"
        "export class Server {\n  createServerSocket() {}\n}\nexport const serverCreated = 1\n"
    ),
    "src/cli.ts": "import { createServer } from './server'\n\nexport function run() {\n  createServer(1)\n}\n",
    "tests/server.test.ts": "export function createServer() {}\n",
    "src/config.ts": "export function resolveConfig() {}\n",
}


@pytest.fixture
def repository(portal: Any, upstream: Any) -> Repository:
    upstream.commit(SERVER)
    found: Repository = portal.synced(upstream)[0]
    return found


@pytest.mark.parametrize(
    ("query", "matched"),
    [
        ("createServer", "name"),
        ("CREATESERVER", "name"),
        ("create server", "segments"),
        ("server create", "segments"),
        ("server.createServer", "qualified name"),
        ("server::createServer", "qualified name"),
        ("creatServer", "trigrams"),
        ("createServer()", "name"),
        ("`createServer`", "name"),
        ("createServ", "prefix"),
    ],
)
def test_retrieval_fact_73_the_symbol_is_first(portal: Any, repository: Repository, query: str, matched: str) -> None:
    first = search(viewer=portal.admin, query=query)[0]
    assert (first.qualified_name, first.path, first.matched) == ("server.createServer", "src/server/index.ts", matched)
    assert first.start_line == 1 and first.signature.startswith("function createServer(port")


def test_retrieval_5_2_a_name_is_found_by_its_begin_whatever_separators_it_has(portal: Any, upstream: Any) -> None:
    upstream.commit(
        {"a.py": "def insert_value(): ...\ndef Insert_Vapor(): ...\ndef insert_other(): ...\ndef re_va(): ...\n"}
    )
    portal.synced(upstream)

    def found(query: str) -> set[str]:
        return {row.name for row in search(viewer=portal.admin, query=query) if row.matched == "prefix"}

    assert found("insert_va") == {"insert_value", "Insert_Vapor"}
    assert found("INSERT_V") == {"insert_value", "Insert_Vapor"}
    assert found("inser") == {"insert_value", "Insert_Vapor", "insert_other"}
    assert found("vapo") == {"Insert_Vapor"}
    assert search(viewer=portal.admin, query="insert_va", path="b/") == []
    assert len(search(viewer=portal.admin, query="insert_va", limit=1)) == 1


def test_retrieval_5_2_order_and_evidence(portal: Any, repository: Repository) -> None:
    rows = search(viewer=portal.admin, query="createServer")
    assert [(row.name, row.evidence, row.path) for row in rows[:3]] == [
        ("createServer", 0.95, "src/server/index.ts"),
        ("createServer", 0.95, "tests/server.test.ts"),
        ("createServerSocket", 0.6, "src/server/index.ts"),
    ]
    assert rows == search(viewer=portal.admin, query="createServer")
    ending = search(viewer=portal.admin, query="Server.createServerSocket")[0]
    assert (ending.qualified_name, ending.evidence) == ("server.Server.createServerSocket", 0.9)
    assert all(0.15 <= row.evidence <= 0.5 for row in search(viewer=portal.admin, query="creatServer"))


def test_filters_and_scope(portal: Any, repository: Repository) -> None:
    def paths(**filters: Any) -> set[str]:
        return {row.path for row in search(viewer=portal.admin, query="createServer", **filters)}

    assert paths(path="tests/") == {"tests/server.test.ts"}
    assert paths(path="**/*.test.ts") == {"tests/server.test.ts"}
    assert paths(kind="method") == {"src/server/index.ts"}
    assert paths(language="go") == set()
    assert len(search(viewer=portal.admin, query="createServer", limit=1)) == 1
    outsider = User.objects.create_user("otto", password="x")
    assert search(viewer=outsider, query="createServer") == []
    assert search(viewer=outsider, query="createServer", repository=repository) == []


def test_retrieval_5_1_what_is_asked() -> None:
    assert asked_for("how does createServer work with vite.config in the end") == ["createServer", "vite.config"]
    assert asked_for("how is the auth flow made for people of today") == []
    assert asked_for("create server") == ["create server"]
    assert asked_for("`run` it please now or never") == ["run"]
    assert asked_for("Foo::bar() baz", small=["baz"]) == ["Foo::bar"]


@pytest.mark.parametrize("query", ["", " ", "((", "%", "_", "'; DROP", "\0", "a" * 3000, "`", "💥", "..", "::"])
def test_any_input_is_safe(portal: Any, repository: Repository, query: str) -> None:
    search(viewer=portal.admin, query=query)
    search(viewer=portal.admin, query=query, path=query, kind=query[:5], language=query[:5], whole=True)
