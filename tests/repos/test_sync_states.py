"""What becomes of odd files, odd repositories and odd histories."""

from __future__ import annotations

import contextlib
import dataclasses
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from apps.access.errors import Invalid
from apps.indexing import observers
from apps.indexing.models import IndexedSource
from apps.jobs.control import cancel
from apps.jobs.models import Job
from apps.jobs.queue import enqueue
from apps.jobs.worker import drain
from apps.repos.models import Absence, RepositoryDocument, RepositoryDocumentChunk, RepositoryFile
from apps.repos.read_stage import BATCH_FILES
from apps.repos.registration import approve_deletions, change_repository, discard_deletions, request_sync

pytestmark = pytest.mark.django_db

PNG = b"\x89PNG\r\n\x1a\n" + b"\x00" * 60
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 9\n"


def page(number: int) -> str:
    return f"# Page {number}\n\nWords of page number {number} alone.\n"


def notes(job: Any) -> list[str]:
    return [note["message"] for note in job.notes]


def test_repos_fact_04_included_text_file_is_plain_text(upstream: Any, portal: Any, documents: Any) -> None:
    upstream.commit({"notes.txt": "# not a heading\n\nplain words", "LICENSE": "x"})
    repository, _ = portal.synced(upstream, include=["**/*.txt"])
    assert {path: (d.kind, d.title) for path, d in documents(repository).items()} == {
        "notes.txt": ("repo_doc", "notes.txt")
    }


def test_repos_fact_05_case_B087_access_fact_50_nothing_matches(upstream: Any, portal: Any) -> None:
    upstream.commit({f"docs/p{number}.md": page(number) for number in range(120)})
    repository, job = portal.synced(upstream, only=["documentation/**"])
    assert job.state_words == "done with warnings"
    assert notes(job) == ["0 of 120 files matched"]
    samples = job.notes[0]["samples"]
    assert len(samples) == 10
    assert samples[0] == {"path": "docs/p0.md", "reason": "filtered"}
    assert job.sync_report.not_taken["filtered"]["count"] == 120
    assert not RepositoryDocument.objects.filter(repository=repository).exists()


def test_repos_fact_06_case_B036_access_fact_38_links_are_not_followed(
    upstream: Any, portal: Any, items: Any, documents: Any
) -> None:
    upstream.commit(
        {
            "docs/guide.md": "# Guide\n\ntext",
            "docs/leak.md": "→../../../../etc/hostname",
            "docs/dir": "→/",
            "docs/alias.md": "→guide.md",
        }
    )
    repository, job = portal.synced(upstream)
    found = items(job)
    assert {path: (item.state, item.reason) for path, item in found.items()} == {
        "docs/guide.md": ("created", ""),
        "docs/leak.md": ("skipped", "symlink outside root"),
        "docs/dir": ("skipped", "symlink outside root"),
        "docs/alias.md": ("skipped", "symlink"),
    }
    assert set(documents(repository)) == {"docs/guide.md"}
    again = portal.sync(repository)
    assert {i.path: i.reason for i in again.items.filter(state="skipped")} == {
        path: item.reason for path, item in found.items() if item.state == "skipped"
    }


def test_repos_fact_07_case_B035_pointer_and_submodule(
    upstream: Any, portal: Any, items: Any, new_upstream: Any
) -> None:
    inner = new_upstream("inner")
    commit = inner.commit({"x.md": "# X"})
    upstream.commit({"a.md": "# A\n\ntext", "big.md": POINTER})
    upstream.git("update-index", "--add", "--cacheinfo", f"160000,{commit},vendor/docs")
    upstream.git("commit", "-q", "-m", "submodule")
    _, job = portal.synced(upstream)
    found = items(job)
    assert found["big.md"].reason == "LFS pointer, content not fetched"
    assert found["vendor/docs"].reason == "submodule not fetched"
    assert commit in found["vendor/docs"].message
    assert not RepositoryDocumentChunk.objects.filter(source__contains="oid sha256").exists()
    assert not RepositoryFile.objects.filter(text__contains="oid sha256").exists()


def test_repos_fact_08_case_B034_binary_files(upstream: Any, portal: Any, items: Any, documents: Any) -> None:
    upstream.commit({"a.md": "# A\n\ntext", "img.zip": b"PK\x03\x04" + bytes(90), "fake.md": PNG})
    repository, job = portal.synced(upstream)
    assert job.state_words == "done with warnings"
    assert set(documents(repository)) == {"a.md"}
    assert items(job)["fake.md"].reason == "binary"
    assert job.sync_report.not_taken["binary"]["samples"] == ["img.zip"]


def test_repos_fact_09_case_B012_each_bad_file_costs_itself_only(
    upstream: Any, portal: Any, items: Any, documents: Any
) -> None:
    upstream.commit(
        {
            "bad.md": "---\npath: C:\\x: y\n---\n# Bad\n\nbody",
            "latin.md": b"# Caf\xe9\n\ntext",
            "nul.md": b"# A\nx\x00y",
            "good.md": "# Good\n\ntext",
        }
    )
    repository, job = portal.synced(upstream)
    assert len(documents(repository)) == 4
    found = items(job)
    assert {path: (item.reason, item.warning) for path, item in found.items()} == {
        "bad.md": ("front_matter_error", True),
        "latin.md": ("encoding_guessed", True),
        "nul.md": ("nul_replaced", True),
        "good.md": ("", False),
    }
    assert (found["bad.md"].line, found["bad.md"].column) == (2, 11)
    assert job.warnings == 3
    assert job.counters["clean"] == 1
    assert "1 of 4 clean" in job.outcome
    assert job.state_words == "done with warnings"
    again = portal.sync(repository)
    assert again.warnings == 3, "what is still wrong is told again"
    assert again.counters["indexed_documents"] == 0


@pytest.mark.parametrize("header", ["a:\n\t- b", "title: *Draft*"])
def test_repos_case_B012_other_errors(upstream: Any, portal: Any, documents: Any, header: str) -> None:
    upstream.commit({"bad.md": f"---\n{header}\n---\n# T\n\nbody", "good.md": "# G\n\nx"})
    repository, job = portal.synced(upstream)
    found = documents(repository)
    assert (found["bad.md"].title, found["bad.md"].frontmatter) == ("T", {})
    assert found["bad.md"].chunk_count
    assert job.state_words == "done with warnings"


def test_repos_fact_10_case_B084_case_B027_empty_file_and_empty_repository(
    upstream: Any, portal: Any, new_upstream: Any, documents: Any
) -> None:
    good = new_upstream("good")
    good.commit({"empty.md": "", "ws.md": " \n\n", "fm.md": "---\ntitle: Only\n---\n", "a.md": "# A\n\nx"})
    empty, empty_job = portal.synced(upstream)
    repository, job = portal.synced(good)
    assert (empty.state, empty_job.status) == ("empty", "success")
    assert (repository.state, job.status) == ("ready", "success")
    states = {path: (d.state, d.chunk_count, d.title) for path, d in documents(repository).items()}
    assert states["empty.md"] == ("empty", 0, "empty.md")
    assert states["fm.md"] == ("empty", 0, "Only")
    upstream.commit({"a.md": "# A"})
    portal.sync(empty)
    assert empty.state == "ready"


def test_a_sync_that_changed_nothing_reports_all_and_queues_nothing(
    upstream: Any, portal: Any, items: Any, settings: Any
) -> None:
    upstream.commit({"a.md": page(1), "b.md": "# B\n\n```\nnever closed\n", "link.md": "→a.md"})
    repository, first = portal.synced(upstream)
    drain()
    jobs = [portal.sync(repository) for _ in range(3)]
    assert not Job.objects.live().exists(), "what follows on changes has nothing to do"
    told = {path: (item.state, item.reason) for path, item in items(jobs[-1]).items()}
    assert {path: state for path, (state, _) in told.items()} == {
        "a.md": "unchanged", "b.md": "unchanged", "link.md": "skipped",
    }  # fmt: skip
    assert told["b.md"][1] == items(first)["b.md"].reason != ""
    assert {item.state for item in items(jobs[0]).values()} == {"skipped"}, "only the newest report has the rest"
    assert jobs[-1].counters["unchanged_documents"] == 2
    assert jobs[-1].warnings == first.warnings == 1
    assert {job.reporter_id for job in jobs} == {jobs[0].pk}, "the lines are stored once, however often nobody changed"
    keep = dataclasses.replace(settings.COGRAPH.retention, reports=0)
    settings.COGRAPH = dataclasses.replace(settings.COGRAPH, retention=keep)
    old = timezone.now() - timedelta(days=90)
    Job.objects.filter(kind="sync").exclude(pk=jobs[-1].pk).update(finished_at=old)
    enqueue("retention")
    drain()
    assert not Job.objects.filter(pk__in=(first.pk, jobs[1].pk)).exists()
    assert set(items(jobs[-1])) == set(told), "the job that holds its lines is kept with it"
    upstream.commit({"a.md": page(2)})
    last = portal.sync(repository)
    assert {path: item.state for path, item in items(last).items()} == {
        "a.md": "replaced", "b.md": "unchanged", "link.md": "skipped",
    }  # fmt: skip
    assert {item.state for item in items(jobs[-1]).values()} <= {"skipped"}
    assert Job.objects.live().filter(kind="embed").exists()


def test_repos_fact_25_nothing_is_read_twice(upstream: Any, portal: Any, items: Any) -> None:
    paragraphs = [f"## Part {n}\n\nParagraph number {n} of this page.\n" for n in range(40)]
    upstream.commit({"long.md": "\n".join(paragraphs), "b.md": page(2)})
    repository, _ = portal.synced(upstream)
    before = dict(RepositoryDocumentChunk.objects.values_list("pk", "source"))
    job = portal.sync(repository)
    assert job.counters["unchanged_documents"] == 2
    assert {item.state for item in job.items.all()} == {"unchanged"}
    assert all(item.milliseconds is None for item in job.items.all()), "nothing was parsed"
    paragraphs[17] = "## Part 17\n\nAnother text stands here now.\n"
    upstream.commit({"long.md": "\n".join(paragraphs)})
    job = portal.sync(repository)
    after = dict(RepositoryDocumentChunk.objects.values_list("pk", "source"))
    assert len(after) == len(before)
    assert len(set(after) - set(before)) == 1
    assert items(job)["long.md"].details["kept"] == 39


def test_repos_fact_27_case_B066_removed_is_nowhere(upstream: Any, portal: Any) -> None:
    upstream.commit({"gone.md": "# Gone\n\nxylophonic words", "a.md": page(1)})
    repository, _ = portal.synced(upstream)
    upstream.commit({"gone.md": None})
    removing = upstream.git("rev-parse", "HEAD")
    job = portal.sync(repository)
    assert job.counters["deleted_documents"] == 1
    assert not RepositoryDocument.objects.filter(text__contains="xylophonic").exists()
    assert not RepositoryDocumentChunk.objects.filter(source__contains="xylophonic").exists()
    assert not RepositoryFile.objects.filter(path="gone.md").exists()
    redirect = repository.redirects.get(slug="gone")
    assert (redirect.document, redirect.commit) == (None, removing)
    upstream.commit({"gone.md": "# Back"})
    portal.sync(repository)
    assert not repository.redirects.exists(), "a living page has its address again"


def test_repos_fact_28_equal_texts_are_two_documents(upstream: Any, portal: Any, documents: Any) -> None:
    upstream.commit({"a.md": "# Same\n\ntext", "b.md": "# Same\n\ntext"})
    repository, _ = portal.synced(upstream)
    assert len({d.slug for d in documents(repository).values()}) == 2
    hashes = RepositoryDocumentChunk.objects.values_list("embed_hash", flat=True)
    assert len({bytes(value) for value in hashes}) == 1


def test_repos_fact_30_profile(upstream: Any, portal: Any, new_upstream: Any, documents: Any) -> None:
    text = "# T\n\n" + " ".join(f"w{n}" for n in range(600))
    upstream.commit({"a.md": text, "b.md": page(1)})
    other = new_upstream("other")
    other.commit({"a.md": text})
    repository, _ = portal.synced(upstream)
    untouched, _ = portal.synced(other)
    rows = set(untouched.documents.values_list("pk", "updated_at"))
    change_repository(repository=repository, by=portal.admin, max_words=256, overlap_words=32)
    repository.refresh_from_db()
    job = portal.sync(repository)
    assert job.counters["indexed_documents"] == 2
    assert job.counters["replaced_files"] == 0
    assert {d.chunk_profile for d in documents(repository).values()} == {"words:256/32/8000"}
    assert documents(repository)["a.md"].chunk_count == 3
    assert set(untouched.documents.values_list("pk", "updated_at")) == rows


@pytest.mark.parametrize("depth", [None, 1])
def test_repos_fact_31_case_B081_rewritten_history(
    upstream: Any, portal: Any, documents: Any, depth: int | None
) -> None:
    upstream.commit({"a.md": page(1), "b.md": page(2)})
    upstream.commit({"a.md": page(3)})
    repository, _ = portal.synced(upstream, depth=depth)
    upstream.git("checkout", "-q", "--orphan", "fresh")
    upstream.git("rm", "-r", "-q", "-f", ".")
    upstream.commit({"a.md": page(9), "c.md": page(4)})
    upstream.git("branch", "-D", "main")
    upstream.git("branch", "-m", "main")
    job = portal.sync(repository)
    assert job.status == "success", job.error_message
    assert {path: d.title for path, d in documents(repository).items()} == {"a.md": "Page 9", "c.md": "Page 4"}
    assert job.sync_report.totals["rewritten"] is True
    assert "rewritten" in job.outcome


def test_repos_rule_1_5_shallow_gives_the_same_documents(upstream: Any, portal: Any, new_upstream: Any) -> None:
    upstream.commit({"a.md": page(1)})
    upstream.commit({"b.md": page(2)})
    full, _ = portal.synced(upstream)
    shallow, _ = portal.synced(upstream, depth=1, name="shallow")
    rows = ("path", "title", "content_hash", "slug")
    assert list(full.documents.order_by("path").values_list(*rows)) == list(
        shallow.documents.order_by("path").values_list(*rows)
    )
    upstream.commit({"c.md": page(3)})
    assert portal.sync(shallow).counters["indexed_documents"] == 1


def test_repos_fact_32_case_B082_default_follows_head(upstream: Any, portal: Any, documents: Any) -> None:
    upstream.git("checkout", "-q", "-b", "master")
    upstream.commit({"a.md": page(1)})
    default, _ = portal.synced(upstream)
    fixed, _ = portal.synced(upstream, branch="master", name="fixed")
    assert (default.synced_branch, fixed.synced_branch) == ("master", "master")
    upstream.git("branch", "-m", "master", "trunk")
    upstream.commit({"b.md": page(2)})
    assert portal.sync(default).status == "success"
    assert default.synced_branch == "trunk"
    job = portal.sync(fixed)
    assert (job.status, job.error_code) == ("error", "branch_not_found")
    assert set(documents(fixed)) == {"a.md"}


def test_access_fact_53_gone_upstream(upstream: Any, portal: Any, documents: Any) -> None:
    upstream.commit({"a.md": page(1)})
    repository, _ = portal.synced(upstream)
    upstream.path.rename(upstream.path.with_name("elsewhere"))
    job = portal.sync(repository)
    assert (job.status, job.error_code) == ("error", "not_found_upstream")
    assert repository.state == "not_found_upstream"
    assert set(documents(repository)) == {"a.md"}
    upstream.path.with_name("elsewhere").rename(upstream.path)
    portal.sync(repository)
    assert repository.state == "ready"


def test_repos_fact_38_no_page_changes_its_address(upstream: Any, portal: Any, documents: Any) -> None:
    upstream.commit({"docs/overview.md": page(1), "overview.md": page(2)})
    repository, _ = portal.synced(upstream)
    slugs = {path: d.slug for path, d in documents(repository).items()}
    assert slugs["docs/overview.md"] == "overview"
    assert slugs["overview.md"] == "overview-" + documents(repository)["overview.md"].pk.hex[-4:]
    upstream.commit({"doc/overview.md": page(3)})
    portal.sync(repository)
    after = {path: d.slug for path, d in documents(repository).items()}
    assert {path: after[path] for path in slugs} == slugs


def test_repos_rule_7_2_a_freed_address_goes_to_the_newcomer_of_the_same_run(
    upstream: Any, portal: Any, documents: Any
) -> None:
    upstream.commit({"docs/a.md": page(1)})
    repository, _ = portal.synced(upstream)
    upstream.commit({"docs/a.md": None, "a.md": "# Quite\n\nanother thing altogether"})
    portal.sync(repository)
    assert {path: d.slug for path, d in documents(repository).items()} == {"a.md": "a"}


def test_repos_rule_6_5_several_equal_files_move_by_path_ending(upstream: Any, portal: Any, documents: Any) -> None:
    upstream.commit({"x/a/i.md": "# Same\n\nt", "x/b/i.md": "# Same\n\nt"})
    repository, _ = portal.synced(upstream)
    ids = {path: d.pk for path, d in documents(repository).items()}
    upstream.git("mv", "x", "y")
    upstream.commit()
    job = portal.sync(repository)
    assert {path: d.pk for path, d in documents(repository).items()} == {
        "y/a/i.md": ids["x/a/i.md"],
        "y/b/i.md": ids["x/b/i.md"],
    }
    assert job.counters["moved"] == 2


def test_repos_rule_6_5_moved_and_edited(upstream: Any, portal: Any, documents: Any, items: Any) -> None:
    parts = [f"## Part {n}\n\nText number {n} of it.\n" for n in range(6)]
    upstream.commit({"old.md": "\n".join(parts), "z.md": page(1)})
    repository, _ = portal.synced(upstream)
    before = documents(repository)["old.md"]
    parts[0] = "## Part 0\n\nNew words.\n"
    upstream.commit({"old.md": None, "deep/new.md": "\n".join(parts)})
    job = portal.sync(repository)
    after = documents(repository)
    assert after["deep/new.md"].pk == before.pk
    assert items(job)["deep/new.md"].state == "moved"
    assert job.counters["deleted_documents"] == 0
    assert repository.redirects.get(slug="old").document_id == before.pk


def test_repos_rule_6_5_a_renamed_page_without_title_gets_its_new_name(
    upstream: Any, portal: Any, documents: Any
) -> None:
    upstream.commit({"one.md": "just text"})
    repository, _ = portal.synced(upstream)
    upstream.git("mv", "one.md", "two.md")
    upstream.commit()
    portal.sync(repository)
    assert documents(repository)["two.md"].title == "two.md"


def test_repos_rule_6_5_chain_of_moves(upstream: Any, portal: Any, documents: Any) -> None:
    upstream.commit({"docs/a.md": page(1), "b.md": page(2)})
    repository, _ = portal.synced(upstream)
    ids = {d.title: d.pk for d in documents(repository).values()}
    upstream.git("mv", "b.md", "c.md")
    upstream.git("mv", "docs/a.md", "docs/b.md")
    upstream.commit()
    portal.sync(repository)
    found = documents(repository)
    assert {d.title: d.pk for d in found.values()} == ids
    assert {path: d.slug for path, d in found.items()} == {"c.md": "c", "docs/b.md": "b"}


@pytest.mark.parametrize(("gone", "held"), [(10, 0), (11, 11)])
def test_repos_rule_6_7_held_deletions(upstream: Any, portal: Any, documents: Any, gone: int, held: int) -> None:
    upstream.commit({f"p{n:03}.md": page(n) for n in range(100)})
    repository, _ = portal.synced(upstream)
    upstream.commit({f"p{n:03}.md": None for n in range(gone)})
    job = portal.sync(repository)
    assert (job.counters["held"], job.counters["deleted_documents"]) == (held, gone - held)
    assert RepositoryDocument.objects.filter(repository=repository).held().count() == held
    if held:
        assert "11 deletions wait" in job.outcome
        upstream.commit({"p000.md": page(0)})
        portal.sync(repository)
        assert documents(repository)["p000.md"].absence == Absence.NONE, "it came back"
        discard_deletions(repository=repository, by=portal.admin, documents=[documents(repository)["p001.md"].pk])
        drain()
        approve_deletions(repository=repository, by=portal.admin)
        drain()
        assert len(documents(repository)) == 91
        assert documents(repository)["p001.md"].absence == Absence.KEPT
        assert portal.sync(repository).counters["held"] == 0
        assert "p001.md" in documents(repository)


@pytest.mark.parametrize("changed", [True, False])
def test_repos_rule_6_7_what_was_approved_goes_though_its_job_was_cancelled(
    upstream: Any, portal: Any, documents: Any, changed: bool
) -> None:
    upstream.commit({f"p{n:03}.md": page(n) for n in range(30)})
    repository, _ = portal.synced(upstream)
    upstream.commit({f"p{n:03}.md": None for n in range(20)})
    portal.sync(repository)
    cancel(approve_deletions(repository=repository, by=portal.admin).job, by=portal.admin)
    if changed:
        upstream.commit({"p029.md": page(99)})
    portal.sync(repository)
    assert len(documents(repository)) == 10


def test_repos_rule_6_7_an_empty_listing_deletes_nothing(upstream: Any, portal: Any, documents: Any) -> None:
    upstream.commit({"a.md": page(1)})
    repository, _ = portal.synced(upstream)
    upstream.commit({"a.md": None})
    job = portal.sync(repository)
    assert (job.counters["held"], job.counters["deleted_documents"]) == (1, 0)
    assert set(documents(repository)) == {"a.md"}


def test_repos_rule_6_7_a_filter_deletes_at_once(upstream: Any, portal: Any, documents: Any) -> None:
    upstream.commit({f"old/p{n}.md": page(n) for n in range(20)} | {"a.md": page(99)})
    repository, _ = portal.synced(upstream)
    change_repository(repository=repository, by=portal.admin, exclude=["old/**"])
    repository.refresh_from_db()
    job = portal.sync(repository)
    assert (job.counters["held"], job.counters["deleted_documents"]) == (0, 20)
    assert set(documents(repository)) == {"a.md"}


def test_repos_case_B094_access_fact_47_report_per_file(upstream: Any, portal: Any, items: Any, settings: Any) -> None:
    settings.COGRAPH = dataclasses.replace(
        settings.COGRAPH, markup=dataclasses.replace(settings.COGRAPH.markup, max_file_bytes=1000)
    )
    upstream.commit(
        {"ok.md": "# OK\n\nfine", "huge.md": "x" * 1001, "bad-yaml.md": "---\na: 1\nb: [\n---\n# T\n\nbody"}
    )
    _, job = portal.synced(upstream)
    found = items(job)
    assert (found["ok.md"].state, found["ok.md"].warning) == ("created", False)
    assert (found["huge.md"].state, found["huge.md"].reason) == ("skipped", "too_large")
    assert (found["bad-yaml.md"].state, found["bad-yaml.md"].reason) == ("created", "front_matter_error")
    assert found["bad-yaml.md"].line
    assert found["ok.md"].milliseconds is not None
    assert (job.status, job.warnings) == ("success", 2)
    assert "1 of 3 clean" in job.outcome
    counters = job.counters
    assert counters["discovered_files"] == counters["indexed_documents"] + counters["skipped"]


def test_access_fact_49_odd_bytes(upstream: Any, portal: Any, documents: Any, items: Any) -> None:
    upstream.commit({"nul.md": b"# A\nx\x00y", "latin.md": b"# Caf\xe9\n\nx", "png.md": PNG, "empty.md": b""})
    repository, job = portal.synced(upstream)
    found = documents(repository)
    assert set(found) == {"nul.md", "latin.md", "empty.md"}
    assert "�" in found["nul.md"].text
    assert found["latin.md"].title == "Café"
    assert items(job)["png.md"].reason == "binary"
    assert (found["empty.md"].state, found["empty.md"].chunk_count) == ("empty", 0)


def test_repos_rule_2_1_paths_that_are_no_utf8(upstream: Any, portal: Any, documents: Any) -> None:
    upstream.commit({"a.md": page(1)})
    blob = upstream.git("rev-parse", "HEAD:a.md")
    import subprocess

    subprocess.run(
        ["git", "update-index", "--add", "--cacheinfo", b"100644," + blob.encode() + b",docs/\xe9.md"],
        cwd=upstream.path,
        check=True,
    )
    upstream.git("commit", "-q", "-m", "odd name")
    repository, job = portal.synced(upstream)
    assert job.status == "success", job.error_message
    assert set(documents(repository)) == {"a.md", "docs/%E9.md"}
    assert portal.sync(repository).counters["unchanged_documents"] == 2


def test_repos_rule_6_3_commit_dates(upstream: Any, portal: Any, documents: Any) -> None:
    first = upstream.commit({"a.md": page(1), "b.md": page(2)})
    second = upstream.commit({"b.md": page(3)})
    repository, _ = portal.synced(upstream)
    found = documents(repository)
    assert (found["a.md"].commit, found["b.md"].commit) == (first, second)
    third = upstream.commit({"a.md": page(4)})
    portal.sync(repository)
    found = documents(repository)
    assert (found["a.md"].commit, found["b.md"].commit) == (third, second)


def test_repos_fact_24_kind_of_a_path_that_became_binary(upstream: Any, portal: Any, documents: Any) -> None:
    upstream.commit({"a.md": page(1), "b.md": page(2)})
    repository, _ = portal.synced(upstream)
    upstream.commit({"b.md": PNG})
    job = portal.sync(repository)
    assert set(documents(repository)) == {"a.md"}
    assert (job.counters["deleted_documents"], job.counters["skipped"]) == (1, 1)


def test_repos_rule_6_2_again_params_join(upstream: Any, portal: Any) -> None:
    upstream.commit({"a.md": page(1)})
    repository = portal.add(upstream)
    first = request_sync(repository=repository, by=portal.admin)
    second = request_sync(repository=repository, by=portal.admin)
    assert (first.job.pk, second.deduplicated) == (second.job.pk, True)


def test_repos_language_change_indexes_anew(upstream: Any, portal: Any) -> None:
    upstream.commit({"a.md": "# A\n\nLaufende Häuser"})
    repository, _ = portal.synced(upstream)
    change_repository(repository=repository, by=portal.admin, language="german")
    repository.refresh_from_db()
    job = portal.sync(repository)
    assert job.counters["indexed_documents"] == 0
    assert IndexedSource.objects.get(source_id=repository.pk, store="repo_docs").language == "german"
    with pytest.raises(Invalid) as refusal:
        change_repository(repository=repository, by=portal.admin, language="klingon")
    assert refusal.value.field == "language"


def test_access_rule_46_cancelled_between_batches(upstream: Any, portal: Any, monkeypatch: Any) -> None:
    class Canceller:
        def stored(self, changes: Any) -> None:
            Job.objects.filter(kind="sync", status="running").update(cancel_requested=True)

        def removing(self, documents: Any) -> Any:
            return contextlib.nullcontext()

    upstream.commit({f"p{number:03}.md": page(number) for number in range(BATCH_FILES + 20)})
    repository = portal.add(upstream)
    monkeypatch.setattr(observers, "_observers", [Canceller()])
    job = portal.sync(repository)
    assert job.status == "cancelled"
    stored = RepositoryDocument.objects.filter(repository=repository)
    assert stored.count() == BATCH_FILES
    assert RepositoryDocumentChunk.objects.filter(repository=repository).count() == BATCH_FILES
    assert repository.state == "never_synced"
    monkeypatch.setattr(observers, "_observers", [])
    job = portal.sync(repository)
    assert (job.status, stored.count(), job.counters["indexed_documents"]) == ("success", BATCH_FILES + 20, 20)
