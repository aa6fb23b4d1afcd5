"""What the faces cost over the functions and statements below them (issue 7; `performance.md` 14 to 17).

    nice python -m tests.bench.faces

CPU milliseconds of this process and of its database backend (`performance.md` 1), medians of interleaved rounds:

* an MCP call, from the bytes of the request to those of the answer, less the function of the room that it calls
* lists of 50 rows by REST, against the same statements by cursor and orjson of the same values
* lists of 50 rows as pages, against a control template with truncate filters over the same rows
* a signed-in request that shows nothing, against Django's own middleware with cached_db sessions
* pages with the MCP server in the same process, against pages without it
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from types import ModuleType
from typing import Any
from unittest import mock

from tests.bench import place

ROUNDS = 40
WARM = 12
ROWS = 50
Measured = dict[str, Callable[[], object]]


def main() -> None:
    with place.database():
        from django.conf import settings
        from django.test.utils import override_settings

        from apps.access.rest import throttles

        throttles.count = lambda *_, **__: None  # type: ignore[assignment]
        with override_settings(
            ALLOWED_HOSTS=["testserver"],
            STORAGES={
                **settings.STORAGES,
                "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
            },
        ):
            owner, collection = fill()
            clock = place.Clock()
            calls(clock, owner, collection)
            lists(clock, owner, collection)
            pages(clock, owner, collection)
            signed_in(clock, owner)
            neighbours(clock, owner, collection)


def fill() -> tuple[Any, Any]:
    """Enough rows that each list has more than a page, and texts to be found."""
    from apps.access.models import User
    from apps.collections.curation import create_collection
    from apps.collections.documents import Incoming, store
    from apps.collections.reading import read_one
    from apps.jobs.models import JobItem
    from apps.markup.shared_pool import close_shared_pool
    from tests.portal.worlds import make_document, make_job, make_repository

    owner = User.objects.create_superuser("bench")
    collection = create_collection(by=owner, name="Bench", visibility="public")
    texts = []
    for number in range(80):
        title = f"Page {number} about caching and deployment of the session store"
        body = f"# {title}\n\n## Steps\n\nThe redis pool caches page {number}. [next](p{number + 1}.md)\n" * 4
        incoming = Incoming(f"guides/p{number}.md", body.encode())
        texts.append((incoming, read_one(incoming, collection)))
    store(collection, texts, by=owner)
    close_shared_pool()
    repository = make_repository("github.com/acme/bench", visibility="public", description="A bench. " * 20)
    for number in range(80):
        make_document(repository, f"docs/guide-{number}.md", f"# Guide {number}\n\ncaching text {number}\n")
        make_repository(f"github.com/acme/r{number}", visibility="public", description="About caching. " * 20)
        create_collection(by=owner, name=f"Shelf {number}", description="Decisions and runbooks. " * 10)
        job = make_job(repository, kind="sync")
    for number in range(80):
        JobItem.objects.create(job=job, path=f"docs/guide-{number}.md", state="created", size=9, chunks=2)
    return owner, collection


def compare(clock: place.Clock, runs: Measured) -> dict[str, list[float]]:
    """CPU milliseconds of each run, round by round, all of them in every round."""
    for _ in range(WARM):
        for run in runs.values():
            run()
    found: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(ROUNDS):
        for name, run in runs.items():
            before = clock.read()
            run()
            found[name].append(clock.read() - before)
    return found


def tell(name: str, found: dict[str, list[float]], ours: str, control: str, demand: str) -> None:
    one, other = statistics.median(found[ours]), statistics.median(found[control])
    print(f"  {name:<40} {one:6.2f} ms  control {other:6.2f} ms  {one / other:5.2f} x   ({demand})")


def handler() -> Callable[..., Any]:
    """The application with its middleware, without a server and without a test client's own work; what is loaded is
    kept out of the collector's sight, as the served application keeps it."""
    import gc

    from django.core.handlers.base import BaseHandler

    made = BaseHandler()
    made.load_middleware()
    gc.collect()
    gc.freeze()
    return made.get_response


def request(method: str, path: str, *, session: str = "", token: str = "", body: Any = None) -> Any:
    from django.conf import settings
    from django.test import RequestFactory

    headers = {"Accept": "application/json, text/event-stream"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    made = RequestFactory(headers=headers).generic(
        method, path, json.dumps(body) if body is not None else "", content_type="application/json"
    )
    if session:
        made.COOKIES[settings.SESSION_COOKIE_NAME] = session
    return made


def session_of(owner: Any, engine: str = "apps.access.sessions") -> str:
    from importlib import import_module

    from django.conf import settings
    from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY

    store = import_module(engine).SessionStore()
    store[SESSION_KEY] = str(owner.pk)
    store[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    store[HASH_SESSION_KEY] = owner.get_session_auth_hash()
    store["_slid_at"] = 2**40
    store.save()
    return str(store.session_key)


def good(response: Any) -> bytes:
    assert response.status_code == 200, response.content[:400]
    return bytes(response.content)


# -- MCP


def calls(clock: place.Clock, owner: Any, collection: Any) -> None:
    from apps.access import tokens
    from apps.access.models import TokenScope
    from apps.collections import catalogue
    from apps.retrieval.context import context
    from apps.retrieval.routing import route
    from apps.retrieval.search import search
    from apps.retrieval.values import Question

    _, token = tokens.create_token(user=owner, name="bench", scopes=[TokenScope.MCP], expires_in_days=1)
    answer = handler()
    bare = bare_server()
    print("MCP call over the function that it calls, ms of CPU (at most 3); over an SDK tool that does nothing")
    functions: list[tuple[str, dict[str, Any], Callable[[], object]]] = [
        (
            "cograph_route",
            {"query": "where is caching"},
            lambda: route(viewer=owner, query="where is caching", top_k=3),
        ),
        (
            "cograph_collection_search",
            {"query": "redis pool", "collection": str(collection.pk)},
            lambda: search(
                viewer=owner,
                question=Question("redis pool", mode="docs", sources=(("collection", collection.pk),), limit=10),
            ),
        ),
        ("cograph_context", {"task": "tune the redis pool"}, lambda: context(viewer=owner, task="tune the redis pool")),
        ("cograph_collections", {}, lambda: list(catalogue.listed(owner)[:50])),
    ]
    for name, arguments, function in functions:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}

        def call(body: Any = body) -> object:
            given = json.loads(good(answer(request("POST", "/mcp", token=token, body=body))))
            assert not given["result"].get("isError"), given
            return given

        def nothing(body: Any = body) -> object:
            with mock.patch("apps.mcp.exchange.exchange", bare.answer):
                return good(answer(request("POST", "/mcp", token=token, body=body)))

        found = compare(clock, {"call": call, "function": function, "nothing": nothing})
        whole, inner, sdk = (statistics.median(found[run]) for run in ("call", "function", "nothing"))
        print(
            f"  {name:<27} {whole:6.2f} ms  function {inner:6.2f} ms  over it {whole - inner:5.2f} ms"
            f"  SDK {sdk:5.2f} ms  {(whole - inner) / sdk:5.2f} x"
        )


def bare_server() -> Any:
    """The SDK's low-level server with one tool that does nothing."""
    import mcp_types as types
    from mcp.server.lowlevel import Server

    from apps.mcp.exchange import Line

    async def nothing(context: Any, params: Any) -> Any:
        return types.CallToolResult(content=[types.TextContent(type="text", text="nothing")])

    return Line(Server("bare", on_call_tool=nothing))


# -- lists


def lists(clock: place.Clock, owner: Any, collection: Any) -> None:
    answer, session = handler(), session_of(owner)
    job = newest_job()
    print(f"REST lists of {ROWS} rows over cursor and orjson (at most 2)")
    for path in (
        "/api/repos",
        "/api/md-collections",
        f"/api/md-collections/{collection.pk}/documents",
        "/api/repos/github.com/acme/bench/documents",
        "/api/repos/github.com/acme/bench/files",
        "/api/jobs",
        f"/api/jobs/{job}/items",
    ):

        def ask(path: str = path) -> bytes:
            return good(answer(request("GET", f"{path}?limit={ROWS}", session=session)))

        control = cursor_and_orjson(ask)
        assert len(json.loads(ask())["items"]) == ROWS, path
        tell(path[:40], compare(clock, {"endpoint": ask, "control": control}), "endpoint", "control", "2")


def newest_job() -> Any:
    from apps.jobs.models import JobItem

    return JobItem.objects.values_list("job", flat=True)[0]


def cursor_and_orjson(ask: Callable[[], bytes]) -> Callable[[], object]:
    """The statements that ``ask`` makes, by cursor, and its answer by orjson."""
    import orjson

    statements, value = statements_of(ask), json.loads(ask())

    def control() -> object:
        statements()
        return orjson.dumps(value)

    return control


def statements_of(ask: Callable[[], object]) -> Callable[[], None]:
    """What repeats the statements of ``ask`` by bare cursors."""
    from django.db import connection

    said: list[tuple[str, Any]] = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        said.append((sql, params))
        return execute(sql, params, many, context)

    ask()
    with connection.execute_wrapper(note):
        ask()

    def again() -> None:
        for sql, params in said:
            with connection.cursor() as cursor:
                cursor.execute(sql, params)
                if cursor.description:
                    cursor.fetchall()

    return again


# -- pages

CONTROL = (
    "<table>{% for row in rows %}<tr><td>{{ row.0|truncatewords:8 }}</td><td>{{ row.1|truncatechars:40 }}</td>"
    "<td>{{ row.2|truncatewords:30 }}</td><td>{{ row.3|date:'Y-m-d H:i' }}</td><td>{{ row.4|truncatechars:20 }}</td>"
    "</tr>{% endfor %}</table>"
)


def pages(clock: place.Clock, owner: Any, collection: Any) -> None:
    from django.template import engines

    from apps.collections.models import Document
    from apps.repos.models import Repository

    answer, session = handler(), session_of(owner)
    control = engines["django"].from_string(CONTROL)
    print(f"pages of {ROWS} rows over a control template with truncate filters, the statements of the page in both")
    documents = list(
        Document.objects.filter(collection=collection).values_list(
            "title", "source_key", "text", "changed_at", "state"
        )[:ROWS]
    )
    repositories = list(Repository.objects.values_list("slug", "git_url", "description", "synced_at", "state")[:ROWS])
    for path, rows in ((f"/docs/{collection.pk}", documents), ("/repos", repositories)):

        def ask(path: str = path) -> bytes:
            return good(answer(request("GET", path, session=session)))

        statements = statements_of(ask)

        def drawn(rows: Any = rows, statements: Any = statements) -> object:
            statements()
            return control.render({"rows": rows})

        found = compare(clock, {"page": ask, "control": drawn})
        tell(path[:40], found, "page", "control", "0.5 of the control")


# -- requests that show nothing


def bare_urls() -> ModuleType:
    from django.http import HttpResponse
    from django.urls import path

    module = ModuleType("tests_bench_bare_urls")
    module.urlpatterns = [  # type: ignore[attr-defined]
        path("bare", lambda seen: HttpResponse(seen.user.get_username()))
    ]
    return module


def signed_in(clock: place.Clock, owner: Any) -> None:
    from django.conf import settings
    from django.db import connection
    from django.test.utils import CaptureQueriesContext, override_settings

    urls = bare_urls()
    plain = [
        "django.middleware.security.SecurityMiddleware",
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.common.CommonMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.messages.middleware.MessageMiddleware",
        "django.middleware.clickjacking.XFrameOptionsMiddleware",
    ]
    cached = "tests.bench.cached_sessions"
    runs: Measured = {}
    for name, middleware, engine in (
        ("ours", settings.MIDDLEWARE, settings.SESSION_ENGINE),
        ("control", plain, cached),
    ):
        with override_settings(MIDDLEWARE=middleware, SESSION_ENGINE=engine, ROOT_URLCONF=urls):
            answer, session = handler(), session_of(owner, engine)

            def ask(answer: Any = answer, session: str = session) -> bytes:
                with override_settings(ROOT_URLCONF=urls):
                    return good(answer(request("GET", "/bare", session=session)))

            runs[name] = ask
    runs["ours"]()
    with CaptureQueriesContext(connection) as seen:
        runs["ours"]()
    print("a signed-in request that shows nothing, over Django's middleware with cached_db sessions (at most 1.5)")
    tell("signed in", compare(clock, runs), "ours", "control", f"1.5; {len(seen)} of at most 1 statements")


def neighbours(clock: place.Clock, owner: Any, collection: Any) -> None:
    """The portal's addresses with and without those of the MCP server."""
    from django.test.utils import override_settings
    from django.urls import URLResolver

    from cograph_site import urls

    without = ModuleType("tests_bench_urls_without_mcp")
    without.urlpatterns = [  # type: ignore[attr-defined]
        one
        for one in urls.urlpatterns
        if not (isinstance(one, URLResolver) and getattr(one.urlconf_name, "__name__", "") == "apps.mcp.urls")
    ]
    assert len(without.urlpatterns) == len(urls.urlpatterns) - 1
    answer, session = handler(), session_of(owner)

    def asked(module: ModuleType) -> Callable[[], object]:
        def ask() -> bytes:
            with override_settings(ROOT_URLCONF=module):
                return good(answer(request("GET", f"/docs/{collection.pk}", session=session)))

        return ask

    print("a page with the MCP server beside it, over the same page without (about 1)")
    tell("page", compare(clock, {"with": asked(urls), "without": asked(without)}), "with", "without", "1")


if __name__ == "__main__":
    main()
