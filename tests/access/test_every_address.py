"""Every page and endpoint as every persona: nothing fails, and what is hidden answers as what is absent (fact 12)."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import URLPattern, URLResolver, get_resolver

from tests.access.conftest import World

VARYING = re.compile(rb'(name="csrfmiddlewaretoken" value|"X-CSRFToken": |hx-headers)[^>]*')
HOLE = re.compile(r"<(?:(?P<converter>[^>:]+):)?(?P<name>[^>]+)>")


@dataclass(frozen=True, slots=True)
class Address:
    """A route with its holes, and what is put into them for a hidden and for an absent object."""

    route: str
    hidden: str
    absent: str


def routes(patterns: Any, prefix: str = "/") -> Iterator[str]:
    for pattern in patterns:
        here = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            if not here.startswith("/admin"):
                yield from routes(pattern.url_patterns, here)
        elif isinstance(pattern, URLPattern):
            yield here


@pytest.fixture
def addresses(world: World) -> list[Address]:
    from apps.jobs.models import Job

    repository, collection = world["Rv"], world["Cv"]
    job = Job.objects.create(kind="sync", source_kind="repository", source_id=repository.pk)
    of_collection = Job.objects.create(kind="upload", source_kind="collection", source_id=collection.pk)

    def fill(route: str, hidden: bool) -> str:
        def value(hole: re.Match[str]) -> str:
            converter, name = hole["converter"] or "str", hole["name"]
            if converter == "repository" or (name == "slug" and "repos" in route):
                return repository.label if hidden else "example.org/team/nothing"
            if name in ("host", "owner", "name") and "repos" in route:
                parts = (repository.label if hidden else "example.org/team/nothing").split("/")
                return parts[("host", "owner", "name").index(name)]
            if "job" in name:
                wanted = of_collection if "collection" in route else job
                return str(wanted.pk if hidden else uuid.UUID(int=7))
            if converter == "uuid" or "id" in name:
                first = HOLE.search(route)
                is_source = first is not None and first["name"] == name and "collection" in route
                return str(collection.pk if hidden and is_source else uuid.UUID(int=9))
            return {"int": "1", "kind": "repository"}.get(converter, "x")

        return HOLE.sub(value, route)

    found = [
        Address(route, fill(route, True), fill(route, False))
        for route in routes(get_resolver().url_patterns)
        if "(?" not in route and "^" not in route
    ]
    assert len(found) > 10
    return found


def test_no_address_fails_for_any_persona(world: World, addresses: list[Address], signed_in: Any) -> None:
    clients = {
        "anonymous": Client(),
        "otto": signed_in(world.otto),
        "dana": signed_in(world.dana),
        "stan": signed_in(world.stan),
        "ada": signed_in(world.ada),
    }
    for name, client in clients.items():
        for address in addresses:
            status = client.get(address.hidden).status_code
            assert status < 500 or address.route == "/readyz", (name, address.route, status)


def test_access_fact_12_hidden_answers_as_absent_on_every_address(
    world: World, addresses: list[Address], signed_in: Any
) -> None:
    for persona in (world.otto, world.stan):
        client = signed_in(persona)
        client.get("/about")
        for address in addresses:
            if address.hidden == address.absent:
                continue
            answers = []
            for path in (address.hidden, address.absent):
                with CaptureQueriesContext(connection) as queries:
                    answer = client.get(path)
                body = VARYING.sub(b"", answer.content)
                answers.append((answer.status_code, body, len(queries)))
            assert answers[0] == answers[1], (persona.username, address.route)
            assert answers[0][0] in (404, 405), (persona.username, address.route)


def test_access_rule_16_only_the_open_list_answers_the_anonymous(world: World, addresses: list[Address]) -> None:
    from apps.access.middleware import OPEN_PATHS, OPEN_PREFIXES

    client = Client()
    for address in addresses:
        path = address.hidden
        if path in OPEN_PATHS or path.startswith(OPEN_PREFIXES):
            continue
        answer = client.get(path)
        if path.startswith(("/api/", "/mcp")):
            assert answer.status_code in (401, 405), path
        else:
            assert answer.status_code == 302, path
            assert answer["Location"].startswith("/login?next="), path


def test_api_fact_08_writing_to_what_is_hidden_answers_as_to_what_is_absent(
    world: World, addresses: list[Address], signed_in: Any
) -> None:
    client = signed_in(world.otto)
    for address in addresses:
        if address.hidden == address.absent:
            continue
        for method in ("post", "put", "patch", "delete"):
            answers = []
            for path in (address.hidden, address.absent):
                answer = getattr(client, method)(path, "{}", content_type="application/json")
                answers.append((answer.status_code, VARYING.sub(b"", answer.content)))
            assert answers[0] == answers[1], (method, address.route)
            assert answers[0][0] in (404, 405), (method, address.route)


def test_api_fact_09_no_endpoint_fails_on_empty_huge_and_nul_input(
    world: World, addresses: list[Address], signed_in: Any
) -> None:
    from apps.access.rest import throttles

    client = signed_in(world.ada)
    bodies = [
        "",
        "{}",
        "[]",
        '{"name": "a\\u0000b", "query": "\\u0000"}',
        '{"name": "' + "x" * 200_000 + '"}',
        "{" * 9000,
    ]
    for address in addresses:
        if not address.route.startswith("/api/"):
            continue
        throttles.reset()
        for method in ("post", "put", "patch", "delete"):
            for body in bodies:
                status = getattr(client, method)(address.hidden, body, content_type="application/json").status_code
                assert status < 500, (method, address.route, body[:40])
        for query in ("?x=%00", "?limit=" + "9" * 3000, "?cursor=%00%FF", "?q=" + "a" * 3000):
            assert client.get(address.hidden + query).status_code < 500, (address.route, query[:20])
