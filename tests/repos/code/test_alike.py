"""Names that resemble one another: packed letter triples against counting by hand, and against pg_trgm."""

from __future__ import annotations

import random
from typing import Any

import pytest
from django.db import connection

from apps.indexing.statements import Fragment
from apps.repos.code import alike
from apps.repos.code.searching import search
from apps.repos.models import Repository
from apps.repos.models_code import CodeNode, CodeState, CodeTriple
from apps.symbols.names import trigrams

WORDS = [
    "create",
    "server",
    "read",
    "token",
    "parse",
    "render",
    "merge",
    "graph",
    "chunk",
    "http2",
    "url",
    "ID",
    "über",
]


def made(count: int, seed: int) -> list[str]:
    rnd = random.Random(seed)
    found = {
        "_".join(rnd.choices(WORDS, k=3)) if rnd.random() < 0.5 else "".join(map(str.title, rnd.choices(WORDS, k=2)))
        for _ in range(count)
    }
    return sorted(found)


def module(names: list[str]) -> str:
    return "".join(f"def {name}():\n    pass\n\n" for name in names)


@pytest.fixture
def repository(portal: Any, upstream: Any) -> Repository:
    upstream.commit({f"pkg/m{number}.py": module(made(40, number)) for number in range(5)})
    found: Repository = portal.synced(upstream)[0]
    return found


def by_hand(repository: Repository, asked: str) -> dict[str, float]:
    wanted = trigrams(asked)
    found: dict[str, float] = {}
    for name in CodeNode.objects.filter(repository=repository).values_list("name", flat=True):
        own = trigrams(name)
        similarity = len(own & wanted) / len(own | wanted)
        if similarity >= alike.LEAST:
            found[name] = similarity
    return found


def found_for(repository: Repository, asked: str, most: int = 10_000) -> dict[str, float]:
    close = alike.alike(Fragment("SELECT %s::uuid", (repository.pk,)), asked, most)
    names = dict(CodeNode.objects.filter(repository=repository).values_list("number", "name"))
    return {names[one.number]: one.similarity for one in close if one.number in names}


@pytest.mark.parametrize("asked", ["craete_server_tokn", "parseGrap", "uber_url_id", "http2", "zzzzz", "ab"])
def test_retrieval_5_2_similarity_is_that_of_letter_triples(repository: Repository, asked: str) -> None:
    assert found_for(repository, asked) == pytest.approx(by_hand(repository, asked))


def test_the_best_with_all_that_are_as_good(repository: Repository) -> None:
    every = sorted(by_hand(repository, "create_server_token").values(), reverse=True)
    assert len(every) > 10
    best = found_for(repository, "create_server_token", 10)
    assert sorted(best.values(), reverse=True) == pytest.approx([one for one in every if one >= every[9] - 1e-9])


def test_retrieval_5_3_as_pg_trgm_would_find_them(portal: Any, repository: Repository) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_extension WHERE extname = 'pg_trgm'")
        if not cursor.fetchone()[0]:
            pytest.skip("this server has no pg_trgm")
        for asked in ("creatServerTokn", "read_tokem_grph"):
            cursor.execute(
                "SELECT id FROM code_nodes WHERE repository_id = %s AND similarity(name, %s) >= 0.3",
                [repository.pk, asked],
            )
            ours = {
                one.node_id for one in search(viewer=portal.admin, query=asked, whole=True) if one.matched == "trigrams"
            }
            assert ours == {id_ for (id_,) in cursor.fetchall()} != set()


def test_changes_are_found_whatever_was_merged(portal: Any, upstream: Any, repository: Repository) -> None:
    def sizes() -> list[int]:
        return list(CodeState.objects.get(repository=repository).segments)

    before = CodeTriple.objects.filter(repository=repository).count()
    upstream.commit({"pkg/new.py": module(["first_of_many"])})
    portal.sync(repository)
    rows = CodeTriple.objects.filter(repository=repository).count()
    assert 0 < rows - before <= len(trigrams("first_of_many")) + len(trigrams("new")), "work for that file only"
    for number in range(alike.TIER):
        upstream.commit({"pkg/new.py": module([f"renamed_{number}_times"])})
        portal.sync(repository)
    assert len(sizes()) <= alike.TIER, "small segments were merged"
    assert found_for(repository, "renamd_times") == pytest.approx(by_hand(repository, "renamd_times"))
    assert "first_of_many" not in found_for(repository, "first_of_mani")


def test_symbols_are_numbered_anew_when_most_have_gone(portal: Any, upstream: Any, repository: Repository) -> None:
    CodeState.objects.filter(repository=repository).update(next_number=10_000)
    upstream.commit({"pkg/new.py": module(["one_more_name"])})
    portal.sync(repository)
    state = CodeState.objects.get(repository=repository)
    assert state.next_number == CodeNode.objects.filter(repository=repository).count()
    assert found_for(repository, "one_more_nam") == pytest.approx(by_hand(repository, "one_more_nam"))
    assert found_for(repository, "craete_server") == pytest.approx(by_hand(repository, "craete_server"))


def test_filters_narrow_before_the_cut(portal: Any, repository: Repository) -> None:
    asked = "craete_server_tokn"
    paths = {one.path for one in search(viewer=portal.admin, query=asked)}
    assert len(paths) > 2
    for path in sorted(paths):
        (best,) = search(viewer=portal.admin, query=asked, path=path, limit=1)
        every = [one for one in search(viewer=portal.admin, query=asked) if one.path == path]
        assert best == every[0]


@pytest.mark.parametrize(
    ("sizes", "first"),
    [
        ([], None),
        ([1] * 7, None),
        ([1] * 8, 0),
        ([5000, *[1] * 8], 1),
        ([5000] * 8, 0),
        ([3, 5000, *[1] * 7], None),
        ([60, *[1] * 7], None),
        ([60] * 8, 0),
        ([60] * 8 + [3], 0),
    ],
)
def test_merging_is_logarithmic(sizes: list[int], first: int | None) -> None:
    assert alike._first_to_merge(sizes) == first
