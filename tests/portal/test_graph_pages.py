"""The graph as pages: list, picture, focus, panel."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from apps.collections.curation import create_collection
from apps.collections.models import Collection, Document
from apps.collections.trash import trash_document
from apps.knowledge_graph.storing.rebuild import rebuild
from apps.repos.models import Repository
from tests.knowledge_graph.pages_of_texts import WORKED_EXAMPLE, page_text
from tests.knowledge_graph.test_stored_projection import write

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loud_templates")]

FILES = {
    **WORKED_EXAMPLE,
    "old.md": page_text("dec-old", type="decision", status="superseded"),
    "new.md": page_text("dec-new", type="decision", status="accepted", supersedes="[dec-old]"),
    "lone.md": page_text("mod-lone", type="module") + "\nSee [[mod-nowhere]] and [[dec-new]].\n",
    "plain.md": "# Plain\n\nNo header.\n",
}


@pytest.fixture
def filled(world: Any) -> Collection:
    collection = create_collection(by=world.people["olga"], name="Canon", visibility="public")
    for key, text in FILES.items():
        write(collection, key, text)
    rebuild("collection", collection.pk)
    return collection


def picture(body: str) -> str:
    return body.partition('<svg class="graph net')[2].partition("</svg>")[0]


def test_knowledge_graph_12_list_and_picture_say_the_same(world: Any, filled: Collection) -> None:
    client = world.client("otto")
    assert f'href="/graph/collection/{filled.pk}"' in client.get("/graph").content.decode()
    body = client.get(f"/graph/collection/{filled.pk}").content.decode()
    drawn = re.findall(r'class="node[^"]*" href="([^"]+)"', picture(body))
    listed = re.findall(r'<a href="([^"]+)">Focus on it</a>', body)
    assert sorted(drawn) == sorted(listed)
    served = client.get(f"/api/graph/collection/{filled.pk}/subgraph").json()
    assert len(drawn) == len(served["nodes"])
    assert picture(body).count('class="way"') == len(served["edges"])
    assert "dangling" in picture(body)
    assert 'aria-current="page">Graph' in body


def test_portal_fact_30_the_graph_looks_the_same_whatever_order_the_rows_have(world: Any, filled: Collection) -> None:
    other = create_collection(by=world.people["olga"], name="Again", visibility="public")
    for key, text in reversed(FILES.items()):
        write(other, key, text)
    rebuild("collection", other.pk)
    client = world.client("otto")
    pictures = {
        re.sub(r'href="[^"]*"', "", picture(client.get(f"/graph/collection/{one.pk}").content.decode()))
        for one in (filled, other, filled)
    }
    assert len(pictures) == 1


def test_portal_rule_35_focus_evidence_and_chain(world: Any, filled: Collection) -> None:
    client = world.client("otto")
    body = client.get(f"/graph/collection/{filled.pk}?focus=dec-new").content.decode()
    new = Document.objects.get(collection=filled, source_key="new.md")
    assert re.search(rf'href="/docs/{filled.pk}/documents/{new.pk}\?tab=raw#L\d+"', body)
    chain = body.partition('class="chain"')[2].partition("</ol>")[0]
    assert chain.index("dec-old") < chain.rindex("dec-new") or chain.index("Old") < chain.rindex("New")
    assert 'class="current"' in chain
    edges = re.findall(r'class="way" href="[^"]*focus=dec-new[^"]*#(cg-edge-\w+)"', picture(body))
    assert edges
    assert all(f'id="{one}"' in body for one in edges)
    ids = re.findall(r'\sid="([^"]+)"', body)
    assert len(ids) == len(set(ids))


def test_knowledge_graph_12_filters_focus_and_depth_live_in_the_address(world: Any, filled: Collection) -> None:
    client = world.client("otto")
    path = f"/graph/collection/{filled.pk}"
    only = client.get(f"{path}?type=decision").content.decode()
    assert "mod-lone" not in picture(only)
    assert "type=decision&amp;focus=dec-new" in picture(only)
    named = client.get(f"{path}?q=dec-new&type=decision")
    assert (named.status_code, named["Location"]) == (302, f"{path}?type=decision&focus=dec-new")
    near = client.get(f"{path}?focus=dec-old").content.decode()
    wide = client.get(f"{path}?focus=dec-old&depth=2").content.decode()
    assert picture(near).count('class="node') < picture(wide).count('class="node')
    for odd in ("?type=nonsense&edge=x&status=y&weight=z&depth=99", "?focus=invented", "?q=invented", "?focus=%00"):
        assert client.get(path + odd).status_code == 200, odd
    assert "no such node" in client.get(f"{path}?focus=invented").content.decode()


def test_knowledge_graph_9_the_way_between_two_pages(world: Any, filled: Collection) -> None:
    client = world.client("otto")
    path = f"/graph/collection/{filled.pk}?focus=dec-cache-v1"
    body = client.get(f"{path}&to=mod-redis-pool").content.decode()
    assert "Way to Redis pool" in body
    way = body.partition('id="cg-way"')[2].partition("</section>")[0]
    assert re.findall(r'href="\?focus=([^"]+)"', way.partition("<ol>")[2].partition("</ol>")[0]) == [
        "dec-cache-v1", "dec-cache-v2", "dec-cache-v2", "mod-session-store", "mod-session-store", "mod-redis-pool",
    ]  # fmt: skip
    assert "is superseded by" in way
    assert set(re.findall(r'data-uid="([^"]+)"', picture(body))) == {
        "dec-cache-v1", "dec-cache-v2", "mod-session-store", "mod-redis-pool",
    }  # fmt: skip
    # By a path too; and what cannot be reached, or seen, is said.
    assert 'id="cg-way"' in client.get(f"{path}&to=modules/mod-redis-pool.md").content.decode()
    assert "No way to mod-nowhere: none of at most six steps" in client.get(f"{path}&to=mod-nowhere").content.decode()
    unknown = client.get(f"{path}&to=dec-none").content.decode()
    assert "No node that you can see has the name of the other end" in unknown
    assert 'class="node' in picture(unknown)


def test_portal_rule_36_no_way_leads_through_hidden_pages(world: Any, filled: Collection) -> None:
    trash_document(
        document=Document.objects.get(collection=filled, source_key="modules/mod-session-store.md"),
        by=world.people["olga"],
    )
    body = world.client("otto").get(f"/graph/collection/{filled.pk}?focus=dec-cache-v1&to=mod-redis-pool")
    assert "No way to Redis pool" in body.content.decode()


def test_knowledge_graph_12_filter_by_provenance(world: Any, filled: Collection) -> None:
    client = world.client("otto")
    path = f"/graph/collection/{filled.pk}"

    def ways(rest: str) -> int:
        return picture(client.get(path + rest).content.decode()).count('class="way"')

    every, written = ways(""), ways("?provenance=wikilink")
    assert 0 < written < every
    assert sum(ways(f"?provenance=frontmatter_{one}") for one in ("supersedes", "related", "typed")) == every - written
    assert ways("?provenance=rumour") == every
    body = client.get(path + "?provenance=wikilink").content.decode()
    assert '<option value="wikilink" selected>' in body
    assert "provenance=wikilink&amp;focus=" in body
    assert f'href="/api{path}/export?format=graphml"' in body


def test_knowledge_graph_12_live_asks_for_the_revision_only(world: Any, filled: Collection) -> None:
    client = world.client("otto")
    path = f"/graph/collection/{filled.pk}"
    revision = re.search(r"revision=(\d+)", client.get(path).content.decode())
    assert revision is not None
    assert client.get(f"{path}?revision={revision[1]}", headers={"HX-Request": "true"}).status_code == 204
    changed = client.get(f"{path}?revision=0", headers={"HX-Request": "true"})
    assert "has changed" in changed.content.decode()
    assert b"<html" not in changed.content


def test_portal_rule_36_hidden_and_trashed_pages_do_not_exist(world: Any, filled: Collection) -> None:
    client = world.client("otto")
    path = f"/graph/collection/{filled.pk}"
    trash_document(document=Document.objects.get(collection=filled, source_key="old.md"), by=world.people["olga"])
    filled.refresh_from_db()
    focus = client.get(f"{path}?focus=dec-new").content.decode()
    assert "dangling" in picture(focus)
    closed = create_collection(by=world.people["olga"], name="Closed", visibility="private")
    write(closed, "a.md", page_text("mod-secret", type="module"))
    rebuild("collection", closed.pk)
    assert "Closed" not in client.get("/graph").content.decode()
    answers = [client.get(f"/graph/collection/{closed.pk}"), client.get(f"/graph/collection/{world.public.pk}")]
    document = Document.objects.get(collection=closed)
    answers += [client.get(f"/graph/document/{document.pk}"), client.get(f"/graph/document/{closed.pk}")]
    assert {answer.status_code for answer in answers} == {404}
    assert len({answer.content for answer in answers}) == 1


def test_knowledge_graph_12_panel_of_a_document(world: Any, filled: Collection) -> None:
    client = world.client("otto")
    new = Document.objects.get(collection=filled, source_key="new.md")
    page = client.get(f"/docs/{filled.pk}/documents/{new.pk}").content.decode()
    assert f'hx-get="/graph/document/{new.pk}"' in page
    panel = client.get(f"/graph/document/{new.pk}", headers={"HX-Request": "true"})
    assert b"<html" not in panel.content
    assert "supersedes" in panel.content.decode()
    assert "<svg" in panel.content.decode()
    assert b"<!doctype html>" in client.get(f"/graph/document/{new.pk}").content
    old = Document.objects.get(collection=filled, source_key="old.md")
    replaced = client.get(f"/graph/document/{old.pk}").content.decode()
    assert f'Replaced by <a href="/docs/{filled.pk}/documents/{new.pk}">' in replaced
    assert f'<a href="/graph/collection/{filled.pk}?focus=dec-new">' in replaced
    plain = Document.objects.get(collection=filled, source_key="plain.md")
    assert "Not in the graph" in client.get(f"/graph/document/{plain.pk}").content.decode()


def test_portal_fact_37_hostile_labels_are_text(world: Any) -> None:
    hostile = "<img src=x onerror=alert(1)>"
    collection = create_collection(by=world.people["olga"], name=hostile, visibility="public")
    write(
        collection,
        "h.md",
        f"---\ntype: module\nslug: mod-h\ntitle: '{hostile}'\n---\n# {hostile}\n\n[[mod-x]] {hostile}\n",
    )
    rebuild("collection", collection.pk)
    client = world.client("otto")
    for path in ("/graph", f"/graph/collection/{collection.pk}", f"/graph/collection/{collection.pk}?focus=mod-h"):
        assert "<img" not in client.get(path).content.decode(), path


def test_portal_rule_50_graph_budget(world: Any, filled: Collection) -> None:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    client = world.client("otto")
    for rest, most in (("", 10), ("?focus=dec-new", 16)):
        path = f"/graph/collection/{filled.pk}{rest}"
        client.get(path)
        with CaptureQueriesContext(connection) as seen:
            assert client.get(path).status_code == 200
        skipped = ("SAVEPOINT", "RELEASE", "SET ")
        count = len([one for one in seen.captured_queries if not one["sql"].startswith(skipped)])
        assert count <= most, (rest, count)


def test_related_collections_of_a_repository(world: Any, synced: Callable[..., Repository]) -> None:
    pages = {
        "a.md": page_text("mod-a", "[[collection/canon:dec-new]] [[secret:dec-s]]", type="module"),
        "b.md": page_text("mod-b", type="module"),
    }
    repository = synced(files=pages)
    olga = world.people["olga"]
    canon = create_collection(by=olga, name="Canon", visibility="public")
    write(canon, "new.md", page_text("dec-new", f"[[repo/{repository.slug}:mod-a]]", type="decision"))
    write(canon, "gone.md", page_text("dec-gone", f"[[repo/{repository.slug}:mod-b]]", type="decision"))
    secret = create_collection(by=olga, name="Secret")
    write(secret, "s.md", page_text("dec-s", f"[[repo/{repository.slug}:mod-b]]", type="decision"))
    unrelated = create_collection(by=olga, name="Unrelated", visibility="public")
    write(unrelated, "u.md", page_text("dec-u", "[[repo/nothing/else/here:mod-a]]", type="decision"))
    for source in (canon, secret, unrelated):
        rebuild("collection", source.pk)
    rebuild("repository", repository.pk)
    address = f"/graph/repo/{repository.slug}/related"

    def related(person: str) -> list[tuple[str, int]]:
        body = world.client(person).get(address, headers={"HX-Request": "true"}).content.decode()
        return [(name, int(count)) for name, count in re.findall(r">([A-Z]\w+)</a><small>(\d+) link", body)]

    assert related("otto") == [("Canon", 3)]
    assert related("olga") == [("Canon", 3), ("Secret", 2)]
    trash_document(document=Document.objects.get(source_key="gone.md"), by=olga)
    assert related("otto") == [("Canon", 2)]
    whole = world.client("otto").get(address).content.decode()
    assert "<h1>Related collections</h1>" in whole and "Secret" not in whole
    assert f'hx-get="{address}"' in world.client("otto").get(repository.get_absolute_url()).content.decode()


def test_portal_rule_6_filters_fold_on_narrow_screens_and_say_how_many_are_set(world: Any) -> None:
    address = f"/graph/repo/{world.public.slug}"
    body = world.client("otto").get(address).content.decode()
    assert '<details class="fold"><summary>Filters</summary>' in body
    body = world.client("otto").get(f"{address}?type=module&weight=0.5").content.decode()
    assert "<summary>Filters (2 set)</summary>" in body
