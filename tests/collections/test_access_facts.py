"""Uploads as an attacker sends them, and reports of mixed batches: access facts 35, 36, 47, 49; `portal.md` fact 20."""

from __future__ import annotations

import dataclasses
import io
import re
import stat
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from apps.access.models import User
from apps.collections.curation import create_collection
from apps.collections.models import Collection, Document, DocumentChunk, StagedEntry, Upload
from apps.collections.uploads import stage_batch
from apps.jobs.models import Job
from apps.jobs.worker import drain

Put = Callable[..., Any]
pytestmark = pytest.mark.django_db


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def test_access_fact_35_four_entries_refused_by_name(handbook: Collection, olga: User, tmp_path: Path) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name in ("../../evil.md", "/abs.md", "C:\\x.md", "good.md"):
            archive.writestr(name, "# x")
        link = zipfile.ZipInfo("link.md")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
    page = signed_in(olga)
    started = page.post(f"/docs/{handbook.pk}/upload", {"files": SimpleUploadedFile("z.zip", out.getvalue())})
    drain()
    said = page.get(started["Location"]).content.decode()
    for name in ("../../evil.md", "/abs.md", "C:\\x.md", "link.md"):
        assert name in said
    assert said.count(">error</span>") == 4 and "1 created" in said and "4 left out" in said
    assert list(Document.objects.values_list("source_key", flat=True)) == ["good.md"]
    assert not list(tmp_path.parent.glob("**/evil.md"))


def test_access_fact_36_a_bomb_is_refused_whole_in_bounded_memory(handbook: Collection, olga: User) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("ok.md", "# ok")
        with archive.open("zeros.md", "w") as entry:
            for _ in range(256):
                entry.write(b"0" * (1 << 20))
    tracemalloc.start()
    answer = signed_in(olga).post(
        f"/api/md-collections/{handbook.pk}/documents/batch",
        {"archive": SimpleUploadedFile("bomb.zip", out.getvalue())},
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert answer.status_code == 422 and "100 times" in answer.json()["message"]
    assert not Upload.objects.exists() and not StagedEntry.objects.exists() and not Document.objects.exists()
    assert peak < 64 << 20, "the reading stops long before 256 MiB; modules that a first request imports count too"


def test_access_fact_47_three_items_on_the_page_and_as_json(handbook: Collection, olga: User, settings: Any) -> None:
    settings.COGRAPH = dataclasses.replace(
        settings.COGRAPH, markup=dataclasses.replace(settings.COGRAPH.markup, max_file_bytes=1000)
    )
    entries = [
        ("ok.md", b"# Ok", None),
        ("huge.md", b"x" * 1001, None),
        ("bad-yaml.md", b"---\na:\n\t- b\n---\n# B", None),
    ]
    job = stage_batch(collection=handbook, by=olga, entries=entries).job
    drain()
    page = signed_in(olga)
    listed = page.get(f"/api/jobs/{job.pk}/items").json()["items"]
    found = {item["path"]: (item["state"], item["reason"], item["line"]) for item in listed}
    assert found == {
        "ok.md": ("created", "", None),
        "huge.md": ("error", "payload_too_large", None),
        "bad-yaml.md": ("created", "front_matter_error", 3),
    }
    held = Job.objects.get(pk=job.pk)
    assert (held.status, held.warnings) == ("success", 2)
    body = page.get(f"/docs/{handbook.pk}?upload={job.pk}").content.decode()
    for path in found:
        assert path in body
    assert "done with warnings" in body and "line 3, column 1" in body


def test_access_fact_49_odd_bytes_cost_themselves_only(handbook: Collection, olga: User) -> None:
    entries = [
        ("nul.md", b"# N\nx\0y", None),
        ("latin.md", "# Übersicht".encode("latin-1"), None),
        ("png.md", b"\x89PNG\r\n\x1a\n" + bytes(range(200)), None),
        ("empty.md", b"", None),
    ]
    job = stage_batch(collection=handbook, by=olga, entries=entries).job
    drain()
    items = {item.path: (item.state, item.reason) for item in job.items.all()}
    assert items["png.md"] == ("skipped", "binary")
    assert items["latin.md"] == ("created", "encoding_guessed") and items["nul.md"] == ("created", "nul_replaced")
    documents = {one.source_key: one for one in Document.objects.all()}
    assert documents["nul.md"].text == "# N\nx\ufffdy"
    assert documents["latin.md"].title == "Übersicht" and documents["latin.md"].encoding_guessed
    assert (documents["empty.md"].state, documents["empty.md"].chunk_count) == ("empty", 0)
    assert Job.objects.get(pk=job.pk).status == "success"
    page = signed_in(olga)
    for one in documents.values():
        for tab in ("preview", "raw", "metadata", "chunks"):
            assert page.get(f"{one.get_absolute_url()}?tab={tab}").status_code == 200, (one.source_key, tab)


def test_portal_fact_20_a_passage_of_a_private_collection(
    put: Put, handbook: Collection, otto: User, olga: User
) -> None:
    put("a.md", "# A\n\nsecret words")
    chunk = DocumentChunk.objects.get()
    outsider = signed_in(otto)
    hidden, absent = outsider.get(f"/chunks/{chunk.pk}"), outsider.get("/chunks/123456789")
    assert (hidden.status_code, hidden.content) == (404, absent.content)
    assert signed_in(olga).get(f"/chunks/{chunk.pk}").status_code == 200


PAGE = """---
title: Alpha {n}
tags: [zz-secret, alpha]
aliases: [first-{n}]
type: concept
slug: alpha-{n}
---
# Alpha {n}

alpha beta gamma retry queue [[alpha-{m}]] [x](p{m}.md) [[depends_on::alpha-{m}]] [gone](gone.md)
"""
CLOCK = re.compile(
    rb'csrfmiddlewaretoken" value="\w+|"X-CSRFToken": "\w+|in \d+ ms|just now|\d+ (?:s|min) ago|"next_cursor":"[^"]*"'
)


def test_access_fact_18_hidden_documents_change_no_byte_of_any_answer(olga: User, otto: User, ada: User) -> None:
    mine = create_collection(by=otto, name="Mine")
    shared = create_collection(by=ada, name="Shared", visibility="public")
    for collection, by, last in ((mine, otto, 12), (shared, ada, 6)):
        pages = [(f"p{n}.md", PAGE.format(n=n, m=(n + 1) % 12).encode(), None) for n in range(last)]
        stage_batch(collection=collection, by=by, entries=pages)
    drain()
    document = mine.documents.get(source_key="p0.md")
    chunk = DocumentChunk.objects.filter(document=document)[0].pk
    docs, rest, graph = f"/docs/{mine.pk}", f"/api/md-collections/{mine.pk}", f"/api/graph/collection/{mine.pk}"
    page = f"{docs}/documents/{document.pk}"
    read = [
        *("/", "/about", "/docs", "/repos", "/lint", "/jobs", "/docs/jobs", "/graph", "/connect", f"/chunks/{chunk}"),
        *(docs + end for end in ("", "/links", "/trash", "/settings", "/lint")),
        *(f"{page}?tab={tab}" for tab in ("preview", "raw", "metadata", "chunks")),
        *(f"/search?q={text}" for text in ("alpha", "alpha+beta&mode=semantic", "zz-secret", "alhpa")),
        *("/context?q=alpha", f"/graph/collection/{mine.pk}", f"/graph/document/{document.pk}"),
        *(f"/api/suggest?q={text}" for text in ("alp", "zz", "first")),
        *("/api/md-collections", "/api/jobs", "/api/md-collections/-/jobs", "/api/me", f"/api/chunks/{chunk}"),
        *(rest + end for end in ("", "/documents", f"/documents/{document.pk}", "/embed-status", "/lint", "/jobs")),
        *(graph + end for end in ("/nodes", "/subgraph", "/lint", "/export")),
    ]
    asked = [
        (path, {"query": text, **more})
        for path in ("/api/search", "/api/route", "/api/retrieve", f"{rest}/search")
        for text in ("alpha", "alhpa", "zz-secret")
        for more in ({}, {"explain": True})
        if not (more and path in ("/api/route", "/api/retrieve"))
    ]
    client = signed_in(otto)

    def answers() -> dict[str, tuple[int, bytes]]:
        found = {path: client.get(path) for path in read}
        found |= {f"{path} {body}": client.post(path, body, content_type="application/json") for path, body in asked}
        return {name: (answer.status_code, CLOCK.sub(b"", answer.getvalue())) for name, answer in found.items()}

    answers()  # the first request of a session says hello in its own way
    before = answers()
    hidden = create_collection(by=olga, name="Mine")
    pages = [(f"p{n}.md", PAGE.format(n=n, m=(n + 1) % 50).encode() + b"alhpa zz-secret", None) for n in range(50)]
    stage_batch(collection=hidden, by=olga, entries=pages)
    drain()
    after = answers()
    assert {status for status, _ in before.values()} == {200}
    assert [name for name in before if before[name] != after[name]] == []
