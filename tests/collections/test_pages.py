"""Pages of collections: `collections.md` facts 15, 22, 40 to 43, 48, 49; `portal.md` facts 12, 15 to 18, 24, 37, 41."""

from __future__ import annotations

import io
import re
import uuid
import zipfile
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apps.access.grants import grant, revoke
from apps.access.models import User
from apps.collections.curation import create_collection, update_collection
from apps.collections.models import Asset, Collection, Document, DocumentChunk
from apps.collections.trash import trash_document
from apps.collections.uploads import stage_archive, upload_document
from apps.jobs.models import Job
from apps.jobs.worker import drain

Put = Callable[..., Any]
Find = Callable[[str], Document]
SignIn = Callable[[User], Client]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loud_templates")]
TABS = ("preview", "raw", "metadata", "chunks")


@pytest.fixture
def page(olga: User, signed_in: SignIn) -> Client:
    return signed_in(olga)


def text(response: Any) -> str:
    assert response.status_code == 200, response.content.decode()[:500]
    body: str = response.content.decode()
    return body


def queries(client: Client, path: str) -> int:
    client.get(path)
    with CaptureQueriesContext(connection) as seen:
        assert client.get(path).status_code == 200
    return len([one for one in seen.captured_queries if not one["sql"].startswith(("SAVEPOINT", "RELEASE", "SET "))])


def zip_of(*files: tuple[str, bytes]) -> SimpleUploadedFile:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in files:
            archive.writestr(name, data)
    return SimpleUploadedFile("all.zip", out.getvalue())


def test_a_collection_is_made_and_found(page: Client) -> None:
    assert "No collection yet" in text(page.get("/docs"))
    made = page.post("/docs", {"name": "Run books", "description": "What to do at night.", "visibility": "private"})
    assert made.status_code == 302
    body = text(page.get(made["Location"]))
    assert "No documents yet" in body and "Drop files" in body
    assert "Run books" in text(page.get("/docs?q=night"))
    assert "No collection matches" in text(page.get("/docs?q=%25"))
    again = page.post("/docs", {"name": "run books"})
    assert again.status_code == 409
    assert "already" in again.content.decode() and 'aria-invalid="true"' in again.content.decode()
    fragment = page.get("/docs", headers={"HX-Request": "true"})
    assert "<html" not in fragment.content.decode() and "HX-Request" in fragment["Vary"]


def test_one_text_is_stored_at_once_and_several_go_to_a_job(page: Client, handbook: Collection) -> None:
    place = f"/docs/{handbook.pk}"
    one = page.post(f"{place}/upload", {"files": SimpleUploadedFile("a.md", b"# A\n\n[b](b.md)"), "folder": "x/"})
    assert one["Location"] == place
    assert "x/a.md: created." in text(page.get(place))
    several = [SimpleUploadedFile("b.md", b"# B"), SimpleUploadedFile("c.md", b"---\na:\n\t- x\n---\n# C")]
    started = page.post(f"{place}/upload", {"files": several})
    job = Job.objects.get(kind="upload")
    assert started["Location"] == f"{place}?upload={job.pk}"
    body = text(page.get(started["Location"]))
    assert f'hx-get="{place}/uploads/{job.pk}"' in body
    assert '<noscript><meta http-equiv="refresh"' in body
    live = page.get(f"{place}/uploads/{job.pk}", headers={"HX-Request": "true"})
    assert live.status_code == 200 and "data-polls" in live.content.decode()
    drain()
    done = page.get(f"{place}/uploads/{job.pk}", headers={"HX-Request": "true"})
    assert done.status_code == 286
    # Portal fact 24: a row a file; the bad one with line, column and remedy, indexed without metadata.
    said = done.content.decode()
    assert "c.md" in said and "line 3, column 1" in said and "done with warnings" in said
    assert page.get(f"{place}/uploads/{job.pk}")["Location"] == started["Location"]
    body = text(page.get(started["Location"]))
    assert "line 3, column 1" in body and "http-equiv" not in body
    history = text(page.get(f"{Document.objects.get(source_key='c.md').get_absolute_url()}?tab=metadata"))
    assert f'href="/jobs/{job.pk}"' in history and "2 documents" not in history
    fresh = page.get(f"{place}?fresh=1", headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in fresh and 'hx-swap-oob="true"' in fresh and "c.md" in fresh


def test_a_bad_archive_beside_a_good_one_leaves_nothing(page: Client, handbook: Collection) -> None:
    files = [zip_of(("a.md", b"# A")), SimpleUploadedFile("bad.zip", b"no archive")]
    answer = page.post(f"/docs/{handbook.pk}/upload", {"files": files}, follow=True)
    assert "no zip archive" in text(answer)
    assert not Job.objects.exists()


def test_upload_with_script_answers_a_fragment(page: Client, handbook: Collection) -> None:
    def send(**data: Any) -> Any:
        return page.post(f"/docs/{handbook.pk}/upload", data, headers={"HX-Request": "true"})

    assert "Choose one or more files" in text(send())
    said = text(send(files=SimpleUploadedFile("run.exe", b"MZ")))
    assert "run.exe" in said and "not taken" in said and "<html" not in said
    said = text(send(files=SimpleUploadedFile("a.md", b"# A")))
    assert "created" in said and ">a.md</a>" in said
    answer = send(files=zip_of(("a.md", b"# A"), ("b.md", b"# B")))
    assert "data-polls" in text(answer)
    assert answer["HX-Replace-Url"].startswith(f"/docs/{handbook.pk}?upload=")
    assert "empty" in text(send(files=zip_of())) or "no document" in text(send(files=zip_of()))
    twice = [SimpleUploadedFile("a.md", b"1"), SimpleUploadedFile("a.md", b"2")]
    assert "twice" in text(send(files=twice))


def test_collections_fact_22_pages_of_odd_files_answer(page: Client, put: Put, handbook: Collection) -> None:
    put("empty.md", b"")
    put("bad.md", b"---\na:\n\t- b\n---\n# Bad\n")
    put("nul.md", b"# N\nx\0y")
    put("blank.md", b"  \n \n")
    put("meta.md", b"---\ntitle: Only\nitems: [1]\n---\n")
    for document in Document.objects.all():
        for tab in TABS:
            body = text(page.get(f"{document.get_absolute_url()}?tab={tab}"))
            if document.source_key in ("empty.md", "blank.md", "meta.md"):
                assert ">empty</span>" in body
    # Portal fact 15: state empty, no chunk.
    empties = Document.objects.filter(source_key__in=["empty.md", "blank.md", "meta.md"])
    assert {(one.state, one.chunk_count) for one in empties} == {("empty", 0)}
    bad = text(page.get(Document.objects.get(source_key="bad.md").get_absolute_url()))
    assert "indexed without metadata. Replace a tab by spaces" in bad


def test_collections_fact_15_page_and_status_tell_of_the_cap(
    page: Client, put: Put, document: Find, handbook: Collection, olga: User
) -> None:
    update_collection(collection=handbook, by=olga, profile=(500, 50, 3))
    drain()
    put("long.md", "".join(f"# H{n}\n\n" + "word " * 90 + "\n\n" for n in range(5)))
    line = document("long.md").truncated_at_line
    body = text(page.get(document("long.md").get_absolute_url()))
    assert f"before line {line}" in body
    assert "1 document cut at the limit" in text(page.get(f"/docs/{handbook.pk}"))


def test_portal_fact_12_links_go_where_they_should(page: Client, handbook: Collection, olga: User) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in (
            ("a/start.md", "[s](./set%20up.md) [d](../c/d.md#top) [g][r] ![p](../img/p.png)\n\n[r]: ../c/d.md"),
            ("a/set up.md", "# Set up"),
            ("c/d.md", "# Top"),
            ("img/p.png", "\x89PNG"),
        ):
            archive.writestr(name, data)
    size = out.tell()
    out.seek(0)
    stage_archive(collection=handbook, by=olga, file=out, size=size)
    drain()
    body = text(page.get(Document.objects.get(source_key="a/start.md").get_absolute_url()))
    prose = body[body.index('id="cg-prose"') : body.index("</article>")]
    found = re.findall(r'(?:href|src)="(/docs/[^"#]+)(#[^"]*)?"', prose)
    assert len(found) == 4
    assert {fragment for _, fragment in found} == {"", "#top"}
    for address, _ in found:
        assert page.get(address).status_code == 200, address
    image = page.get(Asset.objects.get().get_absolute_url())
    assert image["Content-Type"] == "image/png" and image["X-Content-Type-Options"] == "nosniff"
    assert image["Content-Security-Policy"] == "default-src 'none'; style-src 'unsafe-inline'; sandbox"


def test_portal_fact_16_raw_keeps_the_bytes(page: Client, put: Put, document: Find) -> None:
    stored = b"\xef\xbb\xbf# Title\r\n\r\n## Part\r\n\r\ntext\r\n"
    put("windows.md", stored)
    put("plain.md", b"# Title\n\n## Part\n\ntext\n")
    windows, plain = document("windows.md"), document("plain.md")
    assert windows.title == plain.title == "Title"
    assert windows.parsed["anchors"] == plain.parsed["anchors"]
    answer = page.get(f"{windows.get_absolute_url()}/raw")
    assert answer.content == stored
    assert answer["Content-Type"] == "text/plain"
    assert "sandbox" in answer["Content-Security-Policy"] and answer["Content-Disposition"].startswith("attachment")
    assert 'id="L3"' in text(page.get(f"{windows.get_absolute_url()}?tab=raw"))


def test_portal_fact_17_an_unclosed_fence_is_told(page: Client, put: Put, document: Find) -> None:
    put("f.md", "# F\n```sh\nrest\n\nstill code")
    body = text(page.get(document("f.md").get_absolute_url()))
    assert "Line 2: Unclosed fence" in body and "<code" in body
    assert "never closed" in text(page.get(f"{document('f.md').get_absolute_url()}?tab=metadata"))


def test_portal_fact_18_chunks_and_gaps_are_the_source(page: Client, put: Put, document: Find) -> None:
    source = "---\nt: 1\n---\n# Ä\n\n" + "\n\n".join(f"## H{n}\n\n" + "wörd " * 500 for n in range(6)) + "\n"
    put("long.md", source)
    held = document("long.md")
    whole = held.text.encode()
    joined, at = b"", 0
    for chunk in DocumentChunk.objects.filter(document=held).order_by("chunk_index"):
        assert chunk.source.encode() == whole[chunk.start_byte : chunk.end_byte]
        joined += whole[at : chunk.start_byte] + chunk.source.encode()
        at = chunk.end_byte
    assert joined + whole[at:] == source.encode()
    body = text(page.get(f"{held.get_absolute_url()}?tab=chunks"))
    assert [int(n) for n in re.findall(r'id="chunk-(\d+)"', body)] == list(range(held.chunk_count))
    assert held.chunk_count > 3
    assert "No chunk matches" in text(page.get(f"{held.get_absolute_url()}?tab=chunks&q=zzz"))


def test_the_embedded_string_tokens_and_state_are_shown(page: Client, put: Put, document: Find) -> None:
    put("pool.md", "# Pool\n\nThe redis pool & its size.", title="Redis")
    address = f"{document('pool.md').get_absolute_url()}?tab=chunks"
    assert "no embedder" in text(page.get(address))
    drain()
    body = text(page.get(address))
    assert '<pre class="chunk">Redis &gt; Pool\n# Pool\n\nThe redis pool &amp; its size.</pre>' in body
    assert ">embedded</span>" in body and re.search(r"\d+ tokens", body)
    assert "1 of 1 chunks have a vector" in text(page.get(f"/docs/{document('pool.md').collection_id}"))


def test_collections_rule_6_9_embeds_three_levels_and_no_cycles(page: Client, put: Put, document: Find) -> None:
    put("one.md", "# One\n\n![[two]]\n\n![[part#Second]]\n\n![[nowhere]]")
    put("two.md", "# Two words\n\n![[three]]\n\n[own](#two-words)")
    put("three.md", "# Three words\n\n![[four]]\n\n![[one]]")
    put("four.md", "# Four words\n\n![[five]]")
    put("five.md", "# Five words")
    put("part.md", "# Part\n\nfirst text\n\n## Second\n\nsecond text\n\n## Third\n\nthird text")
    drain()
    body = text(page.get(document("one.md").get_absolute_url()))
    for words in ("Two words", "Three words", "Four words", "second text"):
        assert words in body
    assert "Five words" not in body and "first text" not in body and "third text" not in body
    assert f'href="{document("five.md").get_absolute_url()}"' in body
    assert f'href="{document("two.md").get_absolute_url()}#two-words"' in body
    ids = re.findall(r'\sid="([^"]+)"', body)
    assert len(ids) == len(set(ids))
    assert "cannot be shown here" in body
    trash_document(document=document("two.md"), by=document("two.md").uploaded_by)
    body = text(page.get(document("one.md").get_absolute_url())).partition("<aside")[0]
    assert "Two words" not in body and "Three words" not in body


def test_collections_fact_40_and_41_on_the_pages(page: Client, put: Put, document: Find, handbook: Collection) -> None:
    put("inbox.md", "# Inbox")
    put("a.md", "[x](./inbox.md) [[Inbox]] [again](inbox.md)\n\n[bad](mising.md)\n\n[[#nowhere]]")
    put("missing.md", "# M\n\n## Sync ↔ Export — v2\n\n[b](#sync-export-v2)")
    drain()
    body = text(page.get(document("inbox.md").get_absolute_url()))
    assert body.count(document("a.md").get_absolute_url()) == 1, "each source once"
    body = text(page.get(f"/docs/{handbook.pk}/links"))
    assert "mising.md" in body and "missing.md" in body and "not found in this collection" in body
    assert "#sync--export--v2" in body and "anchor missing" in body
    assert f"{document('a.md').get_absolute_url()}?tab=raw#L3" in body
    assert "3 of 6 links lead nowhere" in body
    body = text(page.get(f"/docs/{handbook.pk}/links?show=all", headers={"HX-Request": "true"}))
    assert "<html" not in body and "inbox.md" in body
    assert "Resolve links" in text(page.get(f"/docs/{handbook.pk}/links"))


def test_collections_fact_43_no_name_of_another_collection(page: Client, put: Put, olga: User, handbook: Any) -> None:
    other = create_collection(by=olga, name="Other")
    upload_document(collection=other, by=olga, source_key="secret-plans.md", raw=b"# S")
    put("a.md", "[x](secret-plan.md) ![i](other.png)")
    drain()
    for path in (Document.objects.get(source_key="a.md").get_absolute_url(), f"/docs/{handbook.pk}/links"):
        assert "secret-plans" not in text(page.get(path))


def test_collections_fact_48_hidden_is_absent_on_every_page(
    page: Client, put: Put, document: Find, handbook: Collection, signed_in: SignIn, otto: User
) -> None:
    put("a.md", "# A")
    drain()
    Asset.objects.create(
        collection=handbook, source_key="p.png", content_type="image/png", content_hash=b"x", size=1, data=b"x"
    )
    job = Job.objects.filter(source_id=handbook.pk).first()
    assert job is not None
    outsider, nobody = signed_in(otto), uuid.uuid4()
    held = document("a.md").get_absolute_url()
    asset = Asset.objects.get().get_absolute_url()
    base = f"/docs/{handbook.pk}"
    paths = [base, f"{base}/links", f"{base}/trash", f"{base}/settings", held, f"{held}/raw", asset, f"/jobs/{job.pk}"]
    paths += [f"{base}/uploads/{job.pk}", *(f"{held}?tab={tab}" for tab in TABS)]
    absent = outsider.get(f"/docs/{nobody}")
    assert absent.status_code == 404
    for path in paths:
        answer = outsider.get(path)
        assert (answer.status_code, answer.content) == (404, absent.content), path
    for path in (f"{base}/upload", f"{base}/upkeep", f"{held}/trash", f"{base}/settings", f"/jobs/{job.pk}/retry"):
        answer = outsider.post(path, {"act": "links"})
        assert (answer.status_code, answer.content) == (404, absent.content), path
    assert "Handbook" not in text(outsider.get("/docs")) and str(job.pk) not in text(outsider.get("/docs/jobs"))
    # A document asked under another collection that the reader may read is absent too.
    other = create_collection(by=otto, name="Mine")
    assert outsider.get(f"/docs/{other.pk}/documents/{document('a.md').pk}").content == absent.content
    assert outsider.get(f"/docs/{other.pk}/assets/{Asset.objects.get().pk}").content == absent.content


def test_collections_fact_49_a_member_of_a_group_follows_a_citation(
    put: Put, document: Find, handbook: Collection, signed_in: SignIn, otto: User, olga: User, readers: Group
) -> None:
    put("a.md", "# A\n\n## Set up\n\ntext")
    otto.groups.add(readers)
    member, address = signed_in(otto), document("a.md").get_absolute_url()
    assert member.get(address).status_code == 404
    grant(source=handbook, to=readers, level="read", by=olga)
    assert 'id="set-up"' in text(member.get(address))
    assert "Handbook" in text(member.get("/docs"))
    assert "Drop files" not in text(member.get(f"/docs/{handbook.pk}"))
    assert member.get(f"/docs/{handbook.pk}/settings").status_code == 403
    assert member.get(f"/docs/{handbook.pk}/trash").status_code == 403
    assert member.post(f"/docs/{handbook.pk}/upload").status_code == 403
    revoke(source=handbook, to=readers, by=olga)
    assert member.get(address).status_code == 404


def test_trash_restore_and_purge(
    page: Client, put: Put, document: Find, handbook: Collection, signed_in: SignIn, wim: User, olga: User
) -> None:
    grant(source=handbook, to=wim, level="write", by=olga)
    put("a.md", "# A")
    held, writer = document("a.md"), signed_in(wim)
    assert writer.post(f"{held.get_absolute_url()}/trash").status_code == 302
    assert writer.get(held.get_absolute_url()).status_code == 404
    body = text(writer.get(f"/docs/{handbook.pk}/trash"))
    assert "a.md" in body and "Restore" in body and "Remove for good" not in body
    assert writer.post(f"/docs/{handbook.pk}/trash", {"act": "purge", "document": held.pk}).status_code == 403
    assert writer.post(f"/docs/{handbook.pk}/trash", {"act": "restore", "document": held.pk}).status_code == 302
    assert writer.get(held.get_absolute_url()).status_code == 200
    page.post(f"{held.get_absolute_url()}/trash")
    refused = page.post(f"/docs/{handbook.pk}/trash", {"act": "purge", "document": held.pk}, follow=True)
    assert f"type {held.source_key} to remove it for good" in refused.content.decode()
    assert Document.objects.filter(pk=held.pk).exists()
    purge = {"act": "purge", "document": held.pk, "confirm": held.source_key}
    assert page.post(f"/docs/{handbook.pk}/trash", purge).status_code == 302
    assert not Document.objects.exists()
    assert "The trash is empty" in text(page.get(f"/docs/{handbook.pk}/trash"))


def test_settings_by_right(
    page: Client, handbook: Collection, signed_in: SignIn, wim: User, otto: User, olga: User, ada: User
) -> None:
    path = f"/docs/{handbook.pk}/settings"
    grant(source=handbook, to=wim, level="write", by=olga)
    body = text(signed_in(wim).get(path))
    assert "Re-embed" in body and "Delete collection" not in body and "Who may read" not in body
    assert signed_in(wim).post(path, {"act": "about", "description": "New."}).status_code == 302
    assert signed_in(wim).post(path, {"act": "name", "name": "Mine"}).status_code == 403
    assert page.post(path, {"act": "name", "name": "Hand book"}).status_code == 302
    assert (
        page.post(path, {"act": "profile", "max_chars": "600", "min_chars": "50", "max_chunks": "9"}).status_code == 302
    )
    handbook.refresh_from_db()
    assert (handbook.name, handbook.description, handbook.max_chars) == ("Hand book", "New.", 600)
    bad = page.post(path, {"act": "profile", "max_chars": "9", "min_chars": "x", "max_chunks": "9"})
    assert bad.status_code == 422 and 'aria-invalid="true"' in bad.content.decode()
    assert page.post(path, {"act": "grant", "kind": "user", "name": "otto", "level": "read"}).status_code == 302
    assert "otto" in text(page.get(path))
    assert page.post(path, {"act": "revoke", "kind": "user", "name": "otto"}).status_code == 302
    assert page.post(path, {"act": "grant", "kind": "user", "name": "nobody", "level": "read"}).status_code == 422
    assert "administrators only" not in text(page.get(path)).lower()
    assert page.post(path, {"act": "visibility", "visibility": "admin_only"}).status_code == 403
    assert page.post(path, {"act": "visibility", "visibility": "public"}).status_code == 302
    assert page.post(path, {"act": "language", "language": "german"}).status_code == 302
    assert page.post(path, {"act": "nothing"}).status_code == 422
    for act in ("re-embed", "re-chunk", "links"):
        assert signed_in(wim).post(f"/docs/{handbook.pk}/upkeep", {"act": act}).status_code == 302
    drain()
    assert page.post(path, {"act": "delete", "confirm": "no"}).status_code == 422
    assert page.post(path, {"act": "delete", "confirm": "Hand book"})["Location"] == "/docs"
    assert page.get(path).status_code == 404


def test_filters_of_the_document_list(page: Client, put: Put, handbook: Collection) -> None:
    put("a/one.md", "# One")
    put("b/100%_two.md", "")
    base = f"/docs/{handbook.pk}"
    assert "100%_two" not in text(page.get(f"{base}?q=one", headers={"HX-Request": "true", "HX-Target": "cg-list"}))
    body = text(page.get(f"{base}?q=%25_"))
    assert "100%_two" in body and "a/one.md" not in body
    assert "a/one.md" not in text(page.get(f"{base}?state=empty"))
    assert "No document matches" in text(page.get(f"{base}?state=truncated"))
    assert f'value="collection:{handbook.pk}"' in text(page.get(base))


HOSTILE = "<img src=x onerror=alert(1)>"


def test_portal_fact_37_hostile_names_are_text(page: Client, put: Put, document: Find, handbook: Collection) -> None:
    key = f"{HOSTILE}.md".replace("/", "")
    put(key, f"---\n{HOSTILE}: x\n---\n# {HOSTILE}\n\n[a]({HOSTILE})\n\n[c](javascript:alert(1))", title=HOSTILE)
    drain()
    base = f"/docs/{handbook.pk}"
    held = document(key).get_absolute_url()
    for path in (base, f"{base}/links", f"{base}/settings", *(f"{held}?tab={tab}" for tab in TABS)):
        body = text(page.get(path))
        assert "<img" not in body and 'href="javascript' not in body, path


def test_portal_fact_41_queries_do_not_grow(page: Client, put: Put, handbook: Collection, olga: User) -> None:
    put("img.md", "![p](p.png)\n\n![[x-0]]\n\n[m](missing.md)")
    base = f"/docs/{handbook.pk}"
    held = Document.objects.get(source_key="img.md").get_absolute_url()

    def more(count: int) -> None:
        for n in range(count):
            put(f"x-{n}.md", f"# X {n}\n\n![[x-{n + 1}]] [i](img.md) [b](gone-{n}.md)")
            create_collection(by=olga, name=f"C {count} {n}")
        drain()

    budgets = {
        "/docs": 6,
        base: 14,
        f"{base}/links": 6,
        f"{base}/trash": 5,
        held: 8,
        **{f"{held}?tab={tab}": 8 for tab in TABS},
    }
    more(3)
    few = {path: queries(page, path) for path in budgets}
    assert {path: count for path, count in few.items() if count > budgets[path]} == {}
    more(30)
    assert {path: queries(page, path) for path in budgets} == few
