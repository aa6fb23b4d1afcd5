"""Which sources are about a question: `retrieval.md` facts 85 to 92."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from apps.access.errors import Invalid
from apps.access.models import User
from apps.collections.curation import create_collection
from apps.collections.uploads import upload_document
from apps.jobs.worker import drain
from apps.retrieval.routing import Routes, route
from tests.retrieval.library import repository_of

pytestmark = pytest.mark.django_db
Add = Callable[..., None]


@pytest.fixture
def ada(db: None) -> User:
    return User.objects.create_superuser("ada", password="x")


@pytest.fixture
def add(ada: User, tmp_path: Path, settings: Any) -> Add:
    settings.COGRAPH = dataclasses.replace(
        settings.COGRAPH,
        data_dir=str(tmp_path / "var"),
        embedding=dataclasses.replace(settings.COGRAPH.embedding, backend="none"),
    )

    def make(name: str, readme: str, **files: str) -> None:
        repository_of(tmp_path / "x" / name, {"README.md": readme, **files}, ada)

    return make


def scores(routes: Routes) -> dict[str, float]:
    return {found.label.rsplit("/", 1)[-1]: round(found.score, 3) for found in routes.repositories}


def test_retrieval_facts_85_and_86_rare_words_decide(add: Add, ada: User) -> None:
    add("a", "# One\n\nzeppelin with gears and ropes and sails")
    add("b", "# Two\n\ngears and ropes and sails")
    add("c", "# Three\n\ngears and ropes and sails")
    add("d", "# Four\n\nsomething else entirely")
    expected = {"a": 1.0, "b": 0.422, "c": 0.422}
    assert scores(route(viewer=ada, query="zeppelin gears ropes sails", top_k=10)) == expected
    assert scores(route(viewer=ada, query="zeppelin gears ropes sails xyzzy", top_k=10)) == expected


def test_retrieval_fact_87_a_name_counts_more(add: Add, ada: User) -> None:
    add("billing", "# A\n\nnothing to see")
    add("b", "# B\n\nbilling and retry")
    add("c", "# C\n\nretry of things")
    add("d", "# D\n\nnothing at all")
    assert scores(route(viewer=ada, query="billing retry", top_k=10)) == {"b": 1.0, "billing": 0.625, "c": 0.5}


def test_retrieval_rule_11_4_only_what_holds_no_word_is_dropped(add: Add, ada: User) -> None:
    add("a", "# A\n\nbilling and zeppelin")
    add("b", "# B\n\nbilling")
    found = route(viewer=ada, query="billing zeppelin", top_k=10)
    assert scores(found) == {"a": 1.0, "b": 0.0}
    assert [words for _, words in found.repositories[1].why] == [("billing",)]


def test_retrieval_fact_88_one_repository_gets_the_plain_share(add: Add, ada: User) -> None:
    add("only", "# Only\n\nalpha and beta")
    assert scores(route(viewer=ada, query="alpha beta")) == {"only": 1.0}


def test_retrieval_fact_89_text_of_collections_counts(ada: User) -> None:
    made = create_collection(by=ada, name="Papers")
    upload_document(collection=made, by=ada, source_key="a.md", raw=b"# Notes\n\nthe quorum of the cluster")
    drain()
    (found,) = route(viewer=ada, query="quorum").collections
    assert found.score >= 0.5 and dict(found.why) == {"text": ("quorum",)}


def test_retrieval_fact_90_collections_fill_the_list(ada: User) -> None:
    for name in ("One", "Two", "Three", "Four"):
        create_collection(by=ada, name=name)
    routes = route(viewer=ada, query="quorum", top_k=3)
    assert [(found.score, found.weak) for found in routes.collections] == [(0, True)] * 3
    assert routes.repositories == ()


def test_retrieval_fact_91_hidden_sources_change_nothing(add: Add, ada: User) -> None:
    otto = User.objects.create_user("otto")
    mine = create_collection(by=otto, name="Mine")
    upload_document(collection=mine, by=otto, source_key="a.md", raw=b"quorum")
    before = route(viewer=otto, query="quorum gears")
    add("hidden", "# Gears\n\nquorum of gears")
    assert route(viewer=otto, query="quorum gears") == before
    assert route(viewer=ada, query="quorum gears").repositories[0].label.endswith("/hidden")


def test_retrieval_fact_92_bounds(ada: User) -> None:
    with pytest.raises(Invalid):
        route(viewer=ada, query="")
    with pytest.raises(Invalid, match=r"1 to 10"):
        route(viewer=ada, query="x", top_k=99)
    common = route(viewer=ada, query="what is the")
    assert (common.repositories, common.collections, common.only_common_words) == ((), (), True)


def test_retrieval_fact_93_few_statements_whatever_the_number_of_sources(
    ada: User, django_assert_max_num_queries: Any
) -> None:
    for n in range(12):
        create_collection(by=ada, name=f"Collection {n}")
    with django_assert_max_num_queries(3):
        route(viewer=ada, query="alpha beta")
