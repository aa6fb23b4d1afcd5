"""Personas and sources for the pages; and templates that fail loudly on a variable that is not there."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from django.template import engines

from apps.jobs.models import Job
from apps.repos.models import Repository, RepositoryDocument
from tests.portal.worlds import World, build, make_document, make_job, make_repository


class Loud(str):
    """Takes the place of Django's silent empty string."""

    def __contains__(self, key: object) -> bool:
        return True

    def __mod__(self, variable: object) -> str:
        raise AssertionError(f"a template asks for {variable}, which is not there")


@pytest.fixture
def loud_templates() -> Iterator[None]:
    engine = engines["django"].engine  # type: ignore[attr-defined]
    before = engine.string_if_invalid
    engine.string_if_invalid = Loud("invalid")
    yield
    engine.string_if_invalid = before


@pytest.fixture
def world(db: None) -> World:
    return build()


@pytest.fixture
def documents() -> Callable[..., RepositoryDocument]:
    return make_document


@pytest.fixture
def jobs() -> Callable[..., Job]:
    return make_job


@pytest.fixture
def repositories() -> Callable[..., Repository]:
    return make_repository
