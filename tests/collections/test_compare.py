"""Two versions of a document compared: `portal.md` 25 and fact 19; hidden as all that belongs to a collection."""

from __future__ import annotations

import dataclasses
import re
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from apps.access.grants import grant
from apps.access.models import User
from apps.collections.curation import create_collection, update_collection
from apps.collections.models import Collection, Document, DocumentChunk
from apps.collections.trash import trash_document
from apps.jobs.worker import drain
from tests.collections.test_pages import HOSTILE, page, queries, text

Put = Callable[..., Any]
Find = Callable[[str], Document]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loud_templates")]
__all__ = ["page"]


def long(*words: str) -> str:
    """One section a word, each too long to share a chunk."""
    return (
        f"# Pool\n\n{'Intro. ' * 500}\n\n"
        + "\n\n".join(f"## {word}\n\n" + f"{word} text. " * 300 for word in words)
        + "\n"
    )


def figures(body: str) -> dict[str, int]:
    return {name: int(value) for name, value in re.findall(r"<dt>([A-Z][a-z ]+)</dt><dd>(\d+)</dd>", body)}


def address(held: Document, query: str = "", raw: bool = False) -> str:
    return f"{held.get_absolute_url()}/compare{'/raw' if raw else ''}{query}"


def test_portal_fact_19_one_changed_section_is_one_changed_chunk(page: Client, put: Put, document: Find) -> None:
    put("pool.md", long("one", "two", "three", "four"))
    before = dict(DocumentChunk.objects.values_list("chunk_index", "pk"))
    put("pool.md", long("one", "two", "three", "four").replace("two text. two text.", "2 text.\n\nTwo text.", 1))
    after = dict(DocumentChunk.objects.values_list("chunk_index", "pk"))
    assert {place for place in before if before[place] != after[place]} == {2}
    held = document("pool.md")
    body = text(page.get(address(held)))
    assert figures(body) == {"Added": 0, "Changed": 1, "Moved": 0, "Gone": 0, "Embedded anew": 1}
    assert "4 of 5 chunks as before" in body
    assert f'<a href="/chunks/{after[2]}">Pool › two</a>' in body
    assert "3 lines added, 1 removed" in body
    assert re.search(r'<tr class="added"><td></td><td>11</td><td>\+2 text\.</td></tr>', body)
    assert f'href="{address(held)}"' in text(page.get(held.get_absolute_url()))
    assert f"{address(held)}?from=1&amp;to=2" in text(page.get(f"{held.get_absolute_url()}?tab=metadata"))


def test_any_two_versions_in_either_direction(page: Client, put: Put, document: Find) -> None:
    for words in (("one", "two"), ("one", "two", "three"), ("two", "one")):
        put("pool.md", long(*words))
    held = document("pool.md")
    body = text(page.get(address(held, "?from=1&to=3")))
    assert figures(body)["Moved"] == 1 and "2 of 3 chunks as before" in body
    body = text(page.get(address(held, "?from=2&to=1")))
    assert figures(body)["Gone"] == 1 and "From version 2 to version 1" in body
    assert '<option value="2" selected>' in body.partition('name="to"')[0]
    assert figures(text(page.get(address(held, "?from=1&to=2"))))["Added"] == 1


def test_another_title_is_another_string_to_embed(page: Client, put: Put, document: Find) -> None:
    put("pool.md", "---\ntitle: Pool\n---\n" + long("one", "two"))
    put("pool.md", "---\ntitle: Lake\n---\n" + long("one", "two"))
    body = text(page.get(address(document("pool.md"))))
    assert figures(body) == {"Added": 0, "Changed": 0, "Moved": 0, "Gone": 0, "Embedded anew": 3}
    assert "3 of 3 chunks as before" in body


def test_both_versions_are_cut_alike_after_a_change_of_the_profile(
    page: Client, put: Put, document: Find, handbook: Collection, olga: User
) -> None:
    put("pool.md", long("one", "two"))
    put("pool.md", long("one", "three"))
    update_collection(collection=handbook, by=olga, profile=(500, 50, 512))
    held = document("pool.md")
    few = figures(text(page.get(address(held))))
    drain()
    body = text(page.get(address(held)))
    assert figures(body) == few and few["Gone"] > 1
    assert "/chunks/" in body


def test_empty_states(page: Client, put: Put, document: Find) -> None:
    put("one.md", "# One")
    body = text(page.get(address(document("one.md"))))
    assert "One version only" in body and "compare</a>" not in body
    put("one.md", "# Two")
    held = document("one.md")
    assert "The same version twice" in text(page.get(address(held, "?from=2&to=2")))
    for query in ("?from=9&to=2", "?to=x", "?from=%00", "?from=1&to=-1"):
        assert "No such version is kept" in text(page.get(address(held, query))), query
        assert page.get(address(held, query, raw=True)).status_code == 404
    put("lines.md", b"# L\n\ntext\n")
    put("lines.md", b"# L\r\n\r\ntext\r\n")
    body = text(page.get(address(document("lines.md"))))
    assert "Both versions read the same" in body and "1 of 1 chunk as before" in body
    put("gone.md", "# Gone\n\ntext")
    put("gone.md", "")
    assert figures(text(page.get(address(document("gone.md")))))["Gone"] == 1
    put("gone.md", ">" * 200 + " deep")
    body = text(page.get(address(document("gone.md"), "?from=1&to=3")))
    assert "Version 3 was not read" in body


def test_versions_that_were_pruned_are_not_offered(page: Client, put: Put, document: Find, settings: Any) -> None:
    settings.COGRAPH = dataclasses.replace(
        settings.COGRAPH, collections=dataclasses.replace(settings.COGRAPH.collections, versions=1)
    )
    for number in range(4):
        put("a.md", f"# A {number}")
    body = text(page.get(address(document("a.md"))))
    assert re.findall(r'<option value="(\d)"', body) == ["4", "3", "4", "3"]
    assert "No such version is kept" in text(page.get(address(document("a.md"), "?from=1")))


def test_the_patch_is_text_that_no_browser_runs(page: Client, put: Put, document: Find) -> None:
    put("a.md", "# A\n\nold\n")
    put("a.md", f"# A\n\n{HOSTILE}\n")
    answer = page.get(address(document("a.md"), raw=True))
    assert answer.content.decode() == (
        f"--- a.md (version 1)\n+++ a.md (version 2)\n@@ -1,3 +1,3 @@\n # A\n \n-old\n+{HOSTILE}\n"
    )
    assert answer["Content-Type"].startswith("text/plain") and "sandbox" in answer["Content-Security-Policy"]
    assert "<img" not in text(page.get(address(document("a.md"))))


def test_a_rewritten_book_is_cut_and_the_patch_holds_all(page: Client, put: Put, document: Find) -> None:
    put("a.md", "".join(f"old {n}\n\n" for n in range(3000)))
    put("a.md", "".join(f"new {n}\n\n" for n in range(3000)))
    body = text(page.get(address(document("a.md"))))
    assert len(re.findall(r'<tr class="(?:added|removed)">', body)) <= 2000
    assert "more lines are not shown here" in body
    patch = page.get(address(document("a.md"), raw=True)).content.decode()
    assert patch.count("\n-old") == patch.count("\n+new") == 3000


def test_hidden_versions_answer_as_absent_ones(
    page: Client, put: Put, document: Find, handbook: Collection, signed_in: Any, otto: User, olga: User
) -> None:
    put("a.md", "# A secret")
    put("a.md", "# A")
    held, outsider = document("a.md"), signed_in(otto)
    absent = outsider.get(f"/docs/{uuid.uuid4()}").content
    for raw in (False, True):
        answer = outsider.get(address(held, "?from=1&to=2", raw=raw))
        assert (answer.status_code, answer.content) == (404, absent)
    other = create_collection(by=otto, name="Mine")
    crossed = outsider.get(f"/docs/{other.pk}/documents/{held.pk}/compare")
    assert (crossed.status_code, crossed.content) == (404, absent)
    grant(source=handbook, to=otto, level="read", by=olga)
    assert "secret" in text(outsider.get(address(held)))
    trash_document(document=held, by=olga)
    assert page.get(address(held)).status_code == page.get(address(held, raw=True)).status_code == 404
    assert Client().get(address(held)).status_code == 302


def test_queries_do_not_grow_with_versions_or_chunks(page: Client, put: Put, document: Find) -> None:
    put("a.md", long("one"))
    put("a.md", long("two"))
    few = queries(page, address(document("a.md")))
    for count in range(3, 9):
        put("a.md", long(*(f"w{n}" for n in range(count))))
    assert queries(page, address(document("a.md"), "?from=3&to=8")) == few <= 8
