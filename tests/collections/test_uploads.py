"""Uploads of one document, batches and archives: `collections.md` facts 3, 15, 19 to 27, 42, 45, 50."""

from __future__ import annotations

import dataclasses
import io
import threading
import zipfile
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from apps.access.accounts import delete_user
from apps.access.errors import Conflict, Forbidden, Invalid, NotFound, Refusal, Throttled, TooLarge, UnsupportedType
from apps.access.grants import grant
from apps.access.models import User
from apps.access.visibility import set_owner
from apps.collections import tasks, uploads
from apps.collections.curation import create_collection, delete_collection, update_collection
from apps.collections.models import Asset, Collection, Document, DocumentChunk, StagedEntry, Upload
from apps.collections.trash import restore_document, trash_document
from apps.collections.uploads import stage_archive, stage_batch, upload_document
from apps.indexing.models import IndexedSource
from apps.jobs import control
from apps.jobs.models import Job, JobItem, Status
from apps.jobs.queue import enqueue
from apps.jobs.worker import drain

Put = Callable[..., Any]
Find = Callable[[str], Document]

pytestmark = pytest.mark.django_db


def zipped(*files: tuple[str, bytes]) -> tuple[io.BytesIO, int]:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files:
            archive.writestr(name, data)
    size = out.tell()
    out.seek(0)
    return out, size


def states(job: Job) -> dict[str, str]:
    return dict(JobItem.objects.filter(job=job).values_list("path", "state"))


def test_collections_fact_19_new_same_changed(put: Put, document: Find) -> None:
    body = "# A\n\n" + "first words\n\n" * 200 + "## B\n\n" + "second words\n\n" * 300
    first = put("a.md", body)
    assert first.outcome.state == "created"
    assert "resolve_links" in {job.kind for job in first.jobs}
    chunks = dict(DocumentChunk.objects.values_list("chunk_index", "id"))
    assert len(chunks) > 1

    again = put("a.md", body)
    assert (again.outcome.state, again.jobs) == ("unchanged", ())

    changed = put("a.md", body.replace("# A\n", "# A\n\nNew.", 1))
    assert changed.outcome.state == "replaced"
    assert document("a.md").version == 2
    kept = set(DocumentChunk.objects.values_list("id", flat=True)) & set(chunks.values())
    assert kept, "chunks of equal text keep their id"
    assert len(kept) == len(chunks) - 1


def test_collections_fact_03_blank_and_header_only(put: Put, document: Find) -> None:
    put("tiny.md", "# Tiny\n\nbody")
    put("blank.md", "  \n\n")
    put("header.md", "---\ntitle: Only\n---\n")
    assert [row.source for row in DocumentChunk.objects.filter(document=document("tiny.md"))] == ["# Tiny\n\nbody"]
    assert (document("blank.md").state, document("blank.md").chunk_count) == ("empty", 0)
    assert (document("header.md").state, document("header.md").title) == ("empty", "Only")


def test_collections_fact_15_cap(put: Put, document: Find, handbook: Collection, olga: User) -> None:
    update_collection(collection=handbook, by=olga, profile=(500, 50, 3))
    drain()
    uploaded = put("long.md", "".join(f"# H{n}\n\n" + "word " * 90 + "\n\n" for n in range(5)))
    assert uploaded.outcome.document_state == "truncated"
    assert uploaded.outcome.truncated_at_line is not None
    found = document("long.md")
    assert (found.state, found.chunk_count) == ("truncated", 3)
    assert found.truncated_at_line == uploaded.outcome.truncated_at_line


def test_collections_fact_20_batch_of_five(put: Put, handbook: Collection, olga: User, settings: Any) -> None:
    put("same.md", "# Same")
    put("old.md", "# Old")
    settings.COGRAPH = dataclasses.replace(
        settings.COGRAPH, markup=dataclasses.replace(settings.COGRAPH.markup, max_file_bytes=1000)
    )
    staged = stage_batch(
        collection=handbook,
        by=olga,
        entries=[
            ("one.md", b"# One", None),
            ("two.md", b"# Two", None),
            ("old.md", b"# Old, changed", None),
            ("same.md", b"# Same", None),
            ("big.md", b"x" * 1001, None),
        ],
    )
    drain()
    job = Job.objects.get(pk=staged.job.pk)
    assert (job.status, job.warnings) == (Status.SUCCESS, 1)
    assert {name: job.counters[name] for name in ("created", "replaced", "unchanged", "error")} == {
        "created": 2,
        "replaced": 1,
        "unchanged": 1,
        "error": 1,
    }
    item = JobItem.objects.get(job=job, path="big.md")
    assert (item.state, item.reason) == ("error", "payload_too_large")


def test_collections_fact_21_refused_batches(handbook: Collection, olga: User) -> None:
    with pytest.raises(Invalid, match=r"`a\.md` stands in the upload twice"):
        stage_batch(collection=handbook, by=olga, entries=[("a.md", b"1", None), ("./a.md", b"2", None)])
    with pytest.raises(Invalid) as caught:
        stage_batch(collection=handbook, by=olga, entries=[("ok.md", b"1", None), (" ", b"2", None)])
    assert caught.value.field == "documents[1].source_key"
    with pytest.raises(Invalid):
        upload_document(collection=handbook, by=olga, source_key="a/../b.md", raw=b"x")
    assert not Upload.objects.exists() and not Document.objects.exists()


def test_one_document_is_refused_by_type_size_and_content(handbook: Collection, olga: User, settings: Any) -> None:
    def upload(key: str, raw: bytes) -> None:
        upload_document(collection=handbook, by=olga, source_key=key, raw=raw)

    with pytest.raises(UnsupportedType):
        upload("run.exe", b"MZ")
    with pytest.raises(Invalid, match="binary"):
        upload("fake.md", b"\x89PNG\r\n\x1a\n" + bytes(range(200)))
    settings.COGRAPH = dataclasses.replace(
        settings.COGRAPH, markup=dataclasses.replace(settings.COGRAPH.markup, max_file_bytes=10)
    )
    with pytest.raises(TooLarge):
        upload("big.md", b"x" * 11)
    assert not Document.objects.exists()


def test_collections_fact_22_empty_broken_header_and_nul(handbook: Collection, olga: User) -> None:
    staged = stage_batch(
        collection=handbook,
        by=olga,
        entries=[
            ("empty.md", b"", None),
            ("bad.md", b"---\na:\n\t- b\n---\n# Bad\n", None),
            ("nul.md", b"# N\nx\0y", None),
            ("good.md", b"# Good", None),
        ],
    )
    drain()
    assert set(states(staged.job).values()) == {"created"}
    assert Job.objects.get(pk=staged.job.pk).warnings == 2
    bad = JobItem.objects.get(job=staged.job, path="bad.md")
    assert (bad.reason, bad.line, bad.column) == ("front_matter_error", 3, 1)
    assert Document.objects.get(source_key="nul.md").text == "# N\nx\ufffdy"


def test_collections_fact_23_archive_with_images(handbook: Collection, olga: User) -> None:
    file, size = zipped(
        ("a.md", b"# A"),
        ("__MACOSX/._a.md", b"junk"),
        ("é.md", b"# E"),
        ("sub/b.md", b"![i](../img/p.png)"),
        ("img/p.png", b"\x89PNG data"),
    )
    staged = stage_archive(collection=handbook, by=olga, file=file, size=size)
    drain()
    assert set(Document.objects.values_list("source_key", flat=True)) == {"a.md", "é.md", "sub/b.md"}
    asset = Asset.objects.get()
    assert (asset.source_key, asset.content_type, bytes(asset.data)) == ("img/p.png", "image/png", b"\x89PNG data")
    assert Job.objects.get(pk=staged.job.pk).counters["ignored"] == 1


def test_collections_fact_24_unsafe_entries_are_named(handbook: Collection, olga: User) -> None:
    file, size = zipped(("../../evil.md", b"x"), ("/abs.md", b"x"), ("C:\\x.md", b"x"), ("good.md", b"# good"))
    staged = stage_archive(collection=handbook, by=olga, file=file, size=size)
    drain()
    assert states(staged.job) == {
        "../../evil.md": "error",
        "/abs.md": "error",
        "C:\\x.md": "error",
        "good.md": "created",
    }
    job = Job.objects.get(pk=staged.job.pk)
    assert (job.status, job.warnings) == (Status.SUCCESS, 3)


def test_collections_fact_25_nothing_is_stored_of_a_refused_archive(handbook: Collection, olga: User) -> None:
    for file, size in (
        zipped(("zeros.md", b"0" * 3_000_000)),
        (io.BytesIO(b"junk"), 4),
        zipped(),
        zipped(("a.exe", b"x")),
    ):
        with pytest.raises(Refusal):
            stage_archive(collection=handbook, by=olga, file=file, size=size)
    assert not Upload.objects.exists() and not StagedEntry.objects.exists() and not Job.objects.exists()


def test_same_key_twice_in_an_archive(handbook: Collection, olga: User) -> None:
    file, size = zipped(("a.md", b"1"), ("./a.md", b"2"))
    with pytest.raises(Invalid, match="twice"):
        stage_archive(collection=handbook, by=olga, file=file, size=size)


def test_staging_is_full(handbook: Collection, olga: User, settings: Any) -> None:
    settings.COGRAPH = dataclasses.replace(
        settings.COGRAPH, upload=dataclasses.replace(settings.COGRAPH.upload, staged_bytes=10)
    )
    with pytest.raises(Throttled) as caught:
        stage_batch(collection=handbook, by=olga, entries=[("a.md", b"x" * 11, None)])
    assert caught.value.code == "staging_full"
    assert not Upload.objects.exists()


def test_a_title_override_alone_is_unchanged(put: Put, document: Find) -> None:
    put("a.md", "# Plain\n\ntext")
    (before,) = DocumentChunk.objects.values_list("id", "embed_hash")
    uploaded = put("a.md", "# Plain\n\ntext", title="Chosen")
    assert (uploaded.outcome.state, uploaded.outcome.title_updated) == ("unchanged", True)
    assert document("a.md").title == "Chosen"
    (after,) = DocumentChunk.objects.values_list("id", "embed_hash")
    assert after[0] == before[0] and bytes(after[1]) != bytes(before[1])


def test_collections_fact_45_retry_twice_gives_one_job_and_the_same_rows(handbook: Collection, olga: User) -> None:
    staged = stage_batch(
        collection=handbook, by=olga, entries=[(f"{n}.md", f"# N{n}\n\nword{n}".encode(), None) for n in range(6)]
    )
    drain()
    Job.objects.filter(pk=staged.job.pk).update(status=Status.ERROR, error_code="injected")
    Document.objects.filter(source_key__in=["4.md", "5.md"]).delete()
    first = control.retry(Job.objects.get(pk=staged.job.pk), by=olga)
    second = control.retry(Job.objects.get(pk=staged.job.pk), by=olga)
    assert first.job.pk == second.job.pk and not first.deduplicated and second.deduplicated
    drain()
    job = Job.objects.get(pk=first.job.pk)
    assert job.status == Status.SUCCESS and job.retry_of_id == staged.job.pk
    assert set(states(job).values()) == {"created"}, "the report reads as after one clean run"
    assert Document.objects.count() == DocumentChunk.objects.count() == 6


def test_a_retry_after_its_time_says_that_the_payload_expired(handbook: Collection, olga: User) -> None:
    from django.utils import timezone

    from apps.collections.tasks import prune_uploads

    staged = stage_batch(collection=handbook, by=olga, entries=[("a.md", b"# A", None)])
    drain()
    now = timezone.now()
    assert prune_uploads(now) == 0
    Job.objects.filter(pk=staged.job.pk).update(
        status=Status.ERROR, error_code="injected", finished_at=now - timezone.timedelta(days=31)
    )
    assert prune_uploads(now) == 1 and prune_uploads(now) == 0
    assert not StagedEntry.objects.exists()
    with pytest.raises(Refusal) as caught:
        control.retry(Job.objects.get(pk=staged.job.pk), by=olga)
    assert caught.value.code == "payload_expired"


def test_payloads_go_also_when_their_jobs_went_first(handbook: Collection, olga: User, settings: Any) -> None:
    settings.COGRAPH = dataclasses.replace(
        settings.COGRAPH, retention=dataclasses.replace(settings.COGRAPH.retention, reports=2)
    )
    for number in range(6):
        stage_batch(collection=handbook, by=olga, entries=[(f"{number}.md", b"# A", None)])
    drain()
    long_ago = timezone.now() - timedelta(days=settings.COGRAPH.retention.payload_days + 1)
    Job.objects.update(finished_at=long_ago)
    enqueue("retention")
    drain()
    assert Job.objects.filter(kind="upload").count() == 3
    assert not Upload.objects.filter(expired=False).exists() and not StagedEntry.objects.exists()


def test_an_account_that_is_deleted_while_its_upload_runs(
    handbook: Collection, olga: User, wim: User, ada: User, monkeypatch: Any
) -> None:
    grant(source=handbook, to=wim, level="write", by=olga)
    staged = stage_batch(collection=handbook, by=wim, entries=[("a.md", b"# A", None)])
    read_now = tasks.read

    def read_slowly(*given: Any) -> Any:
        delete_user(user=wim, by=ada)
        return read_now(*given)

    monkeypatch.setattr(tasks, "read", read_slowly)
    drain()
    assert Job.objects.get(pk=staged.job.pk).status == Status.SUCCESS
    assert Document.objects.get().uploaded_by is None


def test_rechunk_after_a_profile_change_makes_no_version(
    put: Put, handbook: Collection, olga: User, document: Find
) -> None:
    put("a.md", "# A\n\n" + "\n\n".join("word " * 90 for _ in range(6)))
    before = DocumentChunk.objects.count()
    update_collection(collection=handbook, by=olga, profile=(600, 50, 512))
    drain()
    assert DocumentChunk.objects.count() > before
    assert document("a.md").version == 1
    assert set(DocumentChunk.objects.values_list("profile", flat=True)) == {"chars-600-50-512"}


def test_collections_fact_50_restored_with_the_same_chunks(
    put: Put, document: Find, handbook: Collection, olga: User
) -> None:
    put("a.md", "# A\n\nalpha\n\n" + "para \n\n" * 900)
    put("b.md", "see [a](a.md)")
    drain()
    before = list(
        DocumentChunk.objects.filter(document__source_key="a.md").order_by("id").values_list("id", "embed_hash")
    )
    found = document("a.md")
    trash_document(document=found, by=olga)
    assert not DocumentChunk.objects.filter(document=found).exists()
    assert document("b.md").links.get().state == "broken"
    assert not Document.objects.visible_to(olga).filter(pk=found.pk).exists()
    restore_document(collection=handbook, document_id=found.pk, by=olga)
    drain()
    after = list(
        DocumentChunk.objects.filter(document__source_key="a.md").order_by("id").values_list("id", "embed_hash")
    )
    assert [(id, bytes(digest)) for id, digest in after] == [(id, bytes(digest)) for id, digest in before]
    assert document("b.md").links.get().state == "resolved"


def test_an_upload_to_a_trashed_key_restores_and_replaces(put: Put, document: Find, olga: User) -> None:
    put("a.md", "# A\n\none")
    trash_document(document=document("a.md"), by=olga)
    uploaded = put("a.md", "# A\n\ntwo")
    assert uploaded.outcome.state == "replaced"
    assert (document("a.md").trashed_at, document("a.md").version) == (None, 2)


def test_a_document_that_comes_back_to_another_profile_is_cut_anew(
    put: Put, document: Find, handbook: Collection, olga: User
) -> None:
    put("a.md", "# A\n\n" + "body words\n\n" * 300)
    held = document("a.md")
    trash_document(document=held, by=olga)
    update_collection(collection=handbook, by=olga, profile=(500, 50, 100))
    drain()
    restore_document(collection=handbook, document_id=held.pk, by=olga)
    drain()
    assert set(DocumentChunk.objects.values_list("profile", flat=True)) == {"chars-500-50-100"}


def test_a_profile_that_changes_while_a_text_is_read(handbook: Collection, olga: User, monkeypatch: Any) -> None:
    read_now = uploads.read_one

    def read_slowly(*given: Any) -> Any:
        reading = read_now(*given)
        if handbook.max_chars == 4000:
            update_collection(collection=handbook, by=olga, profile=(500, 50, 100))
            handbook.refresh_from_db()
        return reading

    monkeypatch.setattr(uploads, "read_one", read_slowly)
    upload_document(collection=handbook, by=olga, source_key="a.md", raw=b"# A\n\n" + b"body words\n\n" * 300)
    assert {len(text) <= 1000 for text in DocumentChunk.objects.values_list("source", flat=True)} == {True}
    assert set(DocumentChunk.objects.values_list("profile", flat=True)) == {"chars-500-50-100"}


def test_a_collection_that_is_deleted_while_a_text_is_read(handbook: Collection, olga: User, monkeypatch: Any) -> None:
    read_now = uploads.read_one

    def read_slowly(*given: Any) -> Any:
        delete_collection(collection=handbook, by=olga)
        return read_now(*given)

    monkeypatch.setattr(uploads, "read_one", read_slowly)
    with pytest.raises(NotFound):
        upload_document(collection=handbook, by=olga, source_key="a.md", raw=b"# A")
    assert not Document.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_change_of_a_collection_keeps_no_upload_waiting(handbook: Collection, olga: User) -> None:
    failures: list[Exception] = []

    def stage() -> None:
        try:
            with transaction.atomic():
                with connection.cursor() as cursor:
                    cursor.execute("SET LOCAL lock_timeout = '5s'")
                stage_batch(collection=handbook, by=olga, entries=[("a.md", b"# A", None)])
        except Exception as error:
            failures.append(error)
        finally:
            connection.close()

    with transaction.atomic():
        update_collection(collection=handbook, by=olga, description="Changed", visibility="public")
        other = threading.Thread(target=stage)
        other.start()
        other.join()
    assert not failures


def test_a_change_of_the_language_indexes_anew(put: Put, handbook: Collection, olga: User) -> None:
    put("a.md", "# Häuser\n\nviele Häuser")
    update_collection(collection=handbook, by=olga, language="german")
    drain()
    stored = IndexedSource.objects.filter(source_id=handbook.pk).values_list("language", flat=True)
    assert set(stored) == {"german"}


@pytest.mark.parametrize("title", ["a\0b", "x" * 1001, "a\x1bb"])
def test_a_bad_title_is_refused_with_its_field(put: Put, title: str) -> None:
    with pytest.raises(Invalid) as caught:
        put("a.md", "# A", title)
    assert caught.value.field == "title"


def test_rights(handbook: Collection, olga: User, wim: User, otto: User) -> None:
    grant(source=handbook, to=wim, level="read", by=olga)
    with pytest.raises(Forbidden):
        upload_document(collection=handbook, by=wim, source_key="a.md", raw=b"x")
    with pytest.raises(NotFound):
        upload_document(collection=handbook, by=otto, source_key="a.md", raw=b"x")
    with pytest.raises(Forbidden):
        delete_collection(collection=handbook, by=wim)


def test_deleting_hides_at_once_and_leaves_no_row(put: Put, handbook: Collection, olga: User) -> None:
    put("a.md", "# A\n\n[b](b.md)")
    delete_collection(collection=handbook, by=olga)
    assert not Collection.objects.visible_to(olga).exists()
    create_collection(by=olga, name="Handbook")
    drain()
    assert Collection.objects.filter(name="Handbook").count() == 1
    assert not Document.objects.exists() and not DocumentChunk.objects.exists()


def test_names_are_unique_for_their_owner_only(handbook: Collection, olga: User, otto: User) -> None:
    with pytest.raises(Refusal) as caught:
        create_collection(by=olga, name="handbook")
    assert caught.value.status == 409
    assert create_collection(by=otto, name="Handbook").slug == "handbook"


def test_names_of_two_owners_do_not_meet(handbook: Collection, otto: User, olga: User, ada: User) -> None:
    other = create_collection(by=otto, name="handbook")
    with pytest.raises(Conflict):
        set_owner(source=handbook, owner=otto, by=ada)
    delete_user(user=olga, by=ada)
    delete_user(user=otto, by=ada)
    assert set(Collection.objects.visible_to(ada).filter(owner=None)) == {handbook, other}


def test_a_header_that_no_database_holds_costs_itself_only(put: Put, document: Find) -> None:
    for key, header in (
        ("value.md", b'title: "a\\0b"'),
        ("list.md", b'tags: [ok, "\\x00"]'),
        ("key.md", b'"k\\u0000": v'),
        ("half.md", b'x: "\\ud800"'),
    ):
        put(key, b"---\n" + header + b"\n---\n# Body")
        assert document(key).state == "indexed"
        assert [(row["code"], row["line"]) for row in document(key).warnings] == [("front_matter_error", 2)]
