"""What the schema promises is what the endpoints do: schemathesis, bounded, as an administrator with a token."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.handlers.wsgi import WSGIHandler
from django.core.signals import request_finished, request_started
from django.db import close_old_connections, transaction
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode, openapi
from schemathesis.checks import CHECKS, load_all_checks

from apps.access.rest import throttles
from apps.access.tokens import create_token
from tests.api.conftest import World

HOLE = re.compile(r"\{(\w+)\}")
CHECKED = ("not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance")


@pytest.fixture
def one_connection() -> Iterator[None]:
    """Requests stay inside the transaction of the test, as they do with Django's own test client."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


def rounds(world: World) -> Iterator[tuple[Any, dict[str, str] | None, GenerationMode, int]]:
    """Each operation with right and wrong input for what is there, and once for what is made up."""
    for result in openapi.from_wsgi("/api/schema", WSGIHandler()).get_all_operations():
        operation = result.ok()
        known = world.names(operation.path)
        names = {hole: known.get(hole, "x") for hole in HOLE.findall(operation.path)}
        yield operation, names or None, GenerationMode.POSITIVE, 2
        if operation.query or operation.body:
            yield operation, names or None, GenerationMode.NEGATIVE, 2
        if names:
            yield operation, None, GenerationMode.POSITIVE, 1


def test_api_fact_09_answers_are_what_the_schema_promises(world: World, one_connection: None) -> None:
    load_all_checks()
    checks = CHECKS.get_by_names(list(CHECKED))
    _, text = create_token(user=world.ada, name="conformance", scopes=["read", "write"])
    asked = 0

    def ask(case: Any) -> None:
        nonlocal asked
        asked += 1
        throttles.reset()
        with transaction.atomic():
            answer = case.call(headers={"Authorization": f"Bearer {text}"})
            transaction.set_rollback(True)
        case.validate_response(answer, checks=checks)

    for operation, names, mode, examples in rounds(world):
        bounded = settings(
            max_examples=examples,
            deadline=None,
            database=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        strategy = operation.as_strategy(generation_mode=mode, path_parameters=names)
        try:
            bounded(given(case=strategy)(ask))()
        except Unsatisfiable:
            continue  # no wrong input can be made for this one
    assert asked > 200
