"""Suggestions while typing: in scope only, gone with their documents (`access-and-jobs.md` 15, `api-and-mcp.md` 46)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apps.access.models import User
from apps.access.visibility import set_visibility
from apps.collections.curation import create_collection
from apps.collections.models import Collection, Document
from apps.collections.trash import trash_document
from tests.repos.conftest import Portal, Upstream

pytestmark = pytest.mark.django_db
Fill = Callable[..., None]


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def api(olga: User) -> Client:
    return signed_in(olga)


def texts(client: Client, q: str) -> list[str]:
    answer = client.get("/api/suggest", {"q": q})
    assert answer.status_code == 200, answer.content
    return [item["text"] for item in answer.json()["items"]]


def test_titles_and_headings_by_their_beginning(fill: Fill, api: Client) -> None:
    fill(
        {
            "a.md": "# Settings of the server\n\n" + "x " * 1000 + "\n\n## Setting limits\n\n" + "y " * 1900,
            "b.md": "# Backup\n\nsettings are in the text only",
            "c.md": "# The old settings\n\nz",
        },
        embed=False,
    )
    assert texts(api, "settin") == ["Settings of the server", "Setting limits", "The old settings"]
    assert texts(api, "SETTINGS of") == ["Settings of the server"]
    assert texts(api, "old sett") == ["The old settings"]
    assert texts(api, "zz") == []
    items = api.get("/api/suggest", {"q": "backu"}).json()["items"]
    document = Document.objects.get(source_key="b.md")
    assert items == [
        {
            "kind": "title",
            "text": "Backup",
            "detail": "b.md",
            "source": "Shelf",
            "url": document.get_absolute_url(),
        }
    ]


@pytest.mark.parametrize("q", ["部署", "部署手", "部署手順", "手順", "การ", "การติด", "ติดตั้ง", "한국어"])
def test_scripts_without_spaces(fill: Fill, api: Client, q: str) -> None:
    titles = ("第一部署手順", "การติดตั้ง", "한국어 안내")
    fill({f"{n}.md": f"# {title}\n\nx" for n, title in enumerate(titles)}, embed=False)
    assert texts(api, q) == [next(title for title in titles if q in title)]


def test_a_stop_word_as_long_as_the_others(fill: Fill, api: Client) -> None:
    fill({"a.md": "# The art of x\n\ny"}, embed=False)
    assert texts(api, "the art") == ["The art of x"]


def test_access_fact_15_only_in_scope(fill: Fill, api: Client, shelf: Collection, olga: User, otto: User) -> None:
    set_visibility(source=shelf, visibility="public", by=olga)
    fill({"a.md": "# Zebra public\n\nx"}, embed=False)
    hidden = create_collection(by=olga, name="Hidden")
    fill({"s.md": "# zz-secret plans\n\nx", "z.md": "# Zebra hidden\n\nx"}, collection=hidden, embed=False)
    assert texts(signed_in(otto), "zz") == []
    assert texts(signed_in(otto), "zeb") == ["Zebra public"]
    assert texts(api, "zeb") == ["Zebra hidden", "Zebra public"]
    assert texts(api, "zz-sec") == ["zz-secret plans"]


def test_api_fact_46_gone_with_the_document(fill: Fill, api: Client, olga: User) -> None:
    fill({"a.md": "# Quokka\n\nx"}, embed=False)
    assert texts(api, "quok") == ["Quokka"]
    trash_document(document=Document.objects.get(), by=olga)
    assert texts(api, "quok") == []


def test_bounds_and_queries(fill: Fill, api: Client) -> None:
    for short in ("", "x", " x "):
        answer = api.get("/api/suggest", {"q": short})
        assert (answer.status_code, answer.json()["code"]) == (400, "out_of_range")
    for odd in ("((", "%%", "a\0b", "__", "👍👍", "x" * 200):
        assert texts(api, odd) == []
    fill({"a.md": "# Alpha 1\n\nx"}, embed=False)

    def count() -> int:
        with CaptureQueriesContext(connection) as seen:
            assert texts(api, "alp")
        return len(seen)

    count()
    before = count()
    fill({f"{n}.md": f"# Alpha {n}\n\nx" for n in range(2, 30)}, embed=False)
    assert len(texts(api, "alp")) == 10
    assert count() == before


def test_symbols(olga: User, tmp_path: Path) -> None:
    ada = User.objects.create_superuser("ada")
    upstream = Upstream(tmp_path / "acme" / "tool")
    upstream.commit({"README.md": "# Tool", "tool.py": "def parse_options(line):\n    return line\n"})
    repository, _ = Portal(ada).synced(upstream, owner=olga, visibility="private")
    (item,) = signed_in(olga).get("/api/suggest", {"q": "parse_o"}).json()["items"]
    assert (item["kind"], item["text"], item["source"]) == ("symbol", "parse_options", repository.slug)
    assert texts(signed_in(User.objects.create_user("nobody")), "parse_o") == []
