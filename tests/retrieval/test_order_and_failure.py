"""Orders, marks, counts, broken streams and files: `retrieval.md` facts 43, 45, 62, 66, 77, 81, 104, 122."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from django.db import DatabaseError
from django.test import Client

from apps.access.models import User
from apps.access.visibility import set_visibility
from apps.collections.curation import create_collection
from apps.collections.models import Collection
from apps.indexing import dense
from apps.repos.models import Repository
from apps.retrieval.values import Answer
from tests.retrieval.conftest import keys
from tests.retrieval.library import repository_of

pytestmark = pytest.mark.django_db
Ask = Callable[..., Answer]
Fill = Callable[..., None]


@pytest.mark.parametrize("long", ["heron " * 10, "\n".join(f"The heron, seen again on line {n}." for n in range(30))])
def test_retrieval_fact_43_two_words_before_one_said_often(fill: Fill, asking: Ask, long: str) -> None:
    fill(
        {"often.md": f"# One\n\n{long}", "both.md": "# Two\n\nheron marsh", "third.md": "# Three\n\nmarsh"}, embed=False
    )
    assert keys(asking("heron marsh"))[0] == "both.md"


def test_many_rows_with_the_one_common_word_stay_below_the_row_with_the_rare_ones(fill: Fill, asking: Ask) -> None:
    filler = "Words that say little of anything at all. " * 30
    sections = "".join(f"## Part {n}\n\nThe heron, heron and heron of part {n}. {filler}\n\n" for n in range(12))
    rare = f"# Two\n\n{filler}\n\nOnce a quagga met an okapi. {filler}"
    fill({"many.md": f"# One\n\n{sections}", "rare.md": rare}, embed=False)
    assert keys(asking("heron quagga okapi"))[0] == "rare.md"


def test_a_version_that_one_document_holds_is_first_whatever_is_near(fill: Fill, asking: Ask) -> None:
    near = {f"n{n}.md": f"# Beta 1 of 2 and 4\n\nbeta 1, beta 2, beta 4, v1 {n}" for n in range(6)}
    fill({**near, "held.md": f"# Release\n\nBefore was v1.2.4-beta.1. {'Words of other things. ' * 80}"})
    for query in ("v1.2.4-beta.1", " v1.2.4-beta.1 "):
        assert keys(asking(query))[0] == "held.md"


@pytest.mark.parametrize(("query", "written"), [("v4.2.1", "4.2.1"), ("4.2.1", "v4.2.1"), ("V4.2.1", "4.2.1")])
def test_a_version_is_found_with_and_without_its_letter(fill: Fill, asking: Ask, query: str, written: str) -> None:
    near = {f"n{n}.md": f"# Beta 1 of 2 and 4\n\nbeta 1, beta 2, beta 4, v {n}" for n in range(6)}
    held = f"# Fixes\n\nSince {written} no leak is left. {'Words of other things. ' * 80}"
    fill({**near, "other.md": "# Fixes\n\nIn 1.2.4 and v2.4.1 too.", "held.md": held})
    answer = asking(query)
    first = answer.hits[0]
    assert first.path == "held.md"
    assert written in [piece for piece, marked in first.snippet.parts() if marked]
    assert not answer.absent_words


def test_an_option_leads_to_where_it_is_told_of_not_to_the_guide_of_that_word(fill: Fill, asking: Ask) -> None:
    guide = "".join(f"## Part {n}\n\nA database, databases and the database {n}.\n\n" for n in range(5))
    filler = "Words about other things. " * 80
    fill({"databases.md": f"# Databases\n\n{guide}", "cli.md": f"# Commands\n\n{filler} Give `--database` a name."})
    assert keys(asking("--database"))[0] == "cli.md"
    assert keys(asking("database"))[0] == "databases.md"


def test_a_method_leads_to_its_section_on_the_page_of_its_class(fill: Fill, asking: Ask) -> None:
    filler = "Words about other things. " * 80
    method = f"## `update_or_create()`\n\nFinds a row, changes it, or makes it. It takes defaults. {filler}\n\n"
    others = "".join(f"## `method_{n}()`\n\nReturns rows {n}. {filler}\n\n" for n in range(5))
    notes = {f"r{n}.md": f"# Fixes {n}\n\n- `QuerySet.update_or_create()` fails no more." for n in range(6)}
    fill({"querysets.md": f"# `QuerySet` reference\n\n{others}{method}", **notes})
    first = asking("QuerySet.update_or_create").hits[0]
    assert (first.path, first.heading_path[-1]) == ("querysets.md", "update_or_create()")


def test_the_one_document_with_the_word_is_first_whatever_is_near(fill: Fill, asking: Ask) -> None:
    near = "# Of\n\nof the\n\n" + "".join(f"## Of {n}\n\nof the of the of the {'the ' * 300}\n\n" for n in range(4))
    fill({"near.md": near})
    held = f"# Animals\n\nA quagga and an okapi. {'Words about other things. ' * 80}"
    fill({"held.md": held}, embed=False)  # so new that meaning does not know it yet
    for query in ("of the quagga", "the quagga of the okapi"):
        answer = asking(query)
        assert keys(answer)[0] == "held.md"
        assert "near.md" in keys(answer)


def test_retrieval_fact_45_the_nearest_heading_is_the_section(fill: Fill, asking: Ask) -> None:
    filler = "Words of the middle that say little. " * 60
    text = f"# Birds\n\n{filler}\n\n## Waders\n\n{filler}\n\n### Herons\n\nThe bittern booms.\n\n{filler}\n"
    fill({"birds.md": text}, embed=False)
    (hit, *_) = asking("bittern booms").hits
    assert (hit.heading_path, hit.anchor) == (("Birds", "Waders", "Herons"), "herons")


def test_retrieval_fact_62_equal_scores_stand_in_one_order(fill: Fill, asking: Ask, olga: User) -> None:
    other = create_collection(by=olga, name="Another")
    fill({f"{name}.md": "a heron" for name in ("d", "b")}, embed=False)
    fill({f"{name}.md": "a heron" for name in ("c", "a")}, collection=other, embed=False)
    orders = {tuple((hit.source.label, hit.path) for hit in asking("heron").hits) for _ in range(3)}
    assert orders == {(("Another", "a.md"), ("Another", "c.md"), ("Shelf", "b.md"), ("Shelf", "d.md"))}
    first = asking("heron", limit=3)
    assert [hit.path for hit in first.hits] == ["a.md", "c.md", "b.md"]


def test_retrieval_fact_66_a_failing_stream_leaves_the_others(
    fill: Fill, asking: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill({"a.md": "# Heron\n\na heron", "b.md": "# Other\n\nnothing"})

    def broken(*_: Any, **__: Any) -> Any:
        raise DatabaseError

    with monkeypatch.context() as patch:
        patch.setattr(dense, "rank", broken)
        patch.setattr(dense, "search", broken)
        answer = asking("heron")
    assert keys(answer)[0] == "a.md"
    assert "dense" in [one.stream for one in answer.degraded]
    assert asking("heron").degraded == ()


def test_retrieval_fact_77_hidden_matches_are_not_counted(
    fill: Fill, asking: Ask, shelf: Collection, olga: User, otto: User
) -> None:
    set_visibility(source=shelf, visibility="public", by=olga)
    hidden = create_collection(by=olga, name="Hidden")
    fill({f"v{n}.md": f"a heron {n}" for n in range(10)}, embed=False)
    fill({f"h{n}.md": f"a heron {n}" for n in range(20)}, collection=hidden, embed=False)
    answer = asking("heron", viewer=otto, limit=10)
    assert (len(answer.hits), answer.total, answer.next_cursor) == (10, 10, None)
    for facet in answer.facets:
        if facet.name in ("source", "kind"):
            assert sum(value.count for value in facet.values) == 10
    assert asking("heron", limit=10).total == 30


@pytest.mark.parametrize(
    ("text", "query", "marked"),
    [
        ("How is the auth flow done?", "how is the auth flow", ["auth", "flow"]),
        ("Call `service.handler` once.", "service.handler", ["service.handler"]),
        ("The handler of the service.", "service.handler", ["handler", "service"]),
    ],
)
def test_retrieval_fact_81_marks(fill: Fill, asking: Ask, text: str, query: str, marked: Sequence[str]) -> None:
    fill({"a.md": text}, embed=False)
    (hit,) = asking(query).hits
    assert [part for part, is_marked in hit.snippet.parts() if is_marked] == marked


def test_retrieval_fact_104_one_broken_header_hides_nothing(fill: Fill, asking: Ask) -> None:
    fill({f"{n}.md": f"---\ntitle: Page {n}\n---\n# Page {n}\n\nheron {n}\n" for n in range(19)}, embed=False)
    fill({"bad.md": '---\ntitle: "open\n---\n# Bad\n\nheron and bittern\n'}, embed=False)
    assert asking("heron", limit=25).total == 20
    assert keys(asking("bittern")) == ["bad.md"]


def test_retrieval_fact_122_every_location_can_be_opened(
    fill: Fill, asking: Ask, shelf: Collection, olga: User, otto: User, tmp_path: Path
) -> None:
    admin = User.objects.create_superuser("ada")
    repository_of(tmp_path / "acme" / "kit", {"README.md": "# Kit\n\n## Herons\n\na heron\n", "h.py": HERON}, admin)
    Repository.objects.update(visibility="public")
    set_visibility(source=shelf, visibility="public", by=olga)
    fill({"a.md": "# Birds\n\n## Herons\n\na heron"})
    hits = asking("heron", viewer=otto, limit=25).hits
    assert {hit.path for hit in hits} == {"a.md", "README.md", "h.py"}
    client = Client()
    client.force_login(otto)
    for hit in hits:
        page = client.get(hit.url)
        assert page.status_code == 200, hit.url
        _, hash_, anchor = hit.url.partition("#")
        assert not hash_ or f'id="{anchor}"' in page.content.decode(), hit.url
        passage = client.get(hit.chunk_url)
        assert passage.status_code == 200 and "a heron" in passage.content.decode()
        told = client.get(f"/api/chunks/{hit.chunk_id}").json()
        assert told["document"]["path"] == hit.path
        assert client.get(told["url"]).status_code == 200


HERON = "def heron():\n    return 'a heron'\n"
