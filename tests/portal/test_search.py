"""The search page and the permalink of a passage, on text that is really indexed."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from apps.jobs.worker import run_job
from apps.repos.models import Repository, RepositoryDocument, RepositoryDocumentChunk
from apps.repos.registration import request_sync
from tests.portal.worlds import commit

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loud_templates")]
HTMX = {"HX-Request": "true"}


def test_search_page_finds_marks_and_explains(world: Any, synced: Callable[..., Repository]) -> None:
    synced()
    client = world.client("otto")
    body = client.get("/search?q=install+steps").content.decode()
    assert re.search(r"\d+ results?", body)
    assert "<mark>install</mark>" in body
    assert 'href="/repos/local/acme/handbook/docs/set-up#first-steps"' in body
    assert "Why this result" in body
    assert "Matched <strong>install</strong> in text" in body


def test_portal_fact_3_search_fragment(world: Any, synced: Callable[..., Repository]) -> None:
    synced()
    client = world.client("otto")
    fragment = client.get("/search?q=install&tag=&path=", headers=HTMX)
    assert b"<html" not in fragment.content
    assert fragment["HX-Replace-Url"] == "/search?q=install"
    assert 'hx-swap-oob="innerHTML"' in fragment.content.decode()
    assert b"<html" in client.get("/search?q=install").content
    short = client.get("/search?q=i", headers=HTMX).content.decode()
    assert "result" not in short.partition("cg-said")[2].partition("</p>")[0]


@pytest.mark.parametrize(
    "query", ["what's up?", "((", "<b>", "a%00b", "x" * 2000, "y" * 2001, "' OR 1=1 --", "%", "\\"]
)
def test_portal_fact_5_any_query_is_answered_and_echoed_as_text(
    world: Any, synced: Callable[..., Repository], query: str
) -> None:
    synced()
    answer = (
        world.client("otto").get("/search", {"q": query})
        if "%00" not in query
        else world.client("otto").get(f"/search?q={query}")
    )
    assert answer.status_code == 200
    assert "<b>" not in answer.content.decode()
    if len(query) > 2000:
        assert "at most 2,000 characters" in answer.content.decode()


def test_portal_fact_6_equal_documents_in_a_stable_order(
    world: Any, synced: Callable[..., Repository], monkeypatch: Any
) -> None:
    from apps.retrieval import asking

    synced(files={f"docs/same{number}.md": f"# Zebra\n\nzebra {number}\n" for number in range(6)})
    monkeypatch.setattr(asking, "PAGE_ROWS", 2)
    client = world.client("otto")

    def pages() -> list[str]:
        seen: list[str] = []
        address: str | None = "/search?q=zebra"
        while address:
            body = client.get(address).content.decode()
            seen += re.findall(r'<h3><a href="([^"]+)"', body)
            more = re.search(r'rel="next" href="([^"]+)"', body)
            address = "/search" + more[1].replace("&amp;", "&") if more else None
        return seen

    first = pages()
    assert len(first) == len(set(first)) == 6
    for _ in range(4):
        assert pages() == first


def test_portal_fact_7_cjk_is_found_and_marked(world: Any, synced: Callable[..., Repository]) -> None:
    synced()
    assert "<mark>备份</mark>" in world.client("otto").get("/search", {"q": "备份"}).content.decode()


def test_portal_fact_8_counts_are_those_of_the_reader(world: Any, synced: Callable[..., Repository]) -> None:
    many = {f"docs/w{number}.md": f"# W{number}\n\nwombat number {number}\n" for number in range(4)}
    synced("open", files=many)
    synced("closed", visibility="private", files=many)
    client = world.client("otto")
    body = client.get("/search?q=wombat").content.decode()
    assert "4 results" in body
    assert "closed" not in body
    counts = [int(count) for count in re.findall(r'<span class="count">(\d+)</span>', body)]
    assert counts
    assert set(counts) == {4}
    assert "8 results" in world.client("ada").get("/search?q=wombat").content.decode()


def test_portal_rule_15_facets_are_links_and_chips_remove_them(world: Any, synced: Callable[..., Repository]) -> None:
    repository = synced()
    client = world.client("otto")
    body = client.get("/search?q=glossary&kind=doc&path=docs/").content.decode()
    assert "kind: Documents" in body
    assert 'href="?q=glossary&amp;path=docs%2F"' in body
    assert "Drop all filters" in body
    assert 'name="kind" value="doc"' in body
    named = client.get(f"/search?q=glossary&source=repository:{repository.pk}").content.decode()
    assert f"source: {repository.slug}" in named
    missing = []
    for pk in (str(world.private.pk), "00000000-0000-4000-8000-000000000000"):
        answer = client.get(f"/search?q=glossary&source=repository:{pk}").content.decode().replace(pk, "X")
        missing.append(re.sub(r'"csrfmiddlewaretoken" value="\w+"', "", answer))
    assert "no such source" in missing[0]
    assert missing[0] == missing[1]
    assert "is a day such as" in client.get("/search?q=glossary&since=soon").content.decode()


def test_portal_rule_19_nothing_found_says_why(world: Any, synced: Callable[..., Repository]) -> None:
    synced()
    client = world.client("otto")
    assert "None of your words occurs" in client.get("/search?q=xylophone").content.decode()
    narrow = client.get("/search?q=glossary&path=nowhere/").content.decode()
    assert "Search without filters" in narrow
    assert "Only common words" in client.get("/search?q=the+is+of").content.decode()


def test_search_of_an_empty_install_says_so(db: None) -> None:
    from django.test import Client

    from apps.access.models import User

    client = Client()
    client.force_login(User.objects.create_user("solo"))
    assert client.get("/search?q=anything").status_code == 200
    assert "Nothing to read yet" in client.get("/").content.decode()


def test_portal_rule_24_chunk_page(world: Any, synced: Callable[..., Repository]) -> None:
    repository = synced()
    chunks = list(RepositoryDocumentChunk.objects.filter(document__path="docs/set up.md").order_by("chunk_index"))
    client = world.client("otto")
    body = client.get(f"/chunks/{chunks[1].pk}").content.decode()
    assert f'href="/chunks/{chunks[0].pk}"' in body
    assert f'href="/chunks/{chunks[2].pk}"' in body
    assert f"passage 2 of {len(chunks)}" in body
    marked = [int(number) for number in re.findall(r'<tr class="marked" id="L(\d+)"', body)]
    assert marked == list(range(chunks[1].start_line, chunks[1].end_line + 1))
    assert f"{repository.get_absolute_url()}/docs/set-up#{chunks[1].section_anchor}" in body.replace("%", "%")


def test_portal_fact_20_hidden_and_made_up_passages_are_alike(world: Any, synced: Callable[..., Repository]) -> None:
    hidden = synced("closed", visibility="private")
    chunk = RepositoryDocumentChunk.objects.filter(repository=hidden)[0]
    client = world.client("otto")
    answers = [client.get(f"/chunks/{number}") for number in (chunk.pk, 12345, 0, 2**63, 2**200)]
    assert {answer.status_code for answer in answers} == {404}
    assert len({answer.content for answer in answers}) == 1
    assert world.client("ada").get(f"/chunks/{chunk.pk}").status_code == 200


def test_portal_fact_16_line_ends_and_byte_order_mark_change_nothing(
    world: Any, synced: Callable[..., Repository]
) -> None:
    text = "# Same\n\n## One\n\nA.\n\n## Two\n\nB.\n"
    repository = synced(
        files={"p.md": text, "crlf.md": text.replace("\n", "\r\n").encode(), "bom.md": b"\xef\xbb\xbf" + text.encode()}
    )
    client = world.client("otto")
    pages = [
        client.get(f"{repository.get_absolute_url()}/docs/{name}").content.decode() for name in ("p", "crlf", "bom")
    ]
    assert (
        len(
            {
                re.sub(r"\s+", " ", page.partition('id="cg-prose">')[2].partition("</article>")[0].partition("<nav")[0])
                for page in pages
            }
        )
        == 1
    )
    assert len({tuple(re.findall(r'href="#([^"]+)"', page.partition('class="toc"')[2])) for page in pages}) == 1


def test_portal_fact_17_unclosed_fence_is_code_and_said(world: Any, synced: Callable[..., Repository]) -> None:
    repository = synced(files={"fence.md": "# Fence\n```python\nprint(1)\n\n# not a heading\n"})
    body = world.client("otto").get(f"{repository.get_absolute_url()}/docs/fence").content.decode()
    assert body.count("<h1") == 1
    assert "# not a heading" in re.sub(r"<[^>]+>", "", body)
    assert "line 2" in body.lower()


def test_portal_fact_12_links_and_pictures_lead_somewhere(world: Any, synced: Callable[..., Repository]) -> None:
    repository = synced()
    client = world.client("otto")
    start = repository.get_absolute_url()
    for slug in ("readme", "docs-set-up", "set-up"):
        page = client.get(f"{start}/docs/{slug}")
        if page.status_code != 200:
            continue
        body = page.content.decode().partition('id="cg-prose"')[2]
        for address in re.findall(r'(?:href|src)="(/[^"#]*)', body):
            assert client.get(address).status_code == 200, address


def test_portal_fact_13_permalinks_outlive_a_move(
    world: Any, synced: Callable[..., Repository], tmp_path: Path
) -> None:
    repository = synced(files={"a/x.md": "# Moved page\n\nquagga text\n"})
    chunk = RepositoryDocumentChunk.objects.get(document__path="a/x.md")
    commit(tmp_path / "acme/handbook", {"b/x.md": "# Moved page\n\nquagga text\n", "a/x.md": None})
    run_job(request_sync(repository=repository, by=world.people["ada"]).job.pk)
    client = world.client("otto")
    old = client.get(f"{repository.get_absolute_url()}/docs/a-x")
    assert old.status_code == 301
    assert client.get(old["Location"]).status_code == 200
    assert client.get(f"/chunks/{chunk.pk}").status_code == 200
    commit(tmp_path / "acme/handbook", {"b/x.md": None})
    run_job(request_sync(repository=repository, by=world.people["ada"]).job.pk)
    gone = client.get(old["Location"])
    assert gone.status_code == 410
    assert "b/x.md" in gone.content.decode()
    assert not RepositoryDocument.objects.filter(path="b/x.md").exists()

    def why_not(document: str) -> str:
        return client.get("/search/why-not", {"q": "quagga", "document": document}, headers=HTMX).content.decode()

    for name in ("b/x.md", old["Location"], f"{repository.get_absolute_url()}/files/b/x.md"):
        assert "b/x.md was removed from local/acme/handbook by commit" in why_not(name)
    Repository.objects.filter(pk=repository.pk).update(visibility="private")
    assert why_not("b/x.md") == why_not("b/never.md")


def test_portal_fact_41_search_budgets(world: Any, synced: Callable[..., Repository]) -> None:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    def count(path: str, **headers: str) -> int:
        client = world.client("otto")
        client.get(path, headers=headers)
        with CaptureQueriesContext(connection) as seen:
            assert client.get(path, headers=headers).status_code == 200
        return len(
            [one for one in seen.captured_queries if not one["sql"].startswith(("SAVEPOINT", "RELEASE", "SET "))]
        )

    synced("few", files={f"n/{number}.md": f"# N\n\nnumbat {number}\n" for number in range(3)})
    chunk = RepositoryDocumentChunk.objects.filter(document__path="n/1.md").get()
    paths = ["/search?q=numbat", f"/chunks/{chunk.pk}"]
    few = [count(path) for path in paths]
    fragment = count(paths[0], **HTMX)
    assert few[0] <= 14
    assert few[1] <= 8
    assert fragment <= 12  # two of them look for symbols, since the repository holds code
    synced("many", files={f"n/{number}.md": f"# N\n\nnumbat {number}\n" for number in range(30)})
    assert [count(path) for path in paths] == few
    body = world.client("otto").get(paths[0]).content
    assert body.count(b"data-item") > 10


def test_portal_rule_18_a_name_of_two_documents(world: Any, synced: Callable[..., Repository]) -> None:
    north, south = (
        synced(name, files={"docs/zebra.md": f"# Zebra\n\n{text}\n"}).pk
        for name, text in (("north", "stripes"), ("south", "dots"))
    )
    client = world.client("otto")

    def why(**asked: str) -> str:
        page: str = client.get(
            "/search/why-not", {"q": "stripes", "document": "docs/zebra.md", **asked}
        ).content.decode()
        return page

    assert "Several documents have this name" in why()
    assert "at place <strong>1" in why(source=f"repository:{north}")
    assert "It took no part" in why(source=f"repository:{south}")


def test_portal_fact_10_why_not(world: Any, synced: Callable[..., Repository]) -> None:
    synced("open", files={"docs/zebra.md": "# Zebra\n\nstripes\n", "docs/other.md": "# Other\n\nstripes and more\n"})
    hidden = synced("closed", visibility="private", files={"docs/secret.md": "# Secret\n\nstripes\n"})
    client = world.client("otto")

    def why(**asked: str) -> str:
        page = client.get("/search/why-not", asked, headers=HTMX)
        assert page.status_code == 200
        return page.content.decode()

    assert "Why not …?" in client.get("/search?q=stripes").content.decode()
    found = why(q="stripes", document="docs/zebra.md")
    assert "at place <strong>" in found
    assert "words" in found
    assert '<th scope="row">words</th>' in found
    by_address = why(q="stripes", document="http://testserver/repos/local/acme/open/docs/docs-zebra")
    assert "It took no part" in why(q="stripes", document="docs/zebra.md", path="src/") + by_address
    absent = why(q="stripes", document="docs/glossary.md")
    assert "It took no part" in absent
    assert "stripes" in absent
    secret = why(q="stripes", document="docs/secret.md")
    assert secret == why(q="stripes", document="docs/never.md")
    assert secret == why(q="stripes", document=f"{hidden.get_absolute_url()}/docs/docs-secret")
    assert "no such document among those that you can read" in secret
    dashes = "-" * 36
    for odd in (
        "//[a/b",
        "http://[::1",
        f"/docs/{dashes}/documents/{dashes}",
        "/repos/a/b/c/files/%00",
        "/chunks/" + "9" * 19,
    ):
        assert why(q="stripes", document=odd) == secret
    assert "Several documents have this name" in why(q="stripes", document="docs/")
    whole = client.get("/search/why-not", {"q": "stripes", "document": "docs/zebra.md"}).content.decode()
    assert "at place <strong>" in whole
    assert len(re.findall(r"<h1\b", whole)) == 1
    assert client.get("/search/why-not").status_code == 200


def test_portal_rule_19_spelling_by_symbol_names_that_the_reader_may_see(
    world: Any, synced: Callable[..., Repository]
) -> None:
    synced(files={"src/keys.py": "def rotate_backup_keys() -> None:\n    pass\n"})
    synced("secrets", "private", {"src/secret.py": "def rotate_backup_keyz() -> None:\n    pass\n"})
    question = "/search?q=xylophone+marimba+zebras+rotate_backupkeyz&kind=doc"
    body = world.client("otto").get(question).content.decode()
    assert "Did you mean" in body
    better = "/search?kind=doc&amp;q=xylophone+marimba+zebras+rotate_backup_keys"
    assert f'<a href="{better}"><code>rotate_backup_keys</code></a>' in body
    assert "rotate_backup_keyz" not in body
    assert "rotate_backup_keyz" in world.client("ada").get(question).content.decode()
    elsewhere = Repository.objects.get(slug=world.public.slug).pk
    assert "Did you mean" not in world.client("otto").get(f"{question}&source=repository:{elsewhere}").content.decode()


def test_portal_rule_7_previous_page_is_the_page_before(world: Any, synced: Callable[..., Repository]) -> None:
    synced(files={f"docs/many/{number:03}.md": f"# Zebra {number}\n\nzebra\n" for number in range(60)})
    client = world.client("otto")

    def turned(address: str, rel: str) -> str:
        found = re.search(rf'rel="{rel}" href="([^"]+)"', client.get(address).content.decode())
        assert found, f"{address} has no page {rel}"
        return f"/search{html.unescape(found[1])}"

    first = "/search?q=zebra"
    second = turned(first, "next")
    third = turned(second, "next")
    assert rows_of(client, turned(third, "prev")) == rows_of(client, second) != rows_of(client, first)
    assert rows_of(client, turned(second, "prev")) == rows_of(client, first)


def rows_of(client: Any, address: str) -> list[str]:
    return re.findall(r'href="(/repos/[^"]+/docs/[^"]+)"', client.get(address).content.decode())
